"""One column in memory and what is derived from it: dictionary codes and an index over ids.

A value is stored at the ordinal of its row, deleted rows included. So a column depends only on fragments, serves every
version of its space, and grows by the fragments another version adds. What versions share (`Shared…`) is never read
directly: it is first restricted to the rows of one version.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import LimitError
from omnigraph.execution.arrays import (
    NO_ORDINALS,
    NONE,
    Codes,
    Mask,
    Ordinals,
    Values,
    concat,
    make_nulls,
    normalize_zeros,
    positions_in,
    select,
)
from omnigraph.execution.growing import GrowingArray, GrowingNumbers
from omnigraph.execution.id_index import IdIndex, build_id_index
from omnigraph.execution.numbering import FragmentRun, Numbering, serials
from omnigraph.storage.tables.addresses import FragmentKey
from omnigraph.storage.tables.fragments import StoredFragment, fragment_rows
from omnigraph.storage.tables.tables import Table

# The fragments that were read, with the ordinals of their first rows.
FragmentStarts = dict[FragmentKey, int]
_FLOAT_BYTES, _NUMBER_BYTES, _TEXT_BYTES = 4, 8, 24
_VALUES_SCANNED_MAX = 1_000  # new values are compared with all known ones up to this number
# Fragments whose rows are taken from memory at once; more are read together.
_SMALL_FRAGMENTS_MAX = 8


@dataclass(frozen=True, slots=True)
class Column:
    """All values of one column of one version.

    Attributes:
        array: by ordinal; null in the place of fragments that were not read.
        numbering: the ordinals in use.
    """

    array: Values
    numbering: Numbering

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.array.nbytes


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """Dictionary-encoded column of one version: equal values have equal codes.

    Attributes:
        codes: by ordinal; `NONE` for null.
        values: the value of each code; some may belong to other versions.
        numbering: the ordinals in use.
    """

    codes: Codes
    values: Values
    numbering: Numbering


@dataclass(frozen=True, slots=True)
class RowLookup:
    """Index from the text in one column to the rows of one version.

    Attributes:
        column: the indexed texts.
    """

    column: Column
    _index: IdIndex

    def find(self, texts: Sequence[str]) -> Ordinals:
        """Return the distinct ordinals of the rows with these ids; unknown ids are ignored."""
        different = texts if len(texts) == 1 else dict.fromkeys(texts)
        ordinals = [ordinal for text in different if (ordinal := self.find_one(text)) != NONE]
        return np.array(ordinals, dtype=np.int32) if ordinals else NO_ORDINALS

    def find_one(self, text: str) -> int:
        """Return the ordinal of a row with this text; `NONE` if there is none."""
        for ordinal in self._index.candidates(text):
            if self._is_row(ordinal, text):
                return ordinal
        return NONE

    def find_few(self, text: str, most: int) -> list[int] | None:
        """Return the ordinals of all rows with this text as Python ints; None if there may be more than `most`."""
        found = self._index.find_few(text, most)
        return None if found is None else [ordinal for ordinal in found if self._is_row(ordinal, text)]

    def find_all(self, text: str) -> Ordinals:
        """Return the ordinals of all rows with this text."""
        found = self._index.find_all(text).tolist()
        return np.array([ordinal for ordinal in found if self._is_row(ordinal, text)], dtype=np.int32)

    def _is_row(self, ordinal: int, text: str) -> bool:
        """Return whether a candidate is a live row with this text: the index is shared, and hashes collide."""
        numbering = self.column.numbering
        if ordinal >= numbering.size or numbering.is_dead(ordinal):
            return False
        return bool(self.column.array[ordinal].as_py() == text)


class SharedColumn:
    """One column as shared by all versions of a space; only grows, under the lock of its line.

    Attributes:
        fragment_starts: the fragments read.
        generation: of no other column; what is derived from one of another generation must be derived again.
        lineage: of the column it was filled from, which serves no version that this one does not.
    """

    def __init__(self, values: GrowingArray, fragment_starts: FragmentStarts, lineage: int | None = None) -> None:
        self._values = values
        self.fragment_starts = fragment_starts
        self.generation = next(serials)
        self.lineage = self.generation if lineage is None else lineage

    @property
    def array(self) -> Values:
        """Values by ordinal; longer than the numbering of some versions that it serves."""
        return self._values.array

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._values.nbytes

    def restricted_to(self, numbering: Numbering) -> Column:
        """Restrict to one version."""
        return Column(slice_to(self.array, numbering), numbering)

    def covers(self, numbering: Numbering) -> bool:
        """Return whether it has the values of all these rows, and a place for every ordinal."""
        known = self.fragment_starts
        return len(self.array) >= numbering.size and all(
            known.get(run.fragment.key) == run.first for run in numbering.runs
        )

    def extends(self, fragment_starts: FragmentStarts, size: int) -> bool:
        """Return whether its first values are those of a column of this size read from these fragments."""
        return size <= len(self.array) and fragment_starts == {
            key: first for key, first in self.fragment_starts.items() if first < size
        }

    def grow(self, pieces: Sequence[tuple[FragmentRun, Values]]) -> None:
        """Append the values of runs behind the end, in order, with nulls between them."""
        for run, values in pieces:
            gap = run.first - len(self.array)
            if gap:
                self._values.append(make_nulls(gap, self.array.type))
            self._values.append(values)
            self.fragment_starts[run.fragment.key] = run.first

    def filled(self, pieces: Sequence[tuple[FragmentRun, Values]]) -> "SharedColumn":
        """Return a copy with the values of some runs in it, wherever they are."""
        old, parts, at = self.array, list[Values](), 0
        for run, values in pieces:
            if run.first > at:
                parts.append(old.slice(at, run.first - at))
                missing = run.first - max(at, len(old))
                if missing > 0:
                    parts.append(make_nulls(missing, old.type))
            parts.append(values)
            at = run.end
        parts.append(old.slice(at) if at < len(old) else old.slice(0, 0))
        starts = self.fragment_starts | {run.fragment.key: run.first for run, _ in pieces}
        return SharedColumn(GrowingArray(parts), starts, self.lineage)


class SharedEncoding:
    """Dictionary codes of a shared column; only grows, under the lock of its line.

    Attributes:
        lineage: generation of the column.
    """

    def __init__(self, codes: Codes, values: Values, generation: int) -> None:
        self._codes = GrowingNumbers(codes, len(codes))
        self._values = GrowingArray([values])
        self._by_text: IdIndex | None = None
        self.lineage = generation

    @property
    def codes(self) -> Codes:
        """By ordinal; `NONE` for null."""
        return self._codes.values

    @property
    def values(self) -> Values:
        """The value of each code."""
        return self._values.array

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._codes.nbytes + self._values.nbytes

    def restricted_to(self, numbering: Numbering) -> EncodedColumn:
        """Restrict to one version."""
        assert self._codes.used >= numbering.size
        return EncodedColumn(self.codes[: numbering.size], self.values, numbering)

    def grow(self, added: Values) -> None:
        """Append the codes of more values; known values keep their codes."""
        codes, fresh_values = _encode_values(added)
        translation = self._codes_of(fresh_values)
        fresh: Mask = translation == NONE
        translation[fresh] = np.arange(int(fresh.sum()), dtype=np.int32) + len(self.values)
        self._values.append(select(fresh_values, fresh))
        self._codes.append(np.where(codes == NONE, np.int32(NONE), translation[codes]) if len(translation) else codes)

    def _codes_of(self, values: Values) -> Codes:
        """Return the codes of distinct values; few texts among many are found by hash."""
        known = self.values
        if len(known) < _VALUES_SCANNED_MAX or len(values) * 16 > len(known) or not pa.types.is_string(known.type):
            return positions_in(values, known).copy()
        index = build_id_index(known) if self._by_text is None else self._by_text.extended(known)
        self._by_text = index
        codes = np.full(len(values), NONE, dtype=np.int32)
        for place, text in enumerate(values.to_pylist()):
            for code in index.candidates(str(text)):
                if known[code].as_py() == text:
                    codes[place] = code
        return codes


@dataclass(frozen=True, slots=True)
class SharedIndex:
    """Hash index over a shared column of texts.

    Attributes:
        index: finds ordinals by hash.
        lineage: generation of the column.
    """

    index: IdIndex
    lineage: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.index.nbytes

    def restricted_to(self, column: Column) -> RowLookup:
        """Restrict to the version of a column."""
        assert self.index.size >= column.numbering.size
        return RowLookup(column, self.index)


def slice_to(array: Values, numbering: Numbering) -> Values:
    """Slice a shared array to the ordinals of one version."""
    assert len(array) >= numbering.size
    return array if len(array) == numbering.size else array.slice(0, numbering.size)


# Returns the values of one column of a small fragment; None where it has to be read from its file.
KnownRows = Callable[[FragmentRun], "Values | None"]


def read_column(
    table: Table,
    name: str,
    numbering: Numbering,
    before: SharedColumn | None,
    *,
    bytes_max: int,
    known: KnownRows = lambda _: None,
) -> SharedColumn:
    """Read a column of a version; values that `before` has are not read again.

    Raises:
        LimitError: it is larger than `bytes_max`.
    """
    if before is None:
        return _read_whole(table, name, numbering, bytes_max)
    missing = [run for run in numbering.runs if before.fragment_starts.get(run.fragment.key) != run.first]
    found = {run.first: values for run in missing[:_SMALL_FRAGMENTS_MAX] if (values := known(run)) is not None}
    unread = [run for run in missing if run.first not in found]
    if unread:
        arrays = _read_values(table, name, unread, bytes_max - before.nbytes)
        found |= {run.first: values for run, values in zip(unread, arrays, strict=True)}
    pieces = [(run, found[run.first]) for run in missing]
    if missing and missing[0].first < len(before.array):
        return before.filled(pieces)
    before.grow(pieces)
    return before


def _read_whole(table: Table, name: str, numbering: Numbering, bytes_max: int) -> SharedColumn:
    empty = make_nulls(0, table.schema.field(name).type)
    pieces, at = [empty], 0
    for run, values in zip(numbering.runs, _read_values(table, name, numbering.runs, bytes_max), strict=True):
        if run.first > at:
            pieces.append(make_nulls(run.first - at, empty.type))
        pieces.append(values)
        at = run.end
    return SharedColumn(GrowingArray(pieces), starts_of_fragments(numbering))


def read_pieces(table: Table, name: str, numbering: Numbering, rows: int) -> Iterator[tuple[int, Values]]:
    """Read a column in pieces of about `rows` rows, fewer at the end of a fragment.

    Yields:
        The ordinal of the first value, and the values, deleted rows included.
    """
    for run in numbering.runs:
        first, held = run.first, list[Values]()
        for batch in fragment_rows(table, [run.fragment], [name]):
            held.append(batch.column(0))
            if sum(map(len, held)) >= rows:
                yield first, concat(held)
                first, held = first + sum(map(len, held)), []
        if held:
            yield first, concat(held)


def read_rows(table: Table, fragment: StoredFragment, names: Sequence[str]) -> pa.Table:
    """Read some columns of all rows of a fragment, deleted ones included."""
    batches = list(fragment_rows(table, [fragment], names))
    return pa.Table.from_batches(batches) if batches else table.schema.empty_table().select(list(names))


def column_too_large(table: Table, name: str) -> LimitError:
    """Make the error for a column that does not fit into memory."""
    return LimitError(
        f"column '{name}' of {table.pin.table} is larger than the column cache; open the graph with a larger cache",
        code="column_too_large",
    )


def encode_column(column: SharedColumn, before: SharedEncoding | None) -> SharedEncoding:
    """Dictionary-encode a column; values that `before` has keep their codes."""
    if before is None or before.lineage != column.generation:
        return SharedEncoding(*_encode_values(column.array), column.generation)
    if len(before.codes) < len(column.array):
        before.grow(column.array.slice(len(before.codes)))
    return before


def index_column(column: SharedColumn, before: SharedIndex | None) -> SharedIndex:
    """Index a column of ids, continuing the index of another version if possible."""
    if before is None or before.lineage != column.generation:
        return SharedIndex(build_id_index(column.array), column.generation)
    if before.index.size >= len(column.array):
        return before
    return SharedIndex(before.index.extended(column.array), column.generation)


def value_bytes(type_: pa.DataType) -> int:
    """Return the approximate bytes per value."""
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * value_bytes(type_.value_type)
    if pa.types.is_float32(type_):
        return _FLOAT_BYTES
    return _NUMBER_BYTES if pa.types.is_primitive(type_) else _TEXT_BYTES


def _read_values(table: Table, name: str, runs: Sequence[FragmentRun], bytes_max: int) -> list[Values]:
    """Read the values of each of these runs."""
    batches: list[Values] = []
    for batch in fragment_rows(table, [run.fragment for run in runs], [name]):
        batches.append(batch.column(0))
        bytes_max -= batch.column(0).nbytes
        if bytes_max < 0:
            raise column_too_large(table, name)
    if len(runs) == 1:
        return [concat(batches) if batches else make_nulls(0, table.schema.field(name).type)]
    chunked, at, found = pa.chunked_array(batches, table.schema.field(name).type), 0, []
    for run in runs:
        chunks: list[Values] = chunked.slice(at, run.fragment.rows).chunks
        found.append(concat(chunks) if chunks else make_nulls(0, chunked.type))
        at += run.fragment.rows
    return found


def _encode_values(array: Values) -> tuple[Codes, Values]:
    encoded: Any = normalize_zeros(array).dictionary_encode()
    codes: Codes = encoded.indices.fill_null(NONE).to_numpy(zero_copy_only=False)
    return codes.astype(np.int32, copy=False), encoded.dictionary


def starts_of_fragments(numbering: Numbering) -> FragmentStarts:
    """Return the fragments that a column of these rows is read from."""
    return {run.fragment.key: run.first for run in numbering.runs}
