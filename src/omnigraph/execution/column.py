"""One column in memory, and what is made of it: its values, its codes, an index over ids.

A value stands at the ordinal of its row, deleted rows included. So a column depends on fragments only, serves every
version that has them, and grows by the fragments a newer version adds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.errors import LimitError
from omnigraph.execution.arrays import NONE, Codes, Mask, Values, chosen, joined, one_zero, places_in
from omnigraph.execution.id_index import IdIndex, index_ids
from omnigraph.execution.numbering import Numbering, Run
from omnigraph.storage.tables.effect import FragmentKey
from omnigraph.storage.tables.fragments import fragment_rows
from omnigraph.storage.tables.tables import Table

# Which fragments were read, and the ordinals of their first rows.
Firsts = dict[FragmentKey, int]


@dataclass(frozen=True, slots=True)
class Column:
    """All values of one column.

    Attributes:
        array: by ordinal; null in the place of fragments that were gone already when it was read.
        firsts: what was read.
    """

    array: Values
    firsts: Firsts

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.array.nbytes

    def serves(self, numbering: Numbering) -> bool:
        """Whether it has the values of all these rows, and a place for every ordinal."""
        return len(self.array) >= numbering.size and all(
            self.firsts.get(run.fragment.key) == run.first for run in numbering.runs if run.is_there
        )

    def begins(self, numbering: Numbering) -> bool:
        """Whether it has the values of all these rows but those behind its end."""
        return all(
            run.first >= len(self.array) or self.firsts.get(run.fragment.key) == run.first
            for run in numbering.runs
            if run.is_there
        )

    def continues(self, firsts: Firsts, size: int) -> bool:
        """Whether its first values are those of a column of this size that was read from these fragments."""
        return size <= len(self.array) and firsts == {key: first for key, first in self.firsts.items() if first < size}


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as small numbers: equal values have equal codes.

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


@dataclass(frozen=True, slots=True)
class Indexed:
    """An index over a column of ids.

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


def read(table: Table, name: str, numbering: Numbering, before: Column | None, *, bytes_max: int) -> Column:
    """A column of a version.

    Args:
        table (Table): the version.
        name (str): the column.
        numbering (Numbering): of its rows.
        before (Column | None): the same column of another version; what it has is not read again.
        bytes_max (int): how large it may be.

    Returns:
        Column: `before` itself, if that has everything.

    Raises:
        LimitError: it is larger.
    """
    if before is not None and before.serves(numbering):
        return before
    if before is None or not before.begins(numbering):
        return Column(_values(table, name, numbering.runs, bytes_max), _firsts(numbering.runs))
    new = [run for run in numbering.runs if run.first >= len(before.array)]
    added = _values(table, name, new, bytes_max - before.nbytes)
    return Column(joined([before.array, added]), before.firsts | _firsts(new))


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


def encode(column: Column, before: Coded | None) -> Coded:
    """The codes of a column.

    Args:
        column (Column): its values.
        before (Coded | None): the codes of another version; values there keep theirs.

    Returns:
        Coded: `before` itself, if nothing was added.
    """
    if before is None or not column.continues(before.firsts, len(before.codes)):
        codes, values = _codes(column.array)
        return Coded(codes, values, column.firsts)
    if len(before.codes) == len(column.array):
        return before
    added, fresh_values = _codes(column.array.slice(len(before.codes)))
    translation = places_in(fresh_values, before.values).copy()
    fresh: Mask = translation == NONE
    translation[fresh] = np.arange(int(fresh.sum()), dtype=np.int32) + len(before.values)
    codes = np.where(added == NONE, np.int32(NONE), translation[added]) if len(translation) else added
    values = joined([before.values, chosen(fresh_values, fresh)])
    return Coded(np.concatenate([before.codes, codes]), values, column.firsts)


def index(column: Column, before: Indexed | None) -> Indexed:
    """The index over a column of ids.

    Args:
        column (Column): the ids.
        before (Indexed | None): the index of another version.

    Returns:
        Indexed: `before` itself, if nothing was added.
    """
    if before is None or not column.continues(before.firsts, before.index.size):
        return Indexed(index_ids(column.array), column.firsts)
    if before.index.size == len(column.array):
        return before
    return Indexed(before.index.extended(column.array, parts_max=limits.ID_INDEX_PARTS_MAX), column.firsts)


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
