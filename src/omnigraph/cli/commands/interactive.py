"""Use a graph interactively, by a person or an agent: `shell`, `mcp`, `demo`."""

import shutil
import sys
from argparse import ArgumentParser
from contextlib import redirect_stdout
from importlib.util import find_spec

from omnigraph.cli.arguments import add_branch, add_positional_uri
from omnigraph.cli.config import home
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.errors import InvalidRequestError

_SHELL_EXAMPLES = """\
  omnigraph shell ./library
  omnigraph shell ./library --branch review < statements.txt"""
_SHELL_DESCRIPTION = """\
Query a graph interactively. Statements are queries and mutations, with or without `query name() { … }` around them; a
statement continues over lines until its brackets are closed. A line that begins with a backslash is a command: \\help.

If stdin is not a terminal, statements are read from it, and the first that fails ends the run with code 1."""
_MCP_EXAMPLES = """\
  omnigraph mcp ./library
  omnigraph mcp ./library --allow-writes --as helper"""
_MCP_DESCRIPTION = """\
Serve a graph to an agent, as tools of the Model Context Protocol over stdin and stdout: schema, query, neighbourhood,
search, branch and diff. With --allow-writes an agent may also create branches and propose changes on them; it writes to
main only with --allow-main. Ends when stdin does."""
_DEMO_DESCRIPTION = """\
Tour the features on a graph in a temporary folder: load on Spark, query, write concurrently, recover from a killed
process, branch, merge and verify. Every number it prints was measured or counted in that run, which takes a minute or
two."""


def _shell_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser, help="branch to start on; main by default")
    parser.add_argument("--read-only", action="store_true", help="refuse to write")


def _shell(context: CommandContext) -> int:
    with context.graph(read_only=context.args.read_only) as graph:
        from omnigraph.cli.shell.session import Session  # noqa: PLC0415  (imports lance; help must not: test_startup)
        from omnigraph.cli.shell.statement import statements  # noqa: PLC0415  (only for this command)

        is_terminal = sys.stdin.isatty() and context.stdout.isatty()
        session = Session(
            graph,
            branch=context.args.branch or "main",
            actor=context.actor,
            print_line=context.print,
            print_error=context.print if is_terminal else context.note,
            width=lambda: shutil.get_terminal_size().columns,
        )
        graph.snapshot(branch=session.view.branch)  # reports a missing branch now
        if is_terminal:
            from omnigraph.cli.shell.prompt import Terminal  # noqa: PLC0415  (only for a terminal)

            context.print(f"{graph.uri}: type \\help for help, Ctrl-D to leave")
            Terminal(session, history=home() / "shell_history", colours=context.has_colours).run()
            return 0

        for text in statements(sys.stdin):
            if not session.execute(text):
                return 1
            if session.is_over:
                break
        return 0


def _mcp_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--allow-writes", action="store_true", help="allow creating branches and writing to them")
    parser.add_argument("--allow-main", action="store_true", help="allow writing to main too; implies --allow-writes")


def _mcp(context: CommandContext) -> int:
    if find_spec("mcp") is None:
        raise InvalidRequestError(
            "`omnigraph mcp` needs the package mcp, which is not installed; run: pip install 'omnigraph[mcp]'",
            code="not_installed",
        )
    writes = context.args.allow_writes or context.args.allow_main
    with context.graph(read_only=not writes) as graph:
        from omnigraph.mcp.server import serve  # noqa: PLC0415  (heavy, and installed only with an extra)
        from omnigraph.mcp.tools import Permissions  # noqa: PLC0415  (imports lance; help must not: test_startup)

        serve(graph, Permissions(writes=writes, main=context.args.allow_main, actor=context.actor))
    return 0


def _demo_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--small", action="store_true", help="a shorter tour, with few rows")


def _demo(context: CommandContext) -> int:
    from omnigraph.cli.tour import main  # noqa: PLC0415  (imports lance; help must not: test_startup)

    with redirect_stdout(context.stdout):
        return main(["--small"] if context.args.small else [])


COMMANDS = {
    "shell": Command(_shell, _shell_arguments, _SHELL_EXAMPLES, _SHELL_DESCRIPTION),
    "mcp": Command(_mcp, _mcp_arguments, _MCP_EXAMPLES, _MCP_DESCRIPTION),
    "demo": Command(_demo, _demo_arguments, "  omnigraph demo\n  omnigraph demo --small", _DEMO_DESCRIPTION),
}
