"""The same cluster in a bucket."""

from pathlib import Path

import pytest
from tests.support.small_cluster import QUERIES, Cluster, codes

from omnigraph.api.open import open as open_graph
from omnigraph.cluster.apply import apply
from omnigraph.cluster.serving import load_applied
from omnigraph.storage.object_stores.s3 import S3Store

BUCKET = "omnigraph-tests"


@pytest.mark.s3
@pytest.mark.usefixtures("s3_environment")
def test_a_cluster_in_a_bucket_comes_about_is_served_and_goes(
    tmp_path: Path, s3_store: S3Store, s3_prefix: str
) -> None:
    root = f"s3://{BUCKET}/{s3_prefix}"
    cluster = Cluster(tmp_path)
    cluster.declare(storage=root)
    assert cluster.begin().is_ok
    assert codes(cluster.begin()) == {"state_already_exists"}
    assert cluster.apply().document["converged"]
    # Another folder with the same files is the same cluster, and has nothing to do.
    (tmp_path / "other").mkdir()
    other = Cluster(tmp_path / "other")
    other.declare(storage=root)
    assert apply(other.folder).document["changes"] == []
    (people,) = load_applied(root).graphs
    assert (people.quarantine, people.uri) == (None, f"{root}/graphs/people.omni")
    assert people.queries == {"find": QUERIES}
    with open_graph(people.uri) as graph:
        graph.mutate('query q() { insert Person { name: "Ada" } }')
    cluster.declare(storage=root, graphs={}, policies={})
    assert cluster.approve("graph.people").is_ok
    assert cluster.apply().document["converged"]
    assert list(s3_store.list("graphs/")) == []
