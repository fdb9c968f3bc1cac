"""The upkeep of a graph."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from omnigraph.api import pruning
from omnigraph.api.engines import engine_of
from omnigraph.api.graph_reads import GraphReads
from omnigraph.api.maintaining import DEFAULT_MAINTENANCE, Maintenance, MaintenanceReport, maintain_once, passes
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.pruning import CleanupReport, Duration, PruneReport, SweepReport
from omnigraph.api.snapshot import Snapshot
from omnigraph.api.upkeep import OptimizeReport, report_of, rewritten, type_keys_of, with_words
from omnigraph.api.verifying import Place, VerifyReport, verified, verified_in_part
from omnigraph.branch import branches
from omnigraph.branch.clock_repair import CorrectedClock, repair_clock
from omnigraph.errors import InvalidRequestError
from omnigraph.storage import paths
from omnigraph.transaction.leases import leased
from omnigraph.transaction.optimize import optimize
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.said import flag, text_or_nothing


class GraphUpkeep(GraphReads):
    """What keeps a graph small, fast and whole. Nothing here changes an answer."""

    def optimize(
        self,
        branch: str = MAIN_BRANCH,
        *,
        types: Sequence[str] | None = None,
        purge: bool = False,
        actor: str | None = None,
        message: str | None = None,
        engine: str = "auto",
    ) -> OptimizeReport:
        """Make reads cheaper without changing any answer: compact tables, build and extend indexes, fold the log.

        All of it is one commit, or none where nothing was due. Writers do not wait for it, nor it for them.

        Args:
            branch (str): whose tables.
            types (Sequence[str] | None): only these types, by name or type key.
            purge (bool): rewrite every file that holds a deleted row, however few they are: once older commits are
                pruned, a sweep leaves nothing of what was deleted.
            actor (str | None): who.
            message (str | None): why.
            engine (str): where rows are rewritten: `local`, `spark`, or `auto`, which takes Spark for very many.

        Returns:
            OptimizeReport: what was done to each table, and which declared indexes cannot be built yet.

        Raises:
            NotFoundError: there is no such branch or type.
            ConflictError: others kept laying out the same tables anew.
            InvalidRequestError: the engine is none.
            PermissionDeniedError: the graph was opened read-only.
        """
        parts = self._open()
        parts.refuse_read_only()
        flag(purge, "purge")
        name = paths.branch_name(branch)
        chosen = None if types is None else type_keys_of(self.schema(branch=name), types)
        done = optimize(
            parts,
            name,
            lambda digest: self._schemas.of(digest).schema,
            type_keys=chosen,
            options=WriteOptions(actor=actor, message=message),
            rewriter=partial(rewritten, parts, engine_of(engine)),
            purge=purge,
        )
        done = with_words(done, self._reading.engine, self._schemas.of(done.head.schema).schema)
        return report_of(done, uri=self.uri, branch=name)

    def verify(self, *, deep: bool = False, branch: str | None = None, quarantine: bool = False) -> VerifyReport:
        """Check that everything commits refer to is there as it was written, and tell what is lost on which commits.

        Args:
            deep (bool): also compare checksums, read every value, and check the rows at the heads against the schema.
            branch (str | None): only this branch; all by default.
            quarantine (bool): put aside what cannot be read, and give damaged heads a commit that does without it.
                Nobody else may be writing meanwhile.

        Returns:
            VerifyReport: what was found.

        Raises:
            NotFoundError: there is no such branch.
            PermissionDeniedError: the graph was opened read-only, and `quarantine` was asked for.
        """
        parts = self._open()
        if quarantine:
            parts.refuse_read_only()
        where = None if branch is None else paths.branch_name(branch)
        return verified(
            parts, lambda digest: self._schemas.of(digest).schema, deep=deep, branch=where, quarantine=quarantine
        )

    def repair_clock(self, *, actor: str | None = None) -> tuple[CorrectedClock, ...]:
        """Correct the times of commits that were made by a clock ahead of the store's, on every branch.

        One entry in the log of such a branch says which times count: those at which the store was given the commits.
        Ids stay as they are. Others may go on writing meanwhile.

        Args:
            actor (str | None): who.

        Returns:
            tuple[CorrectedClock, ...]: the branches that had such commits; none where all times are right.

        Raises:
            ClockError: the clock of this machine is ahead of the store's; set it first.
            ConflictError: others keep writing the log.
            PermissionDeniedError: the graph was opened read-only.
        """
        return tuple(repair_clock(self._open(), actor=text_or_nothing(actor, "the actor")))

    def _verify_some(self, reads_max: int) -> tuple[VerifyReport, Place | None]:
        return verified_in_part(self._open(), reads_max=reads_max)

    def maintain_once(self, policy: Maintenance = DEFAULT_MAINTENANCE) -> MaintenanceReport:
        """One pass of maintenance: optimize every branch, prune by a policy, sweep, and verify a bounded part of it.

        Args:
            policy (Maintenance): what to do, and how much it may take.

        Returns:
            MaintenanceReport: what was done, what was left for lack of time or bytes, and what failed and why.

        Raises:
            PermissionDeniedError: the graph was opened read-only.
        """
        parts = self._open()
        parts.refuse_read_only()
        return maintain_once(self, partial(branches.heads, parts), policy, parts.clock)

    def maintain(
        self,
        every: Duration = 600.0,
        policy: Maintenance = DEFAULT_MAINTENANCE,
        *,
        stop: threading.Event | None = None,
    ) -> Iterator[MaintenanceReport]:
        """Pass after pass of maintenance, until it is told to stop or the graph is closed; a pass is never cut short.

        Args:
            every (float | timedelta): seconds from the beginning of one pass to that of the next.
            policy (Maintenance): what each does, and how much it may take.
            stop (threading.Event | None): set it to stop.

        Yields:
            MaintenanceReport: of each pass, when it is done.

        Raises:
            PermissionDeniedError: the graph was opened read-only.
            InvalidRequestError: the time is none, or 0.
        """
        parts = self._open()
        parts.refuse_read_only()
        every_s = pruning.seconds(every)
        if not every_s:
            raise InvalidRequestError(f"passes begin more than 0 seconds after each other, not {every!r}")
        if stop is not None and not isinstance(stop, threading.Event):
            raise InvalidRequestError(f"stop is a threading.Event, got {type(stop).__name__}")
        return passes(
            lambda: self.maintain_once(policy),
            every_s=every_s,
            stops=lambda: self._closed or (stop is not None and stop.is_set()),
            clock=parts.clock,
        )

    # -- pruning and sweeping -----------------------------------------------------------------------------------------

    def prune(
        self,
        branch: str | None = None,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        commits: Sequence[str] = (),
        now: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> PruneReport:
        """Show old commits no more. Nothing is deleted: a later `sweep` does that.

        With `keep` and `older_than` both, only what neither keeps is pruned. The newest commit of a branch always
        stays. What is pruned keeps its data for a while: the commit just superseded, and all that are younger than the
        protection window. Tags, branches and leases hold what they name for as long as they are there.

        Named commits that are pruned now shall leave nothing of theirs: files that the newest commit shares with them
        and that hold rows deleted since are rewritten, as one more commit, which `optimize` with `purge` would make.
        `shared_with` of the report names the commits between that still need such files; prune them as well.

        Args:
            branch (str | None): which; all of them by default.
            keep (int | None): how many of the newest commits stay.
            older_than (float | timedelta | None): commits younger than this, in seconds, stay.
            commits (Sequence[str]): just these commits of the branch (of `main` by default), by their ids.
            now (bool): without the time of grace; with nothing else said, all but the newest.
            dry_run (bool): only say what would be done.
            actor (str | None): who.

        Returns:
            PruneReport: what was marked, by branch.

        Raises:
            InvalidRequestError: nothing was said about what to keep.
            NotFoundError: there is no such branch or commit.
            PermissionDeniedError: the graph was opened read-only.
        """
        parts = self._open()
        report = pruning.pruned(
            parts,
            branch=branch,
            keep=keep,
            older_than=older_than,
            commits=commits,
            now=now,
            dry_run=dry_run,
            actor=actor,
        )
        if not (commits and now):
            return report
        shared = pruning.sharing_files(parts, report.branches[0])
        if shared.types and not dry_run:
            self.optimize(report.branches[0].branch, types=shared.types, purge=True, actor=actor)
        return replace(report, shared_with=shared.commits)

    def sweep(self, *, older_than: Duration | None = None, dry_run: bool = False, engine: str = "auto") -> SweepReport:
        """Delete the files that no commit needs: of pruned commits, deleted branches, dropped types and dead writers.

        Safe beside readers, writers and other sweeps, here and elsewhere, however slow they are: a write that a sweep
        overtakes stages its files once more. A table with a damaged version is left alone and reported.

        Args:
            older_than (float | timedelta | None): files younger than this, in seconds, stay; ten minutes by default. A
                courtesy to those who read old commits; writes are safe with 0, too.
            dry_run (bool): only say what would be deleted, with a reason for every file.
            engine (str): where tables are listed and their versions looked through: `local`, `spark`, or `auto`, which
                takes Spark for very many of them.

        Returns:
            SweepReport: the worklist, and what was deleted, by kind.

        Raises:
            FormatError: a log, a tag or a lease cannot be read; nothing was deleted.
            PermissionDeniedError: the graph was opened read-only.
        """
        return pruning.swept(self._open(), older_than=older_than, dry_run=dry_run, engine=engine)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        confirm: bool = False,
        actor: str | None = None,
    ) -> CleanupReport:
        """Prune every branch now and sweep everything, whatever its age: space comes back at once.

        Args:
            keep (int | None): how many of the newest commits of each branch stay.
            older_than (float | timedelta | None): commits younger than this, in seconds, stay.
            confirm (bool): do it; otherwise only look.
            actor (str | None): who.

        Returns:
            CleanupReport: what was removed, by table.

        Raises:
            InvalidRequestError: neither `keep` nor `older_than` was given.
            FormatError: a log, a tag or a lease cannot be read; nothing was deleted.
            PermissionDeniedError: the graph was opened read-only.
        """
        return pruning.cleaned_up(self._open(), keep=keep, older_than=older_than, confirm=confirm, actor=actor)

    @contextmanager
    def lease(
        self, *, branch: str | None = None, commit: str | None = None, tag: str | None = None, seconds: float = 600.0
    ) -> Iterator[Snapshot]:
        """Hold a commit for reading: while the block runs no prune and no sweep takes it away.

        Args:
            branch (str | None): its head; `main` by default.
            commit (str | None): this commit instead.
            tag (str | None): the commit of this tag instead.
            seconds (float): for how long it stays held after this process has died.

        Yields:
            Snapshot: the commit, for as long as it takes to read it.

        Raises:
            NotFoundError: there is no such branch or commit.
            ReclaimedError: it was pruned.
            PermissionDeniedError: the graph was opened read-only.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag)
        with leased(self._open(), snapshot.record, seconds):
            yield snapshot
