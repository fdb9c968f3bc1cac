"""`omnigraph optimize`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    parser.add_argument("--purge", action="store_true", help="rewrite every file that holds a deleted row")
    add_json(parser)


def _run(call: Call) -> int:
    call.echo_target()
    with call.graph(read_only=False) as graph:
        document = graph.optimize(call.args.branch or "main", purge=call.args.purge).to_dict()
    datasets = document["datasets"]
    lines = [f"optimize {document['uri']} — {len(datasets)} datasets"]
    for each in datasets:
        if each["skipped"] is not None:
            done = f"skipped ({each['skipped']})"
        elif each["fragments_removed"] or each["fragments_added"]:
            done = f"frags {each['fragments_removed']} → {each['fragments_added']} ✓"
        else:
            done = "indexes ✓" if each["committed"] else "no-op"
        lines.append(f"{each['type_key']} {done}")
        lines += [
            f"  ↳ index pending on property '{index['property']}': {index['reason']}"
            for index in each["pending_indexes"]
        ]
    return call.show(document, *lines)


COMMANDS = {"": Command(_run, _arguments, "  omnigraph optimize ./library")}
