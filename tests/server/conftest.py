"""Servers for tests: one with a small library for most, and any other on demand."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient
from tests.support.served_here import LIBRARY, ROWS, InProcess

import omnigraph
from omnigraph.testing.server import RunningServer, served


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


@pytest.fixture
def serve() -> Iterator[InProcess]:
    """Makes servers in this process."""
    made = InProcess()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shelf() -> Iterator[TestClient]:
    """A client of one library in this process, for tests that only read, or write where nobody else looks."""
    made = InProcess()
    yield made()
    made.close()
