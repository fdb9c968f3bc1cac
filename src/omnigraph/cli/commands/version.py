"""`omnigraph version`."""

from omnigraph.cli.arguments import add_json
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.version import INTERNAL_SCHEMA, VERSION, version_lines


def _run(call: Call) -> int:
    return call.show({"version": VERSION, "internal_schema_version": INTERNAL_SCHEMA}, version_lines())


COMMANDS = {"": Command(_run, add_json, "  omnigraph version")}
