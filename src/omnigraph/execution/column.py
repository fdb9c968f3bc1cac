"""One column in memory and what is derived from it: dictionary codes and an index over ids.

A value is stored at the ordinal of its row, deleted rows included. So a column depends only on fragments, serves every
version that has them, and grows by the fragments a newer version adds. What versions share (`Shared…`) is never read
directly: it is first restricted to the rows of one version.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.errors import LimitError
from omnigraph.execution.arrays import (
    NO_ORDINALS,
    NONE,
    Codes,
    Mask,
    Ordinals,
    Values,
    concat,
    normalize_zeros,
    positions_in,
    select,
)
from omnigraph.execution.id_index import IdIndex, build_id_index
from omnigraph.execution.numbering import FragmentRun, Numbering
from omnigraph.storage.tables.addresses import FragmentKey
from omnigraph.storage.tables.fragments import fragment_rows
from omnigraph.storage.tables.tables import Table

# The fragments that were read, with the ordinals of their first rows.
FragmentStarts = dict[FragmentKey, int]
_FLOAT_BYTES, _NUMBER_BYTES, _TEXT_BYTES = 4, 8, 24


@dataclass(frozen=True, slots=True)
class Column:
    """All values of one column of one version.

    Attributes:
        array: by ordinal; null in the place of fragments that were gone when it was read.
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


@dataclass(frozen=True, slots=True)
class SharedColumn:
    """One column as shared by all versions that have its fragments.

    Attributes:
        array: by ordinal; longer than the numbering of some versions that it serves.
        fragment_starts: the fragments read.
    """

    array: Values
    fragment_starts: FragmentStarts

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.array.nbytes

    def restricted_to(self, numbering: Numbering) -> Column:
        """Restrict to one version."""
        return Column(slice_to(self.array, numbering), numbering)

    def covers(self, numbering: Numbering) -> bool:
        """Return whether it has the values of all these rows, and a place for every ordinal."""
        return len(self.array) >= numbering.size and all(
            self.fragment_starts.get(run.fragment.key) == run.first for run in numbering.runs if run.is_present
        )

    def is_prefix_of(self, numbering: Numbering) -> bool:
        """Return whether it has the values of all these rows but those of whole runs behind its end."""
        return numbering.starts_run_at(len(self.array)) and all(
            run.first >= len(self.array) or self.fragment_starts.get(run.fragment.key) == run.first
            for run in numbering.runs
            if run.is_present
        )

    def extends(self, fragment_starts: FragmentStarts, size: int) -> bool:
        """Return whether its first values are those of a column of this size read from these fragments."""
        return size <= len(self.array) and fragment_starts == {
            key: first for key, first in self.fragment_starts.items() if first < size
        }


@dataclass(frozen=True, slots=True)
class SharedEncoding:
    """Dictionary codes of a shared column.

    Attributes:
        codes: by ordinal; `NONE` for null.
        values: the value of each code.
        fragment_starts: the fragments read.
    """

    codes: Codes
    values: Values
    fragment_starts: FragmentStarts

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.codes.nbytes + self.values.nbytes

    def restricted_to(self, numbering: Numbering) -> EncodedColumn:
        """Restrict to one version."""
        assert len(self.codes) >= numbering.size
        return EncodedColumn(self.codes[: numbering.size], self.values, numbering)


@dataclass(frozen=True, slots=True)
class SharedIndex:
    """Hash index over a shared column of texts.

    Attributes:
        index: finds ordinals by hash.
        fragment_starts: the fragments read.
    """

    index: IdIndex
    fragment_starts: FragmentStarts

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


def read_column(
    table: Table, name: str, numbering: Numbering, before: SharedColumn | None, *, bytes_max: int
) -> SharedColumn:
    """Read a column of a version; values that `before` has are not read again.

    Raises:
        LimitError: it is larger than `bytes_max`.
    """
    if before is not None and before.covers(numbering):
        return before
    if before is None or not before.is_prefix_of(numbering):
        return SharedColumn(_read_values(table, name, numbering.runs, bytes_max), _starts_of_runs(numbering.runs))
    new = [run for run in numbering.runs if run.first >= len(before.array)]
    added = _read_values(table, name, new, bytes_max - before.nbytes)
    return SharedColumn(concat([before.array, added]), before.fragment_starts | _starts_of_runs(new))


