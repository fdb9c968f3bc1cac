"""The guides to running and to mending a graph run as they stand."""

from pathlib import Path

import pytest
from tests.support.guides import run_guide

GUIDES = Path(__file__).parents[3] / "docs" / "guides"


@pytest.mark.parametrize(("name", "blocks"), [("operate.md", 6), ("recover.md", 2)])
def test_every_example_runs_in_order(name: str, blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_guide(GUIDES / name) == blocks
