"""Staging indexes: derived state, built on the side, never needed for a right answer.

An index is a set of *segments*, each over some fragments. New rows are in new fragments, so an index is brought up to
date by a segment over the fragments that have none; now and then the segments are folded into one.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.dataset import Index

from omnigraph import limits
from omnigraph.errors import InternalError
from omnigraph.storage.tables.detached import commit_detached
from omnigraph.storage.tables.handles import Handle


class IndexKind(StrEnum):
    """What an index is good for."""

    BTREE = "BTREE"  # equality and ranges
    BITMAP = "BITMAP"  # equality on few different values
    LABEL_LIST = "LABEL_LIST"  # membership in lists
    NGRAM = "NGRAM"  # substrings
    IVF_FLAT = "IVF_FLAT"  # near vectors, exact within the cells looked into
    IVF_PQ = "IVF_PQ"  # near vectors, compressed
    IVF_HNSW_SQ = "IVF_HNSW_SQ"  # near vectors, by graph
    IVF_HNSW_PQ = "IVF_HNSW_PQ"  # near vectors, by graph, compressed

    @property
    def is_vector(self) -> bool:
        """Whether it is on vectors."""
        return self.startswith("IVF_")

    @property
    def is_compressed(self) -> bool:
        """Whether it learns a code book."""
        return self.endswith("_PQ")

    @property
    def rows_min(self) -> int:
        """How many rows a segment has at least; fewer are looked at one by one."""
        if self.is_vector:
            return limits.VECTOR_INDEX_ROWS_MIN
        return limits.PARTS_INDEX_ROWS_MIN if self is IndexKind.NGRAM else 1


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index as it is declared.

    Attributes:
        name: the index's own name, unique in its table.
        column: the column it is on.
        kind: which sort.
        options: further settings in Lance's words, like `metric`, `num_sub_vectors`.
    """

    name: str
    column: str
    kind: IndexKind
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SegmentChange:
    """What becomes of an index.

    Attributes:
        added: segments built and in no version yet.
        removed: segments to leave out.
    """

    added: tuple[Index, ...] = ()
    removed: tuple[Index, ...] = ()

    @property
    def name(self) -> str:
        """Which index."""
        return next(segment.name for segment in (*self.added, *self.removed))


def rebuilding(handle: Handle, spec: IndexSpec) -> SegmentChange:
    """Rebuild the index over all rows, in one segment.

    Returns:
        Where there are too few rows for an index, none is left.
    """
    built = _build(handle, spec, sorted(fragment.id for fragment in handle.fragments()))
    return SegmentChange(() if built is None else (built,), tuple(segments_of(handle, spec.name)))


def extension(handle: Handle, spec: IndexSpec) -> SegmentChange:
    """Build a segment over the fragments that the index does not cover.

    Args:
        spec: which index; where there is none of its name, all fragments are uncovered.

    Returns:
        Empty where nothing is missing, or too few rows: those without an index are looked at one by one, which takes
            less than the index would.
    """
    live = {fragment.id for fragment in handle.fragments()}
    segments = segments_of(handle, spec.name)
    missing = sorted(live.difference(*(segment.fragment_ids for segment in segments)))
    built = _build(handle, spec, missing)
    return SegmentChange(() if built is None else (built,), tuple(_dead(segments, live)))


def folding(handle: Handle, spec: IndexSpec) -> SegmentChange:
    """Make one segment of several."""
    segments = segments_of(handle, spec.name)
    if len(segments) <= 1:
        return SegmentChange()
    if spec.kind.is_vector:
        # Segments of different training do not add up; what was learnt from few rows is better learnt again.
        return rebuilding(handle, spec)
    dead = _dead(segments, {fragment.id for fragment in handle.fragments()})
    alive = [segment for segment in segments if segment not in dead]
    if len(alive) <= 1:
        return SegmentChange((), tuple(dead))
    return SegmentChange((_committed(_apart(handle).merge_existing_index_segments(alive)),), tuple(segments))


