"""Files with columns, CSV and Parquet: all their rows are of one type, which the caller names."""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from omnigraph.pipeline.load.blocks import Piece, unpacked, wrongly_packed
from omnigraph.pipeline.load.sources import OPTION, Format, Packing
from omnigraph.storage.layout import arrow_type

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_VERBS = {SRC: "leave", DST: "reach"}
_ENDS = {SRC: ("from", SRC), DST: ("to", DST)}


@dataclass(frozen=True, slots=True)
class Columns:
    """Whose rows they are, and which columns are the ends of edges.

    Attributes:
        entity: the type.
        ends: of an edge, by `src` and `dst`, the columns that hold the ids of its nodes, where the caller names them.
    """

    entity: EntityType
    ends: Mapping[str, str]


def tabular_records(piece: Piece, columns: Columns) -> Iterator[Batch]:
    """The rows of a file with columns.

    Args:
        piece (Piece): of a CSV or Parquet file.
        columns (Columns): whose rows.

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
                table = _named(found, columns, source.name)
                rows = _read_texts(table, columns.entity) if source.format is Format.CSV else table
                yield Batch(columns.entity, rows, np.arange(number + 1, number + 1 + len(table), dtype=np.int64))
                number += len(table)
    except (pa.ArrowException, UnicodeDecodeError) as fault:
        raise InvalidRequestError(f"{source.name} cannot be read after row {number}: {fault}") from fault
    except (OSError, EOFError, zlib.error) as fault:
        if source.packing is Packing.NONE:
            raise
        raise wrongly_packed(source, fault) from fault


def _parquet(file: Any) -> Iterator[pa.Table]:  # noqa: ANN401  (any open file)
    whole = file if hasattr(file, "seekable") else pa.BufferReader(file.read(-1))
    with pyarrow.parquet.ParquetFile(whole) as opened:
        for batch in opened.iter_batches(batch_size=limits.LOAD_TABLE_ROWS):
            yield pa.Table.from_batches([batch])


def _csv(file: Any) -> Iterator[pa.Table]:  # noqa: ANN401  (any open file)
    """Every column as text: which values are absent, and what a text means, is not the reader's to guess."""
    first = file.readline()
    if not first.strip():
        return
    csv: Any = pyarrow.csv  # the stubs know fewer files
    wrap: Any = pa.PythonFile
    names = csv.read_csv(pa.BufferReader(first)).column_names
    reader = csv.open_csv(
        wrap(_Rest(file), mode="r"),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=limits.LOAD_BLOCK_BYTES, column_names=names),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        # Nothing between two commas is nothing; a text that is there and empty stands in quotes.
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for batch in reader:
        yield pa.Table.from_batches([batch])


class _Rest:
    """What is left of a file, with a line end should there be nothing: a header alone is a table too."""

    closed = False

    def __init__(self, file: Any) -> None:  # noqa: ANN401  (any open file)
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return bytes(self._file.read(size))

    def close(self) -> None:
        """The file is closed by who opened it."""


def _named(table: pa.Table, columns: Columns, name: str) -> pa.Table:
    """The table with the ends of edges called `src` and `dst`."""
    if not isinstance(columns.entity, EdgeType):
        return table
    names = list(table.column_names)
    for end, usual in _ENDS.items():
        chosen = columns.ends.get(end) or next((each for each in usual if each in names), usual[0])
        if chosen not in names:
            there = ", ".join(table.column_names) or "none"
            raise InvalidRequestError(
                f"{name} has no column '{chosen}' for the node that edges {_VERBS[end]}; name the one that holds it, "
                f"of those there are: {there}",
                code=OPTION,
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
        return pa.array([None if each is None else _array(each) for each in texts.to_pylist()], kind)
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
