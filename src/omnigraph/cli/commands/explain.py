"""`omnigraph explain`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_query, query_text
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command


def _arguments(parser: ArgumentParser) -> None:
    add_query(parser)
    add_branch(parser)
    parser.add_argument("--json", action="store_true", help="answer with one JSON document")


def _run(call: Call) -> int:
    text = query_text(call.args)
    with call.asked() as graph:
        plan = graph.explain(text, name=call.args.name, branch=call.args.branch or "main")
    return call.show({"plan": plan.splitlines()}, plan)


COMMANDS = {"": Command(_run, _arguments, "  omnigraph explain books_of --store ./library --query library.gq")}
