"""`omnigraph prune`."""

from argparse import ArgumentParser

from omnigraph.cli.arguments import add_branch, add_json, add_positional_uri, amount, duration_s
from omnigraph.cli.call import Call
from omnigraph.cli.command import Command
from omnigraph.errors import InvalidRequestError


def _arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser, help="only this branch; all of them by default")
    parser.add_argument("--keep", metavar="N", type=amount, help="how many of the newest commits stay")
    parser.add_argument("--older-than", metavar="AGE", type=duration_s, help="younger commits stay, like 7d")
    parser.add_argument("--now", action="store_true", help="without the time of grace")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    add_json(parser)


def _run(call: Call) -> int:
    args = call.args
    if args.keep is None and args.older_than is None and not args.now:
        raise InvalidRequestError("prune requires at least one of --keep, --older-than and --now")
    if not args.dry_run:
        call.echo_target()
        call.consent()
    with call.graph(read_only=args.dry_run) as graph:
        report = graph.prune(
            args.branch,
            keep=args.keep,
            older_than=args.older_than,
            now=args.now,
            dry_run=args.dry_run,
            actor=call.actor,
        )
    document = report.to_dict()
    verb = "would mark" if args.dry_run else "marked"
    lines = [f"{each['branch']}: {verb} {each['marked']} entries" for each in document["branches"]]
    if report.waiting:
        keeps = "would keep" if args.dry_run else "keep"
        lines.append(
            f"{report.waiting} that are shown no more {keeps} their data for the time of grace: prune again after it"
        )
    if any(each["pending_sweep"] is not None for each in document["branches"]):
        lines.append("sweep deletes what only pruned commits need: omnigraph sweep")
    return call.show(document, *lines)


_DESCRIPTION = """\
Show old commits no more. Nothing is deleted: a later sweep does that. The newest commit, and whatever a branch, a tag
or a write under way needs, always stays."""

COMMANDS = {
    "": Command(_run, _arguments, "  omnigraph prune ./library --keep 10 --older-than 7d --dry-run", _DESCRIPTION)
}
