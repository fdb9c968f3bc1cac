"""The same contract over sessions of other kinds: Spark Connect, and a cluster of processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADS = [
    "tests/contract/loads/test_load_rules.py::test_both_engines_accept_publish_and_refuse_alike",
    "tests/spark/test_spark_loads.py",
]


@pytest.mark.torture
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("kind", ["connect", "cluster"])
def test_loads_keep_their_contract(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *LOADS],
        cwd=ROOT,
        env=os.environ | {"OMNIGRAPH_TEST_SPARK": kind},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5_000:]
