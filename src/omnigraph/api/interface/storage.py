"""What a graph offers only where its storage can be reached: maintenance, Arrow, Lance and Spark."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, Unpack

import pyarrow as pa

from omnigraph.api.interface.graph import GraphInterface
from omnigraph.api.interface.snapshot import SnapshotInterface
from omnigraph.api.maintenance import DEFAULT_MAINTENANCE, Maintenance, MaintenanceReport
from omnigraph.api.optimize import OptimizeReport
from omnigraph.api.prune import CleanupReport, Duration, PruneReport, SweepReport
from omnigraph.api.spark import GraphSpark
from omnigraph.api.verify import VerifyReport
from omnigraph.branch.clock_repair import CorrectedClock
from omnigraph.branch.point import PointKeywords
from omnigraph.execution.engine import EngineStats
from omnigraph.model.commit import MAIN
from omnigraph.storage.tables.table import LanceDataset


class StorageInterface(GraphInterface, Protocol):
    """What can be done with a graph whose storage can be reached. Maintenance changes no answer."""

    @property
    def spark(self) -> GraphSpark:
        """Spark: types as frames, frames and streams into the graph, and graph algorithms."""
        ...

    def stats(self) -> EngineStats:
        """Report what the query engine keeps in memory, and where it came from."""
        ...

    def export_arrow(
        self, type_name: str, *, columns: Sequence[str] | None = None, **point: Unpack[PointKeywords]
    ) -> pa.RecordBatchReader:
        """Read all rows of a type, batch by batch, in no particular order.

        Args:
            type_name: a node type, else an edge type; or a type key.
            columns: by default `id`, for edges `src` and `dst`, and every property.

        Raises:
            NotFoundError: there is no such type, column or branch.
        """
        ...

    def lance_table(self, type_name: str, **point: Unpack[PointKeywords]) -> LanceDataset:
        """Open the table of a type at one commit with Lance itself, for reading.

        Never call Lance's `cleanup_old_versions` on it: it would delete files that commits still need.

        Args:
            type_name: a node type, else an edge type; or a type key.

        Raises:
            NotFoundError: there is no such type, branch, commit or tag.
        """
        ...

    def lease(
        self, *, seconds: float = 600.0, **point: Unpack[PointKeywords]
    ) -> AbstractContextManager[SnapshotInterface]:
        """Protect a commit from prune and sweep while the block runs.

        Args:
            seconds: how long it stays protected after this process has died.

        Raises:
            NotFoundError: there is no such branch or commit.
            ReclaimedError: it was pruned.
            PermissionDeniedError: the graph was opened read-only.
        """
        ...

    # -- maintenance --------------------------------------------------------------------------------------------------

    def optimize(
        self,
        branch: str = MAIN,
        *,
        types: Sequence[str] | None = None,
        purge: bool = False,
        actor: str | None = None,
        message: str | None = None,
        engine: str = "auto",
    ) -> OptimizeReport:
        """Make reads cheaper: compact tables, build and extend indexes, write log checkpoints.

        All of it is one commit, or none if nothing was due. Writers do not wait for it, nor it for them.

        Args:
            branch: the branch whose tables are optimized.
            types: only these types, by name or type key; by default all.
            purge: rewrite every file that holds a deleted row, however few they are, and every index that holds a
                value of one: once older commits are pruned, a sweep leaves nothing of what was deleted.
            actor: who, for the history.
            message: why, for the history.
            engine: where rows are rewritten: `local`, `spark`, or `auto`, which takes Spark for very many rows.

        Returns:
            What was done to each table, and which declared indexes cannot be built yet.

        Raises:
            NotFoundError: there is no such branch or type.
            ConflictError: others kept rewriting the same tables.
            InvalidRequestError: the engine is unknown.
            PermissionDeniedError: the graph was opened read-only.
        """
        ...

    def verify(self, *, deep: bool = False, branch: str | None = None, quarantine: bool = False) -> VerifyReport:
        """Check that everything commits refer to exists as it was written, and list the commits that lost data.

        Args:
            deep: also compare checksums, read every value, and check the rows at the heads against the schema.
            branch: only this branch; by default all.
            quarantine: move unreadable files aside, and give damaged heads a commit without them. Stop other writers
                first.

        Raises:
            NotFoundError: there is no such branch.
            PermissionDeniedError: `quarantine` on a graph that was opened read-only.
        """
        ...

    def repair_clock(self, *, actor: str | None = None) -> tuple[CorrectedClock, ...]:
        """Correct the times of commits that were made by a clock ahead of the store's, on every branch.

        One entry in the log of such a branch says which times count: those at which the store received the commits. Ids
        stay as they are. Others may go on writing meanwhile.

        Args:
            actor: who, for the history.

        Returns:
            The branches that had such commits; none if all times are right.

        Raises:
            ClockError: the clock of this machine is ahead of the store's; set it first.
            ConflictError: others keep writing the log.
            PermissionDeniedError: the graph was opened read-only.
        """
        ...

    def prune(
        self,
        branch: str | None = None,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        commits: Sequence[str] = (),
        now: bool = False,
        shared: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> PruneReport:
        """Drop old commits from history. `sweep` deletes their data later.

        With both `keep` and `older_than`, a commit goes only if neither keeps it. The newest commit of a branch always
        stays. A pruned commit keeps its data for a while: the one just superseded, and all that are younger than the
        protection window. Tags, branches and leases protect what they name.

        Named commits that are pruned `now` leave nothing behind: files that the newest commit shares with them and that
        hold rows deleted since are rewritten, as one more commit, like `optimize` with `purge`. The next sweep removes
        ids, message and footprint from their log entries. `shared_with` of the report names the kept commits, of any
        branch, that still need such files; `shared=True` prunes them as well, and rewrites the newest commit of every
        branch that shares such a file.

        Args:
            branch: by default all branches.
            keep: how many of the newest commits stay.
            older_than: commits younger than this many seconds stay.
            commits: prune exactly these commits of the branch (by default `main`), by id.
            now: without the protection window; with no other argument, all but the newest commit.
            shared: also prune the commits of any branch whose files hold deleted rows of the named ones;
                `also_pruned` of the report names them. Needs `commits` and `now`.
            dry_run: only report what would be done.
            actor: who, for the history.

        Raises:
            InvalidRequestError: no argument says what to keep.
            NotFoundError: there is no such branch or commit.
            PermissionDeniedError: the graph was opened read-only.
        """
        ...

    def sweep(self, *, older_than: Duration | None = None, dry_run: bool = False, engine: str = "auto") -> SweepReport:
        """Delete the files that no commit needs: of pruned commits, deleted branches, dropped types and dead writers.

        Safe beside readers, writers and other sweeps, however slow they are: a write that a sweep overtakes stages its
        files again. A table with a damaged version is left alone and reported.

        Args:
            older_than: files younger than this many seconds stay, for the sake of readers of old commits; by default
                ten minutes. Writes are safe with 0, too.
            dry_run: only report what would be deleted, with a reason for every file.
            engine: where tables are listed: `local`, `spark`, or `auto`, which takes Spark for very many.

        Raises:
            FormatError: a log, a tag or a lease cannot be read; nothing was deleted.
            PermissionDeniedError: the graph was opened read-only.
        """
        ...

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        confirm: bool = False,
        actor: str | None = None,
    ) -> CleanupReport:
        """Prune every branch without the protection window, and sweep files of any age: frees space at once.

        Args:
            keep: how many of the newest commits of each branch stay.
            older_than: commits younger than this many seconds stay.
            confirm: do it; otherwise only report.
            actor: who, for the history.

        Raises:
            InvalidRequestError: neither `keep` nor `older_than` is given.
            FormatError: a log, a tag or a lease cannot be read; nothing was deleted.
            PermissionDeniedError: the graph was opened read-only.
        """
        ...

    def maintain_once(self, policy: Maintenance = DEFAULT_MAINTENANCE) -> MaintenanceReport:
        """Run one pass of maintenance: optimize every branch, prune, sweep, and verify a bounded part of the graph.

        Args:
            policy: what to do, and how much time and how many bytes it may take.

        Returns:
            What was done, what was left for lack of time or bytes, and what failed and why.

        Raises:
            PermissionDeniedError: the graph was opened read-only.
        """
        ...

    def maintain(
        self,
        every: Duration = 600.0,
        policy: Maintenance = DEFAULT_MAINTENANCE,
        *,
        stop: threading.Event | None = None,
    ) -> Iterator[MaintenanceReport]:
        """Run passes of maintenance until `stop` is set or the graph is closed, and yield the report of each.

        Args:
            every: seconds from the start of one pass to the start of the next.
            policy: what each pass does.
            stop: set it to stop after the current pass.

        Raises:
            PermissionDeniedError: the graph was opened read-only.
            InvalidRequestError: `every` is not a positive duration.
        """
        ...
