"""Tables in memory, a column at a time: read when first asked for, grown when a newer version adds rows.

What is made for one version is never changed for another. Versions share what they have in common, but only here:
whatever leaves this module has the rows of one version, by the numbers of that version's numbering, and no others.
"""

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.errors import LimitError
from omnigraph.execution import column as one
from omnigraph.execution.arrays import NONE, Ordinals, Values, joined, places_in, take
from omnigraph.execution.cache import ByteCache, Sized
from omnigraph.execution.column import Coded, Column, RowLookup, SharedCodes, SharedColumn, SharedIndex
from omnigraph.execution.numbering import Numbering, number
from omnigraph.execution.search.text_index import TextIndex, indexed, indexed_in_pieces
from omnigraph.execution.search.texts import Texts, collection
from omnigraph.execution.search.vectors import SharedVectors, Vectors, vectors_of
from omnigraph.execution.search.word_files import IndexedColumn, WordFiles
from omnigraph.model.analyzer import Analyzer
from omnigraph.model.commit import Pin
from omnigraph.model.schema import ID
from omnigraph.storage.tables.fragments import column_numbers
from omnigraph.storage.tables.table import BuiltIndex
from omnigraph.storage.tables.tables import Table, Tables

Made = TypeVar("Made", bound=Sized)

_ADDRESS = "_rowaddr"
# What decides between looking rows up and reading a whole column: rough costs, measured on local disk.
_SECONDS_PER_LOOKUP, _SECONDS_PER_ROW_LOOKED_UP, _BYTES_PER_SECOND_READ = 4e-4, 5e-6, 4e8
_FLOAT_BYTES, _NUMBER_BYTES, _TEXT_BYTES = 4, 8, 24
# More ids are found faster in one pass, which makes a hash table of all ids, than one after the other.
_IDS_ONE_BY_ONE_MAX = 1_000


