"""The guide for Python runs as it stands."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_example_of_the_guide_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text(encoding="utf-8")
    blocks = [(text.count("\n", 0, found.start(1)), found[1]) for found in BLOCK.finditer(text)]
    assert len(blocks) >= 12
    names: dict[str, object] = {}
    for line, block in blocks:
        # Blank lines before it, so that a failure points to the line of the guide.
        exec(compile("\n" * line + block, str(GUIDE), "exec"), names)
