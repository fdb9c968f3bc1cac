"""One graph, open in this process and on a server in a process of its own: what is tested of one holds of the other.

Both are kept for the whole run; every test works on a branch of its own.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.either_library import made_library

import omnigraph
from omnigraph.testing.server import served

_LINES = itertools.count(1)


@pytest.fixture(scope="session")
def open_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[omnigraph.Graph]:
    """A library, open in this process."""
    with omnigraph.open(made_library(tmp_path_factory.mktemp("open"))) as found:
        yield found


@pytest.fixture(scope="session")
def served_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[omnigraph.RemoteGraph]:
    """A library on a server in a process of its own."""
    address = made_library(tmp_path_factory.mktemp("served"))
    with (
        served("--store", address, "--unauthenticated") as server,
        omnigraph.connect(server.url, graph="library") as found,
    ):
        yield found


@pytest.fixture(params=["open", "served"])
def graph(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401  (either of two classes)
    """The library, wherever it is."""
    return request.getfixturevalue(f"{request.param}_library")


@pytest.fixture
def line(graph: omnigraph.Graph | omnigraph.RemoteGraph) -> str:
    """A branch of the test's own."""
    name = f"line-{next(_LINES)}"
    graph.branches.create(name)
    return name
