"""What a command says where something is in its way that seldom is; every code where it is due."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.small_cluster import QUERIES, SCHEMA, Cluster, codes, made_of

import omnigraph
from omnigraph.cluster import layout
from omnigraph.cluster.diagnostics import Outcome
from omnigraph.cluster.serving import load_applied
from omnigraph.cluster.sidecars import Sidecar, SidecarKind
from omnigraph.errors import InvalidRequestError
from omnigraph.failpoints import Crash
from omnigraph.storage.object_stores.forwarding import RequestKind, T
from omnigraph.storage.object_stores.open import open_store
from omnigraph.testing.faults import Fault, Faults
from omnigraph.testing.stores import FaultyStore

GROWN = SCHEMA.replace("}", " age: I32? }")
NONE: dict[str, dict[str, object]] = {"graphs": {}, "policies": {}}


def failing(
    cluster: Cluster,
    command: Callable[[], Outcome],
    fault: Fault,
    *,
    kind: RequestKind | None = None,
    path_part: str = "",
    times: int = 1_000,
) -> Outcome:
    """A command on a store that fails where a test says."""
    faults, environment = Faults(), cluster.environment
    faults.arm(fault, kind=kind, path_part=path_part, times=times)
    cluster.environment = replace(environment, stores=lambda uri: FaultyStore(environment.stores(uri), faults))
    try:
        return command()
    finally:
        cluster.environment = environment


def people(cluster: Cluster) -> Path:
    return cluster.folder / layout.graph_folder("people")


# --- what is applied --------------------------------------------------------------------------------------------------


def test_a_graph_that_is_gone_already_is_deleted_without_ado(applied_cluster: Cluster) -> None:
    applied_cluster.declare(**NONE)
    assert applied_cluster.approve("graph.people").is_ok
    shutil.rmtree(people(applied_cluster))
    outcome = applied_cluster.apply()
    assert codes(outcome) == {"graph_delete_skipped"}
    assert outcome.document["converged"]


def test_a_graph_that_somebody_still_reads_is_not_deleted(applied_cluster: Cluster) -> None:
    applied_cluster.declare(**NONE)
    assert applied_cluster.approve("graph.people").is_ok
    store = open_store(str(people(applied_cluster)), durability="process")
    with omnigraph.open(store) as graph, graph.lease(seconds=600) as snapshot:
        outcome = applied_cluster.apply()
        assert codes(outcome, "error") == {"graph_delete_export_in_progress"}
        assert snapshot.commit in outcome.document["diagnostics"][0]["message"]
        assert made_of(outcome)["graph.people"] == "blocked"
        assert snapshot.count("Person") == 0, "it is still there"
    assert applied_cluster.apply().document["converged"]
    assert [each for each in people(applied_cluster).rglob("*") if each.is_file()] == []


def test_a_graph_that_is_too_damaged_to_tell_who_reads_it_can_be_deleted(applied_cluster: Cluster) -> None:
    applied_cluster.declare(**NONE)
    assert applied_cluster.approve("graph.people").is_ok
    (people(applied_cluster) / "__format.json").write_text("{")
    assert applied_cluster.apply().document["converged"]
    assert [each for each in people(applied_cluster).rglob("*") if each.is_file()] == []


def test_a_graph_of_which_something_stays_is_said_to_be_left(applied_cluster: Cluster) -> None:
    class Stubborn(FaultyStore):
        def delete_prefix(self, prefix: str) -> None:
            """Delete nothing."""

    applied_cluster.declare(**NONE)
    assert applied_cluster.approve("graph.people").is_ok
    environment = applied_cluster.environment
    applied_cluster.environment = replace(environment, stores=lambda uri: Stubborn(environment.stores(uri)))
    assert codes(applied_cluster.apply(), "error") == {"graph_delete_incomplete"}
    assert codes(applied_cluster.apply(), "error") == {"graph_delete_incomplete"}, "of one that was begun before, too"
    applied_cluster.environment = environment
    assert applied_cluster.apply().document["converged"]


def test_a_schema_that_the_graph_has_already_is_taken_as_applied(applied_cluster: Cluster) -> None:
    store = open_store(str(people(applied_cluster)), durability="process")
    with omnigraph.open(store) as graph:
        graph.schema_apply(GROWN)
        before = graph.snapshot().record.number
    applied_cluster.write("people.pg", GROWN)
    outcome = applied_cluster.apply()
    assert codes(outcome) == {"schema_apply_skipped"}
    assert outcome.document["converged"]
    with omnigraph.open(store) as graph:
        assert graph.snapshot().record.number == before


@pytest.mark.parametrize(
    ("file", "text", "address"),
    [
        ("people.pg", SCHEMA + "\n", "schema.people"),
        ("people.gq", QUERIES + "\n", "query.people.find"),
        ("base.policy.yaml", "version: 1\n", "policy.base"),
    ],
)
def test_a_file_that_is_edited_while_it_is_applied_is_not_applied(
    cluster: Cluster, file: str, text: str, address: str
) -> None:
    assert cluster.begin().is_ok
    environment = cluster.environment

    class Editing(FaultyStore):
        def put_if_absent(self, path: str, body: bytes) -> None:
            super().put_if_absent(path, body)
            if path == layout.LOCK:  # what is to be done is known, and nothing is done yet
                cluster.write(file, text)

    cluster.environment = replace(environment, stores=lambda uri: Editing(environment.stores(uri)))
    outcome = cluster.apply()
    assert codes(outcome, "error") >= {"resource_content_changed"}
    assert address not in cluster.state()["applied_revision"]["resources"]
    assert not [path for path in cluster.files("resources") if text in path.read_text()]
    cluster.environment = environment
    assert cluster.apply().document["converged"]


def test_a_graph_that_cannot_be_looked_at_once_it_is_made_is_said_to_be_incomplete(cluster: Cluster) -> None:
    assert cluster.begin().is_ok
    environment = cluster.environment

    class Fading(Faults):
        def around(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
            """Let nobody see the graph any more, once it is made."""
            found = super().around(kind, path, send)
            if path.startswith("__manifest/log/") and kind is RequestKind.PUT_IF_ABSENT:
                self.arm(Fault.FAIL_BEFORE, kind=RequestKind.GET, path_part="__format", times=1_000)
            return found

    fading = Fading()
    cluster.environment = replace(environment, stores=lambda uri: FaultyStore(environment.stores(uri), fading))
    outcome = cluster.apply()
    assert codes(outcome, "error") == {"graph_create_incomplete"}
    cluster.environment = environment
    assert cluster.apply().document["converged"]


def test_steps_of_a_schema_that_cannot_be_told_are_said_to_be_unknown(applied_cluster: Cluster) -> None:
    applied_cluster.write("people.pg", GROWN)
    outcome = failing(
        applied_cluster, applied_cluster.plan, Fault.FAIL_BEFORE, kind=RequestKind.GET, path_part="__format"
    )
    assert codes(outcome) == {"schema_preview_unavailable"}
    assert outcome.is_ok


def test_a_text_that_cannot_be_stored_is_not_applied(applied_cluster: Cluster) -> None:
    applied_cluster.write("people.gq", QUERIES + "\n")
    outcome = failing(applied_cluster, applied_cluster.apply, Fault.NO_SPACE, path_part="resources/query")
    assert codes(outcome, "error") == {"resource_payload_write_error"}
    assert applied_cluster.apply().document["converged"]


def test_a_stored_text_that_cannot_be_read_is_told_from_one_that_is_lost(applied_cluster: Cluster) -> None:
    outcome = failing(
        applied_cluster, applied_cluster.status, Fault.FAIL_BEFORE, kind=RequestKind.GET, path_part="resources/query"
    )
    assert codes(outcome) == {"catalog_payload_read_error"}


# --- approvals, notes and the lock ------------------------------------------------------------------------------------


def test_an_approval_that_cannot_be_stored_counts_for_nothing(applied_cluster: Cluster) -> None:
    applied_cluster.declare(**NONE)
    outcome = failing(
        applied_cluster, lambda: applied_cluster.approve("graph.people"), Fault.NO_SPACE, path_part="approvals"
    )
    assert codes(outcome, "error") == {"approval_write_error"}
    assert "approval_required" in codes(applied_cluster.apply())


def test_what_was_done_before_a_death_is_written_down_and_said_to_be(cluster: Cluster) -> None:
    assert cluster.begin().is_ok
    with pytest.raises(Crash):
        failing(cluster, cluster.apply, Fault.CRASH_BEFORE, path_part="revisions/")
    assert "actual_applied_state_pending" in codes(cluster.refresh(), "warning")
    outcome = cluster.apply()
    assert "cluster_recovery_rolled_forward" in codes(outcome, "warning")
    assert outcome.document["converged"]


def test_a_graph_that_nobody_here_made_is_left_as_it_is(cluster: Cluster) -> None:
    assert cluster.begin().is_ok
    (cluster.folder / "graphs").mkdir()
    omnigraph.init(str(people(cluster)), "node Other { name: String @key }\n").close()
    note = Sidecar(
        "01J9ZB6V3N4Q5R6S7T8V9W0X1Y",
        "2026-01-01T00:00:00Z",
        SidecarKind.GRAPH_CREATE,
        "people",
        str(people(cluster)),
        "0" * 64,
        None,
    )
    path = cluster.folder / layout.recovery(note.operation_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(note.to_document()))
    assert "cluster_recovery_unattributed" in codes(cluster.apply(), "warning")


def test_a_note_that_cannot_be_cleared_away_is_cleared_by_the_next_apply(cluster: Cluster) -> None:
    assert cluster.begin().is_ok
    outcome = failing(cluster, cluster.apply, Fault.NO_SPACE, kind=RequestKind.DELETE, path_part="recoveries/")
    assert codes(outcome) == {"recovery_sidecar_cleanup_failed"}
    assert outcome.is_ok
    assert cluster.apply().document["converged"]
    assert cluster.files("recoveries") == []


def test_a_lock_that_cannot_be_read_is_told_and_nothing_is_done(applied_cluster: Cluster) -> None:
    before = applied_cluster.state()
    applied_cluster.write("people.gq", QUERIES + "\n")
    outcome = failing(
        applied_cluster, applied_cluster.apply, Fault.FAIL_BEFORE, kind=RequestKind.GET, path_part="lock.json"
    )
    assert "state_lock_read_error" in codes(outcome)
    assert applied_cluster.state() == before


# --- files and servers ------------------------------------------------------------------------------------------------


def test_a_policy_whose_file_is_not_there_is_told(cluster: Cluster) -> None:
    (cluster.folder / "base.policy.yaml").unlink()
    assert codes(cluster.validate()) == {"policy_file_missing"}


def test_a_policy_that_is_for_nobody_knows_whom_is_told(applied_cluster: Cluster) -> None:
    state = applied_cluster.state()
    del state["applied_revision"]["resources"]["policy.base"]["applies_to"]
    (applied_cluster.folder / layout.STATE).write_text(json.dumps(state))
    shutil.rmtree(applied_cluster.folder / layout.REVISIONS)
    with pytest.raises(InvalidRequestError, match="people: policy_bindings_missing: the ledger has no bindings of"):
        load_applied(applied_cluster.folder)
