"""Prune old commits, sweep the files that nothing needs, and report both."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from omnigraph.api.engines import Engine, engine_of, session_for, spark_module
from omnigraph.branch import branches
from omnigraph.branch.find_entry import in_log
from omnigraph.branch.sweep.files import FileKind, Swept, Verdict
from omnigraph.branch.sweep.reading import Reading, ReadingBySize, ReadingHere
from omnigraph.branch.sweep.shared_files import PrunedRows, Purge, commits_sharing, prune_sharing, purge_head
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import FormatError, GraphError, InvalidRequestError, NotFoundError, ReclaimedError
from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.storage.tables.errors import DAMAGED_TABLE
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.prune import Policy, PrunedBranch, check, prune
from omnigraph.transaction.pruning.retention import check_made, is_kept, reclaimed
from omnigraph.transaction.validation import require_flag, require_optional_seconds, require_texts

Duration = float | timedelta


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What a prune marked.

    Attributes:
        uri: the address of the graph.
        branches: one result for every branch.
        dry_run: True if nothing was changed.
        shared_with: after `prune(commits=…, now=True)`, the kept commits of any branch whose files still contain
            deleted rows of the pruned ones; these rows stay in storage until those commits are pruned, too.
        also_pruned: with `shared=True`, the commits that were pruned because they shared files with the named ones.
    """

    uri: str
    branches: tuple[PrunedBranch, ...]
    dry_run: bool
    shared_with: tuple[str, ...] = ()
    also_pruned: tuple[str, ...] = ()

    @property
    def marked(self) -> int:
        """The number of log entries dropped from history, entries that are not commits included."""
        return sum(branch.marked for branch in self.branches)

    @property
    def waiting(self) -> int:
        """The number of dropped entries that keep their data until a prune after the grace period."""
        return sum(branch.waiting for branch in self.branches)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return {
            "uri": self.uri,
            "dry_run": self.dry_run,
            "shared_with": list(self.shared_with),
            "also_pruned": list(self.also_pruned),
            "branches": [
                {
                    "branch": branch.branch,
                    "commit": None if branch.entry is None else branch.entry.commit,
                    "marked": branch.marked,
                    "waiting": branch.waiting,
                    "floor": branch.after.floor,
                    "pending_sweep": [branch.after.unswept, branch.after.floor - 1]
                    if branch.after.unswept < branch.after.floor
                    else None,
                }
                for branch in self.branches
            ],
        }


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep found and deleted.

    Attributes:
        uri: the address of the graph.
        swept: the unreferenced files with verdict and reason, and the deleted ones.
        dry_run: True if nothing was changed.
    """

    uri: str
    swept: Swept
    dry_run: bool

    @property
    def deleted_files(self) -> int:
        """The number of deleted files; in a dry run, of those that would be deleted."""
        return sum(self.files_by_kind.values())

    @property
    def deleted_bytes(self) -> int:
        """The number of freed bytes; in a dry run, of those that would be freed."""
        return sum(self.bytes_by_kind.values())

    @property
    def files_by_kind(self) -> dict[str, int]:
        """The number of deleted files by kind."""
        return dict(Counter(file.kind.value for file in self._files()))

    @property
    def bytes_by_kind(self) -> dict[str, int]:
        """The number of freed bytes by kind."""
        counted: Counter[str] = Counter()
        for file in self._files():
            counted[file.kind.value] += file.size
        return dict(counted)

    @property
    def worklist(self) -> list[dict[str, Any]]:
        """The unreferenced files, with verdict and reason."""
        return [
            {
                "path": item.file.path,
                "kind": item.file.kind.value,
                "bytes": item.file.size,
                "verdict": item.verdict.value,
                "reason": item.reason,
            }
            for item in self.swept.items
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return {
            "uri": self.uri,
            "dry_run": self.dry_run,
            "files_removed": self.deleted_files,
            "bytes_removed": self.deleted_bytes,
            "files_by_kind": self.files_by_kind,
            "bytes_by_kind": self.bytes_by_kind,
            "files_kept": self.swept.kept_files,
            "bytes_kept": self.swept.kept_bytes,
            "files_spared": len(self.swept.of(Verdict.SPARED)),
            "indeterminate": [item.file.path for item in self.swept.of(Verdict.INDETERMINATE)],
            "held_by": list(self.swept.held_by),
            "errors": dict(self.swept.errors or {}),
            "worklist": self.worklist,
        }

    def _files(self) -> Sequence[Any]:
        return [item.file for item in self.swept.of(Verdict.ORPHAN)] if self.dry_run else self.swept.deleted


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """What a cleanup did: a prune of every branch, then a sweep.

    Attributes:
        uri: the address of the graph.
        keep: the number of commits to keep on each branch.
        older_than_s: the minimum age of pruned commits.
        pruned: the commits dropped from history.
        swept: the report of the sweep; in a preview, of what could be deleted without the prune.
        type_keys: type keys by table folder.
    """

    uri: str
    keep: int | None
    older_than_s: float | None
    pruned: PruneReport
    swept: SweepReport
    type_keys: dict[str, str]

    @property
    def errors(self) -> dict[str, str]:
        """Error messages by table folder, branch or path; everything else was done."""
        doubts = {item.file.owner: item.reason for item in self.swept.swept.of(Verdict.INDETERMINATE)}
        return doubts | dict(self.swept.swept.errors or {})

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document; `datasets` has one entry for every table."""
        removed: defaultdict[str, int] = defaultdict(int)
        versions: Counter[str] = Counter()
        for file in self.swept.swept.deleted:
            if file.path.startswith((paths.NODES, paths.EDGES)):
                removed[file.owner] += file.size
                versions[file.owner] += file.kind is FileKind.MANIFEST
        errors = self.errors
        failed = {owner for owner in errors if owner.startswith((paths.NODES, paths.EDGES))}
        tables = sorted(
            {*self.type_keys, *removed, *failed}, key=lambda table: (self.type_keys.get(table, table), table)
        )
        return {
            "uri": self.uri,
            "keep_versions": self.keep,
            "older_than_secs": None if self.older_than_s is None else int(self.older_than_s),
            "datasets": [
                {
                    "type_key": self.type_keys.get(table, table),
                    "bytes_removed": removed[table],
                    "old_versions_removed": versions[table],
                    "error": errors.get(table),
                }
                for table in tables
            ],
        }


