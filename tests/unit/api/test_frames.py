"""Data frames in and out, with the real libraries."""

from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

import omnigraph
from omnigraph.api.options import OpenOptions

SCHEMA = "node Person { name: String @key age: I32? } edge Knows: Person -> Person { since: I32? }"
PEOPLE: dict[str, list[Any]] = {"name": ["Ada", "Bob", "Cy"], "age": [36, None, 41]}
FRIENDS: dict[str, list[Any]] = {"from": ["Ada", "Bob"], "to": ["Bob", "Cy"], "since": [1999, None]}
ASK = "query q() { match { $p: Person } return { $p.name as name, $p.age as age } order { name } }"


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    return omnigraph.init(tmp_path / "graph", SCHEMA, options=OpenOptions(durability="process"))


@pytest.mark.parametrize("library", [pandas, polars])
def test_frames_are_written_as_they_are(graph: omnigraph.Graph, library: Any) -> None:  # noqa: ANN401  (pandas or polars)
    graph.write(nodes={"Person": library.DataFrame(PEOPLE)}, edges={"Knows": library.DataFrame(FRIENDS)})

    assert graph.query(ASK).to_pylist() == [
        {"name": "Ada", "age": 36},
        {"name": "Bob", "age": None},
        {"name": "Cy", "age": 41},
    ]
    assert graph.count("Knows") == 2


def test_results_become_frames(graph: omnigraph.Graph) -> None:
    graph.write(nodes={"Person": [{"name": "Ada", "age": 36}, {"name": "Bob"}]})
    found = graph.query(ASK)

    assert found.to_polars().to_dict(as_series=False) == {"name": ["Ada", "Bob"], "age": [36, None]}
    frame = found.to_pandas()
    assert list(frame["name"]) == ["Ada", "Bob"]
    assert frame["age"].iloc[0] == 36
    assert frame["age"].isna().tolist() == [False, True]


def test_other_libraries_take_results_through_the_arrow_stream_protocol(graph: omnigraph.Graph) -> None:
    graph.write(nodes={"Person": [{"name": "Ada", "age": 36}]})

    assert polars.DataFrame(graph.query(ASK)).rows() == [("Ada", 36)]
