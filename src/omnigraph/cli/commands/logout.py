"""`omnigraph logout`."""

from argparse import ArgumentParser

from omnigraph.cli import config
from omnigraph.cli.arguments import add_json
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the server")
    add_json(parser)


def _run(call: Call) -> int:
    name = call.args.name
    had = config.remember(name, None)
    return call.show(
        {"name": name, "removed": had}, f"forgot the token of {name}" if had else f"no token of {name} was stored"
    )


COMMANDS = {"": Command(_run, _arguments, "  omnigraph logout prod")}
