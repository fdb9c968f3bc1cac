"""The guides run as they stand."""

import re
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[3] / "docs" / "guides"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_guide(name: str) -> int:
    """Run every example in order; returns how many there were."""
    path = GUIDES / name
    text = path.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    found = list(BLOCK.finditer(text))
    for block in found:
        # Blank lines before it, so that a failure points to the line of the guide.
        exec(compile("\n" * text.count("\n", 0, block.start(1)) + block[1], str(path), "exec"), names)
    return len(found)


def test_every_example_of_the_guide_to_export_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert run_guide("export.md") >= 3
