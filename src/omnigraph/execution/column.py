"""One column in memory, and what is made of it: its values, its codes, an index over ids.

A value stands at the ordinal of its row, deleted rows included. So a column depends on fragments only, serves every
version that has them, and grows by the fragments a newer version adds. What is so shared (`Shared…`) answers nothing:
`of` gives what one version has of it, and only that is read.
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
    chosen,
    joined,
    one_zero,
    places_in,
)
from omnigraph.execution.id_index import IdIndex, index_ids
from omnigraph.execution.numbering import Numbering, Run
from omnigraph.storage.tables.effect import FragmentKey
from omnigraph.storage.tables.fragments import fragment_rows
from omnigraph.storage.tables.tables import Table

# Which fragments were read, and the ordinals of their first rows.
Firsts = dict[FragmentKey, int]


@dataclass(frozen=True, slots=True)
class Column:
    """All values of one column of one version.

    Attributes:
        array: by ordinal, one for every number; null in the place of fragments that were gone when it was read.
        numbering: whose ordinals these are.
    """

    array: Values
    numbering: Numbering

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.array.nbytes


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of one version as small numbers: equal values have equal codes.

    Attributes:
        codes: by ordinal; `NONE` for null.
        values: the value of each code; some may be those of other versions.
        numbering: whose ordinals these are.
    """

    codes: Codes
    values: Values
    numbering: Numbering


@dataclass(frozen=True, slots=True)
class RowLookup:
    """Finds the rows of one version by their text in one column; never a row of another version.

    Attributes:
        column: the texts.
    """

    column: Column
    _index: IdIndex

    def find(self, texts: Sequence[str]) -> Ordinals:
        """The ordinals of the rows with these ids, each once; ids that no row has are passed over."""
        different = texts if len(texts) == 1 else dict.fromkeys(texts)
        ordinals = [ordinal for text in different if (ordinal := self.find_one(text)) != NONE]
        return np.array(ordinals, dtype=np.int32) if ordinals else NO_ORDINALS

    def find_one(self, text: str) -> int:
        """The ordinal of a row with this text; `NONE` if no row has it."""
        for ordinal in self._index.candidates(text):
            if self._has(ordinal, text):
                return ordinal
        return NONE

    def find_few(self, text: str, most: int) -> list[int] | None:
        """The ordinals of all rows with this text, in numbers of Python; None if there may be more than so many."""
        found = self._index.few(text, most)
        return None if found is None else [ordinal for ordinal in found if self._has(ordinal, text)]

    def find_all(self, text: str) -> Ordinals:
        """The ordinals of all rows with this text, however many there are."""
        found = self._index.ordinals(text).tolist()
        return np.array([ordinal for ordinal in found if self._has(ordinal, text)], dtype=np.int32)

    def _has(self, ordinal: int, text: str) -> bool:
        """Whether a number stands for a row of this version with this text: the index is shared, hashes may agree."""
        numbering = self.column.numbering
        if ordinal >= numbering.size or numbering.is_dead(ordinal):
            return False
        return bool(self.column.array[ordinal].as_py() == text)


@dataclass(frozen=True, slots=True)
class SharedColumn:
    """One column as all versions that have its fragments share it: to be cut to one of them, and to be grown.

    Attributes:
        array: by ordinal; longer than the numbering of some versions that it serves.
        firsts: what was read.
    """

    array: Values
    firsts: Firsts

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.array.nbytes

    def of(self, numbering: Numbering) -> Column:
        """The column of one version."""
        return Column(cut(self.array, numbering), numbering)

    def serves(self, numbering: Numbering) -> bool:
        """Whether it has the values of all these rows, and a place for every ordinal."""
        return len(self.array) >= numbering.size and all(
            self.firsts.get(run.fragment.key) == run.first for run in numbering.runs if run.is_there
        )

    def begins(self, numbering: Numbering) -> bool:
        """Whether it has the values of all these rows but those of whole runs behind its end."""
        return numbering.starts_run_at(len(self.array)) and all(
            run.first >= len(self.array) or self.firsts.get(run.fragment.key) == run.first
            for run in numbering.runs
            if run.is_there
        )

    def continues(self, firsts: Firsts, size: int) -> bool:
        """Whether its first values are those of a column of this size that was read from these fragments."""
        return size <= len(self.array) and firsts == {key: first for key, first in self.firsts.items() if first < size}


@dataclass(frozen=True, slots=True)
class SharedCodes:
    """The codes of a shared column.

    Attributes:
        codes: by ordinal; `NONE` for null.
        values: the value of each code.
        firsts: what the column was read from.
    """

    codes: Codes
    values: Values
    firsts: Firsts

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.codes.nbytes + self.values.nbytes

    def of(self, numbering: Numbering) -> Coded:
        """The codes of one version."""
        assert len(self.codes) >= numbering.size
        return Coded(self.codes[: numbering.size], self.values, numbering)


@dataclass(frozen=True, slots=True)
class SharedIndex:
    """An index over a shared column of texts.

    Attributes:
        index: finds ordinals by hash.
        firsts: what the column was read from.
    """

    index: IdIndex
    firsts: Firsts

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.index.nbytes

    def of(self, column: Column) -> RowLookup:
        """What finds the rows of the version that a column is of."""
        assert self.index.size >= column.numbering.size
        return RowLookup(column, self.index)


