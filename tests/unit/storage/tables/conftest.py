"""A root with no tables, on local disk."""

from pathlib import Path

import pytest

from omnigraph.storage.tables.tables import Tables


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the tables lie."""
    return tmp_path / "graph"


@pytest.fixture
def tables(root: Path) -> Tables:
    """The tables of an empty root."""
    return Tables(str(root))
