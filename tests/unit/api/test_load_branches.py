"""Branches that are made for a load, and what becomes of them when it fails."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.api.load import _created_branch

SCHEMA = "node City { name: String @key }"


def test_a_load_that_fails_takes_back_the_branch_that_was_made_for_it(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        with pytest.raises(ZeroDivisionError), _created_branch(graph._parts, "idea", "main", None):
            raise ZeroDivisionError
        assert "idea" not in graph.branches


def test_a_load_that_fails_takes_no_branch_back_on_which_something_was_written(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        with pytest.raises(ZeroDivisionError), _created_branch(graph._parts, "idea", "main", None):
            graph.write({"City": [{"name": "Ulm"}]}, branch="idea")
            raise ZeroDivisionError
        assert graph.count("City", branch="idea") == 1
