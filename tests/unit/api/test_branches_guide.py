"""The guide to branches runs as it stands."""

from pathlib import Path

import pytest
from tests.support.guides import run_guide

GUIDES = Path(__file__).parents[3] / "docs" / "guides"


def test_every_example_of_the_guide_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_guide(GUIDES / "branches.md") >= 7
