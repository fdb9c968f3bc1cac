"""`omnigraph version`."""

from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.version import INTERNAL_SCHEMA, VERSION


def _run(call: Call) -> int:
    call.say(f"omnigraph {VERSION}")
    call.say(f"internal-schema {INTERNAL_SCHEMA}")
    return 0


COMMANDS = {"": Command(_run, examples="  omnigraph version")}
