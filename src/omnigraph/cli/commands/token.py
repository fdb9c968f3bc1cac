"""Manage the bearer tokens of a server: `token create`, `token list`, `token revoke`."""

import os
from argparse import ArgumentParser
from pathlib import Path

from omnigraph.cli.arguments import add_json
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.errors import AlreadyExistsError, InvalidRequestError, NotFoundError

_VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"


def _file_argument(parser: ArgumentParser) -> None:
    parser.add_argument("--file", metavar="FILE", help=f"token file of the server; else ${_VARIABLE}")
    add_json(parser)


def _actor_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("actor", metavar="ACTOR", help="who the token belongs to")
    _file_argument(parser)


def _path(context: CommandContext) -> Path:
    named = context.args.file or os.environ.get(_VARIABLE)
    if not named:
        raise InvalidRequestError(f"which token file? name it with --file, or set {_VARIABLE}", code="no_address")
    return Path(named)


def _create(context: CommandContext) -> int:
    from omnigraph.server.tokens import change_token_file, new_token  # noqa: PLC0415  (only for this command)

    actor, path = context.args.actor.strip(), _path(context)
    if not actor:
        raise InvalidRequestError("the actor is empty")
    token, digest = new_token()

    def add(pairs: dict[str, str]) -> None:
        if actor in pairs:
            raise AlreadyExistsError(f"actor '{actor}' has a token in {path}; revoke it first", code="token_exists")
        pairs[actor] = digest

    change_token_file(path, add)
    context.note(f"the token of {actor} is shown once: {path} holds only its digest")
    return context.show({"actor": actor, "token": token, "file": str(path)}, token)


def _list(context: CommandContext) -> int:
    from omnigraph.server.tokens import read_token_file  # noqa: PLC0415  (only for this command)

    actors = sorted(read_token_file(_path(context)))
    return context.show({"actors": actors}, *actors)


def _revoke(context: CommandContext) -> int:
    from omnigraph.server.tokens import change_token_file  # noqa: PLC0415  (only for this command)

    actor, path = context.args.actor.strip(), _path(context)

    def remove(pairs: dict[str, str]) -> None:
        if pairs.pop(actor, None) is None:
            raise NotFoundError(f"actor '{actor}' has no token in {path}", code="token_not_found")

    change_token_file(path, remove)
    return context.show({"actor": actor, "revoked": True}, f"revoked the token of {actor}")


COMMANDS = {
    "token create": Command(_create, _actor_arguments, "  omnigraph token create ann --file tokens.json"),
    "token list": Command(_list, _file_argument, "  omnigraph token list --file tokens.json"),
    "token revoke": Command(_revoke, _actor_arguments, "  omnigraph token revoke ann --file tokens.json"),
}
