"""Results: Arrow inside, everything else a view of it."""

import json
import sys
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from omnigraph import InvalidRequestError, Result

TABLE = pa.table(
    {
        "p.name": pa.array(["Ada", "Bob", None]),
        "at": pa.array([datetime(2024, 1, 31, 10, 0, 0, 123_000, tzinfo=UTC), None, None], pa.timestamp("ms", "UTC")),
        "born": pa.array([date(1815, 12, 10), None, None]),
        "score": pa.array([0.5, float("nan"), None]),
        "tags": pa.array([["a"], [], None]),
    }
)


def result(table: pa.Table = TABLE, branch: str | None = "main") -> Result:
    return Result(table, query_name="people", branch=branch, commit="01C")


def test_rows_are_dictionaries_of_json_values() -> None:
    assert result().to_pylist() == [
        {"p.name": "Ada", "at": "2024-01-31T10:00:00.123Z", "born": "1815-12-10", "score": 0.5, "tags": ["a"]},
        {"p.name": "Bob", "at": None, "born": None, "score": "NaN", "tags": []},
        {"p.name": None, "at": None, "born": None, "score": None, "tags": None},
    ]
    assert list(result()) == result().to_pylist()
    assert json.loads(json.dumps(result().to_pylist(), allow_nan=False)) == result().to_pylist()


def test_a_result_knows_its_columns_and_its_length() -> None:
    assert result().columns == ["p.name", "at", "born", "score", "tags"]
    assert len(result()) == result().row_count == 3
    assert result().to_arrow() is TABLE


def test_a_result_is_an_arrow_stream() -> None:
    plain = TABLE.drop_columns(["score"])  # it holds a NaN, which equals nothing
    assert pa.table(result(plain)).equals(plain)
    assert pa.RecordBatchReader.from_stream(result(plain)).read_all().equals(plain)


def test_the_whole_result_is_one_document() -> None:
    small = result(TABLE.select(["p.name"]).slice(0, 1))
    assert small.to_json() == {
        "query_name": "people",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 1,
        "columns": ["p.name"],
        "rows": [{"p.name": "Ada"}],
        "graph_commit_id": "01C",
    }
    at_a_commit = result(branch=None).to_json()
    assert at_a_commit["target"] == {"branch": None, "snapshot": "01C"}


def test_a_notebook_shows_the_first_rows_and_harms_nobody() -> None:
    table = pa.table({"<b>": [f"<script>{number}</script>" for number in range(120)], "n": [None] * 120})
    shown = result(table)._repr_html_()
    assert shown.count("<tr>") == 1 + 50
    assert "<th>&lt;b&gt;</th>" in shown
    assert "<td>&lt;script&gt;0&lt;/script&gt;</td><td></td>" in shown
    assert "120 rows (70 more not shown)" in shown
    assert "more not shown" not in result()._repr_html_()


def test_a_result_says_what_it_is() -> None:
    assert repr(result()) == "<Result of people: 3 rows of (p.name, at, born, score, tags) at commit 01C>"


def test_a_result_without_rows_keeps_its_columns() -> None:
    empty = result(TABLE.slice(0, 0))
    assert (len(empty), empty.columns, empty.to_pylist()) == (0, TABLE.column_names, [])


def test_two_columns_of_one_name_are_told_where_a_frame_cannot_hold_them() -> None:
    twice = result(pa.Table.from_arrays([pa.array([1]), pa.array(["a"])], names=["x", "x"]))
    with pytest.raises(InvalidRequestError, match="two columns are called 'x'; give each a name of its own"):
        twice.to_polars()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_frame_library_that_is_not_there_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidRequestError, match=f"{package} is not installed"):
        getattr(result(), f"to_{package}")()
