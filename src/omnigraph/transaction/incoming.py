"""Rows from outside on their way to a table: frames of any kind in, the table's own columns with ids out."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import InvalidRequestError
from omnigraph.ids import ULID_LENGTH, IdSource
from omnigraph.model.keys import canonicalize, explain_missing_key, list_key_columns
from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType, NodeType
from omnigraph.model.types import FLOAT_SCALARS, PropertyType, Scalar
from omnigraph.storage.conform import from_arrow, from_python, missing, nulls
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.storage.layout import table_schema
from omnigraph.transaction.constraint_rules.checks import check_unique_within
from omnigraph.transaction.constraint_rules.rules import TypeRules

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_CONTROL = "[\\x00-\\x1f]"
_LETTERS = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)
_TIME_LENGTH = 10
_CHANCE_BYTES = 10
_ONE_BY_ONE_MAX = 8
_TEXT = PropertyType(Scalar.STRING)
_TEXT_OR_NOTHING = PropertyType(Scalar.STRING, nullable=True)
_FROM, _TO = "from", "to"
RESERVED_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version", "_tombstone"}
)


def derived_ids(entity: EntityType, columns: "dict[str, pa.Array[Any]]") -> "pa.Array[Any]":
    """The ids that keys stand for."""
    texts = []
    for name, of in list_key_columns(entity):
        if columns[name].null_count:
            raise InvalidRequestError(explain_missing_key(entity))
        texts.append(_texts(of, columns[name]))
    if len(texts) == 1:
        return texts[0]
    if any(pc.any(pc.match_substring_regex(text, _CONTROL)).as_py() for text in texts):
        # JSON has spellings of its own for these: rows are taken one by one.
        rows = zip(*(text.to_pylist() for text in texts), strict=True)
        return pa.array([json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows], pa.string())
    quoted = [pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"') for text in texts]
    joined = pc.binary_join_element_wise(*quoted, '","')
    listed: pa.Array[Any] = pc.binary_join_element_wise('["', joined, '"]', "")
    return listed


def _texts(of: PropertyType, column: "pa.Array[Any]") -> "pa.Array[Any]":
    match of.scalar:
        case Scalar.STRING:
            return column
        case Scalar.DATE:
            return column.cast(pa.int32()).cast(pa.string())
        case Scalar.DATETIME:
            return column.cast(pa.int64()).cast(pa.string())
        case scalar if scalar in FLOAT_SCALARS:
            # The fewest digits that read back the same, without an exponent: Arrow's own text may have one.
            distinct = pc.unique(column)
            texts = pa.array([canonicalize(value, of) for value in distinct.to_pylist()], pa.string())
            return texts.take(pc.index_in(column, value_set=distinct))
        case _:
            return column.cast(pa.string())


def fresh_ids(source: IdSource, count: int) -> "pa.Array[Any]":
    """New ids, in rising order.

    Few come from the source one by one. Many count up from one random number, in the millisecond of one id of the
    source: ids that differ in their last characters only take half the disk that random ones do.
    """
    if count <= _ONE_BY_ONE_MAX:
        return pa.array([source.new() for _ in range(count)], pa.string())
    seed = source.new().encode("ascii")
    # Not from the seed's own bits: the source itself counts on from those.
    chance = hashlib.shake_256(seed).digest(_CHANCE_BYTES)
    high = int.from_bytes(chance[:2], "big")
    # With its first bit cleared, counting up never reaches the higher part.
    low = np.arange(count, dtype=np.uint64) + np.uint64(int.from_bytes(chance[2:], "big") >> 1)
    letters = np.empty((count, ULID_LENGTH), dtype=np.uint8)
    letters[:, :_TIME_LENGTH] = np.frombuffer(seed[:_TIME_LENGTH], dtype=np.uint8)
    for place, shift in zip(range(_TIME_LENGTH, ULID_LENGTH), range(75, -1, -5), strict=True):
        if shift > 60:
            letters[:, place] = _LETTERS[high >> (shift - 64) & 31]
        else:
            above = high << 4 & 31 if shift == 60 else 0  # the one character with bits of both parts
            letters[:, place] = _LETTERS[low >> np.uint64(shift) & np.uint64(31) | np.uint64(above)]
    ends = np.arange(0, ULID_LENGTH * (count + 1), ULID_LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(letters))  # type: ignore[arg-type]  # any buffer will do


@dataclass(frozen=True, slots=True)
class Incoming:
    """Rows of one type, ready for its table."""

    entity: EntityType  # whose table they are for
    rows: pa.Table  # in the table's own columns
    ids_are_fresh: bool  # whether every id was made here, so that nobody else has it
    named: "Mapping[str, pa.Array[Any]]" = field(default_factory=dict)  # for a patch, which rows name each property


class Frame:
    """Named columns, as Arrow or as Python values, read once from whatever they came in."""

    def __init__(self, given: object, what: str, blobs: BlobIngress | None = None) -> None:
        """Read rows."""
        self._columns: dict[str, pa.ChunkedArray[Any] | list[object]]
        self._blobs = blobs
        if isinstance(given, Sequence) and not isinstance(given, str | bytes):
            names = dict.fromkeys(name for row in given for name in _row(row, what))
            self._columns = {str(name): [row.get(name) for row in given] for name in names}
            self._given: Sequence[Mapping[str, object]] | None = given
            self.count = len(given)
        else:
            table = _table(given, what)
            self._given = None
            self._columns = dict(zip(table.column_names, table.columns, strict=True))
            self.count = table.num_rows
            if len(self._columns) < table.num_columns:
                raise InvalidRequestError(f"{what} has two columns of one name")

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    def has_nulls(self, name: str) -> bool:
        """Whether a row has no value in a column."""
        found = self._columns.get(name)
        if found is None:
            return self.count > 0
        return any(value is None for value in found) if isinstance(found, list) else bool(found.null_count)

    def named(self, name: str) -> "pa.Array[Any]":
        """Return which rows name a column: dictionaries by their keys, tables by their columns."""
        if self._given is None:
            return pa.array([name in self._columns] * self.count, pa.bool_())
        return pa.array([name in row for row in self._given], pa.bool_())

    def column(self, name: str, of: PropertyType) -> "pa.Array[Any]":
        """A column in the type of its property; nulls where there is none."""
        found = self._columns.get(name)
        if found is None:
            if not of.nullable and self.count:
                raise InvalidRequestError(missing(of, name))
            return nulls(self.count, of)
        if isinstance(found, list):
            return from_python(found, of, name, self._blobs)
        return from_arrow(found, of, name, self._blobs)


def incoming_nodes(node: NodeType, rules: TypeRules, frame: Frame, ids: IdSource, *, patches: bool = False) -> Incoming:
    """Nodes of one type, their ids derived from their keys, given, or made; a patch may leave out all but the key."""
    _check_names(frame, node, {ID})
    columns = _columns(node, frame, patches=patches, key=frozenset(prop.name for prop in node.key))
    named = {prop.name: frame.named(prop.name) for prop in node.properties} if patches else {}
    explicit = frame.column(ID, _TEXT_OR_NOTHING)
    if not node.is_keyed:
        found, are_fresh = _given_or_fresh(explicit, ids)
        return Incoming(node, _rows(node, {ID: found} | columns, patches=patches), are_fresh, named)
    found = derived_ids(node, columns)
    _check_explicit(node, explicit, found)
    rows = _rows(node, {ID: found} | columns, patches=patches)
    if rules.key is not None and pc.count_distinct(found).as_py() < len(found):
        check_unique_within(rules.key, rows)
    return Incoming(node, rows, ids_are_fresh=False, named=named)


def incoming_edges(edge: EdgeType, frame: Frame, ids: IdSource, *, patches: bool = False) -> Incoming:
    """Edges of one type, their ids derived from their keys, given, or made; a patch may leave out all but the key."""
    source, target = _end(frame, edge, SRC, _FROM), _end(frame, edge, DST, _TO)
    _check_names(frame, edge, {ID, source, target})
    columns = _columns(edge, frame, patches=patches, key=frozenset(edge.key_names))
    named = {prop.name: frame.named(prop.name) for prop in edge.properties} if patches else {}
    ends = {SRC: frame.column(source, _TEXT), DST: frame.column(target, _TEXT)}
    explicit = frame.column(ID, _TEXT_OR_NOTHING)
    if edge.is_keyed:
        found, are_fresh = derived_ids(edge, ends | columns), False
        _check_explicit(edge, explicit, found)
    else:
        found, are_fresh = _given_or_fresh(explicit, ids)
    return Incoming(edge, _rows(edge, {ID: found} | ends | columns, patches=patches), are_fresh, named)


def patched(given: Incoming, stored: pa.Table) -> pa.Table:
    """Return whole rows: what a patch names, and everything else as it is stored, or null for a new entity."""
    count = given.rows.num_rows
    places = pc.index_in(given.rows.column(ID), value_set=stored.column(ID)).combine_chunks()
    columns = {name: given.rows.column(name).combine_chunks() for name in given.rows.column_names}
    rows = pa.array(range(count), pa.int64())
    for prop in given.entity.properties:
        old = stored.column(prop.name).combine_chunks().take(places)
        both = pa.concat_arrays([columns[prop.name], old])
        chosen = both.take(pc.if_else(given.named[prop.name], rows, pc.add(rows, count)))
        if chosen.null_count and not prop.type.nullable:
            raise InvalidRequestError(missing(prop.type, prop.name))
        columns[prop.name] = chosen
    return _rows(given.entity, columns)


def _columns(entity: EntityType, frame: Frame, *, patches: bool, key: frozenset[str]) -> "dict[str, pa.Array[Any]]":
    """Convert the properties; a patch may leave out all but the key."""
    return {
        prop.name: frame.column(prop.name, prop.type.as_nullable() if patches and prop.name not in key else prop.type)
        for prop in entity.properties
    }


def _row(row: object, what: str) -> Mapping[str, object]:
    if not isinstance(row, Mapping):
        raise InvalidRequestError(f"{what} rows must be dictionaries, got {type(row).__name__}")
    return row


def _table(given: object, what: str) -> pa.Table:
    """Anything that has columns, as an Arrow table, without copying where it is one underneath."""
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    is_pandas = type(given).__module__.partition(".")[0] == "pandas" and hasattr(given, "columns")
    if not is_pandas and not isinstance(given, Mapping) and not hasattr(given, "__arrow_c_stream__"):
        raise InvalidRequestError(
            f"{what} rows must be an Arrow table, a data frame or a sequence of dictionaries, "
            f"got {type(given).__name__}"
        )
    if isinstance(given, Mapping):
        for name, values in given.items():
            # A text is a sequence too, of its letters: each would become a row.
            if isinstance(values, str | bytes):
                kind = type(values).__name__
                raise InvalidRequestError(f"{what} column '{name}' must be a sequence of values, got {kind}")
    make: Any = pa.table
    try:
        # By its own stream pandas would hand over its index as a column.
        table: pa.Table = pa.Table.from_pandas(given, preserve_index=False) if is_pandas else make(given)
    except (pa.ArrowException, TypeError, ValueError) as fault:
        raise InvalidRequestError(f"{what} rows cannot be read: {fault}") from fault
    return table


def _check_names(frame: Frame, entity: EntityType, beside: set[str]) -> None:
    for name in frame.names:
        if name in beside or entity.property_named(name) is not None:
            continue
        if name in RESERVED_COLUMNS:
            raise InvalidRequestError(f"input field '{name}' is reserved physical state")
        raise InvalidRequestError(f"unknown input field '{name}' for '{entity.type_key}'")


def _end(frame: Frame, edge: EdgeType, column: str, spoken: str) -> str:
    """Under which of its two names an end is given."""
    name = column if column in frame.names else spoken
    if name not in frame.names and frame.count:
        raise InvalidRequestError(f"edge {edge.name} missing '{name}'")
    return name


def _given_or_fresh(explicit: "pa.Array[Any]", ids: IdSource) -> "tuple[pa.Array[Any], bool]":
    if not explicit.null_count:
        return explicit, not len(explicit)
    made = fresh_ids(ids, explicit.null_count)
    if explicit.null_count == len(explicit):
        return made, True
    return pc.replace_with_mask(explicit, explicit.is_null(), made), False


def _check_explicit(entity: EntityType, explicit: "pa.Array[Any]", derived: "pa.Array[Any]") -> None:
    differs = pc.not_equal(explicit, derived)
    if pc.any(differs).as_py():
        at = pc.index(differs, pa.scalar(value=True)).as_py()
        raise InvalidRequestError(
            f"{entity.kind} {entity.name} explicit id '{explicit[at].as_py()}' does not match its canonical @key id "
            f"'{derived[at].as_py()}'"
        )


def _rows(entity: EntityType, columns: "dict[str, pa.Array[Any]]", *, patches: bool = False) -> pa.Table:
    schema = table_schema(entity)
    if patches:  # what is left out is filled in when the stored rows are known
        schema = pa.schema([pa.field(column.name, column.type, metadata=column.metadata) for column in schema])
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
