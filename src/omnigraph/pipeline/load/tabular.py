"""Files with columns, CSV and Parquet: all their rows are of one type, which the caller names."""

import csv
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from omnigraph import limits
from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import DST, SRC, EdgeType, EntityType
from omnigraph.model.types import FLOAT_SCALARS, INTEGER_SCALARS, PropertyType, Scalar
from omnigraph.pipeline.load.batches import Batch
from omnigraph.pipeline.load.blocks import Piece, line_too_long, unpacked, wrongly_packed
from omnigraph.pipeline.load.sources import OPTION, Format, Packing, Source
from omnigraph.storage.layout import arrow_type

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_HEADER_BYTES = 65_536
_LINE_ENDS = b"\r\n"
_HEADER = re.compile(rb'((?:[^"\r\n]|"[^"]*")+)[\r\n]+(?=[^\r\n])')
_VERBS = {SRC: "leave", DST: "reach"}
_ENDS = {SRC: ("from", SRC), DST: ("to", DST)}


@dataclass(frozen=True, slots=True)
class Columns:
    """Whose rows they are, and which columns are the ends of edges.

    Attributes:
        ends: of an edge, by `src` and `dst`, the columns that hold the ids of its nodes, where the caller names them.
    """

    entity: EntityType
    ends: Mapping[str, str]


def tabular_records(piece: Piece, columns: Columns) -> Iterator[Batch]:
    """The rows of a file with columns.

    Args:
        piece: of a CSV or Parquet file.
        columns: whose rows.

    Yields:
        Batch: rows, numbered from one.

    Raises:
        InvalidRequestError: the file cannot be read, or lacks a column.
    """
    number = 0
    source = piece.source
    try:
        with unpacked(source) as file:
            for found in _csv(file) if source.format is Format.CSV else _parquet(file):
                table = _named(_with_partitions(found, columns.entity, source), columns, source.name)
                if not len(table):
                    continue
                rows = _read_texts(table, columns.entity) if source.format is Format.CSV else table
                yield Batch(columns.entity, rows, np.arange(number + 1, number + 1 + len(table), dtype=np.int64))
                number += len(table)
    except (pa.ArrowException, UnicodeDecodeError, csv.Error) as fault:
        raise InvalidRequestError(f"{source.name} cannot be read after row {number}: {fault}") from fault
    except (OSError, EOFError, zlib.error) as fault:
        if source.packing is Packing.NONE:
            raise
        raise wrongly_packed(source, fault) from fault


def frame_records(batches: Iterator[pa.RecordBatch], columns: Columns, types: pa.Schema, name: str) -> Iterator[Batch]:
    """Yield the rows of a partition of a frame, numbered from one, in the Arrow types of the table."""
    number = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        try:
            arrays: list[Any] = [batch.column(field.name).cast(field.type) for field in types]
        except pa.ArrowException as fault:
            raise InvalidRequestError(f"{name} cannot be read after row {number}: {fault}") from fault
        table = _named(pa.Table.from_arrays(arrays, schema=types), columns, name)
        yield Batch(columns.entity, table, np.arange(number + 1, number + 1 + len(table), dtype=np.int64))
        number += len(table)


def _parquet(file: Any) -> Iterator[pa.Table]:  # noqa: ANN401  (any open file)
    whole = file if hasattr(file, "seekable") else pa.BufferReader(file.read(-1))
    with pyarrow.parquet.ParquetFile(whole) as opened:
        for batch in opened.iter_batches(batch_size=limits.LOAD_TABLE_ROWS):
            yield pa.Table.from_batches([batch])


