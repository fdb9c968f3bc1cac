"""Columns of a type, and values on their way in and out of them."""

import base64
import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph import limits
from omnigraph.errors import InvalidRequestError, LimitError
from omnigraph.language.query.dates import parse_date, parse_datetime
from omnigraph.language.schema import accept
from omnigraph.model.schema import EntityType
from omnigraph.model.types import PropertyType, Scalar, vector_of
from omnigraph.storage.conform import from_arrow, from_python
from omnigraph.storage.instants import instants_of_texts
from omnigraph.storage.json_values import to_json
from omnigraph.storage.layout import INSTANT, arrow_type, table_schema, table_schemas

QUICK = settings(derandomize=True)
EVERYTHING = """
node Thing {
  zebra: String  blob: Blob?  yes: Bool  small: I32  large: I64?  count: U32  total: U64  half: F32  whole: F64
  day: Date  moment: DateTime?  vector: Vector(3)  tags: [String]?  kind: enum(b, a)
}
edge Has: Thing -> Thing { weight: F64? }
"""


def of(scalar: Scalar, *, nullable: bool = True, is_list: bool = False) -> PropertyType:
    return PropertyType(scalar, nullable=nullable, list=is_list)


def entity(type_key: str) -> EntityType:
    found = accept(EVERYTHING).entity(type_key)
    assert found is not None
    return found


# -- columns ----------------------------------------------------------------------------------------------------------


def test_a_node_has_its_id_and_then_its_properties_by_name() -> None:
    assert table_schema(entity("node:Thing")).names == [
        "id", "blob", "count", "day", "half", "kind", "large", "moment", "small", "tags", "total", "vector", "whole",
        "yes", "zebra",
    ]  # fmt: skip


def test_an_edge_has_its_two_ends_behind_its_id() -> None:
    assert table_schema(entity("edge:Has")).names == ["id", "src", "dst", "weight"]


def test_every_type_of_the_schema_language_has_one_arrow_type() -> None:
    columns = table_schema(entity("node:Thing"))
    assert {name: columns.field(name).type for name in columns.names} == {
        "id": pa.string(),
        "zebra": pa.string(),
        "blob": pa.large_binary(),
        "yes": pa.bool_(),
        "small": pa.int32(),
        "large": pa.int64(),
        "count": pa.uint32(),
        "total": pa.uint64(),
        "half": pa.float32(),
        "whole": pa.float64(),
        "day": pa.date32(),
        "moment": INSTANT,
        "vector": pa.list_(pa.field("item", pa.float32()), 3),
        "tags": pa.list_(pa.field("item", pa.string())),
        "kind": pa.string(),
    }


def test_only_optional_properties_may_be_null() -> None:
    columns = table_schema(entity("node:Thing"))
    assert {field.name for field in columns if field.nullable} == {"blob", "large", "moment", "tags"}


def test_a_column_carries_the_number_of_its_property() -> None:
    found = entity("node:Thing")
    columns = table_schema(found)
    for each in found.properties:
        metadata = columns.field(each.name).metadata
        assert metadata is not None
        assert metadata[b"omnigraph.stable_property_id"] == str(each.property_id).encode()


def test_every_type_with_a_table_has_a_layout() -> None:
    assert sorted(table_schemas(accept(EVERYTHING))) == ["edge:Has", "node:Thing"]


# -- values in --------------------------------------------------------------------------------------------------------

DAY = date(2024, 2, 29)
MOMENT = datetime(2024, 2, 29, 10, 30, 0, 123_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("type_", "given_", "stored"),
    [
        (of(Scalar.STRING), ["a", None, ""], ["a", None, ""]),
        (of(Scalar.BOOL), [True, None, False], [True, None, False]),
        (of(Scalar.I32), [-(2**31), None, 2**31 - 1], [-(2**31), None, 2**31 - 1]),
        (of(Scalar.U64), [2**64 - 1, 0, None], [2**64 - 1, 0, None]),
        (of(Scalar.F64), [1, 0.5, None], [1.0, 0.5, None]),
        (of(Scalar.F32), [1, 0.5, None], [1.0, 0.5, None]),
        (of(Scalar.DATE), [DAY, "2024-02-29", 19782, None], [DAY, DAY, DAY, None]),
        (of(Scalar.DATETIME), [MOMENT, "2024-02-29T10:30:00.123Z", 1709202600123, None], [MOMENT] * 3 + [None]),
        (of(Scalar.DATETIME), [DAY], [datetime(2024, 2, 29, tzinfo=UTC)]),
        (of(Scalar.BLOB), [b"x", "base64:eA==", None], [b"x", b"x", None]),
        (of(Scalar.I64, is_list=True), [[1, 2], [], None], [[1, 2], [], None]),
        (of(Scalar.DATE, is_list=True), [["2024-02-29"], (DAY,)], [[DAY], [DAY]]),
        (vector_of(2, nullable=True), [[1, 2.5], None, (3, 4)], [[1.0, 2.5], None, [3.0, 4.0]]),
    ],
    ids=str,
)
def test_python_values_become_what_the_table_holds(
    type_: PropertyType, given_: list[object], stored: list[Any]
) -> None:
    column = from_python(given_, type_, "p")
    assert column.type == arrow_type(type_)
    assert column.to_pylist() == stored


