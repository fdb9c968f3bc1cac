"""The guide to pruning and sweeping runs as it stands."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "prune.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_example_of_the_guide_to_pruning_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == 6
    for found in blocks:
        exec(compile("\n" * text.count("\n", 0, found.start(1)) + found[1], str(GUIDE), "exec"), names)