class Columns:
    """One version of one table: its rows numbered, its columns at hand.

    Attributes:
        table: the version, for reading.
        pin: which one.
        key: what names it, numbered as it is, in caches.
        numbering: of its rows.
        numbers: by the columns' names, the numbers that stay when a name is used again.
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
        """How many bytes the numbering takes, once its numbers were listed."""
        return self.numbering.size * 5 + 1_000

    def column(self, name: str) -> Column:
        """All values of a column; read if nobody has."""
        return self._versions.column(self, name)

    def coded(self, name: str) -> Coded:
        """All values of a column as codes."""
        return self._versions.coded(self, name)

    def is_in_memory(self, name: str) -> bool:
        """Whether all values of a column were read."""
        return self._versions.column_in_memory(self, name) is not None

    def is_worth_reading(self, name: str, rows: int) -> bool:
        """Whether to read a whole column for the sake of some rows."""
        return self._versions.is_worth_reading(self, name, rows)

    def texts(self, name: str, analyzer: Analyzer) -> Texts:
        """The texts of a column by their words."""
        return self._versions.texts(self, name, analyzer)

    def has_word_index(self, name: str, analyzer: Analyzer, *, rows: int) -> bool:
        """Whether the words of a column are indexed, or are worth it for the sake of some rows."""
        return self._versions.has_word_index(self, name, analyzer, rows)

    def words_come_from(self, name: str, analyzer: Analyzer) -> str:
        """Where the index over the words of a column comes from, in words."""
        if self._versions.words_in_memory(self, name, analyzer):
            return "in memory"
        return "kept beside the graph" if self._versions.words_are_kept(self, name, analyzer) else "made from the texts"

    def vectors(self, name: str) -> Vectors:
        """All vectors of a column."""
        return self._versions.vectors(self, name)

    def is_read_in_pieces(self, name: str) -> bool:
        """Whether a column of vectors is too large to be in memory as a whole."""
        return self._versions.is_read_in_pieces(self, name)

    def pieces(self, name: str, ordinals: Ordinals) -> Iterator[tuple[Ordinals, Values]]:
        """The values of some rows, as many at a time as there is room for.

        Args:
            name (str): the column.
            ordinals (Ordinals): which rows, ascending, each once.

        Yields:
            tuple[Ordinals, Values]: the next rows, and their values.
        """
        if not self.is_read_in_pieces(name):
            yield ordinals, self.take(name, ordinals)
            return
        step = max(1, limits.VECTOR_PIECE_BYTES // _width(self.table.schema.field(name).type))
        if len(ordinals) < self.numbering.size * limits.ID_LOOKUP_ROWS_SHARE_MAX:
            for start in range(0, len(ordinals), step):
                some = ordinals[start : start + step]
                yield some, self._looked_up(name, some, absent=False)
            return
        for first, values in one.pieces(self.table, name, self.numbering, 1):
            bounds = np.searchsorted(ordinals, [first, first + len(values)])
            some = ordinals[bounds[0] : bounds[1]]
            if len(some):
                yield some, take(values, some - first)

    def vector_index(self, name: str, *, searches: int = 1) -> BuiltIndex | None:
        """The index through which the vectors of a column are searched; None where they are compared in memory."""
        return self._versions.vector_index(self, name, searches)

    def can_be_coded(self, name: str) -> bool:
        """Whether the values of a column can be coded: lists and vectors cannot."""
        return not pa.types.is_nested(self.table.schema.field(name).type)

    def take(self, name: str, ordinals: Ordinals, *, absent: bool = False) -> Values:
        """The values of some rows.

        Args:
            name (str): the column.
            ordinals (Ordinals): which rows, in any order, repeated or not.
            absent (bool): whether some may be `NONE`; these have null.

        Returns:
            Values: as many values, in the same order.
        """
        if self._versions.is_worth_reading(self, name, len(ordinals)):
            array = self.column(name).array
            if len(ordinals) == 1 and ordinals[0] != NONE:
                return array.slice(ordinals[0], 1)
            return take(array, ordinals, absent=absent)
        return self._looked_up(name, ordinals, absent=absent)

    def find(self, ids: Sequence[str]) -> Ordinals:
        """The ordinals of the rows with these ids, each once; ids that no row has are passed over."""
        if not self._versions.is_worth_reading(self, ID, len(ids)):
            found = self.table.rows_with_ids(ids, columns=[], with_addresses=True)
            addresses: Any = found.column(_ADDRESS).to_numpy()
            return self.numbering.at(addresses.astype(np.uint64, copy=False))
        if len(ids) > limits.LOOKUP_ROWS_MAX:
            places = self.find_all(pa.array(list(dict.fromkeys(ids)), pa.string()))
            return cast(Ordinals, places[places != NONE])
        return self._versions.lookup(self, ID).find(ids)

    def locate(self, ids: "Values | pa.ChunkedArray[Any]") -> Ordinals:
        """The ordinal of the row with each of these ids, `NONE` where no row has it."""
        if len(ids) > _IDS_ONE_BY_ONE_MAX:
            return self.find_all(ids)
        texts: list[Any] = ids.to_pylist()
        found = self.find(texts)
        by_id = dict(zip(self.take(ID, found).to_pylist(), found.tolist(), strict=True))
        return np.array([by_id.get(text, NONE) for text in texts], dtype=np.int32)

    def find_all(self, ids: "Values | pa.ChunkedArray[Any]") -> Ordinals:
        """The ordinal of the row with each of these ids, `NONE` where no row has it; in one pass over all of them."""
        known = self.column(ID).array
        if self.numbering.dead is None:
            return places_in(ids, known)
        # A row that was rewritten has its id twice: only the living one counts.
        live = self.numbering.live
        places = places_in(ids, take(known, live))
        return np.where(places == NONE, np.int32(NONE), live[places]) if len(live) else places

    def _looked_up(self, name: str, ordinals: Ordinals, *, absent: bool) -> Values:
        wanted, back = np.unique(ordinals, return_inverse=True)
        lacks = bool(absent and len(wanted) and wanted[0] == NONE)
        there = wanted[1:] if lacks else wanted
        chunks: list[Values] = (
            self.table.rows_at(self.numbering.addresses(there).tolist(), columns=[name]).column(name).chunks
        )
        if lacks or not chunks:
            chunks = [pa.nulls(1 if lacks else 0, self.table.schema.field(name).type), *chunks]
        return take(joined(chunks), back.reshape(-1))


class Versions:
    """Every version of every table of a graph that queries have asked for. Safe to use from several threads."""

    def __init__(self, tables: Tables, cache: ByteCache, word_files: WordFiles | None = None) -> None:
        self._tables = tables
        self._word_files = word_files
        self._cache = cache
        self._lock = threading.Lock()
        # What the version asked for last has, as a start for the next one.
        self._numberings: dict[str, Numbering] = {}
        self._last: dict[Hashable, tuple[Hashable, ...]] = {}
        self._spent_s: dict[tuple[str, int], float] = {}

    def at(self, pin: Pin) -> Columns:
        """A version; opening it reads its manifest only."""
        return self._cache.get(("rows", pin.table, pin.version), lambda: self._open(pin))

    def column(self, columns: Columns, name: str) -> Column:
        """All values of a column of a version."""
        return self._column(columns, name).of(columns.numbering)

    def coded(self, columns: Columns, name: str) -> Coded:
        """The codes of a column of a version."""
        made: SharedCodes = self._made(
            "codes", columns, name, lambda before: one.encode(self._column(columns, name), before)
        )
        return made.of(columns.numbering)

    def lookup(self, columns: Columns, name: str) -> RowLookup:
        """What finds the rows of a version by a column of texts."""
        column = self._column(columns, name)
        made: SharedIndex = self._made("index", columns, name, lambda before: one.index(column, before))
        return made.of(column.of(columns.numbering))

    def texts(self, columns: Columns, name: str, analyzer: Analyzer) -> Texts:
        """The texts of a column of a version, by their words."""
        index = self._word_index(columns, name, analyzer)
        # The index may cover rows of other versions too.
        key = (*self._key("texts", columns, name), analyzer, index.size)
        return Texts(index, self._cache.get(key, lambda: collection(index, columns.numbering)))

    def _column(self, columns: Columns, name: str) -> SharedColumn:
        return self._made(
            "column",
            columns,
            name,
            lambda before: one.read(columns.table, name, columns.numbering, before, bytes_max=self._cache.bytes_max),
        )

    def _word_index(self, columns: Columns, name: str, analyzer: Analyzer) -> TextIndex:
        return self._made(_words(analyzer), columns, name, lambda before: self._words(columns, name, analyzer, before))

    def words_are_kept(self, columns: Columns, name: str, analyzer: Analyzer) -> bool:
        """Whether an index over the words of a column is in a file that can be read instead of the texts."""
        if self._word_files is None:
            return False
        return self._word_files.has(columns.pin, IndexedColumn(columns.numbers[name], analyzer), columns.numbering)

    def keep_words(self, columns: Columns, name: str, analyzer: Analyzer, *, is_new: bool) -> bool:
        """See to it that the index over the words of a column is in a file, where that is worth one.

        Args:
            columns (Columns): the version.
            name (str): the column.
            analyzer (Analyzer): of its texts.
            is_new (bool): whether upkeep has just made the version.

        Returns:
            bool: whether there is a file that was not there before.
        """
        field = IndexedColumn(columns.numbers[name], analyzer)
        if self._word_files is None or not self._word_files.is_due(
            columns.pin, field, columns.numbering, is_new=is_new
        ):
            return False
        self._word_index(columns, name, analyzer)
        return self._word_files.has(columns.pin, field, columns.numbering)

    def words_in_memory(self, columns: Columns, name: str, analyzer: Analyzer) -> bool:
        """Whether the words of a column are indexed."""
        return self._cache.peek(self._key(_words(analyzer), columns, name)) is not None

    def _words(self, columns: Columns, name: str, analyzer: Analyzer, before: TextIndex | None) -> TextIndex:
        field = IndexedColumn(columns.numbers[name], analyzer)
        if before is None and self._word_files is not None:
            before = self._word_files.load(columns.pin, field, columns.numbering)
        if before is not None and before.serves(columns.numbering):
            return before
        try:
            made = indexed(self._column(columns, name), analyzer, before)
        except LimitError:
            # The words of texts take less room than the texts, which need not be there all at once.
            made = self._words_in_pieces(columns, name, analyzer)
        if self._word_files is not None:
            is_anew = before is None or not before.begins(columns.numbering)
            self._word_files.keep(columns.pin, field, made, is_anew=is_anew)
        return made

    def _words_in_pieces(self, columns: Columns, name: str, analyzer: Analyzer) -> TextIndex:
        table, numbering = columns.table, columns.numbering
        texts = one.pieces(table, name, numbering, limits.SEARCH_TEXTS_AT_ONCE)
        made: TextIndex | None = None
        for made in indexed_in_pieces(texts, numbering.size, one.firsts_of(numbering), analyzer):
            if made.nbytes > self._cache.bytes_max:
                raise one.too_large(table, name)
        assert made is not None
        return made

    def has_word_index(self, columns: Columns, name: str, analyzer: Analyzer, rows: int) -> bool:
        """Whether the words of a column are indexed, or are worth it for the sake of some rows."""
        return self.words_in_memory(columns, name, analyzer) or self.is_worth_reading(columns, name, rows)

    def vectors(self, columns: Columns, name: str) -> Vectors:
        """All vectors of a column of a version."""
        made: SharedVectors = self._made(
            "vectors", columns, name, lambda before: vectors_of(self._column(columns, name), before)
        )
        return made.of(columns.numbering)

    def is_read_in_pieces(self, columns: Columns, name: str) -> bool:
        """Whether a column of vectors is too large to be in memory as a whole."""
        type_ = columns.table.schema.field(name).type
        if not pa.types.is_fixed_size_list(type_) or self.column_in_memory(columns, name) is not None:
            return False
        return columns.numbering.size * _width(type_) > self._bytes_for(type_)

    def vector_index(self, columns: Columns, name: str, searches: int) -> BuiltIndex | None:
        """The index to search a column of vectors through; None where its vectors are, or should be, in memory.

        Small columns are read at once. Large ones are, if they fit, once searches have cost what reading would.
        """
        pin, size, field = columns.pin, columns.numbering.size, columns.numbers[name]
        if self._cache.peek(self._key("column", columns, name)) is not None:
            return None
        if size <= limits.READ_WHOLE_ROWS_MAX and not self.is_read_in_pieces(columns, name):
            return None
        found = next((each for each in columns.table.indexes() if each.columns == (name,)), None)
        type_ = columns.table.schema.field(name).type
        width = size * _width(type_)
        if found is None or width > self._bytes_for(type_):
            return found
        with self._lock:
            spent = self._spent_s.get((pin.table, field), 0.0) + searches * width / _BYTES_PER_SECOND_READ
            self._spent_s[pin.table, field] = spent
        return found if spent <= 2 * width / _BYTES_PER_SECOND_READ else None

    def in_memory(self, pin: Pin) -> Columns | None:
        """A version, if it is open."""
        return cast(Columns | None, self._cache.found(("rows", pin.table, pin.version)))

    def column_in_memory(self, columns: Columns, name: str) -> Column | None:
        """All values of a column of a version, if they were read."""
        found = cast(SharedColumn | None, self._cache.found(self._key("column", columns, name)))
        return None if found is None else found.of(columns.numbering)

    def lookup_in_memory(self, columns: Columns, name: str) -> RowLookup | None:
        """What finds the rows of a version by a column of texts, if all of it is there."""
        column = self.column_in_memory(columns, name)
        index = cast(SharedIndex | None, self._cache.found(self._key("index", columns, name)))
        return None if column is None or index is None else index.of(column)

    def is_worth_reading(self, columns: Columns, name: str, rows: int) -> bool:
        """Whether to read a whole column for the sake of some rows; true if it is read already.

        Looking rows up is cheap until it has been done often: what it has cost so far is noted, and as soon as that
        exceeds the cost of reading the column, the column is read.
        """
        pin, size = columns.pin, columns.numbering.size
        if self.is_read_in_pieces(columns, name):
            return False
        if size <= limits.READ_WHOLE_ROWS_MAX or rows > limits.LOOKUP_ROWS_MAX:
            return True
        field = columns.numbers[name]
        if self._cache.peek(self._key("column", columns, name)) is not None:
            return True
        width = _width(columns.table.schema.field(name).type)
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
        """How large a column of a type may be that is read without need."""
        return self._cache.bytes_max * (limits.VECTOR_COLUMN_SHARE_MAX if pa.types.is_fixed_size_list(type_) else 1.0)

    def _open(self, pin: Pin) -> Columns:
        table = self._tables.open(pin)
        with self._lock:
            before = self._numberings.get(pin.table)
        numbering = number(table, before)
        with self._lock:
            self._numberings[pin.table] = numbering
        return Columns(table, numbering, self)

    def _key(self, kind: str, columns: Columns, name: str) -> tuple[Hashable, ...]:
        return kind, *columns.numbering.key, *_field(columns, name)

    def _made(self, kind: str, columns: Columns, name: str, make: Callable[[Made | None], Made]) -> Made:
        """What is kept of a column, made from what another version has of it, if anything."""
        key, line = self._key(kind, columns, name), (kind, columns.pin.table, *_field(columns, name))

        def from_last() -> Made:
            with self._lock:
                last = self._last.get(line)
            before = None if last is None else self._cache.peek(last)
            made = make(cast(Made | None, before))
            with self._lock:
                self._last[line] = key
            return made

        return self._cache.get(key, from_last)


def _field(columns: Columns, name: str) -> tuple[int, pa.DataType]:
    """What makes a column the same one in all versions: two branches may give one number to columns of two types."""
    return columns.numbers[name], columns.table.schema.field(name).type


def _words(analyzer: Analyzer) -> str:
    """The kind of thing that caches hold under this name: an index over words by one analyzer."""
    return f"words by {analyzer}"


def _width(type_: pa.DataType) -> int:
    """Roughly how many bytes a value takes."""
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * _width(type_.value_type)
    if pa.types.is_float32(type_):
        return _FLOAT_BYTES
    return _NUMBER_BYTES if pa.types.is_primitive(type_) else _TEXT_BYTES
