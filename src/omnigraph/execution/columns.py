"""One version of one table: ordinals for its rows, and access to its columns, which are cached and shared."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution import column as shared
from omnigraph.execution.arrays import NONE, Ordinals, Values, concat, positions_in, take
from omnigraph.execution.column import Column, EncodedColumn
from omnigraph.execution.numbering import FragmentRun, Numbering
from omnigraph.execution.search.text_index import Texts
from omnigraph.execution.search.vectors import Vectors
from omnigraph.model.analyzer import Analyzer
from omnigraph.model.schema import ID
from omnigraph.storage.tables.fragments import column_numbers
from omnigraph.storage.tables.table import BuiltIndex
from omnigraph.storage.tables.tables import Table

if TYPE_CHECKING:
    from omnigraph.execution.versions import Versions

_ADDRESS = "_rowaddr"
# More ids than this are found faster in one pass over a hash table of all ids.
_IDS_ONE_BY_ONE_MAX = 1_000


class Columns:
    """One version of one table, with ordinals for its rows and access to its columns.

    Attributes:
        table: the version, for reading.
        pin: table and version number.
        key: cache key of the version and its numbering.
        numbering: ordinals of the rows.
        numbers: column ids by name; they stay when a name is reused.
    """

    def __init__(self, table: Table, numbering: Numbering, versions: "Versions") -> None:
        self.table = table
        self.pin = table.pin
        self.key = numbering.key
        self.numbering = numbering
        self.numbers = column_numbers(table)
        self._versions = versions

    @property
    def nbytes(self) -> int:
        """Approximate size of the numbering in bytes."""
        return self.numbering.nbytes

    def column(self, name: str) -> Column:
        """Return all values of a column, reading it if needed."""
        return self._versions.column(self, name)

    def encoded(self, name: str) -> EncodedColumn:
        """Return a column dictionary-encoded."""
        return self._versions.encoded(self, name)

    def is_cached(self, name: str) -> bool:
        """Return whether a column is cached."""
        return self._versions.cached_column(self, name) is not None

    def is_worth_reading(self, name: str, rows: int) -> bool:
        """Return whether to read a whole column for the sake of some rows."""
        return self._versions.is_worth_reading(self, name, rows)

    def texts(self, name: str, analyzer: Analyzer) -> Texts:
        """Return the inverted index of a column of texts."""
        return self._versions.texts(self, name, analyzer)

    def has_text_index(self, name: str, analyzer: Analyzer, *, rows: int) -> bool:
        """Return whether a column has an inverted index, or is worth one for the sake of some rows."""
        return self._versions.is_text_index_cached(self, name, analyzer) or self.is_worth_reading(name, rows)

    def text_index_source(self, name: str, analyzer: Analyzer) -> str:
        """Describe where the inverted index of a column comes from, for `explain`."""
        if self._versions.is_text_index_cached(self, name, analyzer):
            return "in memory"
        return (
            "kept beside the graph"
            if self._versions.has_text_index_file(self, name, analyzer)
            else "made from the texts"
        )

    def vectors(self, name: str) -> Vectors:
        """Return all vectors of a column."""
        return self._versions.vectors(self, name)

    def is_read_in_pieces(self, name: str) -> bool:
        """Return whether a column of vectors is too large to be cached as a whole."""
        return self._versions.is_read_in_pieces(self, name)

    def pieces(self, name: str, ordinals: Ordinals) -> Iterator[tuple[Ordinals, Values]]:
        """Yield the values of some rows in pieces that fit into memory.

        Args:
            name: the column.
            ordinals: the rows, ascending and distinct.
        """
        if not self.is_read_in_pieces(name):
            yield ordinals, self.take(name, ordinals)
            return
        step = max(1, limits.VECTOR_PIECE_BYTES // shared.value_bytes(self.table.schema.field(name).type))
        if len(ordinals) < self.numbering.size * limits.ID_LOOKUP_ROWS_SHARE_MAX:
            for start in range(0, len(ordinals), step):
                some = ordinals[start : start + step]
                yield some, self._look_up(name, some, absent=False)
            return
        for first, values in shared.read_pieces(self.table, name, self.numbering, 1):
            bounds = np.searchsorted(ordinals, [first, first + len(values)])
            some = ordinals[bounds[0] : bounds[1]]
            if len(some):
                yield some, take(values, some - first)

    def vector_index(self, name: str, *, searches: int = 1) -> BuiltIndex | None:
        """Return the index to search a column of vectors through; None where they are compared in memory."""
        return self._versions.vector_index(self, name, searches)

    def can_be_encoded(self, name: str) -> bool:
        """Return whether a column can be dictionary-encoded; lists and vectors cannot."""
        return not pa.types.is_nested(self.table.schema.field(name).type)

    def take(self, name: str, ordinals: Ordinals, *, absent: bool = False) -> Values:
        """Return the values of some rows, in any order and repeated or not; null for `NONE` with `absent`."""
        if self._versions.is_worth_reading(self, name, len(ordinals)):
            array = self.column(name).array
            if len(ordinals) == 1 and ordinals[0] != NONE:
                return array.slice(ordinals[0], 1)
            return take(array, ordinals, absent=absent)
        return self._look_up(name, ordinals, absent=absent)

    def small_columns(self, run: FragmentRun, names: Sequence[str]) -> list[Values] | None:
        """Return columns of all rows of a small fragment, deleted ones included; None of a larger one."""
        found = [self._versions.known_rows(self, name, run) for name in names]
        return None if None in found else [values for values in found if values is not None]

    def find(self, ids: Sequence[str]) -> Ordinals:
        """Return the distinct ordinals of the rows with these ids; unknown ids are ignored."""
        if not self._versions.is_worth_reading(self, ID, len(ids)):
            found = self.table.rows_with_ids(ids, columns=[], with_addresses=True)
            addresses: Any = found.column(_ADDRESS).to_numpy()
            return self.numbering.ordinals_at(addresses.astype(np.uint64, copy=False))
        if len(ids) > limits.LOOKUP_ROWS_MAX:
            places = self.find_all(pa.array(list(dict.fromkeys(ids)), pa.string()))
            return cast(Ordinals, places[places != NONE])
        return self._versions.lookup(self, ID).find(ids)

    def locate(self, ids: "Values | pa.ChunkedArray[Any]") -> Ordinals:
        """Return the ordinal of the row with each of these ids, `NONE` where there is none."""
        if len(ids) > _IDS_ONE_BY_ONE_MAX:
            return self.find_all(ids)
        texts: list[Any] = ids.to_pylist()
        found = self.find(texts)
        by_id = dict(zip(self.take(ID, found).to_pylist(), found.tolist(), strict=True))
        return np.array([by_id.get(text, NONE) for text in texts], dtype=np.int32)

    def find_all(self, ids: "Values | pa.ChunkedArray[Any]") -> Ordinals:
        """Return the same as `locate`, in one pass over all ids."""
        known = self.column(ID).array
        if self.numbering.dead is None:
            return positions_in(ids, known)
        # A rewritten row has its id twice: only the live one counts.
        live = self.numbering.live
        places = positions_in(ids, take(known, live))
        return np.where(places == NONE, np.int32(NONE), live[places]) if len(live) else places

    def _look_up(self, name: str, ordinals: Ordinals, *, absent: bool) -> Values:
        wanted, back = np.unique(ordinals, return_inverse=True)
        lacks = bool(absent and len(wanted) and wanted[0] == NONE)
        there = wanted[1:] if lacks else wanted
        chunks: list[Values] = (
            self.table.rows_at(self.numbering.addresses(there).tolist(), columns=[name]).column(name).chunks
        )
        if lacks or not chunks:
            chunks = [pa.nulls(1 if lacks else 0, self.table.schema.field(name).type), *chunks]
        return take(concat(chunks), back.reshape(-1))
