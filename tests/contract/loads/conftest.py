"""Every engine that loads files, each asked the same."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.load_lines import SCHEMA

import omnigraph
from omnigraph import Graph, LoadResult, limits


@pytest.fixture(params=["local", "spark", pytest.param("spark throughout", marks=pytest.mark.torture)])
def options(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """How an engine is chosen."""
    if request.param == "local":
        return {"engine": "local"}
    if request.param == "spark throughout":  # nothing is loaded by the driver alone, however little it is
        monkeypatch.setattr(limits, "LOAD_NEAR_BYTES", -1)
    return {"engine": "spark", "spark": request.getfixturevalue("spark")}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    """An empty graph."""
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        yield graph


@pytest.fixture
def load(graph: Graph, options: Mapping[str, Any]) -> Callable[..., LoadResult]:
    """Loads lines, or whatever is given, into the graph."""

    def run(*lines: str, data: object = None, mode: str = "append", **more: object) -> LoadResult:
        given = "\n".join(lines).encode() if data is None else data
        said: dict[str, Any] = {**options, **more}
        return graph.load(given, mode=mode, **said)

    return run
