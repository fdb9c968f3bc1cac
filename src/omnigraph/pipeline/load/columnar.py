"""Lines to columns: a block of records at a time, without touching one by itself.

Lines are grouped by the type they name, and each group is read by Arrow's JSON reader under that type's own columns. It
refuses what the type does not have, what is there twice, and values of another kind. What it leaves to be seen to: that
a line is exactly one record, that its bytes are UTF-8, and what null means. A group that is not taken is halved until
the lines that are at fault are alone; they go the slow way, which takes them after all or says why not.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.json

from omnigraph import limits
from omnigraph.errors import GraphError
from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType, Schema
from omnigraph.model.types import FLOAT_SCALARS, PropertyType, Scalar
from omnigraph.pipeline.load.batches import Batch
from omnigraph.pipeline.load.blocks import Block
from omnigraph.pipeline.load.problems import Phase, Problem
from omnigraph.pipeline.load.strict import DATA, EDGE, FROM, TO, TYPE, strict_record
from omnigraph.storage.layout import arrow_type

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_OPEN, _CLOSE, _RETURN, _NEWLINE = b"{}\r\n"
_BLANK = b" \t\r\n"
_TAG = re.compile(rb'\{\s*"(type|edge)"\s*:\s*"([^"\\]*)"')
_MOMENTS = frozenset({Scalar.DATE, Scalar.DATETIME})

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a block that have something in them.

    Attributes:
        offset: where in the file the block begins.
        texts: the lines, with their ends.
        starts: where in the block each begins.
    """

    offset: int
    texts: Any
    starts: Numbers

    def __len__(self) -> int:
        return len(self.starts)

    def only(self, mask: "npt.NDArray[np.bool_]") -> "Lines":
        """Some of them, side by side."""
        if mask.all():
            return self
        return Lines(self.offset, self.texts.filter(pa.array(mask)), self.starts[mask])

    def part(self, start: int, stop: int) -> "Lines":
        """Those from one place to another."""
        return Lines(self.offset, self.texts.slice(start, stop - start), self.starts[start:stop])

    @property
    def positions(self) -> Numbers:
        """Where in the file each begins."""
        return self.starts + self.offset

    @property
    def buffer(self) -> pa.Buffer:
        """The bytes of all of them."""
        _, offsets, data = self.texts.buffers()
        ends = np.frombuffer(offsets, np.int64)[self.texts.offset : self.texts.offset + len(self.texts) + 1]
        found: pa.Buffer = data.slice(int(ends[0]), int(ends[-1] - ends[0]))
        return found


