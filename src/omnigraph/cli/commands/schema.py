"""`omnigraph schema …`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command


def _show_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    add_json(parser)


def _show(call: Call) -> int:
    with call.graph() as graph:
        text = graph.schema_text(branch=call.args.branch or "main")
    return call.show({"schema_source": text}, text.removesuffix("\n"))


COMMANDS = {"show": Command(_show, _show_arguments, "  omnigraph schema show ./library")}
