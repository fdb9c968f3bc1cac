"""The guides to Spark run as they stand."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.guides import run_guide

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


@pytest.mark.parametrize("name", ["spark.md", "analytics.md", "load.md", "spark-query.md"])
def test_every_example_of_the_guide_runs_in_order(
    spark: SparkSession, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_guide(GUIDES / name) >= 3