def prune_branches(
    parts: GraphContext,
    branch: str | None,
    *,
    keep: int | None,
    older_than: Duration | None,
    commits: Sequence[str],
    now: bool,
    dry_run: bool,
    actor: str | None,
    shared: bool = False,
    purge: Purge = lambda *_, **__: None,
) -> PruneReport:
    """Prune one branch, or all; see `Graph.prune`."""
    require_flag(now, "now")
    require_flag(dry_run, "dry_run")
    commits = require_texts(commits, "the commits to prune")
    require_flag(shared, "shared")
    if shared and not (commits and now):
        raise InvalidRequestError("commits that share files are pruned only along with named commits, and now")
    policy = Policy(keep=keep, older_than_s=seconds(older_than), now=now)
    if commits:
        name = paths.branch_name(branch) if branch is not None else "main"
        numbers = [_number(parts, name, commit) for commit in commits]
        policy = Policy(keep, policy.older_than_s, tuple(number for number in numbers if number is not None), now)
        names = [name]
        if not policy.numbers:
            head = parts.log.live_head(name)
            done_before = PrunedBranch(name, head.pruned, head.pruned, head.life or 1, None)
            return PruneReport(parts.store.uri, (done_before,), dry_run)
    else:
        names = branches.names(parts) if branch is None else [branch]
    check(policy)
    done = []
    for name in names:
        try:
            done.append(prune(parts, name, policy, actor=actor, dry_run=dry_run))
        except NotFoundError as gone:
            if branch is not None or commits or gone.code != "branch_not_found":
                raise
            # The branch was deleted after the branches were listed.
    report = PruneReport(parts.store.uri, tuple(done), dry_run)
    if not (commits and now):
        return report
    rows = PrunedRows.of(parts, done[0], policy.numbers)
    if not dry_run:
        purge_head(rows, done[0].branch, purge)
    if shared and not dry_run:
        more, also_pruned = prune_sharing(rows, purge, actor)
        report = replace(report, branches=(*report.branches, *more), also_pruned=also_pruned)
    return replace(report, shared_with=commits_sharing(rows, done[0]))


