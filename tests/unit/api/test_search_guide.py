"""The guide to search runs as it stands."""

from pathlib import Path

import pytest
from tests.support.guides import run_guide

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "search.md"


def test_every_example_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # The guide chooses a provider; what it sets is put back afterwards.
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    assert run_guide(GUIDE) == 5
