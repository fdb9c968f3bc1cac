"""Cache of table columns: read on first use, extended by the rows that another version adds.

All versions of a space share one column, one id index and so on, but only inside this module: every value returned has
the rows of exactly one version, by the ordinals of that version's numbering.
"""

import threading
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, Protocol, TypeVar, cast

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.errors import LimitError
from omnigraph.execution import column as shared
from omnigraph.execution.arrays import Values, concat, make_nulls
from omnigraph.execution.cache import ByteCache, Sized
from omnigraph.execution.column import Column, EncodedColumn, RowLookup, SharedColumn, SharedEncoding, SharedIndex
from omnigraph.execution.columns import Columns
from omnigraph.execution.numbering import FragmentRun, Spaces
from omnigraph.execution.search.index_files import IndexedColumn, TextIndexFiles
from omnigraph.execution.search.text_index import TextIndex, Texts, build_in_pieces, build_text_index, live_texts
from omnigraph.execution.search.vectors import SharedVectors, Vectors, build_vectors
from omnigraph.model.analyzer import Analyzer
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.fragments import column_numbers, stored_fragment
from omnigraph.storage.tables.table import BuiltIndex
from omnigraph.storage.tables.tables import Tables, Written


class _Shared(Sized, Protocol):
    """What versions share; states of one lineage serve ever more versions."""

    @property
    def lineage(self) -> int:
        """Equal for states that serve what the earlier ones do."""
        ...


Derived = TypeVar("Derived", bound=_Shared)

# Cost model of row lookups against reading a whole column, measured on local disk.
_SECONDS_PER_LOOKUP, _SECONDS_PER_ROW_LOOKED_UP, _BYTES_PER_SECOND_READ = 4e-4, 5e-6, 4e8
# More ids than this are found faster in one pass over a hash table of all ids.
_IDS_ONE_BY_ONE_MAX = 1_000
# Numberings that a line remembers to serve; more are checked again.
_SERIALS_KEPT_MAX = 10_000


class _Line(Generic[Derived]):
    """What all versions of a space share of one column, growing with every version that needs more.

    Attributes:
        value: the latest state, which serves every version served before; None before the first.
        covered: serials of the numberings it serves.
    """

    __slots__ = ("covered", "lock", "value")

    def __init__(self) -> None:
        self.value: Derived | None = None
        self.covered: set[int] = set()
        self.lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return 0 if self.value is None else self.value.nbytes


class _FragmentRows:
    """Rows of a small fragment, by column number: read once, or remembered from the write of this process."""

    __slots__ = ("columns", "nbytes")

    def __init__(self, rows: pa.Table, numbers: Mapping[str, int]) -> None:
        self.columns: dict[int, Values] = {
            numbers[name]: concat(rows.column(name).chunks or [make_nulls(0, rows.schema.field(name).type)])
            for name in rows.column_names
            if name in numbers and _is_remembered(rows.schema.field(name).type)
        }
        self.nbytes = 500 + sum(values.nbytes for values in self.columns.values())


