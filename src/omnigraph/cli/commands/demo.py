"""`omnigraph demo`."""

from argparse import ArgumentParser
from contextlib import redirect_stdout

from omnigraph.cli.call import Call
from omnigraph.cli.command import Command

_DESCRIPTION = """\
A tour on a graph of its own, in a temporary folder: loaded on Spark, queried, raced, killed, healed, branched, merged
and verified. Every number it prints was measured or counted in that run; it takes a minute or two."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--small", action="store_true", help="a shorter one, with few rows")


def _run(call: Call) -> int:
    from omnigraph.cli.tour import main  # noqa: PLC0415  (loads lance, and the help of a command no library: test_startup)

    with redirect_stdout(call.answers_to):
        return main(["--small"] if call.args.small else [])


COMMANDS = {"": Command(_run, _arguments, "  omnigraph demo\n  omnigraph demo --small", _DESCRIPTION)}
