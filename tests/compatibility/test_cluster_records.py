"""Documents of a cluster, as the first release wrote them: every later one reads them."""

from omnigraph.cluster import layout
from omnigraph.cluster.approvals import Approvals
from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.cluster.ledger import Ledger
from omnigraph.cluster.lock import Lock, LockRecord
from omnigraph.cluster.sidecars import Sidecar, SidecarKind, Sidecars
from omnigraph.ids import UlidSource
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.clock import ManualClock

ULID = "01J9ZB6V3N4Q5R6S7T8V9W0X1Y"
DIGEST = "2289f92af815ed8f678126735fd6ab5dda51eba02f34bc96fea4911fc076c6a7"
STATE = f"""{{
  "version": 1,
  "state_revision": 3,
  "applied_revision": {{
    "config_digest": "{DIGEST}",
    "resources": {{
      "graph.people": {{"digest": "{DIGEST}", "embedding_provider": "default",
                        "external_blob_policy": {{"allow": [{{"base": "s3://b/p/", "scope": "server_safe"}}]}}}},
      "policy.base": {{"digest": "{DIGEST}", "applies_to": ["people"]}},
      "provider.embedding.default": {{"digest": "{DIGEST}", "embedding_profile": {{"kind": "mock"}}}},
      "query.people.find": {{"digest": "{DIGEST}"}},
      "schema.people": {{"digest": "{DIGEST}"}}
    }}
  }},
  "resource_statuses": {{"schema.people": {{"status": "drifted", "message": "another"}}}},
  "approval_records": {{}},
  "recovery_records": {{}},
  "observations": {{"graph.people": {{"schema_digest": "{DIGEST}", "graph_manifest_version": 7}}}}
}}
"""
LOCK = f'{{"version": 1, "lock_id": "{ULID}", "operation": "apply", "created_at": "2026-01-01T00:00:00Z", "pid": 4711}}'
APPROVAL = f"""{{"schema_version": 1, "approval_id": "{ULID}", "resource": "graph.people", "operation": "delete",
"reason": "it goes", "bound_config_digest": "{DIGEST}", "bound_before_digest": "{DIGEST}", "approved_by": "act-boss",
"created_at": "2026-01-01T00:00:00Z"}}"""
SIDECAR = f"""{{"schema_version": 1, "operation_id": "{ULID}", "started_at": "2026-01-01T00:00:00Z", "actor": "act-op",
"kind": "schema_apply", "graph_id": "people", "graph_uri": "/x/graphs/people.omni", "observed_manifest_version": 3,
"expected_manifest_version": 4, "desired_schema_digest": "{DIGEST}", "state_cas_base": "{DIGEST}"}}"""


def test_the_ledger_of_version_1_is_read() -> None:
    store = MemoryStore()
    store.put(layout.STATE, STATE.encode())
    state = Ledger(store).read().state
    assert (state.revision, state.config_digest, state.graphs()) == (3, DIGEST, ("people",))
    assert state.resources["policy.base"]["applies_to"] == ["people"]
    assert state.observations["graph.people"]["graph_manifest_version"] == 7


def test_the_lock_of_version_1_is_read() -> None:
    store = MemoryStore()
    store.put(layout.LOCK, LOCK.encode())
    clock = ManualClock()
    assert Lock(store, clock=clock, ids=UlidSource(clock)).read() == LockRecord(
        ULID, "apply", "2026-01-01T00:00:00Z", 4711
    )


def test_the_approval_of_version_1_is_read() -> None:
    store = MemoryStore()
    store.put(layout.approval(ULID), APPROVAL.encode())
    (approval,) = Approvals(store).unused({}, Diagnostics())
    assert (approval.resource, approval.approved_by, approval.bound_before_digest) == (
        "graph.people",
        "act-boss",
        DIGEST,
    )


def test_the_note_of_version_1_is_read() -> None:
    store = MemoryStore()
    store.put(layout.recovery(ULID), SIDECAR.encode())
    (note,), faults = Sidecars(store).read_all()
    assert faults == []
    assert note == Sidecar(
        ULID,
        "2026-01-01T00:00:00Z",
        SidecarKind.SCHEMA_APPLY,
        "people",
        "/x/graphs/people.omni",
        DIGEST,
        "act-op",
        observed_manifest_version=3,
        expected_manifest_version=4,
        state_cas_base=DIGEST,
    )
