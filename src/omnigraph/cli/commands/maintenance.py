"""Maintain a graph: `optimize`, `prune`, `sweep`, `cleanup`, `verify`, `repair`, `maintain`."""

import signal
import threading
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from omnigraph import limits
from omnigraph.cli.arguments import (
    add_branch,
    add_engine,
    add_json,
    add_positional_uri,
    add_retention,
    amount,
    duration_s,
)
from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import Command
from omnigraph.cli.render import size
from omnigraph.cli.validation import check_cleanup, check_maintain, check_prune, check_repair

# What damage means for the commits it affects.
_LOSSES = {"content": "data lost on", "history": "history lost on", "nothing": "found on"}
_PRUNE_DESCRIPTION = """\
Drop old commits from history. Files are not deleted: a later sweep does that. The newest commit, and all that a branch,
a tag or a running write needs, always stays."""
_REPAIR_DESCRIPTION = """\
Look for damage and, with --confirm, quarantine what cannot be read so that the rest can be used. Tables never run ahead
of what was published, so a healthy graph has nothing to repair. `omnigraph verify` reports more details.

With --clock, correct the times of commits that were made with a clock ahead of the store's."""


def _optimize_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser)
    parser.add_argument("--purge", action="store_true", help="rewrite every file that holds a deleted row")
    add_json(parser)


def _optimize(context: CommandContext) -> int:
    context.echo_target()
    with context.graph(read_only=False) as graph:
        document = graph.optimize(context.args.branch or "main", purge=context.args.purge).to_dict()
    datasets = document["datasets"]
    lines = [f"optimize {document['uri']} — {len(datasets)} datasets"]
    for dataset in datasets:
        if dataset["skipped"] is not None:
            outcome = f"skipped ({dataset['skipped']})"
        elif dataset["fragments_removed"] or dataset["fragments_added"]:
            outcome = f"frags {dataset['fragments_removed']} → {dataset['fragments_added']} ✓"
        else:
            outcome = "indexes ✓" if dataset["committed"] else "no-op"
        lines.append(f"{dataset['type_key']} {outcome}")
        lines += [
            f"  ↳ index pending on property '{index['property']}': {index['reason']}"
            for index in dataset["pending_indexes"]
        ]
    return context.show(document, *lines)


def _prune_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser, help="only this branch; all branches by default")
    add_retention(parser)
    commit_help = "prune exactly this commit of the branch; repeatable"
    parser.add_argument("--commit", metavar="ID", action="append", default=[], help=commit_help)
    parser.add_argument("--now", action="store_true", help="without the grace period")
    shared_help = "with --commit and --now: also prune commits that share files with these"
    parser.add_argument("--shared", action="store_true", help=shared_help)
    parser.add_argument("--dry-run", action="store_true", help="show what would be pruned; write nothing")
    add_json(parser)


def _prune(context: CommandContext) -> int:
    args = context.args
    check_prune(args)
    if not args.dry_run:
        context.echo_target()
        context.require_consent()
    with context.graph(read_only=args.dry_run) as graph:
        report = graph.prune(
            args.branch,
            keep=args.keep,
            older_than=args.older_than,
            commits=args.commit,
            now=args.now,
            shared=args.shared,
            dry_run=args.dry_run,
            actor=context.actor,
        )
    document = report.to_dict()
    verb = "would mark" if args.dry_run else "marked"
    lines = [f"{branch['branch']}: {verb} {branch['marked']} entries" for branch in document["branches"]]
    if report.waiting:
        keeps = "would keep" if args.dry_run else "keep"
        lines.append(f"{report.waiting} pruned commits {keeps} their data for the grace period: prune again after it")
    if report.also_pruned:
        lines.append("also pruned, because they shared files with these:")
        lines += [f"  {commit}" for commit in report.also_pruned]
    if report.shared_with:
        lines.append("kept commits share files with these, and hold rows of theirs that were deleted since:")
        lines += [f"  {commit}" for commit in report.shared_with]
        lines.append("to erase those rows, prune these commits as well (--shared)")
    if args.commit or any(branch["pending_sweep"] is not None for branch in document["branches"]):
        lines.append("to delete the files that only pruned commits need: omnigraph sweep")
    return context.show(document, *lines)


def _sweep_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument("--older-than", metavar="AGE", type=duration_s, help="keep younger files; 10m by default")
    parser.add_argument("--dry-run", action="store_true", help="show what would be deleted, and why; delete nothing")
    add_engine(parser)
    add_json(parser)


def _sweep(context: CommandContext) -> int:
    args = context.args
    if not args.dry_run:
        context.echo_target()
        context.require_consent()
    with context.graph(read_only=args.dry_run) as graph:
        document = graph.sweep(older_than=args.older_than, dry_run=args.dry_run, engine=args.engine).to_dict()
    lines = []
    if args.dry_run:
        lines = [f"{file['verdict']:<13} {file['path']}  ({file['reason']})" for file in document["worklist"]]
    verb = "would remove" if args.dry_run else "removed"
    lines += [
        f"{kind}: {verb} {count} files, {size(document['bytes_by_kind'][kind])}"
        for kind, count in sorted(document["files_by_kind"].items())
    ]
    lines.append(
        f"{verb} {document['files_removed']} files, {size(document['bytes_removed'])}; kept {document['files_kept']} "
        f"files, {size(document['bytes_kept'])}; spared {document['files_spared']} young ones"
    )
    lines += [f"could not decide about {path}" for path in document["indeterminate"]]
    lines += [_held_line(write) for write in document["held_by"]]
    lines += [f"could not delete {path}: {error}" for path, error in document["errors"].items()]
    context.show(document, *lines)
    return 1 if document["errors"] else 0