@pytest.mark.parametrize(
    ("type_", "given_", "stored"),
    [
        (of(Scalar.STRING), pa.array(["a", None], pa.large_string()), ["a", None]),
        (of(Scalar.STRING), pa.array(["a", None], pa.string_view()), ["a", None]),
        (of(Scalar.STRING), pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (
            of(Scalar.STRING),
            pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), pa.array(["a", "b"], pa.string_view())),
            ["b", None, "a"],
        ),
        (of(Scalar.STRING), pa.nulls(2), [None, None]),
        (of(Scalar.I32), pa.array([1, None], pa.int64()), [1, None]),
        (of(Scalar.I32), pa.array([1.0, None], pa.float64()), [1, None]),
        (of(Scalar.U64), pa.array([1], pa.int8()), [1]),
        (of(Scalar.F64), pa.array([2**60 + 1], pa.int64()), [float(2**60 + 1)]),
        (of(Scalar.F32), pa.array([0.1], pa.float64()), [float(np.float32(0.1))]),
        (of(Scalar.DATE), pa.array([DAY, None], pa.date32()), [DAY, None]),
        (of(Scalar.DATE), pa.array([DAY], pa.date64()), [DAY]),
        (of(Scalar.DATE), pa.array([datetime(2024, 2, 29)], pa.timestamp("us")), [DAY]),  # noqa: DTZ001  (a frame's)
        (of(Scalar.DATE), pa.array(["2024-02-29"]), [DAY]),
        (of(Scalar.DATETIME), pa.array([MOMENT], pa.timestamp("ns", tz="UTC")), [MOMENT]),
        (of(Scalar.DATETIME), pa.array([1], pa.timestamp("s")), [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]),
        (
            of(Scalar.DATETIME),
            pa.array([-1_500], pa.timestamp("us")),
            [datetime(1969, 12, 31, 23, 59, 59, 998_000, tzinfo=UTC)],
        ),
        (of(Scalar.DATETIME), pa.array([MOMENT], pa.timestamp("ms", tz="Asia/Tokyo")), [MOMENT]),
        (of(Scalar.DATETIME), pa.array([DAY]), [datetime(2024, 2, 29, tzinfo=UTC)]),
        (of(Scalar.BLOB), pa.array([b"x", None], pa.binary()), [b"x", None]),
        (of(Scalar.BLOB), pa.array(["base64:eA==", None]), [b"x", None]),
        (of(Scalar.I32, is_list=True), pa.array([[1], None, []], pa.large_list(pa.int64())), [[1], None, []]),
        (of(Scalar.I32, is_list=True), pa.array([[], None], pa.list_(pa.null())), [[], None]),
        (vector_of(2, nullable=True), pa.array([[1, 2], None], pa.list_(pa.int64())), [[1.0, 2.0], None]),
        (vector_of(2, nullable=True), pa.array([[1, 2], None], pa.list_(pa.float32(), 2)), [[1.0, 2.0], None]),
        (vector_of(2, nullable=True), pa.array([None, [1, 2]], pa.list_(pa.float32(), 2)), [None, [1.0, 2.0]]),
        (vector_of(2, nullable=True), pa.array([None], pa.list_(pa.float32(), 2)), [None]),
    ],
    ids=str,
)
def test_columns_of_other_arrow_types_become_what_the_table_holds(
    type_: PropertyType, given_: "pa.Array[Any]", stored: list[Any]
) -> None:
    for column in (given_, pa.chunked_array([given_.slice(0, 1), given_.slice(1)]), pa.concat_arrays([given_] * 2)[1:]):
        converted = from_arrow(column, type_, "p")
        assert converted.type == arrow_type(type_)
        assert converted.to_pylist() == (stored if len(converted) == len(stored) else (stored * 2)[1:])