def refreshing(handle: Handle, spec: IndexSpec, *, purge: bool = False) -> SegmentChange:
    """Let an index cover every row, in few segments; build it where there is none.

    Args:
        purge: leave no segment that holds values of fragments that are gone.

    Returns:
        Empty where nothing is missing and the segments are few, or where there are too few rows.
    """
    segments = segments_of(handle, spec.name)
    live = {fragment.id for fragment in handle.fragments()}
    dead = _dead(segments, live)
    alive = [segment for segment in segments if segment not in dead]
    if purge and _hold_dead_values(alive, live):
        return rebuilding(handle, spec)
    uncovered = not live <= set().union(*(segment.fragment_ids for segment in alive))
    if len(alive) + uncovered <= limits.INDEX_SEGMENTS_MAX:
        return extension(handle, spec)
    if spec.kind.is_vector or handle.dataset.count_rows() <= limits.INDEX_REBUILT_ROWS_MAX:
        # Cheap, and what segments still know of fragments that are gone is forgotten.
        return rebuilding(handle, spec)
    added = extension(handle, spec).added
    if len(alive) + len(added) <= 1:
        return SegmentChange(added, tuple(dead))
    folded = _apart(handle).merge_existing_index_segments([*alive, *added])
    return SegmentChange((_committed(folded),), tuple(segments))


def is_due(handle: Handle, spec: IndexSpec, *, purge: bool = False) -> bool:
    """True if refreshing an index would change anything; reads only how many rows have a value."""
    segments = segments_of(handle, spec.name)
    live = {fragment.id for fragment in handle.fragments()}
    alive = [segment for segment in segments if not live.isdisjoint(segment.fragment_ids)]
    if len(alive) < len(segments) or len(alive) > limits.INDEX_SEGMENTS_MAX:
        return True
    if purge and _hold_dead_values(alive, live):
        return True
    missing = live.difference(*(segment.fragment_ids for segment in alive))
    return bool(missing) and _are_enough(handle, spec, missing)


def adds_a_segment(handle: Handle, spec: IndexSpec, rewritten: set[int]) -> bool:
    """Whether refreshing an index adds a segment once the rows of some fragments were rewritten, and some are left."""
    if spec.kind.rows_min <= 1:
        return True
    alive = [one for one in segments_of(handle, spec.name) if not rewritten >= set(one.fragment_ids)]
    live = {fragment.id for fragment in handle.fragments()}
    everything = len(alive) + 1 > limits.INDEX_SEGMENTS_MAX
    covered = set[int]() if everything else set().union(*(one.fragment_ids for one in alive)) - rewritten
    return _are_enough(handle, spec, live - covered)


def as_built(handle: Handle, spec: IndexSpec) -> IndexSpec:
    """The index as it is named in a version: a column that was renamed takes its index along, under the old name."""
    for index in handle.dataset.describe_indices():
        if list(index.field_names) == [spec.column] and index.index_type.upper() == spec.kind:
            return dataclasses.replace(spec, name=index.name)
    return spec


def dropping(handle: Handle, name: str) -> SegmentChange:
    """Drop the index; empty if no index has that name."""
    return SegmentChange((), tuple(segments_of(handle, name)))


def undeclared(handle: Handle, specs: Iterable[IndexSpec]) -> list[str]:
    """The indexes of a version that are none of these, by their names there.

    Args:
        specs: the indexes it is to have, as they are named there.
    """
    wanted = {spec.name for spec in specs}
    return sorted({index.name for index in handle.dataset.describe_indices()} - wanted)


def with_segments(handle: Handle, changes: Iterable[SegmentChange]) -> Handle:
    """One version in which indexes have changed.

    Returns:
        The new version; the given one where nothing changes.
    """
    added: list[Index] = []
    removed: list[Index] = []
    for change in changes:
        added += change.added
        removed += change.removed
    if not added and not removed:
        return handle
    made = commit_detached(handle.dataset, LanceOperation.CreateIndex(added, removed))
    return handle.succeeded_by(made, data_bytes=handle.data_bytes, rows=handle.rows)


