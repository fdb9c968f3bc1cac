"""`omnigraph diff`."""

from argparse import ArgumentParser
from dataclasses import asdict

from omnigraph.cli.arguments import add_changes_filter, add_json, add_uri, add_where
from omnigraph.cli.call import Call
from omnigraph.cli.changes import add_compared, change_lines, compared_states
from omnigraph.cli.command import Command


def _arguments(parser: ArgumentParser) -> None:
    add_compared(parser)
    parser.add_argument("--stat", action="store_true", help="only how much changed")
    add_changes_filter(parser)
    add_where(parser)
    add_uri(parser)
    add_json(parser)


def _run(call: Call) -> int:
    args = call.args
    with call.graph() as graph:
        older, newer, merge_base = compared_states(args, graph.branches)
        found = graph.diff(
            older, newer, kinds=args.kind, types=args.type, ops=args.op, merge_base=merge_base, engine=args.engine
        )
        # The changes first: whoever has read them can count them, and the other way they would be read twice.
        changes = {"changes": found.to_pylist()} if args.json and not args.stat else {}
        if not args.json and not args.stat:
            for change in found:
                for line in change_lines(change.to_dict()):
                    call.say(line)
        stats = {key: asdict(each) for key, each in found.stats.items()}
        if args.json:
            commits = {"from_commit_id": found.from_commit, "to_commit_id": found.to_commit, "merge_base": merge_base}
            call.show_json({**commits, "stats": stats, **changes})
            return 0
    for key, each in stats.items():
        call.say(f"{key}: {each['inserted']} inserted, {each['updated']} updated, {each['deleted']} deleted")
    if not stats:
        call.say("no differences")
    return 0


_EXAMPLES = """\
  omnigraph diff main review --store ./library --stat    # what review did since it parted from main
  omnigraph diff main..review --store ./library          # everything that differs between the two heads
  omnigraph diff main@2026-01-31T12:00:00Z main --store ./library"""

COMMANDS = {"": Command(_run, _arguments, _EXAMPLES)}
