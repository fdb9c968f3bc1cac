"""The guides to Spark run as they stand."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["spark.md", "analytics.md", "load.md"])
def test_every_example_of_the_guide_runs_in_order(
    spark: SparkSession, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (GUIDES / name).read_text(encoding="utf-8")
    names: dict[str, object] = {}
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) >= 3
    for block in blocks:
        # Blank lines before it, so that a failure points to the line of the guide.
        exec(compile("\n" * text.count("\n", 0, block.start(1)) + block[1], name, "exec"), names)
