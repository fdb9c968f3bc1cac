"""Columns survive the way to Spark and back."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.pipeline.columns import arrow_schema, cast_batch, spark_schema, table_columns
from omnigraph.storage.layout import INSTANT

COLUMNS = [
    pa.array([1, None], pa.uint32()),
    pa.array([2**64 - 1, None], pa.uint64()),
    pa.array([b"\x00", None], pa.large_binary()),
    pa.array([["a"], None], pa.list_(pa.field("item", pa.string()))),
    pa.array([[0.5, 1.0], None], pa.list_(pa.field("item", pa.float32()), 2)),
    pa.array([None, None], pa.list_(pa.field("item", pa.float32()), 2)),
    pa.array([], pa.list_(pa.field("item", pa.float32()), 2)),
    pa.array([1_706_695_200_120, None], pa.int64()).cast(INSTANT),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_a_column_is_the_same_after_spark_had_it(column: "pa.Array[Any]") -> None:
    given = pa.RecordBatch.from_arrays([column], names=["x"])
    sparks = arrow_schema(spark_schema(given.schema))

    assert cast_batch(cast_batch(given, sparks), given.schema).equals(given)


def test_a_vector_of_another_length_is_refused() -> None:
    given = pa.RecordBatch.from_arrays([pa.array([[0.5]], pa.list_(pa.float32()))], names=["x"])

    with pytest.raises(pa.ArrowInvalid, match="2 dimensions"):
        cast_batch(given, pa.schema([pa.field("x", pa.list_(pa.field("item", pa.float32()), 2))]))


def test_whole_decimals_become_the_numbers_of_the_table_and_nothing_else_does() -> None:
    kinds: list[tuple[str, pa.DataType]] = [
        ("big", pa.decimal128(20, 0)),
        ("other", pa.decimal128(20, 2)),
        ("text", pa.string()),
    ]
    columns = pa.schema(kinds)
    table = pa.schema([pa.field("big", pa.uint64()), pa.field("other", pa.uint64()), pa.field("text", pa.int32())])

    assert table_columns(columns, table).types == [pa.uint64(), pa.decimal128(20, 2), pa.string()]
    whole = pa.RecordBatch.from_arrays([pa.array([Decimal(7)], pa.decimal128(20, 0))], names=["big"])
    assert cast_batch(whole, pa.schema([("big", pa.uint64())])).to_pylist() == [{"big": 7}]
