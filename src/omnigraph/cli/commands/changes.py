"""`omnigraph changes …`."""

from argparse import ArgumentParser
from pathlib import Path

from omnigraph.cli.arguments import add_branch, add_changes_filter, add_json, add_uri, amount
from omnigraph.cli.call import Call
from omnigraph.cli.changes import cause_lines, change_lines
from omnigraph.cli.command import Command
from omnigraph.cli.whole_file import whole_file


def _poll_arguments(parser: ArgumentParser) -> None:
    add_uri(parser)
    add_branch(parser)
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--cursor", metavar="CURSOR", help="of an earlier poll")
    place.add_argument("--start", metavar="WHERE", help="now (the default), beginning, or after:COMMIT")
    parser.add_argument("--limit", metavar="N", type=amount, help="changes in a page")
    add_changes_filter(parser)
    add_json(parser)


def _poll(call: Call) -> int:
    args = call.args
    with call.graph() as graph:
        document = graph.changes.drain(
            args.branch or "main",
            cursor=args.cursor,
            start=args.start,
            limit=args.limit,
            kinds=args.kind,
            types=args.type,
            ops=args.op,
        ).to_dict()
    lines = []
    for block in document["blocks"]:
        lines += cause_lines(block["cause"])
        for change in block["changes"]:
            lines += change_lines(change)
    lines = lines or ["(no new commits)"]
    return call.show(
        document, *lines, f"cursor: {document['cursor']}", f"caught_up: {str(document['caught_up']).lower()}"
    )


def _baseline_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--out", metavar="PATH", required=True, help="where the state goes")
    add_uri(parser)
    add_branch(parser)
    add_changes_filter(parser)
    add_json(parser)


def _baseline(call: Call) -> int:
    args = call.args
    out = Path(args.out)
    with call.graph() as graph:
        baseline = graph.changes.baseline(args.branch or "main", kinds=args.kind, types=args.type, ops=args.op)
        with whole_file(out, "the baseline") as file:
            baseline.write(file)
        document = baseline.to_dict()
    return call.show(document, f"snapshot: {out}", *(f"{key}: {value}" for key, value in document.items()))


COMMANDS = {
    "poll": Command(_poll, _poll_arguments, "  omnigraph changes poll --store ./library --start beginning"),
    "baseline": Command(
        _baseline, _baseline_arguments, "  omnigraph changes baseline --store ./library --out state.jsonl"
    ),
}
