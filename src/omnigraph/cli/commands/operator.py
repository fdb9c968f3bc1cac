"""Manage the operator's tokens and profiles: `login`, `logout`, `profile …`, `graphs list`, `version`."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from omnigraph.cli import config
from omnigraph.cli.arguments import add_json
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.errors import InvalidRequestError
from omnigraph.version import INTERNAL_SCHEMA, VERSION, version_lines


def _login_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="configured name of the server")
    parser.add_argument(
        "--token", metavar="TOKEN", help="the token; without it, a line of stdin, which no process list shows"
    )
    add_json(parser)


def _login(context: CommandContext) -> int:
    name = context.args.name
    token = context.args.token if context.args.token is not None else sys.stdin.readline()
    if not token.strip():
        raise InvalidRequestError("the token is empty")
    config.store_token(name, token.strip())
    path = str(config.home() / "credentials")
    return context.show({"name": name, "credentials": path, "stored": True}, f"stored the token of {name} in {path}")


def _logout_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="configured name of the server")
    add_json(parser)


def _logout(context: CommandContext) -> int:
    name = context.args.name
    removed = config.delete_token(name)
    return context.show(
        {"name": name, "removed": removed},
        f"deleted the token of {name}" if removed else f"no token of {name} was stored",
    )


def _list_profiles(context: CommandContext) -> int:
    profiles = context.config.profiles
    documents = [_profile_document(name, profile) for name, profile in sorted(profiles.items())]
    return context.show({"profiles": documents}, *(_profile_line(document) for document in documents))


def _profile_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the profile; else $OMNIGRAPH_PROFILE")
    add_json(parser)


def _show_profile(context: CommandContext) -> int:
    name = context.args.name or os.environ.get("OMNIGRAPH_PROFILE")
    if name is None:
        raise InvalidRequestError("which profile? name one, or set OMNIGRAPH_PROFILE")
    profile = context.config.profiles.get(name)
    if profile is None:
        raise InvalidRequestError(f"unknown profile '{name}' (not defined under `profiles:` in operator config)")
    document = _profile_document(name, profile)
    return context.show(document, *(f"{key}: {value}" for key, value in document.items()))


def _profile_document(name: str, profile: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        **{key: profile[key] for key in ("server", "cluster", "store", "default_graph") if key in profile},
    }


def _profile_line(document: Mapping[str, Any]) -> str:
    return " ".join([document["name"], *(f"{key}={value}" for key, value in document.items() if key != "name")])


def _list_graphs(context: CommandContext) -> int:
    scope = context.scope
    if scope.kind != "server":
        raise InvalidRequestError(f"which server? `{context.spec.name}` needs --server NAME|URL, not {scope.address}")
    from omnigraph.client.connect import graphs_at  # noqa: PLC0415  (imports pyarrow; help must not: test_startup)

    graphs = graphs_at(scope.address, token=config.token_for(context.config, scope.address))
    return context.show({"graphs": graphs}, *(f"{graph['graph_id']}\t{graph['uri']}" for graph in graphs))


def _version(context: CommandContext) -> int:
    return context.show({"version": VERSION, "internal_schema_version": INTERNAL_SCHEMA}, version_lines())


COMMANDS = {
    "login": Command(_login, _login_arguments, "  omnigraph login prod < token.txt"),
    "logout": Command(_logout, _logout_arguments, "  omnigraph logout prod"),
    "profile list": Command(_list_profiles, add_json, "  omnigraph profile list"),
    "profile show": Command(_show_profile, _profile_arguments, "  omnigraph profile show work"),
    "graphs list": Command(_list_graphs, add_json, "  omnigraph graphs list --server prod"),
    "version": Command(_version, add_json, "  omnigraph version"),
}
