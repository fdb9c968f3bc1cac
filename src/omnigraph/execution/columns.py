"""Cache of table columns: read on first use, extended when a newer version adds rows.

Versions share what they have in common, but only inside this module: every value returned has the rows of exactly one
version, by the ordinals of that version's numbering.
"""

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.errors import LimitError
from omnigraph.execution import column as shared
from omnigraph.execution.arrays import NONE, Ordinals, Values, concat, positions_in, take
from omnigraph.execution.cache import ByteCache, Sized
from omnigraph.execution.column import Column, EncodedColumn, RowLookup, SharedColumn, SharedEncoding, SharedIndex
from omnigraph.execution.numbering import Numbering, assign_ordinals
from omnigraph.execution.search.index_files import IndexedColumn, TextIndexFiles
from omnigraph.execution.search.text_index import TextIndex, Texts, build_in_pieces, build_text_index, live_texts
from omnigraph.execution.search.vectors import SharedVectors, Vectors, build_vectors
from omnigraph.model.analyzer import Analyzer
from omnigraph.model.commit import Pin
from omnigraph.model.schema import ID
from omnigraph.storage.tables.fragments import column_numbers
from omnigraph.storage.tables.table import BuiltIndex
from omnigraph.storage.tables.tables import Table, Tables

Derived = TypeVar("Derived", bound=Sized)

_ADDRESS = "_rowaddr"
# Cost model of row lookups against reading a whole column, measured on local disk.
_SECONDS_PER_LOOKUP, _SECONDS_PER_ROW_LOOKED_UP, _BYTES_PER_SECOND_READ = 4e-4, 5e-6, 4e8
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
        return self.numbering.size * 5 + 1_000

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