def read_pieces(table: Table, name: str, numbering: Numbering, rows: int) -> Iterator[tuple[int, Values]]:
    """Read a column in pieces of about `rows` rows, fewer at the end of a fragment.

    Yields:
        The ordinal of the first value, and the values, deleted rows included.
    """
    for run in numbering.runs:
        if not run.is_present:
            continue
        first, held = run.first, list[Values]()
        for batch in fragment_rows(table, [run.fragment], [name]):
            held.append(batch.column(0))
            if sum(map(len, held)) >= rows:
                yield first, concat(held)
                first, held = first + sum(map(len, held)), []
        if held:
            yield first, concat(held)


def starts_of_fragments(numbering: Numbering) -> FragmentStarts:
    """Return the fragments that a column of these rows is read from."""
    return _starts_of_runs(numbering.runs)


def column_too_large(table: Table, name: str) -> LimitError:
    """Make the error for a column that does not fit into memory."""
    return LimitError(
        f"column '{name}' of {table.pin.table} is larger than the column cache; open the graph with a larger cache",
        code="column_too_large",
    )


def encode_column(column: SharedColumn, before: SharedEncoding | None) -> SharedEncoding:
    """Dictionary-encode a column; values that `before` has keep their codes."""
    if before is None or not column.extends(before.fragment_starts, len(before.codes)):
        codes, values = _encode_values(column.array)
        return SharedEncoding(codes, values, column.fragment_starts)
    if len(before.codes) == len(column.array):
        return before
    added, fresh_values = _encode_values(column.array.slice(len(before.codes)))
    translation = positions_in(fresh_values, before.values).copy()
    fresh: Mask = translation == NONE
    translation[fresh] = np.arange(int(fresh.sum()), dtype=np.int32) + len(before.values)
    codes = np.where(added == NONE, np.int32(NONE), translation[added]) if len(translation) else added
    values = concat([before.values, select(fresh_values, fresh)])
    return SharedEncoding(np.concatenate([before.codes, codes]), values, column.fragment_starts)


def index_column(column: SharedColumn, before: SharedIndex | None) -> SharedIndex:
    """Index a column of ids, continuing the index of another version if possible."""
    if before is None or not column.extends(before.fragment_starts, before.index.size):
        return SharedIndex(build_id_index(column.array), column.fragment_starts)
    if before.index.size == len(column.array):
        return before
    return SharedIndex(
        before.index.extended(column.array, segments_max=limits.ID_INDEX_PARTS_MAX), column.fragment_starts
    )


def value_bytes(type_: pa.DataType) -> int:
    """Return the approximate bytes per value."""
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * value_bytes(type_.value_type)
    if pa.types.is_float32(type_):
        return _FLOAT_BYTES
    return _NUMBER_BYTES if pa.types.is_primitive(type_) else _TEXT_BYTES


def _read_values(table: Table, name: str, runs: Sequence[FragmentRun], bytes_max: int) -> Values:
    """Read the values of these runs; nulls for those whose fragments are gone."""
    there = [run.fragment for run in runs if run.is_present]
    type_ = table.schema.field(name).type
    read_values: list[Values] = []
    for batch in fragment_rows(table, there, [name]):
        read_values.append(batch.column(0))
        bytes_max -= batch.column(0).nbytes
        if bytes_max < 0:
            raise column_too_large(table, name)
    if len(there) == len(runs):
        return concat(read_values) if read_values else pa.nulls(0, type_)
    chunked = pa.chunked_array(read_values, type_)
    pieces: list[Values] = []
    for run in runs:
        if run.is_present:
            pieces += chunked.slice(0, run.fragment.rows).chunks
            chunked = chunked.slice(run.fragment.rows)
        else:
            pieces.append(pa.nulls(run.fragment.rows, type_))
    return concat(pieces)


def _encode_values(array: Values) -> tuple[Codes, Values]:
    encoded: Any = normalize_zeros(array).dictionary_encode()
    codes: Codes = encoded.indices.fill_null(NONE).to_numpy(zero_copy_only=False)
    return codes.astype(np.int32, copy=False), encoded.dictionary


def _starts_of_runs(runs: Sequence[FragmentRun]) -> FragmentStarts:
    return {run.fragment.key: run.first for run in runs if run.is_present}
