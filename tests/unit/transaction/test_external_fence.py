"""Graphs whose races are decided outside the object store."""

from pathlib import Path

import pytest
from tests.support.operations import PERSON, insert, new_graph, rows_of

import omnigraph
from omnigraph.api.options import OpenOptions
from omnigraph.errors import FormatError
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write


def _outside(folder: Path) -> Settings:
    return Settings(durability="process", external=f"sqlite://{folder / 'fence.db'}")


def test_a_graph_fenced_outside_is_written_and_read_like_any_other(tmp_path: Path) -> None:
    graph = new_graph(str(tmp_path / "graph"), settings=_outside(tmp_path))

    write(graph, "main", insert(PERSON, {"ada": 1}))
    write(open_root(str(tmp_path / "graph"), settings=_outside(tmp_path)), "main", insert(PERSON, {"bob": 2}))

    assert rows_of(graph, PERSON) == {"ada": 1, "bob": 2}
    assert rows_of(open_root(str(tmp_path / "graph"), read_only=True), PERSON) == {"ada": 1, "bob": 2}


def test_a_writer_that_forgets_the_external_store_is_refused(tmp_path: Path) -> None:
    new_graph(str(tmp_path / "graph"), settings=_outside(tmp_path))

    with pytest.raises(FormatError, match="agree through an external store") as refused:
        open_root(str(tmp_path / "graph"))

    assert refused.value.code == "fence_mismatch"


def test_a_writer_that_brings_an_external_store_to_a_graph_without_one_is_refused(tmp_path: Path) -> None:
    new_graph(str(tmp_path / "graph"), settings=Settings(durability="process"))

    with pytest.raises(FormatError, match="through the object store itself") as refused:
        open_root(str(tmp_path / "graph"), settings=_outside(tmp_path))

    assert refused.value.code == "fence_mismatch"


def test_the_python_api_marks_a_graph_fenced_outside(tmp_path: Path) -> None:
    options = OpenOptions(durability="process", external=f"sqlite://{tmp_path / 'fence.db'}")
    omnigraph.init(tmp_path / "graph", "node Person { name: String @key }", options=options)

    with pytest.raises(FormatError, match="agree through an external store"):
        omnigraph.open(tmp_path / "graph")

    assert omnigraph.open(tmp_path / "graph", options=options).count("Person") == 0