class Versions:
    """Thread-safe cache of the columns of every table version that queries use."""

    def __init__(self, tables: Tables, cache: ByteCache, text_index_files: TextIndexFiles | None = None) -> None:
        self._tables = tables
        self._files = text_index_files
        self._cache = cache
        self._lock = threading.Lock()
        self._spaces: dict[str, Spaces] = {}
        self._spent_s: dict[tuple[str, int], float] = {}

    def at(self, pin: Pin) -> Columns:
        """Open a version; reads its manifest only."""
        return self._cache.get(("rows", pin.table, pin.version), lambda: self._open(pin))

    def has_read(self, table: str) -> bool:
        """Return whether a version of a table was opened."""
        return table in self._spaces

    def remember(self, pin: Pin, written: Written) -> None:
        """Keep the rows that a write of this process has put into a version, so that they need not be read."""
        rows = written.rows
        if rows is None or not 0 < rows.num_rows <= limits.REMEMBERED_FRAGMENT_ROWS_MAX:
            return
        first = int(written.addresses[0])
        table = self._tables.open(pin)
        fragment = stored_fragment(table, first >> 32)
        if fragment is None or fragment.rows != rows.num_rows or first & 0xFFFF_FFFF:
            return
        if rows.num_rows > 1 and not (np.diff(written.addresses) == 1).all():
            return
        self._cache.get(("fragment", fragment.key), lambda: _FragmentRows(rows, column_numbers(table)))

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
        key = ("texts", columns.numbering.serial, index.lineage, index.size)
        return Texts(index, self._cache.get(key, lambda: live_texts(index, columns.numbering)))

    def _column(self, columns: Columns, name: str) -> SharedColumn:
        table, numbering, bytes_max = columns.table, columns.numbering, self._cache.bytes_max

        def read(before: SharedColumn | None) -> SharedColumn:
            return shared.read_column(
                table,
                name,
                numbering,
                before,
                bytes_max=bytes_max,
                known=lambda run: self.known_rows(columns, name, run),
            )

        return self._derive("column", columns, name, read)

    def known_rows(self, columns: Columns, name: str, run: FragmentRun) -> "Values | None":
        """Return a column of a small fragment, reading all its columns at once; None of a larger one."""
        fragment, schema = run.fragment, columns.table.schema
        if fragment.rows > limits.REMEMBERED_FRAGMENT_ROWS_MAX or not _is_remembered(schema.field(name).type):
            return None

        def read() -> _FragmentRows:
            names = [field.name for field in schema if _is_remembered(field.type)]
            return _FragmentRows(shared.read_rows(columns.table, fragment, names), columns.numbers)

        found = self._cache.get(("fragment", fragment.key), read).columns.get(columns.numbers[name])
        return found if found is not None and found.type == schema.field(name).type else None

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
        line = cast("_Line[TextIndex] | None", self._cache.peek(self._key(f"words by {analyzer}", columns, name)))
        return line is not None and line.value is not None

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
        if self._is_near(columns, name):
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

    def resident(self, pin: Pin) -> Columns | None:
        """Return a version if it is open, or others of its table are."""
        found = self._cache.find(("rows", pin.table, pin.version))
        if found is None and pin.table not in self._spaces:
            return None
        return cast(Columns, found) if found is not None else self.at(pin)

    def cached_column(self, columns: Columns, name: str) -> Column | None:
        """Return all values of a column of a version if all but few are cached."""
        return self.column(columns, name) if self._is_near(columns, name) else None

    def cached_lookup(self, columns: Columns, name: str) -> RowLookup | None:
        """Return the index from texts to rows if all but few are cached."""
        line = cast("_Line[SharedIndex] | None", self._cache.find(self._key("index", columns, name)))
        if line is None or line.value is None or not self._is_near(columns, name):
            return None
        return self.lookup(columns, name)

    def _is_near(self, columns: Columns, name: str) -> bool:
        """Return whether all values of a column of a version are cached, or few rows are missing."""
        line = cast("_Line[SharedColumn] | None", self._cache.find(self._key("column", columns, name)))
        if line is None or line.value is None:
            return False
        if columns.numbering.serial in line.covered:
            return True
        known = line.value.fragment_starts
        missing = sum(run.fragment.rows for run in columns.numbering.runs if run.fragment.key not in known)
        return missing <= limits.NEAR_ROWS_MAX

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
        if self._is_near(columns, name):
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
            spaces = self._spaces.setdefault(pin.table, Spaces())
        return Columns(table, spaces.number(table), self)

    def _key(self, kind: str, columns: Columns, name: str) -> tuple[Hashable, ...]:
        return kind, columns.numbering.space.serial, *_column_identity(columns, name)

    def _derive(self, kind: str, columns: Columns, name: str, make: Callable[[Derived | None], Derived]) -> Derived:
        """Return what versions share of a column, grown by what this version needs.

        Args:
            kind: what is derived.
            columns: the version.
            name: the column.
            make: grows what there is, which is returned as it is where nothing is missing.
        """
        key, serial = self._key(kind, columns, name), columns.numbering.serial
        line: _Line[Derived] = self._cache.get(key, _Line)
        value = line.value
        if value is None or serial not in line.covered:
            with line.lock:
                before = line.value
                value = line.value = make(before)
                if (before is not None and before.lineage != value.lineage) or len(line.covered) > _SERIALS_KEPT_MAX:
                    line.covered.clear()
                line.covered.add(serial)
            self._cache.recharge(key)
        return value


def _is_remembered(type_: pa.DataType) -> bool:
    """Return whether small fragments are kept with columns of this type."""
    return not (pa.types.is_nested(type_) or pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _column_identity(columns: Columns, name: str) -> tuple[int, pa.DataType]:
    """Identify a column across versions: two branches may give one number to columns of two types."""
    return columns.numbers[name], columns.table.schema.field(name).type