class Versions:
    """Thread-safe cache of the columns of every table version that queries use."""

    def __init__(self, tables: Tables, cache: ByteCache, text_index_files: TextIndexFiles | None = None) -> None:
        self._tables = tables
        self._files = text_index_files
        self._cache = cache
        self._lock = threading.Lock()
        # State of the version used last, as a base for the next one.
        self._numberings: dict[str, Numbering] = {}
        self._last: dict[Hashable, tuple[Hashable, ...]] = {}
        self._spent_s: dict[tuple[str, int], float] = {}

    def at(self, pin: Pin) -> Columns:
        """Open a version; reads its manifest only."""
        return self._cache.get(("rows", pin.table, pin.version), lambda: self._open(pin))

    def column(self, columns: Columns, name: str) -> Column:
        """Return all values of a column of a version."""
        return self._column(columns, name).restricted_to(columns.numbering)

    def encoded(self, columns: Columns, name: str) -> EncodedColumn:
        """Return a column of a version dictionary-encoded."""
        made: SharedEncoding = self._derive(
            "codes", columns, name, lambda before: shared.encode_column(self._column(columns, name), before)
        )
        return made.restricted_to(columns.numbering)

    def lookup(self, columns: Columns, name: str) -> RowLookup:
        """Return the index from the texts of a column to the rows of a version."""
        column = self._column(columns, name)
        made: SharedIndex = self._derive("index", columns, name, lambda before: shared.index_column(column, before))
        return made.restricted_to(column.restricted_to(columns.numbering))

    def texts(self, columns: Columns, name: str, analyzer: Analyzer) -> Texts:
        """Return the inverted index of a column of texts of a version."""
        index = self._text_index(columns, name, analyzer)
        # The index may cover rows of other versions too.
        key = (*self._key("texts", columns, name), analyzer, index.size)
        return Texts(index, self._cache.get(key, lambda: live_texts(index, columns.numbering)))

    def _column(self, columns: Columns, name: str) -> SharedColumn:
        table, numbering, bytes_max = columns.table, columns.numbering, self._cache.bytes_max
        return self._derive(
            "column",
            columns,
            name,
            lambda before: shared.read_column(table, name, numbering, before, bytes_max=bytes_max),
        )

    def _text_index(self, columns: Columns, name: str, analyzer: Analyzer) -> TextIndex:
        def build(before: TextIndex | None) -> TextIndex:
            return self._build_text_index(columns, name, analyzer, before)

        return self._derive(f"words by {analyzer}", columns, name, build)

    def has_text_index_file(self, columns: Columns, name: str, analyzer: Analyzer) -> bool:
        """Return whether there is an index file that can be read instead of the texts."""
        field = IndexedColumn(columns.numbers[name], analyzer)
        return self._files is not None and self._files.has(columns.pin, field, columns.numbering)

    def keep_text_index(self, columns: Columns, name: str, analyzer: Analyzer, *, is_new: bool) -> bool:
        """Make sure the inverted index of a column is in a file, where that is worth one.

        Returns:
            Whether a new file was written.
        """
        field = IndexedColumn(columns.numbers[name], analyzer)
        if self._files is None or not self._files.is_due(columns.pin, field, columns.numbering, is_new=is_new):
            return False
        self._text_index(columns, name, analyzer)
        return self._files.has(columns.pin, field, columns.numbering)

    def is_text_index_cached(self, columns: Columns, name: str, analyzer: Analyzer) -> bool:
        """Return whether the inverted index of a column is cached."""
        return self._cache.peek(self._key(f"words by {analyzer}", columns, name)) is not None

    def _build_text_index(self, columns: Columns, name: str, analyzer: Analyzer, before: TextIndex | None) -> TextIndex:
        field = IndexedColumn(columns.numbers[name], analyzer)
        if before is None and self._files is not None:
            before = self._files.load(columns.pin, field, columns.numbering)
        if before is not None and before.covers(columns.numbering):
            return before
        try:
            made = build_text_index(self._column(columns, name), analyzer, before)
        except LimitError:
            # The index is smaller than the texts, which need not be in memory all at once.
            made = self._build_text_index_in_pieces(columns, name, analyzer)
        if self._files is not None:
            is_rebuilt = before is None or not before.is_prefix_of(columns.numbering)
            self._files.keep(columns.pin, field, made, is_rebuilt=is_rebuilt)
        return made

    def _build_text_index_in_pieces(self, columns: Columns, name: str, analyzer: Analyzer) -> TextIndex:
        table, numbering = columns.table, columns.numbering
        texts = shared.read_pieces(table, name, numbering, limits.SEARCH_TEXTS_AT_ONCE)
        made: TextIndex | None = None
        for made in build_in_pieces(texts, numbering.size, shared.starts_of_fragments(numbering), analyzer):
            if made.nbytes > self._cache.bytes_max:
                raise shared.column_too_large(table, name)
        assert made is not None
        return made

    def vectors(self, columns: Columns, name: str) -> Vectors:
        """Return all vectors of a column of a version."""
        made: SharedVectors = self._derive(
            "vectors", columns, name, lambda before: build_vectors(self._column(columns, name), before)
        )
        return made.restricted_to(columns.numbering)

    def is_read_in_pieces(self, columns: Columns, name: str) -> bool:
        """Return whether a column of vectors is too large to be cached as a whole."""
        type_ = columns.table.schema.field(name).type
        if not pa.types.is_fixed_size_list(type_) or self.cached_column(columns, name) is not None:
            return False
        return columns.numbering.size * shared.value_bytes(type_) > self._bytes_for(type_)

    def vector_index(self, columns: Columns, name: str, searches: int) -> BuiltIndex | None:
        """Return the index to search a column of vectors through; None where they are, or should be, cached.

        Small columns are read at once; large ones, if they fit, once searches have cost as much as reading would.
        """
        pin, size, field = columns.pin, columns.numbering.size, columns.numbers[name]
        if self._cache.peek(self._key("column", columns, name)) is not None:
            return None
        if size <= limits.READ_WHOLE_ROWS_MAX and not self.is_read_in_pieces(columns, name):
            return None
        found = next((index for index in columns.table.indexes() if index.columns == (name,)), None)
        type_ = columns.table.schema.field(name).type
        width = size * shared.value_bytes(type_)
        if found is None or width > self._bytes_for(type_):
            return found
        with self._lock:
            spent = self._spent_s.get((pin.table, field), 0.0) + searches * width / _BYTES_PER_SECOND_READ
            self._spent_s[pin.table, field] = spent
        return found if spent <= 2 * width / _BYTES_PER_SECOND_READ else None

    def cached(self, pin: Pin) -> Columns | None:
        """Return a version if it is open."""
        return cast(Columns | None, self._cache.find(("rows", pin.table, pin.version)))

    def cached_column(self, columns: Columns, name: str) -> Column | None:
        """Return all values of a column of a version if they are cached."""
        found = cast(SharedColumn | None, self._cache.find(self._key("column", columns, name)))
        return None if found is None else found.restricted_to(columns.numbering)

    def cached_lookup(self, columns: Columns, name: str) -> RowLookup | None:
        """Return the index from texts to rows if it is cached."""
        column = self.cached_column(columns, name)
        index = cast(SharedIndex | None, self._cache.find(self._key("index", columns, name)))
        return None if column is None or index is None else index.restricted_to(column)

    def is_worth_reading(self, columns: Columns, name: str, rows: int) -> bool:
        """Return whether to read a whole column for the sake of some rows; true if it is cached.

        Row lookups are cheap until there are many: their cost adds up, and once it exceeds the cost of reading the
        column, the column is read.
        """
        pin, size = columns.pin, columns.numbering.size
        if self.is_read_in_pieces(columns, name):
            return False
        if size <= limits.READ_WHOLE_ROWS_MAX or rows > limits.LOOKUP_ROWS_MAX:
            return True
        field = columns.numbers[name]
        if self._cache.peek(self._key("column", columns, name)) is not None:
            return True
        width = shared.value_bytes(columns.table.schema.field(name).type)
        if size * width > self._bytes_for(columns.table.schema.field(name).type):
            return False
        with self._lock:
            spent = self._spent_s.get((pin.table, field), 0.0)
            spent += _SECONDS_PER_LOOKUP + rows * _SECONDS_PER_ROW_LOOKED_UP
            if spent > size * width / _BYTES_PER_SECOND_READ:
                self._spent_s.pop((pin.table, field), None)
                return True
            self._spent_s[pin.table, field] = spent
            return False

    def _bytes_for(self, type_: pa.DataType) -> float:
        """Return how large a column may be that is read ahead of need."""
        return self._cache.bytes_max * (limits.VECTOR_COLUMN_SHARE_MAX if pa.types.is_fixed_size_list(type_) else 1.0)

    def _open(self, pin: Pin) -> Columns:
        table = self._tables.open(pin)
        with self._lock:
            before = self._numberings.get(pin.table)
        numbering = assign_ordinals(table, before)
        with self._lock:
            self._numberings[pin.table] = numbering
        return Columns(table, numbering, self)

    def _key(self, kind: str, columns: Columns, name: str) -> tuple[Hashable, ...]:
        return kind, *columns.numbering.key, *_column_identity(columns, name)

    def _derive(self, kind: str, columns: Columns, name: str, make: Callable[[Derived | None], Derived]) -> Derived:
        """Return what is derived from a column, extending what another version has of it."""
        key, line = self._key(kind, columns, name), (kind, columns.pin.table, *_column_identity(columns, name))

        def from_last() -> Derived:
            with self._lock:
                last = self._last.get(line)
            before = None if last is None else self._cache.peek(last)
            made = make(cast(Derived | None, before))
            with self._lock:
                self._last[line] = key
            return made

        return self._cache.get(key, from_last)


def _column_identity(columns: Columns, name: str) -> tuple[int, pa.DataType]:
    """Identify a column across versions: two branches may give one number to columns of two types."""
    return columns.numbers[name], columns.table.schema.field(name).type