MISFITS = [
    (of(Scalar.STRING), 1, "strict property 'p' expects Utf8, got 1"),
    (of(Scalar.BOOL), 1, "strict property 'p' expects Boolean, got 1"),
    (of(Scalar.I32), "1", "strict property 'p' expects Int32, got \"1\""),
    (of(Scalar.I32), True, "strict property 'p' expects Int32, got true"),
    (of(Scalar.I32), 1.5, "strict property 'p' expects Int32, got 1.5"),
    (of(Scalar.I32), 2**31, "property 'p' value 2147483648 exceeds Int32 range"),
    (of(Scalar.U32), -1, "property 'p' value -1 exceeds UInt32 range"),
    (of(Scalar.I64), 2**63, "property 'p' value 9223372036854775808 exceeds Int64 range"),
    (of(Scalar.U64), -1, "property 'p' value -1 exceeds UInt64 range"),
    (of(Scalar.F64), "1", "strict property 'p' expects Float64, got \"1\""),
    (of(Scalar.F64), math.nan, "property 'p' value nan must be finite for Float64"),
    (of(Scalar.F32), math.inf, "property 'p' value inf must be finite for Float32"),
    (of(Scalar.F32), 1e300, "property 'p' value 1e+300 exceeds Float32 range"),
    (of(Scalar.DATE), "2024-02-30", "invalid Date literal '2024-02-30'"),
    (of(Scalar.DATE), 10**9, "Date value out of range: 1000000000"),
    (of(Scalar.DATETIME), "yesterday", "invalid DateTime literal 'yesterday'"),
    (of(Scalar.DATETIME), 2**62, "DateTime value out of range: 4611686018427387904"),
    (of(Scalar.BLOB), 7, "blob property 'p' must be a URI string or base64: prefixed data"),
    (of(Scalar.BLOB), "base64:?", "invalid base64 blob data"),
    (of(Scalar.BLOB), "s3://elsewhere/x", "external blob URI 's3://elsewhere/x' is not allowed"),
    (of(Scalar.I32, is_list=True), 1, "list property 'p' expects a JSON array, got 1"),
    (of(Scalar.I32, is_list=True), [2**31], "list value 2147483648 exceeds Int32 range"),
    (of(Scalar.I32, is_list=True), [1, None], "strict list property 'p' contains a null or invalid item"),
    (of(Scalar.I32, is_list=True), ["a"], "strict list property 'p' contains a null or invalid item"),
    (vector_of(2), 1, "vector property 'p' expects a JSON array, got 1"),
    (vector_of(2), [1.0], "vector property 'p' expects 2 dimensions, got 1"),
    (vector_of(2), ["a", "b"], "vector property 'p' elements must be numeric, got \"a\""),
    (vector_of(2), [1.0, None], "vector property 'p' elements must be numeric, got null"),
    (vector_of(2), [1.0, 1e300], "property 'p' value 1e+300 exceeds Float32 range"),
]