def _held_line(write: str) -> str:
    return f"files are held by an unfinished write: {write}"


def _cleanup_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_retention(parser, what="versions")
    parser.add_argument("--confirm", action="store_true", help="delete; without it, only show a preview")
    add_json(parser)


def _cleanup(context: CommandContext) -> int:
    args = context.args
    check_cleanup(args)
    if args.confirm:
        context.echo_target()
        context.require_consent()
    with context.graph(read_only=not args.confirm) as graph:
        report = graph.cleanup(keep=args.keep, older_than=args.older_than, confirm=args.confirm, actor=context.actor)
    document = report.to_dict()
    if not args.confirm:
        context.note(
            f"preview: {report.pruned.marked} entries would be pruned and their files deleted; pass --confirm to do it"
        )
    lines = [
        f"{dataset['type_key']}: {dataset['old_versions_removed']} old versions, {size(dataset['bytes_removed'])}"
        + (f" ({dataset['error']})" if dataset["error"] else "")
        for dataset in document["datasets"]
    ]
    context.show(document, *lines)
    for write in report.swept.swept.held_by:
        context.note(_held_line(write))
    for path, error in report.errors.items():
        context.note(f"warning: {path}: {error}")
    return 0


# -- verify and repair -------------------------------------------------------------------------------------------------


class _Report(Protocol):
    """The part of a verification report used here; importing its class imports Lance."""

    @property
    def is_whole(self) -> bool: ...

    @property
    def quarantined(self) -> Sequence[str]: ...

    def to_dict(self) -> dict[str, Any]: ...


def _verify_storage(context: CommandContext, *, deep: bool, quarantine: bool, branch: str | None = None) -> _Report:
    """Verify a graph, even one that is too damaged to be opened."""
    from omnigraph.api.open import verify  # noqa: PLC0415  (imports lance; help must not: test_startup)

    return verify(context.storage(), deep=deep, branch=branch, quarantine=quarantine)


def _verify_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    add_branch(parser, help="only this branch; all branches by default")
    parser.add_argument("--deep", action="store_true", help="also check checksums, every value, and the schema's rules")
    parser.add_argument(
        "--quarantine", action="store_true", help="quarantine what cannot be read; no other process may be writing"
    )
    add_json(parser)


def _verify(context: CommandContext) -> int:
    args = context.args
    if args.quarantine:
        context.echo_target()
    report = _verify_storage(context, deep=args.deep, branch=args.branch, quarantine=args.quarantine)
    document = report.to_dict()
    context.show(document, *_finding_lines(document))
    return 0 if report.is_whole or report.quarantined else 1


def _finding_lines(document: Mapping[str, Any]) -> list[str]:
    """Render the findings of a verification."""
    findings, checked = document["findings"], document["checked"]
    lines = []
    for finding in findings:
        rows = f" ({finding['rows']} rows)" if finding["rows"] > 0 else ""
        lines.append(f"{finding['kind']} {finding['path']}{rows}: {finding['problem']}")
        lines += [
            f"  {_LOSSES[finding['loss']]} {commit['branch']} #{commit['number']}"
            + (f" ({commit['commit']})" if commit["commit"] is not None else "")
            + (f": {commit['type_key']}" if commit["type_key"] is not None else "")
            for commit in finding["commits"]
        ]
    if any(finding["loss"] == "content" for finding in findings):
        for branch in document["readable"]:
            ranges = (f"#{first}" if first == last else f"#{first} to #{last}" for first, last in branch["numbers"])
            lines.append(f"readable on {branch['branch']}: {', '.join(ranges) or 'no commit'}")
    lines += [f"quarantined: {path}" for path in document["quarantined"]]
    lines += document["notes"]
    summary = "no damage" if not findings else f"{len(findings)} findings"
    lines.append(
        f"{summary}: {checked['commits']} commits, {checked['versions']} versions, {checked['files']} files, "
        f"{size(checked['bytes'])}"
    )
    return lines


def _repair_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument(
        "--confirm", action="store_true", help="quarantine what cannot be read; without it, only report"
    )
    parser.add_argument("--force", action="store_true", help="with --confirm: also check every value")
    parser.add_argument(
        "--clock", action="store_true", help="instead: correct commit times that are ahead of the store's clock"
    )
    add_json(parser)


