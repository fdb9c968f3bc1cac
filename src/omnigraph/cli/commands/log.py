"""`omnigraph log`."""

from argparse import ArgumentParser

from omnigraph.branch.entity_change import cause_document
from omnigraph.cli.arguments import add_branch, add_json, add_uri, amount
from omnigraph.cli.call import Call
from omnigraph.cli.changes import cause_lines, image_lines
from omnigraph.cli.command import Command


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("type", metavar="TYPE", help="of the entity")
    parser.add_argument("id", metavar="ID", help="of the entity")
    add_branch(parser)
    parser.add_argument("--limit", metavar="N", type=amount, help="the newest N only")
    add_uri(parser)
    add_json(parser)


def _run(call: Call) -> int:

    args = call.args
    with call.graph() as graph:
        events = graph.log_of(args.type, args.id, branch=args.branch or "main", limit=args.limit)
    documents = []
    lines = []
    for event in events:
        before = None if event.before is None else event.before.to_dict()
        after = None if event.after is None else event.after.to_dict()
        cause = cause_document(event.entry)
        documents.append({"cause": cause, "op": event.op.value, "before": before, "after": after})
        lines += [*cause_lines(cause), event.op.value, *image_lines(before, after)]
    return call.show({"events": documents}, *(lines or ["(no such entity, ever)"]))


COMMANDS = {"": Command(_run, _arguments, "  omnigraph log Book 0-1 --store ./library")}
