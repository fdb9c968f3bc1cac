"""The id of a keyed node is the canonical text of its key."""

import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.errors import InvalidRequestError
from omnigraph.language.schema import accept, plan
from omnigraph.model.keys import KeyValue, canonicalize, derive_id
from omnigraph.model.schema import NodeType
from omnigraph.model.types import PropertyType, Scalar

QUICK = settings(derandomize=True)


def node(body: str) -> NodeType:
    found = accept(f"node A {{ {body} }}").node("A")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("scalar", "value", "text"),
    [
        (Scalar.STRING, "Ada", "Ada"),
        (Scalar.STRING, "", ""),
        (Scalar.STRING, "日本", "日本"),
        (Scalar.I32, -7, "-7"),
        (Scalar.I64, -(2**63), "-9223372036854775808"),
        (Scalar.U32, 0, "0"),
        (Scalar.U64, 2**64 - 1, "18446744073709551615"),
        (Scalar.BOOL, True, "true"),
        (Scalar.BOOL, False, "false"),
        (Scalar.DATE, 0, "0"),
        (Scalar.DATE, date(1970, 1, 2), "1"),
        (Scalar.DATE, date(1929, 10, 21), "-14682"),
        (Scalar.DATE, -14682, "-14682"),
        (Scalar.DATETIME, 1_500, "1500"),
        (Scalar.DATETIME, datetime(1970, 1, 1, 0, 0, 1, 500_999, tzinfo=UTC), "1500"),
        (Scalar.DATETIME, datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "0"),
        (Scalar.DATETIME, datetime(1969, 12, 31, 23, 59, 59, 999_000), "-1"),  # noqa: DTZ001  (without a zone it is UTC)
        (Scalar.F64, 1.0, "1"),
        (Scalar.F64, 0.1, "0.1"),
        (Scalar.F64, -2.5, "-2.5"),
        (Scalar.F64, 1e21, "1000000000000000000000"),
        (Scalar.F64, 1.5e-7, "0.00000015"),
        (Scalar.F64, 100, "100"),
        (Scalar.F64, 0.0, "0"),
        (Scalar.F64, -0.0, "0"),
        (Scalar.F32, 0.1, "0.1"),
        (Scalar.F32, 0.10000000149011612, "0.1"),
        (Scalar.F32, 16_777_216.0, "16777216"),
        (Scalar.F32, -0.0, "0"),
        (Scalar.F32, 1e-60, "0"),
        (Scalar.F32, 3.4028234663852886e38, "340282350000000000000000000000000000000"),
    ],
)
def test_every_key_type_has_one_text(scalar: Scalar, value: KeyValue, text: str) -> None:
    assert canonicalize(value, PropertyType(scalar)) == text


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (Scalar.STRING, 7),
        (Scalar.I32, "7"),
        (Scalar.I32, True),
        (Scalar.I32, 1.5),
        (Scalar.I32, 2**31),
        (Scalar.U32, -1),
        (Scalar.U64, 2**64),
        (Scalar.BOOL, 1),
        (Scalar.F64, math.inf),
        (Scalar.F64, math.nan),
        (Scalar.F32, 1e39),
        (Scalar.F64, True),
        (Scalar.DATE, "1970-01-01"),
        (Scalar.DATE, datetime(1970, 1, 1, tzinfo=UTC)),
        (Scalar.DATETIME, "now"),
        (Scalar.DATETIME, True),
        (Scalar.BLOB, "x"),
    ],
)
def test_a_value_of_another_type_or_range_is_refused(scalar: Scalar, value: KeyValue) -> None:
    with pytest.raises(ValueError, match=r"expects|exceeds|finite"):
        canonicalize(value, PropertyType(scalar))


def test_the_id_of_one_key_value_is_its_text() -> None:
    assert derive_id(node("name: String @key  age: I32?"), {"name": "Ada", "age": 36}) == "Ada"


def test_the_id_of_several_is_a_compact_list_in_the_order_of_their_numbers() -> None:
    keyed = node("zip: String  area: I32  day: Date  @key(zip, day, area)")

    assert derive_id(keyed, {"zip": 'a"b é\n', "area": 42, "day": 1}) == '["42","1","a\\"b é\\n"]'


def test_renaming_a_key_property_keeps_ids() -> None:
    before = accept("node A { a: String  b: String  @key(a, b) }")
    after = plan(before, 'node A { z: String @rename_from("a")  b: String  @key(z, b) }').schema.node("A")
    was = before.node("A")
    assert was is not None and after is not None

    assert derive_id(was, {"a": "1", "b": "2"}) == derive_id(after, {"z": "1", "b": "2"}) == '["1","2"]'


@pytest.mark.parametrize("values", [{}, {"name": None}])
def test_a_missing_key_value_is_refused(values: dict[str, KeyValue | None]) -> None:
    with pytest.raises(InvalidRequestError, match="node A is missing a non-null @key value"):
        derive_id(node("name: String @key"), values)


def test_a_key_value_of_another_type_is_refused_with_the_property_named() -> None:
    with pytest.raises(InvalidRequestError, match=r"@key property A\.n expects I32, got 'x'"):
        derive_id(node("n: I32 @key"), {"n": "x"})


@QUICK
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(2.0**-96)
@example(2.0**87)
@example(2.0**-149)
@example(3.4027270141279736e38)
def test_the_text_of_a_32_bit_float_is_the_shortest_that_reads_back(value: float) -> None:
    text = canonicalize(value, PropertyType(Scalar.F32))

    expected = np.format_float_positional(np.float32(value), unique=True, trim="-")
    assert text == ("0" if value == 0 else expected)
    assert struct.pack("<f", float(text)) == struct.pack("<f", value + 0.0)


@QUICK
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_64_bit_float_reads_back_and_has_no_exponent(value: float) -> None:
    text = canonicalize(value, PropertyType(Scalar.F64))

    assert float(text) == value
    assert "e" not in text
    assert not text.endswith(".0")