def cut(array: Values, numbering: Numbering) -> Values:
    """The values of a shared array that stand at the numbers of one version."""
    assert len(array) >= numbering.size
    return array if len(array) == numbering.size else array.slice(0, numbering.size)


def read(table: Table, name: str, numbering: Numbering, before: SharedColumn | None, *, bytes_max: int) -> SharedColumn:
    """A column of a version.

    Args:
        table (Table): the version.
        name (str): the column.
        numbering (Numbering): of its rows.
        before (SharedColumn | None): the same column of another version; what it has is not read again.
        bytes_max (int): how large it may be.

    Returns:
        SharedColumn: `before` itself, if that has everything.

    Raises:
        LimitError: it is larger.
    """
    if before is not None and before.serves(numbering):
        return before
    if before is None or not before.begins(numbering):
        return SharedColumn(_values(table, name, numbering.runs, bytes_max), _firsts(numbering.runs))
    new = [run for run in numbering.runs if run.first >= len(before.array)]
    added = _values(table, name, new, bytes_max - before.nbytes)
    return SharedColumn(joined([before.array, added]), before.firsts | _firsts(new))


def pieces(table: Table, name: str, numbering: Numbering, rows: int) -> Iterator[tuple[int, Values]]:
    """The values of a column some at a time, for what need not have all of them at once.

    Args:
        table (Table): the version.
        name (str): the column.
        numbering (Numbering): of its rows.
        rows (int): about how many at a time; fewer at the end of a fragment.

    Yields:
        tuple[int, Values]: the ordinal of the first of them, and the values, deleted rows included.
    """
    for run in numbering.runs:
        if not run.is_there:
            continue
        first, held = run.first, list[Values]()
        for batch in fragment_rows(table, [run.fragment], [name]):
            held.append(batch.column(0))
            if sum(map(len, held)) >= rows:
                yield first, joined(held)
                first, held = first + sum(map(len, held)), []
        if held:
            yield first, joined(held)


def firsts_of(numbering: Numbering) -> Firsts:
    """What a column of these rows is read from."""
    return _firsts(numbering.runs)


def too_large(table: Table, name: str) -> LimitError:
    """The error of a column, or of what is made of it, that does not fit into memory."""
    return LimitError(
        f"column '{name}' of {table.pin.table} is larger than the memory for columns; open the graph with more",
        code="column_too_large",
    )


def encode(column: SharedColumn, before: SharedCodes | None) -> SharedCodes:
    """The codes of a column.

    Args:
        column (SharedColumn): its values.
        before (SharedCodes | None): the codes of another version; values there keep theirs.

    Returns:
        SharedCodes: `before` itself, if nothing was added.
    """
    if before is None or not column.continues(before.firsts, len(before.codes)):
        codes, values = _codes(column.array)
        return SharedCodes(codes, values, column.firsts)
    if len(before.codes) == len(column.array):
        return before
    added, fresh_values = _codes(column.array.slice(len(before.codes)))
    translation = places_in(fresh_values, before.values).copy()
    fresh: Mask = translation == NONE
    translation[fresh] = np.arange(int(fresh.sum()), dtype=np.int32) + len(before.values)
    codes = np.where(added == NONE, np.int32(NONE), translation[added]) if len(translation) else added
    values = joined([before.values, chosen(fresh_values, fresh)])
    return SharedCodes(np.concatenate([before.codes, codes]), values, column.firsts)


def index(column: SharedColumn, before: SharedIndex | None) -> SharedIndex:
    """The index over a column of ids.

    Args:
        column (SharedColumn): the ids.
        before (SharedIndex | None): the index of another version.

    Returns:
        SharedIndex: `before` itself, if nothing was added.
    """
    if before is None or not column.continues(before.firsts, before.index.size):
        return SharedIndex(index_ids(column.array), column.firsts)
    if before.index.size == len(column.array):
        return before
    return SharedIndex(before.index.extended(column.array, parts_max=limits.ID_INDEX_PARTS_MAX), column.firsts)


def _values(table: Table, name: str, runs: Sequence[Run], bytes_max: int) -> Values:
    """The values of these runs, one after the other; nulls for those whose fragments are gone."""
    there = [run.fragment for run in runs if run.is_there]
    type_ = table.schema.field(name).type
    read_values: list[Values] = []
    for batch in fragment_rows(table, there, [name]):
        read_values.append(batch.column(0))
        bytes_max -= batch.column(0).nbytes
        if bytes_max < 0:
            raise too_large(table, name)
    if len(there) == len(runs):
        return joined(read_values) if read_values else pa.nulls(0, type_)
    chunked = pa.chunked_array(read_values, type_)
    pieces: list[Values] = []
    for run in runs:
        if run.is_there:
            pieces += chunked.slice(0, run.fragment.rows).chunks
            chunked = chunked.slice(run.fragment.rows)
        else:
            pieces.append(pa.nulls(run.fragment.rows, type_))
    return joined(pieces)


def _codes(array: Values) -> tuple[Codes, Values]:
    encoded: Any = one_zero(array).dictionary_encode()
    codes: Codes = encoded.indices.fill_null(NONE).to_numpy(zero_copy_only=False)
    return codes.astype(np.int32, copy=False), encoded.dictionary


def _firsts(runs: Sequence[Run]) -> Firsts:
    return {run.fragment.key: run.first for run in runs if run.is_there}
