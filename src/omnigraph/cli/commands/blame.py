"""`omnigraph blame`."""

from argparse import ArgumentParser

from omnigraph.api.documents import commit_document
from omnigraph.cli.arguments import add_branch, add_json, add_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.cli.render import table


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("type", metavar="TYPE", help="of the entity")
    parser.add_argument("id", metavar="ID", help="of the entity")
    add_branch(parser)
    add_uri(parser)
    add_json(parser)


def _run(call: Call) -> int:

    args = call.args
    with call.graph() as graph:
        found = graph.blame(args.type, args.id, branch=args.branch or "main")
    document = {
        "id": found.entity_id,
        "created": None if found.created is None else commit_document(found.created),
        "last": None if found.last is None else commit_document(found.last),
        "properties": {name: commit_document(entry) for name, entry in sorted(found.properties.items())},
        "pruned": list(found.pruned),
    }
    rows = [[name, entry.commit, entry.actor or "", entry.message or ""] for name, entry in found.properties.items()]
    rows += [[name, "(pruned)", "", ""] for name in found.pruned]
    return call.show(document, *table(["property", "commit", "actor", "message"], sorted(rows)))


COMMANDS = {"": Command(_run, _arguments, "  omnigraph blame Book 0-1 --store ./library")}