def _repair(context: CommandContext) -> int:
    args = context.args
    check_repair(args)
    if args.clock:
        return _repair_clock(context)
    if args.confirm:
        context.echo_target()
    report = _verify_storage(context, deep=args.force, quarantine=args.confirm)
    document = {**report.to_dict(), "confirm": args.confirm, "force": args.force}
    lines = [
        f"{dataset['type_key']}: {dataset['classification']}, {dataset['action']}"
        + (f" ({dataset['error']})" if dataset["error"] else "")
        for dataset in document["datasets"]
    ]
    context.show(document, *lines, *_finding_lines(document))
    return 0 if report.is_whole or report.quarantined else 1


def _repair_clock(context: CommandContext) -> int:
    context.echo_target()
    with context.graph(read_only=False) as graph:
        corrections = graph.repair_clock(actor=context.actor)
        uri = graph.uri
    document = {
        "uri": uri,
        "corrected": [
            {
                "branch": correction.branch,
                "numbers": list(correction.numbers),
                "ahead_s": correction.ahead_s,
                "graph_commit_id": correction.entry.commit,
            }
            for correction in corrections
        ],
    }
    lines = [
        f"{correction.branch}: corrected the times of {len(correction.numbers)} entries from "
        f"#{correction.numbers[0]} on, by up to {correction.ahead_s:.0f} s"
        for correction in corrections
    ]
    return context.show(document, *(lines or ["no commit is ahead of the store's clock"]))


# -- the maintenance loop ----------------------------------------------------------------------------------------------


def _maintain_arguments(parser: ArgumentParser) -> None:
    add_positional_uri(parser)
    parser.add_argument(
        "--every", metavar="AGE", type=duration_s, default=600, help="interval between passes; 10m by default"
    )
    parser.add_argument("--once", action="store_true", help="run one pass only")
    add_retention(parser, prefix="prune: ")
    parser.add_argument(
        "--verify",
        choices=("some", "all", "none"),
        default="some",
        help="how much to verify in each pass; some (the default) continues in the next pass",
    )
    parser.add_argument(
        "--max-seconds", metavar="S", type=float, help="start no further work after S seconds of a pass"
    )
    parser.add_argument("--max-bytes", metavar="N", type=amount, help="skip tables larger than N bytes")
    add_json(parser)


def _maintain(context: CommandContext) -> int:
    from omnigraph.api.maintenance import Maintenance  # noqa: PLC0415  (imports lance; help must not: test_startup)

    args = context.args
    check_maintain(args)
    context.echo_target()
    policy = Maintenance(
        keep=args.keep,
        older_than=args.older_than,
        verify=args.verify != "none",
        verify_reads_max=None if args.verify == "all" else limits.MAINTAIN_VERIFY_READS_MAX,
        seconds_max=args.max_seconds,
        bytes_max=args.max_bytes,
    )
    stop = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        with context.graph(read_only=False) as graph:
            for report in graph.maintain(float(args.every), policy, stop=stop):
                _show_pass(context, report)
                if args.once:
                    return 1 if report.failures else 0
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _show_pass(context: CommandContext, report: Any) -> None:  # noqa: ANN401  (importing its class imports Lance)
    """Print the report of one maintenance pass."""
    document = {
        "optimized": [result.to_dict() for result in report.optimized],
        "pruned": None if report.pruned is None else report.pruned.to_dict(),
        "swept": None if report.swept is None else report.swept.to_dict(),
        "verified": None if report.verified is None else report.verified.to_dict(),
        "left": report.left,
        "failures": report.failures,
        "seconds": report.seconds,
    }
    compacted = sum(table.changed for result in report.optimized for table in result.tables)
    marked = 0 if report.pruned is None else report.pruned.marked
    removed = "" if report.swept is None else f", removed {size(report.swept.deleted_bytes)}"
    verified = ""
    if report.verified is not None:
        verified = f", verified {report.verified.found.files} files"
        verified += f" with {len(report.verified.findings)} findings" if report.damaged else ""
    line = f"{compacted} tables optimized, {marked} entries pruned{removed}{verified} in {report.seconds:.1f} s"
    context.show(document, line, *(f"left: {work}" for work in report.left))
    for write in () if report.swept is None else report.swept.swept.held_by:
        context.note(_held_line(write))
    for failure in report.failures:
        context.note(f"warning: {failure}")
    context.stdout.flush()


COMMANDS = {
    "optimize": Command(_optimize, _optimize_arguments, "  omnigraph optimize ./library"),
    "prune": Command(
        _prune,
        _prune_arguments,
        "  omnigraph prune ./library --keep 10 --older-than 7d --dry-run\n"
        "  omnigraph prune ./library --commit 01K3V8Y9ZJ6E0F2G4H6J8KMNPQ --now",
        _PRUNE_DESCRIPTION,
    ),
    "sweep": Command(_sweep, _sweep_arguments, "  omnigraph sweep ./library --dry-run\n  omnigraph sweep ./library"),
    "cleanup": Command(_cleanup, _cleanup_arguments, "  omnigraph cleanup ./library --keep 10 --confirm"),
    "verify": Command(_verify, _verify_arguments, "  omnigraph verify ./library --deep"),
    "repair": Command(_repair, _repair_arguments, "  omnigraph repair ./library", _REPAIR_DESCRIPTION),
    "maintain": Command(_maintain, _maintain_arguments, "  omnigraph maintain ./library --every 10m --keep 100"),
}
