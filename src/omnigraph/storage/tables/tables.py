"""The staged-only port to a graph's tables: what it writes is invisible until a record names it.

Every effect on a table is a *detached* version: complete, immutable, on no lineage, named by a random number. No table
ever moves on by itself after its creation. See `detached.py` for the one place where versions come into being.
"""

import contextvars
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import lance
import pyarrow as pa

from omnigraph import limits
from omnigraph.lru import LruCache
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import Addresses
from omnigraph.storage.tables.blobs import StoredBlob
from omnigraph.storage.tables.compact import Elsewhere, compact, keep_up, tail_to_rewrite, to_rewrite
from omnigraph.storage.tables.delta import (
    Difference,
    Mask,
    VersionDelta,
    difference,
    find_addresses,
    version_delta,
)
from omnigraph.storage.tables.detached import transaction_file
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.files import in_table, steps_of, version_files
from omnigraph.storage.tables.handles import Handle, Handles, shared_session
from omnigraph.storage.tables.indexes import (
    IndexKind,
    IndexSpec,
    SegmentChange,
    dropping,
    extension,
    folding,
    rebuilding,
    segment_files,
    with_segments,
)
from omnigraph.storage.tables.rebase import read_staging, rebase
from omnigraph.storage.tables.schema import ComputedColumn, change_columns
from omnigraph.storage.tables.stage_rows import stage_rows
from omnigraph.storage.tables.staged_version import (
    OpenStagedVersion,
    RowAddresses,
    RowsToStage,
    StagedVersion,
    Written,
    as_staged,
)
from omnigraph.storage.tables.table import Table

__all__ = [
    "ComputedColumn",
    "Difference",
    "IndexKind",
    "IndexSpec",
    "RowAddresses",
    "RowsToStage",
    "StagedVersion",
    "StoredBlob",
    "Table",
    "Tables",
    "Written",
]

_What = TypeVar("_What")


