"""Editing a table's columns without losing their numbers.

Data files know columns by number, so a schema built afresh, with columns numbered from zero, would make old files
answer for the wrong columns, and Lance would not notice. Lance's own editing functions keep the numbers but move the
table's head. So the schema is taken apart into its fields, as it is stored (one protocol-buffer message per field, a
nested field after its parent), edited there, and put together again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from lance.schema import LanceSchema

# Wire types of protocol buffers.
VARINT, BYTES = 0, 2
_FIXED_BYTES = {1: 8, 5: 4}
Entry = tuple[int, int, int | bytes]
# Numbers of the message's entries.
_NAME, _ID, _PARENT, _NULLABLE = 2, 3, 4, 6
_NO_PARENT = 2**64 - 1  # minus one, as a 64-bit number


@dataclass(frozen=True, slots=True)
class Field:
    """One stored field.

    Attributes:
        entries: number, wire type and value of each entry of the message; a value is a number or bytes.
    """

    entries: tuple[Entry, ...]

    @property
    def id(self) -> int:
        """The number data files know it by."""
        return self._number(_ID)

    @property
    def name(self) -> str:
        """Its name within its parent."""
        return next((value.decode() for key, _, value in self.entries if key == _NAME and isinstance(value, bytes)), "")

    @property
    def is_column(self) -> bool:
        """Whether it is a column, not a part of one."""
        return self._number(_PARENT) == _NO_PARENT

    def renamed(self, name: str) -> "Field":
        """The same under another name."""
        return self._with(_NAME, BYTES, name.encode())

    def renumbered(self, offset: int) -> "Field":
        """The same with its number, and its parent's, raised."""
        moved = self._with(_ID, VARINT, self.id + offset)
        return moved if self.is_column else moved._with(_PARENT, VARINT, self._number(_PARENT) + offset)

    def nullable(self) -> "Field":
        """The same with nulls allowed."""
        return self._with(_NULLABLE, VARINT, 1)

    def strict(self) -> "Field":
        """The same with no nulls allowed."""
        return self._with(_NULLABLE, VARINT, 0)

    def _number(self, key: int) -> int:
        return next((value for number, _, value in self.entries if number == key and isinstance(value, int)), 0)

    def _with(self, key: int, wire: int, value: int | bytes) -> "Field":
        others = tuple(entry for entry in self.entries if entry[0] != key)
        return replace(self, entries=(*others, (key, wire, value)))


@dataclass(frozen=True, slots=True)
class Columns:
    """A table's columns, in order, each a field followed by its parts.

    Attributes:
        metadata: the schema's metadata, as Lance spells it.
        columns: top-level fields, each with its nested fields behind it.
    """

    metadata: str
    columns: tuple[tuple[Field, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column[0].name for column in self.columns)

    def without(self, names: Iterable[str]) -> "Columns":
        """Some columns less."""
        dropped = set(names)
        return replace(self, columns=tuple(column for column in self.columns if column[0].name not in dropped))

    def renamed(self, names: Mapping[str, str]) -> "Columns":
        """Some columns under other names, old to new; names may be exchanged."""
        return replace(
            self,
            columns=tuple((head.renamed(names.get(head.name, head.name)), *parts) for head, *parts in self.columns),
        )

    def relaxed(self, names: Iterable[str]) -> "Columns":
        """Some columns with nulls allowed."""
        chosen = set(names)
        return replace(
            self,
            columns=tuple((head.nullable() if head.name in chosen else head, *parts) for head, *parts in self.columns),
        )

    def tightened(self, names: Iterable[str]) -> "Columns":
        """Some columns with no nulls allowed."""
        chosen = set(names)
        return replace(
            self,
            columns=tuple((head.strict() if head.name in chosen else head, *parts) for head, *parts in self.columns),
        )

    def extended(self, fields: Sequence["pa.Field[pa.DataType]"], *, first_id: int) -> "Columns":
        """Some columns more, at the end, numbered from `first_id`."""
        fresh = read_columns(LanceSchema.from_pyarrow(pa.schema(list(fields)))).columns
        moved = tuple(tuple(field.renumbered(first_id) for field in column) for column in fresh)
        return replace(self, columns=self.columns + moved)

    def as_schema(self) -> LanceSchema:
        """What Lance takes."""
        return LanceSchema._from_protos(
            self.metadata, *(_message(field.entries) for column in self.columns for field in column)
        )


def read_columns(schema: LanceSchema) -> Columns:
    """The columns of a stored schema."""
    stored: Any = schema.__reduce__()  # typed by Lance as less than it is
    metadata, *messages = stored[1]
    columns: list[list[Field]] = []
    for field in map(_field, messages):
        if field.is_column:
            columns.append([field])
        else:
            columns[-1].append(field)
    return Columns(metadata, tuple(tuple(column) for column in columns))


def _field(stored: bytes) -> Field:
    return Field(tuple(_entries(stored)))


def _entries(message: bytes) -> Iterator[Entry]:
    """Read the entries of a protocol-buffer message, in order; those of unknown fields too."""
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        key, wire = tag >> 3, tag & 7
        if wire == VARINT:
            number, at = _read_varint(message, at)
            yield key, wire, number
            continue
        length = _FIXED_BYTES.get(wire)
        if length is None:
            length, at = _read_varint(message, at)
        yield key, wire, message[at : at + length]
        at += length


def _message(entries: Iterable[Entry]) -> bytes:
    """Write entries as one protocol-buffer message."""
    written = bytearray()
    for key, wire, value in entries:
        written += _varint(key << 3 | wire)
        if isinstance(value, int):
            written += _varint(value)
        else:
            written += (_varint(len(value)) if wire == BYTES else b"") + value
    return bytes(written)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