def sweep_files(
    parts: GraphContext, *, older_than: Duration | None, dry_run: bool, engine: str = Engine.AUTO
) -> SweepReport:
    """Delete the files that no commit needs; see `Graph.sweep`."""
    require_flag(dry_run, "dry_run")
    reading = _reading(parts, engine_of(engine))
    found = sweep(parts, older_than_s=seconds(older_than), dry_run=dry_run, reading=reading)
    return SweepReport(parts.store.uri, found, dry_run)


def _reading(parts: GraphContext, engine: Engine) -> Reading:
    """Choose what lists and reads tables for a sweep."""

    def on_spark() -> Reading | None:
        session = session_for(engine)
        if session is None:
            return None
        made: Reading = spark_module("sweep.spark").ReadingOnSpark(session, parts)
        return made

    here = ReadingHere(parts)
    match engine:
        case Engine.LOCAL:
            return here
        case Engine.SPARK:
            return on_spark() or here
        case Engine.AUTO:
            return ReadingBySize(here, on_spark)


def clean_up(
    parts: GraphContext, *, keep: int | None, older_than: Duration | None, confirm: bool, actor: str | None
) -> CleanupReport:
    """Prune every branch now, then sweep files of any age; see `Graph.cleanup`."""
    require_flag(confirm, "confirm")
    check(Policy(keep=keep, older_than_s=seconds(older_than)))
    type_keys = {pin.table: key for head in branches.heads(parts) for key, pin in head.tables.items()}
    marked = prune_branches(
        parts, None, keep=keep, older_than=older_than, commits=(), now=True, dry_run=not confirm, actor=actor
    )
    found = sweep_files(parts, older_than=0, dry_run=not confirm)
    return CleanupReport(parts.store.uri, keep, seconds(older_than), marked, found, type_keys)


def seconds(duration: Duration | None) -> float | None:
    """Convert a duration to seconds.

    Raises:
        InvalidRequestError: it is not a duration.
    """
    return require_optional_seconds(duration.total_seconds() if isinstance(duration, timedelta) else duration, "an age")


def as_reclaimed(parts: GraphContext, entry: Record, fault: FormatError) -> GraphError:
    """Say why a file is gone: a `ReclaimedError` if the entry was pruned, else the fault, as damage."""
    if fault.code != "version_reclaimed":
        return fault
    head = parts.log.head(entry.branch)
    if head is None or not head.is_live or entry.number < (head.life or 1):
        return reclaimed(entry.branch, entry.number, next_number=None)
    if is_kept(head, entry.number):
        try:
            check_made(parts, head)
        except NotFoundError as never_made:
            return never_made
        return FormatError(fault.message, code=DAMAGED_TABLE, **fault.details)
    return reclaimed(entry.branch, entry.number, next_number=head.pruned.next_listed(entry.number))


def _number(parts: GraphContext, branch: str, commit: str) -> int | None:
    """Find the entry of a commit to prune; None if a prune has dropped it and its data before."""
    head = parts.log.live_head(branch)
    try:
        entry = in_log(parts, branch, commit)
    except ReclaimedError as marked:
        number = int(marked.details["number"])
        # Dropped before; but its data, or its place in the log, may still exist.
        return number if is_kept(head, number) or number in head.pruned.gone else None
    if entry is None or not is_kept(head, entry.number):
        raise NotFoundError(f"commit '{commit}' not found on branch '{branch}'", code="commit_not_found", commit=commit)
    if entry.commit == head.head_commit:
        raise InvalidRequestError(f"commit '{commit}' is the newest of branch '{branch}', which cannot be pruned")
    return entry.number