class LineReader:
    """Reads blocks of lines under one schema."""

    def __init__(self, schema: Schema, source: int) -> None:
        self._schema = schema
        self._source = source
        self._columns: dict[str, tuple[pa.Schema, ...]] = {}

    def read(self, block: Block) -> Iterator[Batch | Problem]:
        """The records of a block.

        Args:
            block: whole lines.

        Yields:
            Batch | Problem: records of one type, or why a line is none; not in the order of the lines.
        """
        lines, usual = _lines(block)
        if not len(lines):
            return
        if not _is_utf8(lines.buffer):
            yield from self._halved(lines, None)
            return
        left = usual
        slow = ~usual
        while left.any():
            tag = _TAG.match(lines.texts[int(left.argmax())].as_py())
            if tag is None:
                # The type is not named first: rare enough to be read twice.
                yield from self._by_any_tag(lines.only(left))
                break
            mine = left & pc.starts_with(lines.texts, pattern=tag[0]).to_numpy(zero_copy_only=False)
            left = left & ~mine
            entity = self._entity(tag[1].decode(), tag[2].decode())
            if entity is None:
                slow |= mine
            else:
                yield from self._halved(lines.only(mine), entity)
        if slow.any():
            yield from self._one_by_one(lines.only(slow))

    def _entity(self, member: str, name: str) -> EntityType | None:
        return self._schema.node(name) if member == TYPE else self._schema.edge(name)

    def _by_any_tag(self, lines: Lines) -> Iterator[Batch | Problem]:
        tags = _read(lines.buffer, pa.schema([(TYPE, pa.string()), (EDGE, pa.string())]), "ignore")
        if tags is None or len(tags) != len(lines):
            yield from self._halved(lines, None)
            return
        is_node = pc.is_valid(tags.column(TYPE))
        for member in (TYPE, EDGE):
            # A record that names both is told off once, as one of a node.
            names = tags.column(member) if member == TYPE else pc.if_else(is_node, None, tags.column(member))
            for name in pc.unique(pc.drop_null(names)).to_pylist():
                entity = self._entity(member, name)
                mine = lines.only(pc.fill_null(pc.equal(names, name), fill_value=False).to_numpy(zero_copy_only=False))
                yield from self._one_by_one(mine) if entity is None else self._halved(mine, entity)
        neither = pc.and_(pc.is_null(tags.column(TYPE)), pc.is_null(tags.column(EDGE)))
        none = lines.only(neither.to_numpy(zero_copy_only=False))
        if len(none):
            yield from self._one_by_one(none)

    def _halved(self, lines: Lines, entity: EntityType | None) -> Iterator[Batch | Problem]:
        """The records of lines; with `entity`, of those that name that type."""
        taken = None if entity is None else self._columns_of(lines, entity)
        if taken is not None:
            yield taken
        elif len(lines) <= limits.LOAD_LINES_ONE_BY_ONE_MAX:
            yield from self._one_by_one(lines)
        else:
            half = len(lines) // 2
            if entity is None:
                for part in (lines.part(0, half), lines.part(half, len(lines))):
                    yield from self._again(part)
            else:
                yield from self._halved(lines.part(0, half), entity)
                yield from self._halved(lines.part(half, len(lines)), entity)

    def _again(self, lines: Lines) -> Iterator[Batch | Problem]:
        """Lines among which some have bytes that are no text."""
        if len(lines) <= limits.LOAD_LINES_ONE_BY_ONE_MAX:
            yield from self._one_by_one(lines)
        elif _is_utf8(lines.buffer):
            for item in self.read(Block(0, lines.buffer.to_pybytes())):
                yield _moved(item, lines)
        else:
            yield from self._halved(lines, None)

    def _one_by_one(self, lines: Lines) -> Iterator[Batch | Problem]:
        found: dict[str, tuple[EntityType, list[dict[str, Any]], list[int]]] = {}
        for position, text in zip(lines.positions.tolist(), lines.texts.to_pylist(), strict=True):
            line = text.strip(_BLANK)
            if not line:
                continue
            try:
                entity, row = strict_record(line, self._schema)
            except GraphError as error:
                yield Problem(Phase.READING, self._source, position, error)
                continue
            _, rows, positions = found.setdefault(entity.type_key, (entity, [], []))
            rows.append(row)
            positions.append(position)
        for entity, rows, positions in found.values():
            yield Batch(entity, rows, np.array(positions, np.int64))

    def _columns_of(self, lines: Lines, entity: EntityType) -> Batch | None:
        """Lines that name a type, as its columns; None where they cannot all be read so."""
        buffer = lines.buffer
        for columns in self._columns_to_try(entity):
            table = _read(buffer, columns, "error")
            if table is not None:
                break
        else:
            return None
        if len(table) != len(lines):
            return None
        found = _flattened(table, entity)
        return None if found is None else Batch(entity, found, lines.positions)

    def _columns_to_try(self, entity: EntityType) -> tuple[pa.Schema, ...]:
        """What a record may consist of: days and instants are texts, or else numbers."""
        known = self._columns.get(entity.type_key)
        if known is None:
            texts, numbers = _columns(entity, pa.string()), _columns(entity, pa.int64())
            known = self._columns[entity.type_key] = (texts,) if texts.equals(numbers) else (texts, numbers)
        return known