def segment_files(changes: Iterable[SegmentChange]) -> set[str]:
    """The files of the segments added, under their table's folder."""
    return {
        f"_indices/{segment.uuid}/{file.path}"
        for change in changes
        for segment in change.added
        for file in segment.files or ()
    }


def rows_with_value(handle: Handle, column: str, fragments: Iterable[int]) -> int:
    """How many rows of some fragments have a value in a column."""
    chosen = set(fragments)
    opened = [one for one in handle.dataset.get_fragments() if one.fragment_id in chosen]
    return int(handle.dataset.scanner(columns=[], filter=f"`{column}` IS NOT NULL", fragments=opened).count_rows())


def _are_enough(handle: Handle, spec: IndexSpec, fragments: Iterable[int]) -> bool:
    """Whether the rows of some fragments are worth a segment; values are counted only where a manifest cannot tell."""
    least = spec.kind.rows_min
    if least <= 1:
        return True
    chosen = set(fragments)
    rows = sum(one.physical_rows - one.num_deletions for one in handle.fragments() if one.id in chosen)
    return rows >= least and (not spec.kind.is_vector or rows_with_value(handle, spec.column, chosen) >= least)


def segments_of(handle: Handle, name: str) -> list[Index]:
    """The segments of an index, in the form in which they can be removed or folded."""
    return [
        Index(
            uuid=segment.uuid,
            name=name,
            fields=list(index.fields),
            dataset_version=1,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
            index_details=(index.type_url, b""),
        )
        for index in handle.dataset.describe_indices()
        if index.name == name
        for segment in index.segments
    ]


def cells_for(rows: int) -> int:
    """How many cells an index over so many vectors has: as many as make a cell a quick read."""
    return max(1, min(limits.VECTOR_PARTITIONS_MAX, rows // limits.VECTOR_PARTITION_ROWS))


def _dead(segments: Sequence[Index], live: set[int]) -> list[Index]:
    """Segments of which no fragment is left."""
    return [segment for segment in segments if live.isdisjoint(segment.fragment_ids)]


def _hold_dead_values(segments: Iterable[Index], live: set[int]) -> bool:
    """Whether segments were built over fragments that are gone: what those held is still in the files of the index."""
    return any(not live.issuperset(segment.fragment_ids) for segment in segments)


def _build(handle: Handle, spec: IndexSpec, fragments: list[int]) -> Index | None:
    """A segment over some fragments; None where there is nothing to index, or too little to be worth it."""
    if not fragments or not _are_enough(handle, spec, fragments):
        return None
    options: dict[str, str | int | float | bool] = dict(spec.options)
    if spec.kind.is_vector:
        options = {**_vector_options(handle, spec, rows_with_value(handle, spec.column, fragments)), **options}
    built = _apart(handle).create_index_uncommitted(
        spec.column,
        spec.kind.value,
        name=spec.name,
        fragment_ids=fragments,
        replace=True,
        **options,  # type: ignore[arg-type]  # each kind takes others
    )
    return _committed(built)


def _apart(handle: Handle) -> LanceDataset:
    """The same version, opened apart: building takes a dataset for itself, and writers are using ours meanwhile."""
    return handle.dataset.checkout_version(handle.version)


def _committed(segment: Index) -> Index:
    """A segment as it may stand in a version.

    A segment notes the version it was built at, and folding refuses one built "later" than another. The numbers of
    detached versions are random, so all are given the first.
    """
    return dataclasses.replace(segment, dataset_version=1)


def _vector_options(handle: Handle, spec: IndexSpec, rows: int) -> dict[str, str | int | float | bool]:
    kind = handle.schema.field(spec.column).type
    if not isinstance(kind, pa.FixedSizeListType):
        raise InternalError(f"table {handle.table}: column {spec.column} holds no vectors")
    chosen: dict[str, str | int | float | bool] = {"num_partitions": cells_for(rows)}
    if spec.kind.is_compressed:
        # One code for eight or so dimensions; a vector has to split evenly.
        chosen["num_sub_vectors"] = next(
            kind.list_size // width for width in (8, 7, 6, 5, 4, 3, 2, 1) if kind.list_size % width == 0
        )
    return chosen
