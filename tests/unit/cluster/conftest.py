"""A cluster in a folder of the test's own."""

from pathlib import Path

import pytest
from tests.support.small_cluster import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A cluster that is declared, and no more."""
    return Cluster(tmp_path)


@pytest.fixture
def applied_cluster(cluster: Cluster) -> Cluster:
    """A cluster that is what its configuration says."""
    assert cluster.begin().is_ok
    assert cluster.apply().document["converged"]
    return cluster
