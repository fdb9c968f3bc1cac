"""`omnigraph login`."""

import sys
from argparse import ArgumentParser

from omnigraph.cli import config
from omnigraph.cli.arguments import add_json
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.errors import InvalidRequestError


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the server, as in the configuration")
    parser.add_argument(
        "--token", metavar="TOKEN", help="the token; else one line of stdin, which no process list shows"
    )
    add_json(parser)


def _run(call: Call) -> int:
    name = call.args.name
    token = call.args.token if call.args.token is not None else sys.stdin.readline()
    if not token.strip():
        raise InvalidRequestError("the token is empty")
    config.remember(name, token.strip())
    path = str(config.home() / "credentials")
    return call.show({"name": name, "credentials": path, "stored": True}, f"stored the token of {name} in {path}")


COMMANDS = {"": Command(_run, _arguments, "  omnigraph login prod < token.txt")}
