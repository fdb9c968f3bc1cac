"""`omnigraph shell`."""

import shutil
import sys
from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_positional_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.config import home
from omnigraph.cli.shell.statement import statements

_EXAMPLES = """\
  omnigraph shell ./library
  omnigraph shell ./library --branch review < statements.txt"""
_DESCRIPTION = """\
Talk to a graph. Statements are queries and mutations, with or without `query name() { … }` around them; a statement
goes on over lines until its brackets are closed. Words that begin with a backslash are for the prompt: see \\help.

Where stdin is no terminal, statements are read from it, and the first that fails ends the run with code 1."""


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser, help="where to begin; main by default")
    parser.add_argument("--read-only", action="store_true", help="refuse to write")


def _run(call: Call) -> int:
    with call.graph(read_only=call.args.read_only) as graph:
        from omnigraph.cli.shell.session import Session  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

        is_terminal = sys.stdin.isatty() and call.answers_to.isatty()
        session = Session(
            graph,
            branch=call.args.branch or "main",
            actor=call.actor,
            say=call.say,
            complain=call.say if is_terminal else call.note,
            width=lambda: shutil.get_terminal_size().columns,
        )
        graph.snapshot(branch=session.view.branch)  # a branch that is not there is told now
        if is_terminal:
            from omnigraph.cli.shell.prompt import Terminal  # noqa: PLC0415  (only for a terminal)

            call.say(f"{graph.uri}: \\help tells what can be typed, Ctrl-D leaves")
            Terminal(session, history=home() / "shell_history", colours=call.colours).run()
            return 0

        for text in statements(sys.stdin):
            if not session.take(text):
                return 1
            if session.is_over:
                break
        return 0


COMMANDS = {"": Command(_run, _arguments, _EXAMPLES, _DESCRIPTION)}