@pytest.mark.parametrize(("type_", "value", "message"), MISFITS, ids=str)
def test_a_python_value_that_does_not_fit_is_named(type_: PropertyType, value: object, message: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        from_python([None, value] if type_.nullable else [value], type_, "p")
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize(
    ("type_", "value", "message"), [each for each in MISFITS if each[1] not in (2**63, [1.0, None])], ids=str
)
def test_a_column_value_that_does_not_fit_is_named(type_: PropertyType, value: object, message: str) -> None:
    values: list[Any] = [None, value] if type_.nullable else [value]
    column: pa.Array[Any] = pa.array(values)
    with pytest.raises(InvalidRequestError) as refused:
        from_arrow(column, type_, "p")
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (of(Scalar.I32, nullable=False), "non-nullable property 'p' has null or invalid values"),
        (vector_of(2), "non-nullable vector property 'p' has null values"),
        (of(Scalar.BLOB, nullable=False), "non-nullable blob property 'p' has null values"),
    ],
    ids=str,
)
def test_a_required_property_without_a_value_is_refused(type_: PropertyType, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        from_python([None], type_, "p")
    with pytest.raises(InvalidRequestError, match=message):
        from_arrow(pa.nulls(1), type_, "p")


def test_a_moment_within_a_day_is_no_date() -> None:
    with pytest.raises(InvalidRequestError, match="expects Date32"):
        from_arrow(pa.array([MOMENT]), of(Scalar.DATE), "p")


def test_a_column_of_a_type_that_no_property_has_is_refused() -> None:
    columns: list[pa.Array[Any]] = [
        pa.array([{"a": 1}]),
        pa.array([1], pa.duration("s")),
        pa.array([1], pa.time32("s")),
    ]
    for column in columns:
        with pytest.raises(InvalidRequestError, match="'p'"):
            from_arrow(column, of(Scalar.I64), "p")


def test_too_many_bytes_of_blobs_are_refused() -> None:
    half = b"x" * (limits.BLOB_INPUT_BYTES_MAX // 2 + 1)
    assert len(from_python([half], of(Scalar.BLOB), "p")) == 1
    with pytest.raises(LimitError, match="resource limit exceeded for decoded blob input bytes"):
        from_python([half, half], of(Scalar.BLOB), "p")


# -- texts ------------------------------------------------------------------------------------------------------------

TIME_TEXTS = st.from_regex(
    r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]"
    r"([T t][0-2][0-9]:[0-5][0-9](:[0-6][0-9](\.[0-9]{1,10})?)?( ?(Z|z|[+-][0-2][0-9](:?[0-6][0-9])?))?)?\Z"
)


@QUICK
@given(TIME_TEXTS)
@example("2024-02-29")
@example("2024-02-29 10:30")
@example("2024-02-29T10:30:00.123456789+05:30")
@example("0001-01-01T00:00:00+01:00")
@example("9999-12-31T23:59:59.999-00:01")
@example("2024-02-29T24:00:00Z")
def test_the_query_language_and_the_tables_read_the_same_instant_in_a_text(text: str) -> None:
    """The two layers cannot share code; they must agree on every text."""
    parsed = parse_datetime(text)
    try:
        [found] = instants_of_texts(pa.array([text])).to_pylist()
    except pa.ArrowInvalid:
        found = None
    assert found == parsed


@QUICK
@given(st.from_regex(r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]\Z"))
def test_the_query_language_and_the_tables_read_the_same_day_in_a_text(text: str) -> None:
    parsed = parse_date(text)
    try:
        [found] = from_python([text], of(Scalar.DATE), "p").to_pylist()
    except InvalidRequestError:
        found = None
    assert found == parsed


# -- values out -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pa.array([MOMENT, None], INSTANT), ["2024-02-29T10:30:00.123Z", None]),
        (pa.array([datetime.min.replace(tzinfo=UTC)], INSTANT), ["0001-01-01T00:00:00.000Z"]),
        (pa.array([DAY, date.max, None]), ["2024-02-29", "9999-12-31", None]),
        (pa.array([0.5, math.nan, math.inf, -math.inf, None]), [0.5, "NaN", "Infinity", "-Infinity", None]),
        (pa.array([0.1], pa.float32()), [0.10000000149011612]),
        (pa.array([b"x", None], pa.large_binary()), ["base64:eA==", None]),
        (pa.array([[MOMENT], None, []], pa.list_(INSTANT)), [["2024-02-29T10:30:00.123Z"], None, []]),
        (pa.array([[1, 2], None], pa.list_(pa.float32(), 2)), [[1.0, 2.0], None]),
        (pa.array([2**63 - 1, None]), [2**63 - 1, None]),
        (pa.array([{"n": math.nan}, None]), [{"n": "NaN"}, None]),
    ],
    ids=str,
)
def test_columns_are_shown_as_json(column: "pa.Array[Any]", shown: list[object]) -> None:
    assert to_json(column) == shown
    assert to_json(pa.chunked_array([column.slice(0, 1), column.slice(1)])) == shown


VALUES: dict[PropertyType, st.SearchStrategy[Any]] = {
    of(Scalar.STRING): st.text(st.characters(codec="utf-8")),
    of(Scalar.BOOL): st.booleans(),
    of(Scalar.I64): st.integers(-(2**63), 2**63 - 1),
    of(Scalar.U64): st.integers(0, 2**64 - 1),
    of(Scalar.F64): st.floats(allow_nan=False, allow_infinity=False),
    of(Scalar.F32): st.floats(allow_nan=False, allow_infinity=False, width=32),
    of(Scalar.DATE): st.dates(),
    of(Scalar.DATETIME): st.datetimes(timezones=st.just(UTC)),
    of(Scalar.BLOB): st.binary(),
    of(Scalar.DATETIME, is_list=True): st.lists(st.datetimes(timezones=st.just(timezone(timedelta(0))))),
    of(Scalar.I32, is_list=True): st.lists(st.integers(-(2**31), 2**31 - 1)),
    vector_of(3, nullable=True): st.lists(st.floats(-1024, 1024, width=32), min_size=3, max_size=3),
}


@QUICK
@given(st.data())
def test_what_json_shows_of_a_column_can_be_written_again(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(list(VALUES)))
    values = data.draw(st.lists(st.none() | VALUES[type_], max_size=5))
    column = from_python(values, type_, "p")
    assert from_python(to_json(column), type_, "p").equals(column)
    assert from_arrow(column, type_, "p").equals(column)


def test_blobs_are_shown_in_base64() -> None:
    [shown] = to_json(pa.array([b"\x00\xff"], pa.large_binary()))
    assert base64.b64decode(shown.removeprefix("base64:")) == b"\x00\xff"
