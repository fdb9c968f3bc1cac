"""`omnigraph version`."""

from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.version import version_lines


def _run(call: Call) -> int:
    call.say(version_lines())
    return 0


COMMANDS = {"": Command(_run, examples="  omnigraph version")}