class Tables:
    """All tables of one graph root. Safe to use from several threads."""

    def __init__(self, uri: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        self._handles = Handles(uri, storage_options=storage_options, most=limits.OPEN_TABLES_MAX)
        self._staged_versions: LruCache[tuple[str, int, int], OpenStagedVersion] = LruCache(limits.STAGED_EFFECTS_MAX)

    def create(self, table: str, schema: pa.Schema) -> Pin:
        """Create an empty table in a fresh folder.

        Returns:
            Its first version, the only one that is not detached.

        Raises:
            AlreadyExistsError: there is a table in the folder.
        """
        with mapped(table):
            # Address-style row ids: with stable ones, an index extended after an update finds rows that are no more.
            dataset = lance.write_dataset(
                schema.empty_table(),
                self._handles.uri_of(table),
                schema=schema,
                mode="create",
                storage_options=self._handles.storage_options,
                enable_stable_row_ids=False,
                session=shared_session(),
            )
        return self._handles.keep(Handle(table, dataset, 0)).pin()

    def open(self, pin: Pin) -> Table:
        """A version, for reading.

        Returns:
            Immutable; opening a version that was opened or staged lately asks the store nothing.

        Raises:
            FormatError: the version is not there (`version_reclaimed`) or damaged.
        """
        return Table(self._handles.open(pin), pin)

    def stage_rows(self, base: Pin, rows: RowsToStage) -> StagedVersion:
        """Make one version with everything a write does to the rows of a table.

        Returns:
            The new version, or the base itself when nothing changes.

        Raises:
            InternalError: an id occurs twice, or rows do not fit the table.
        """
        handle = self._handles.open(base)
        return self._keep(stage_rows(base, handle, rows))

    def stage_columns(
        self,
        base: Pin,
        *,
        computed: Sequence[ComputedColumn] = (),
        dropped: Iterable[str] = (),
        renamed: Mapping[str, str] | None = None,
        relaxed: Iterable[str] = (),
        tightened: Iterable[str] = (),
        added: Sequence["pa.Field[pa.DataType]"] = (),
        erases_but: Sequence[IndexSpec] | None = None,
    ) -> StagedVersion:
        """Make one version with other columns. Rows there are have null in new columns.

        Args:
            computed: columns to make first, with values; they may be renamed in the same call.
            renamed: of those that stay, old names to new ones.
            relaxed: columns, by their old names, that shall allow nulls.
            tightened: columns, by their old names, that have no nulls and shall not allow any.
            added: columns to add at the end; they allow nulls.
            erases_but: rewrite every row in a file that holds a dropped column, and leave out all indexes but these;
                None rewrites none.

        Raises:
            InternalError: a column is not there, a name is taken, or a new column does not allow nulls.
        """
        made = change_columns(
            self._handles.open(base),
            computed=computed,
            dropped=dropped,
            renamed=renamed,
            relaxed=relaxed,
            tightened=tightened,
            added=added,
        )
        if erases_but is None:
            return as_staged(base, self._handles.keep(made.handle), made.files)
        erased, files = compact(made.handle, erases_but, drops_others=True)
        return as_staged(base, self._handles.keep(erased), files | made.files)

    def stage_add_column(self, base: Pin, column: "pa.Field[pa.DataType]") -> StagedVersion:
        """Add a column that allows nulls, at the end; see `stage_columns`."""
        return self.stage_columns(base, added=[column])

    def stage_rename_column(self, base: Pin, old: str, new: str) -> StagedVersion:
        """Rename a column; see `stage_columns`."""
        return self.stage_columns(base, renamed={old: new})

    def stage_drop_column(self, base: Pin, column: str) -> StagedVersion:
        """Leave a column out; see `stage_columns`."""
        return self.stage_columns(base, dropped=[column])

    def stage_index(self, base: Pin, *specs: IndexSpec) -> StagedVersion:
        """Rebuild indexes over all rows, each in one segment.

        Returns:
            One version with all of them; the base where there are too few rows to learn from.
        """
        return self._stage_segments(base, specs, rebuilding)

    def stage_index_delta(self, base: Pin, *specs: IndexSpec) -> StagedVersion:
        """Let indexes cover the rows written since they were last built; build those that are not there.

        Returns:
            One version with all of them; the base where nothing was missing.
        """
        return self._stage_segments(base, specs, extension)

    def fold_index(self, base: Pin, *specs: IndexSpec) -> StagedVersion:
        """Make one segment of the several that deltas have left.

        Returns:
            One version with all of them; the base where no index has two segments.
        """
        return self._stage_segments(base, specs, folding)

    def stage_index_drop(self, base: Pin, *names: str) -> StagedVersion:
        """Leave indexes out.

        Returns:
            One version without them; the base where there are none of these names.
        """
        return self._stage_segments(base, names, dropping)

    def stage_compaction(self, base: Pin, indexes: Sequence[IndexSpec] = ()) -> StagedVersion:
        """Make one fragment of the small ones; large ones stay, and with them what indexes know of them.

        Args:
            indexes: indexes to extend to the new fragment, where they were built before.

        Returns:
            The new version; the base where there is nothing to gain.
        """
        handle = self._handles.open(base)
        made, files = compact(handle, indexes)
        return as_staged(base, self._handles.keep(made), files)

    def stage_upkeep(
        self,
        base: Pin,
        indexes: Sequence[IndexSpec],
        *,
        tail_only: bool = False,
        purge: bool = False,
        elsewhere: Elsewhere = lambda _groups, _size: None,
    ) -> StagedVersion:
        """Make one version with few fragments, in which indexes cover every row.

        Args:
            indexes: indexes to build where they are missing, to extend and to fold; others that the version has are
                left out.
            tail_only: rewrite no more than the newest fragments need, so that a row is rewritten few times however
                often this is done, and leave out no index.
            purge: rewrite every file that holds a deleted row, or a value of one.

        Returns:
            The new version; the base where there is nothing to do.
        """
        handle = self._handles.open(base)
        old = tail_to_rewrite(handle.fragments()) if tail_only else to_rewrite(handle, purge=purge)
        made, files = keep_up(handle, indexes, old, elsewhere, drops_others=not tail_only, purge=purge)
        return as_staged(base, self._handles.keep(made), files)

    def fragments_known(self, pin: Pin) -> int:
        """Number of fragments of a version that is open; 0 if it is not open."""
        handle = self._handles.known(pin)
        return 0 if handle is None else len(handle.fragment_numbers)

    def stage_many(
        self, work: Mapping[str, Callable[[], StagedVersion]], *, is_little: bool = False
    ) -> dict[str, StagedVersion]:
        """Stage several tables, at once where that is faster.

        Args:
            is_little: there are few rows in all of them; on local disk that is done before threads have begun.

        Raises:
            BaseException: the first failure in the order of `work`, after all have come to an end: nobody still writes
                when the caller begins to clean up.
        """
        if len(work) <= 1 or (is_little and self._handles.is_local and len(work) <= limits.STAGE_IN_TURN_TABLES_MAX):
            return {key: run() for key, run in work.items()}
        with ThreadPoolExecutor(min(len(work), limits.STAGE_THREADS_MAX), thread_name_prefix="stage") as pool:
            # Each in a copy of the caller's context, so that what is armed or set there holds in the thread too.
            # Leaving the block waits for all of them.
            running = {key: pool.submit(contextvars.copy_context().run, run) for key, run in work.items()}
        return {key: future.result() for key, future in running.items()}

    def rebase(self, base: Pin, staged: Pin, onto: Pin) -> StagedVersion | None:
        """Apply what `staged` does against `base` to a newer version; its rows are not written again.

        Whether both sides inserted the same id is not looked at: footprints tell.

        Args:
            staged: made by this process or, before a crash, by another.

        Returns:
            A version on `onto`; None if the effect has no exact meaning there.
        """
        if staged.version == base.version:
            return StagedVersion(onto, onto)
        before, after = self._handles.open(base), self._handles.open(onto)
        staging = self._staging(base, before, staged)
        if onto.version == base.version:
            return staging.staged
        rebased = rebase(staging, before, onto, after)
        return None if rebased is None else self._keep(rebased)

    def difference(self, older: Pin, newer: Pin, *, columns: Sequence[str] | None = None) -> Difference:
        """The rows in which two versions of a table differ; fragments that both have are not read.

        Returns:
            Rows that only one of them has; replaced and moved rows are on both sides.
        """
        return difference(self._handles.open(older), self._handles.open(newer), columns)

    def delta(self, older: Pin, newer: Pin) -> VersionDelta:
        """Where two versions of a table differ; no row is read for it."""
        return version_delta(self._handles.open(older), self._handles.open(newer))

    def addresses_in(self, newer: Pin, older: Pin, addresses: Addresses) -> tuple[Addresses, Mask]:
        """Where rows of one version lie in another; see `difference.addresses_in`.

        Returns:
            Their addresses, and of which of them they are known.
        """
        return find_addresses(self._handles.open(newer), self._handles.open(older), addresses)

    def discard(self, base: Pin, staged: Pin) -> tuple[str, ...]:
        """The files to delete when a staged version is given up; deletes nothing itself.

        Only what the one call that made `staged` has written is named, and only as far as `base` does without it: a
        caller who is wrong about the base leaves garbage behind, never a hole. A rebased version shares its data files
        with the version it was rebased from: once either is published, the other must be left to the sweep.

        Returns:
            Paths under the root; one that ends with `/` is a folder, to be deleted with all in it.
        """
        if staged.version == base.version:
            return ()
        handle = self._handles.open(staged)
        with mapped(staged.table, staged.version):
            steps = steps_of(handle)
        kept = self.files(base) | self.files(Pin(staged.table, steps[-1].base))
        lost = {file for step in steps for file in self.files(Pin(staged.table, step.version))}
        transactions = in_table(staged.table, (transaction_file(step.base, step.uuid) for step in steps))
        return tuple(sorted((lost - kept).union(transactions)))

    def files(self, pin: Pin) -> frozenset[str]:
        """Every file a version refers to.

        Returns:
            Paths under the root; a path that ends with `/` is a folder and stands for all in it.
        """
        handle = self._handles.open(pin)
        with mapped(pin.table, pin.version):
            return version_files(handle)

    def _stage_segments(
        self, base: Pin, whats: Iterable[_What], change: Callable[[Handle, _What], SegmentChange]
    ) -> StagedVersion:
        handle = self._handles.open(base)
        with mapped(base.table, base.version):
            changes = [change(handle, what) for what in whats]
            made = with_segments(handle, changes)
        return as_staged(base, self._handles.keep(made), segment_files(changes))

    def _keep(self, staging: OpenStagedVersion) -> StagedVersion:
        """Remember a new version: its handle for the next write, its effect for a rebase."""
        staged = staging.staged
        if staged.is_unchanged:
            return staged
        self._handles.keep(staging.handle)
        touched = len(staging.effect.removed) + len(staged.inserted_ids) + len(staged.updated_ids)
        if touched <= limits.STAGED_EFFECT_ROWS_MAX:
            self._staged_versions.put((staged.pin.table, staged.base.version, staged.pin.version), staging)
        return staged

    def _staging(self, base: Pin, handle: Handle, staged: Pin) -> OpenStagedVersion:
        known = self._staged_versions.get((staged.table, base.version, staged.version))
        return known if known is not None else read_staging(base, handle, self._handles.open(staged))
