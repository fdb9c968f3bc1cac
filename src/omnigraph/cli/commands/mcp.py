"""`omnigraph mcp`."""

from argparse import ArgumentParser
from importlib.util import find_spec

from omnigraph.cli.arguments import add_positional_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.errors import InvalidRequestError

_EXAMPLES = """\
  omnigraph mcp ./library
  omnigraph mcp ./library --allow-writes --as helper"""
_DESCRIPTION = """\
Offer a graph to an agent, as tools of the Model Context Protocol over stdin and stdout: schema, query, neighbourhood,
search, branch and diff. With --allow-writes an agent may also make branches and propose changes on them; it writes to
main only with --allow-main. Ends when stdin does."""


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--allow-writes", action="store_true", help="make branches, and write to them")
    parser.add_argument("--allow-main", action="store_true", help="write to main too; implies --allow-writes")


def _run(call: Call) -> int:
    if find_spec("mcp") is None:
        raise InvalidRequestError(
            "`omnigraph mcp` needs the package mcp, which is not installed; run: pip install 'omnigraph[mcp]'",
            code="not_installed",
        )
    writes = call.args.allow_writes or call.args.allow_main
    with call.graph(read_only=not writes) as graph:
        from omnigraph.mcp.serve import serve  # noqa: PLC0415  (heavy, and only there with an extra)
        from omnigraph.mcp.tools import Permissions  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

        serve(graph, Permissions(writes=writes, main=call.args.allow_main, actor=call.actor))
    return 0


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES, _DESCRIPTION)}