def _moved(found: Batch | Problem, lines: Lines) -> Batch | Problem:
    """What was found in lines that were set side by side, with the places the lines have in the file."""
    ends = np.cumsum(pc.binary_length(lines.texts).to_numpy(zero_copy_only=False))
    begins = np.concatenate([[0], ends[:-1]])
    if isinstance(found, Problem):
        place = int(lines.positions[np.searchsorted(begins, found.position)])
        return Problem(found.phase, found.source, place, found.error, found.rank)
    return Batch(found.entity, found.rows, lines.positions[np.searchsorted(begins, found.positions)])


def _lines(block: Block) -> tuple[Lines, "npt.NDArray[np.bool_]"]:
    """The lines that have something in them, and which of them look like an object from end to end."""
    data = np.frombuffer(block.data, np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    offsets = np.concatenate([[0], ends + 1])
    starts = offsets[:-1]
    lasts = ends - 1
    lasts = lasts - ((lasts > starts) & (data[np.maximum(lasts, 0)] == _RETURN))
    make: Any = pa.LargeBinaryArray.from_buffers
    texts = make(pa.large_binary(), len(starts), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(block.data)])
    usual = (data[starts] == _OPEN) & (data[np.maximum(lasts, 0)] == _CLOSE) & (lasts > starts)
    usual &= (lasts - starts) < limits.LOAD_LINE_SLOTS_MAX
    filled = (lasts >= starts) & ~((lasts == starts) & (data[starts] == _RETURN))
    lines = Lines(block.offset, texts, starts.astype(np.int64))
    return lines.only(filled), usual[filled]


def _is_utf8(buffer: pa.Buffer) -> bool:
    ends = pa.py_buffer(np.array([0, buffer.size], np.int64).tobytes())
    make: Any = pa.LargeStringArray.from_buffers
    try:
        make(1, ends, buffer).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _read(buffer: pa.Buffer, columns: pa.Schema, unexpected: Literal["ignore", "error"]) -> pa.Table | None:
    read: Any = pyarrow.json.read_json  # the stubs know fewer files
    try:
        table: pa.Table = read(
            pa.BufferReader(buffer),
            # One thread: the machine's cores are busy with other tasks. One block: lines are not cut again.
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=buffer.size + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=columns, newlines_in_values=False, unexpected_field_behavior=unexpected
            ),
        )
    except (pa.ArrowException, OverflowError):
        return None
    return table


def _columns(entity: EntityType, moments: pa.DataType) -> pa.Schema:
    properties = [(item.name, _json_type(item.type, moments)) for item in entity.properties]
    data = pa.struct([(ID, pa.string()), *properties])
    if isinstance(entity, EdgeType):
        return pa.schema([(EDGE, pa.string()), (FROM, pa.string()), (TO, pa.string()), (DATA, data)])
    return pa.schema([(TYPE, pa.string()), (DATA, data)])


def _json_type(of: PropertyType, moments: pa.DataType) -> pa.DataType:
    """As what JSON values of a type are read; they are brought into the type itself later."""
    if of.is_vector:
        return pa.list_(pa.float64())
    if of.scalar in _MOMENTS:
        one = moments
    elif of.scalar in FLOAT_SCALARS:
        one = pa.float64()
    else:
        one = pa.string() if of.is_blob else arrow_type(of.element)
    return pa.list_(one) if of.list else one


def _flattened(table: pa.Table, entity: EntityType) -> pa.Table | None:
    """The columns of a type; None where one is absent that says something by its absence."""
    data: Any = table.column(DATA)
    ends = (FROM, TO) if isinstance(entity, EdgeType) else ()
    # Null and nothing look alike here, and mean different things.
    if data.null_count or any(table.column(end).null_count for end in ends):
        return None
    columns = {field.name: column for field, column in zip(data.type, data.flatten(), strict=True)}
    if ends:
        columns |= {SRC: table.column(FROM), DST: table.column(TO)}
    return pa.table(columns)
