"""The guides to the past and to changes run as they stand."""

from pathlib import Path

import pytest
from tests.support.guides import run_guide

GUIDES = Path(__file__).parents[3] / "docs" / "guides"


@pytest.mark.parametrize("name", ["time.md", "changes.md"])
def test_every_example_of_the_guide_runs_in_order(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_guide(GUIDES / name) >= 6