def _csv(file: Any) -> Iterator[pa.Table]:  # noqa: ANN401  (any open file)
    """Every column as text: which values are absent, and what a text means, is not the reader's to guess."""
    header, rest = _split_header(file)
    if not header:
        return
    names = next(csv.reader([header.decode("utf-8-sig")], strict=True))
    if not rest:
        yield pa.table([pa.array([], pa.string())] * len(names), names=names)
        return
    arrow_csv: Any = pyarrow.csv  # the stubs know fewer files
    wrap: Any = pa.PythonFile
    # Columns may have one name, which is for others to refuse; Arrow chooses their types by name.
    numbers = [str(number) for number in range(len(names))]
    reader = arrow_csv.open_csv(
        wrap(_Rest(rest, file), mode="r"),
        read_options=pyarrow.csv.ReadOptions(
            use_threads=False, block_size=limits.LOAD_BLOCK_BYTES, column_names=numbers
        ),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        # Nothing between two commas is nothing; a text that is there and empty stands in quotes.
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(numbers, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for batch in reader:
        yield pa.Table.from_batches([batch]).rename_columns(names)


def _split_header(file: Any) -> tuple[bytes, bytes]:  # noqa: ANN401  (any open file)
    """The first record without its end, and some of what follows: nothing only where nothing but empty lines does."""
    data = b""
    while more := file.read(max(_HEADER_BYTES, len(data))):
        data = (data + more).lstrip(_LINE_ENDS)
        header = _HEADER.match(data)
        if header is not None:
            return header[1], data[header.end() :]
        if len(data) > limits.LOAD_LINE_BYTES_MAX:
            raise line_too_long(len(data))
    return data.rstrip(_LINE_ENDS), b""


class _Rest:
    """What follows the header of a file."""

    closed = False

    def __init__(self, begun: bytes, file: Any) -> None:  # noqa: ANN401  (any open file)
        self._begun = begun
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not self._begun:
            return bytes(self._file.read(size))
        end = len(self._begun) if size < 0 else size
        found, self._begun = self._begun[:end], self._begun[end:]
        return found if size >= 0 else found + bytes(self._file.read(size))

    def close(self) -> None:
        """The file is closed by who opened it."""


def _with_partitions(table: pa.Table, entity: EntityType, source: Source) -> pa.Table:
    """The table with the columns that folders name."""
    _refuse_repeated(table.column_names, source.name, "")
    known = {*(item.name for item in entity.properties), *chain(*_ENDS.values())}
    for item in source.partitions:
        if item.is_found or (item.name in known and item.name not in table.column_names):
            texts = pa.array([item.text], pa.string())
            if source.format is not Format.CSV:
                with suppress(pa.ArrowException, ValueError):
                    texts = _meaning(texts, _type(entity, item.name))
            table = table.append_column(item.name, pc.take(texts, pa.array(np.zeros(len(table), np.int64))))
    _refuse_repeated(table.column_names, source.name, ", in the file and in a folder's name")
    return table


def _refuse_repeated(names: list[str], source: str, where: str) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise InvalidRequestError(f"{source} has the column '{name}' twice{where}", code=OPTION)


def _named(table: pa.Table, columns: Columns, name: str) -> pa.Table:
    """The table with the ends of edges called `src` and `dst`."""
    if not isinstance(columns.entity, EdgeType):
        return table
    names = list(table.column_names)
    for end, usual in _ENDS.items():
        chosen = columns.ends.get(end) or next((item for item in usual if item in names), usual[0])
        if chosen not in names:
            there = ", ".join(table.column_names) or "none"
            raise InvalidRequestError(
                f"{name} has no column '{chosen}' for the node that edges {_VERBS[end]}; name the one that holds it, "
                f"of those there are: {there}",
                code=OPTION,
            )
        if end in names and chosen != end:
            raise InvalidRequestError(
                f"{name} has two columns, '{chosen}' and '{end}', for the node that edges {_VERBS[end]}", code=OPTION
            )
        names[names.index(chosen)] = end
    return table.rename_columns(names)


def _read_texts(table: pa.Table, entity: EntityType) -> "pa.Table | list[dict[str, Any]]":
    """Texts as what they mean; row by row where a column has one that means nothing in its type."""
    try:
        return pa.table({name: _meaning(table.column(name), _type(entity, name)) for name in table.column_names})
    except (pa.ArrowException, ValueError):
        types = {name: _type(entity, name) for name in table.column_names}
        return [{name: _value(text, types[name]) for name, text in row.items()} for row in table.to_pylist()]


def _type(entity: EntityType, name: str) -> PropertyType:
    known = entity.property_named(name)
    return PropertyType(Scalar.STRING) if known is None else known.type


def _meaning(texts: Any, of: PropertyType) -> Any:  # noqa: ANN401  (columns of any type)
    if of.list or of.is_vector:
        kind = pa.list_(pa.float64()) if of.is_vector else pa.list_(_json_kind(of.element))
        return pa.array([None if item is None else _array(item) for item in texts.to_pylist()], kind)
    if of.scalar is Scalar.BOOL:
        known = pc.index_in(texts, value_set=pa.array(["false", "true"]))
        if known.null_count > texts.null_count:
            raise ValueError("neither true nor false")
        return known.cast(pa.bool_())
    if of.scalar in INTEGER_SCALARS or of.scalar in FLOAT_SCALARS:
        return texts.cast(arrow_type(of))
    return texts


def _json_kind(of: PropertyType) -> pa.DataType:
    return arrow_type(of) if of.scalar in INTEGER_SCALARS | FLOAT_SCALARS | {Scalar.BOOL} else pa.string()


def _array(text: str) -> Any:  # noqa: ANN401  (whatever JSON says)
    found = json.loads(text)
    if not isinstance(found, list):
        raise ValueError("no array")  # noqa: TRY004  (a text that means something else)
    return found


def _value(text: str | None, of: PropertyType) -> Any:  # noqa: ANN401  (whatever the text means)
    """What a text means, or the text itself: then its type says what is wrong with it."""
    if text is None or (not of.list and not of.is_vector and _json_kind(of) == pa.string()):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
