"""What is left of a cluster's commands when somebody stops them, or only looks."""

import pytest
from tests.support.small_cluster import Cluster, codes

from omnigraph.cluster.commands import plan
from omnigraph.cluster.session import Environment
from omnigraph.storage.object_store import ObjectStore, StoreRefused


def test_whoever_interrupts_a_command_gives_the_lock_back(
    applied_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("omnigraph.cluster.commands.make_plan", interrupted)
    with pytest.raises(KeyboardInterrupt):
        applied_cluster.plan()
    assert not (applied_cluster.folder / "__cluster" / "lock.json").exists()


def test_the_ledger_is_looked_at_and_unlocked_whatever_is_wrong_with_the_files(applied_cluster: Cluster) -> None:
    applied_cluster.write("people.gq", "query {")
    told = applied_cluster.status()
    assert told.is_ok
    assert told.document["state_observations"]["resource_count"] == 4
    assert codes(applied_cluster.force_unlock("x")) == {"state_lock_missing"}
    assert codes(applied_cluster.plan()) == {"query_parse_error"}


def test_what_is_no_configuration_is_told_by_every_command(cluster: Cluster) -> None:
    cluster.write("cluster.yaml", "version: 9\n")
    for command in (cluster.plan, cluster.apply, cluster.status, cluster.refresh, cluster.begin, cluster.validate):
        assert codes(command()) == {"unsupported_cluster_config_version"}
    for told in (cluster.approve("graph.people"), cluster.force_unlock("x")):
        assert codes(told) == {"unsupported_cluster_config_version"}


def test_a_storage_that_cannot_be_used_is_told_by_every_command(cluster: Cluster) -> None:
    def refused(uri: str) -> ObjectStore:
        raise StoreRefused(f"no store at {uri}")

    outcome = plan(cluster.folder, environment=Environment(refused, cluster.clock, cluster.environment.ids))
    assert codes(outcome) == {"storage_root_invalid"}
    assert outcome.document["state_observations"] == {}


def test_a_ledger_that_is_damaged_is_never_written_over(applied_cluster: Cluster) -> None:
    path = applied_cluster.folder / "__cluster" / "state.json"
    path.write_text("{ half")
    for command in (
        applied_cluster.plan,
        applied_cluster.apply,
        applied_cluster.status,
        applied_cluster.refresh,
        applied_cluster.begin,
    ):
        assert codes(command()) == {"invalid_state_json"}
    assert path.read_text() == "{ half"


def test_work_that_was_left_is_told_by_whoever_looks(applied_cluster: Cluster) -> None:
    folder = applied_cluster.folder / "__cluster" / "recoveries"
    folder.mkdir(exist_ok=True)
    (folder / "01J9ZB6V3N4Q5R6S7T8V9W0X1Y.json").write_text("{")
    assert codes(applied_cluster.status()) == {"recovery_sidecar_read_error"}
    refused = applied_cluster.apply()
    assert codes(refused, "error") == {"recovery_sidecar_read_error"}
    assert refused.document["changes"] == []
