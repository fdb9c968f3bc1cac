"""Columns written as JSON mean what the same values mean one by one."""

import json
import math
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.pipeline.export.json_text import json_texts, plain_texts
from omnigraph.storage.json_values import to_json
from omnigraph.storage.layout import INSTANT

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INSTANTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(lambda when: when.replace(tzinfo=UTC))  # noqa: DTZ001  (the strategy wants bounds without a zone)
SINGLE = [
    (pa.string(), TEXTS),
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float64(), st.floats()),
    (pa.float32(), st.floats(width=32)),
    (pa.date32(), st.dates()),
    (INSTANT, INSTANTS.map(lambda when: when.replace(microsecond=when.microsecond // 1000 * 1000))),
    (pa.large_binary(), st.binary(max_size=9)),
]
TYPES = [
    *SINGLE,
    *((pa.list_(kind), st.lists(values, max_size=4)) for kind, values in SINGLE),
    (
        pa.list_(pa.float32(), 3),
        st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
    ),
]


def columns_of(kind: pa.DataType, values: st.SearchStrategy[Any]) -> st.SearchStrategy["pa.Array[Any]"]:
    return st.lists(st.none() | values, max_size=6).map(lambda rows: pa.array(rows, kind))


COLUMNS = st.one_of([columns_of(kind, values) for kind, values in TYPES])


@given(COLUMNS)
def test_a_column_written_as_json_is_read_as_the_values_it_had(column: "pa.Array[Any]") -> None:
    texts = json_texts(column)

    assert texts.null_count == 0
    assert [json.loads(str(text)) for text in texts.to_pylist()] == to_json(column)


@given(COLUMNS)
def test_a_part_of_a_column_is_written_like_the_whole(column: "pa.Array[Any]") -> None:
    assert json_texts(column.slice(1)).to_pylist() == json_texts(column).to_pylist()[1:]


def test_whole_floats_keep_their_point() -> None:
    assert json_texts(pa.array([1.0, -3.0, 0.5, 1e300, 0.0])).to_pylist() == ["1.0", "-3.0", "0.5", "1e+300", "0.0"]


def test_every_control_character_is_escaped() -> None:
    text = "".join(map(chr, range(32))) + '"\\é\u2028'

    written = str(json_texts(pa.array([text]))[0].as_py())

    assert json.loads(written) == text
    assert "\n" not in written


@pytest.mark.parametrize(
    ("column", "plain"),
    [
        (pa.array(["a\nb", None]), ["a\nb", None]),
        (pa.array([1.0, math.inf]), ["1.0", "Infinity"]),
        (pa.array([date(2024, 1, 31)]), ["2024-01-31"]),
        (pa.array([[1, 2], None], pa.list_(pa.int32())), ["[1,2]", None]),
        (pa.array([True, None]), ["true", None]),
        (pa.array([b"\x00"], pa.large_binary()), ["base64:AA=="]),
    ],
)
def test_plain_texts_have_no_quotes(column: "pa.Array[Any]", plain: list[str | None]) -> None:
    assert plain_texts(column).to_pylist() == plain
