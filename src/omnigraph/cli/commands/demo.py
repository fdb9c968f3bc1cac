"""`omnigraph demo`."""

from omnigraph.cli.call import Call
from omnigraph.cli.command import Command


def _run(_: Call) -> int:
    from omnigraph.cli.tour import main  # noqa: PLC0415  (heavy)

    return main([])


COMMANDS = {"": Command(_run, examples="  omnigraph demo")}
