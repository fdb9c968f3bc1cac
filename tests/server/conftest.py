"""Servers for tests: one with a small library for most, and any other on demand."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import omnigraph
from omnigraph.testing.served import RunningServer, served

LIBRARY = """
node Author { name: String @key  born: Date? }
node Book { isbn: String @key  title: String @index  pages: I32?  cover: Blob? }
edge Wrote: Author -> Book { year: I32? }
"""
ROWS = """\
{"type":"Author","data":{"name":"Le Guin","born":"1929-10-21"}}
{"type":"Author","data":{"name":"Butler"}}
{"type":"Book","data":{"isbn":"0-1","title":"The Dispossessed","pages":341}}
{"type":"Book","data":{"isbn":"0-2","title":"Kindred","pages":264}}
{"edge":"Wrote","from":"Le Guin","to":"0-1","data":{"year":1974}}
"""


def make_library(folder: Path) -> str:
    """A small library; its address."""
    address = str(folder / "library")
    with omnigraph.init(address, LIBRARY) as graph:
        graph.load(ROWS.encode(), mode="append", engine="local", format="jsonl")
    return address


@pytest.fixture
def library(tmp_path: Path) -> str:
    """The address of a small library of the test's own."""
    return make_library(tmp_path)


@pytest.fixture(scope="session")
def library_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """An open server of one small library, shared: write only to branches and rows of your own."""
    address = make_library(tmp_path_factory.mktemp("served"))
    with served("--store", address, "--unauthenticated") as server:
        yield server


@pytest.fixture
def client(library_server: RunningServer) -> Iterator[httpx.Client]:
    """A client of the shared server, at its graph `library`."""
    with library_server.client() as made:
        made.base_url = made.base_url.join("/graphs/library/")
        yield made
