"""Sidecars: write-ahead notes of graph operations, from which the next apply recovers after a crash."""

from dataclasses import asdict, dataclass
from enum import StrEnum

from omnigraph.cluster import layout, records
from omnigraph.ids import is_ulid
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore

_VERSION = 1
_REQUIRED = {
    "schema_version": int,
    "operation_id": str,
    "started_at": str,
    "kind": str,
    "graph_id": str,
    "graph_uri": str,
    "desired_schema_digest": str,
}
_OPTIONAL = {
    "actor": str,
    "observed_manifest_version": int,
    "expected_manifest_version": int,
    "state_cas_base": str,
    "approval_id": str,
}


class SidecarKind(StrEnum):
    """Kind of graph operation."""

    GRAPH_CREATE = "graph_create"
    SCHEMA_APPLY = "schema_apply"
    GRAPH_DELETE = "graph_delete"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Write-ahead note of one graph operation."""

    operation_id: str  # ULID, also the file name
    started_at: str  # UTC timestamp
    kind: SidecarKind  # create, change or delete
    graph_id: str  # affected graph
    graph_uri: str  # storage address of the graph
    desired_schema_digest: str = ""  # schema after the operation; empty for a deletion
    actor: str | None = None  # who runs the command
    observed_manifest_version: int | None = None  # graph version before the operation
    expected_manifest_version: int | None = None  # graph version after the operation
    state_cas_base: str | None = None  # compare-and-swap token of the ledger it started from
    approval_id: str | None = None  # approval of a deletion

    def to_document(self) -> dict[str, object]:
        """Return the JSON form."""
        document = {"schema_version": _VERSION, **asdict(self), "kind": self.kind.value}
        return {key: value for key, value in document.items() if value is not None}


class Sidecars:
    """Sidecar files of one cluster."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def put(self, sidecar: Sidecar) -> None:
        """Write a sidecar before its operation starts."""
        self._store.put(layout.recovery(sidecar.operation_id), records.to_bytes(sidecar.to_document()))

    def delete(self, sidecar: Sidecar) -> None:
        """Delete a sidecar once the ledger records the operation."""
        self._store.delete(layout.recovery(sidecar.operation_id))

    def read_all(self) -> tuple[list[Sidecar], list[tuple[str, str]]]:
        """Return all sidecars, oldest first, and the paths of unreadable ones with the reason."""
        found, faults = [], []
        for listed in self._store.list(layout.RECOVERIES):
            try:
                found.append(_read(listed.path, self._store.get(listed.path)))
            except ObjectNotFound:
                continue
            except records.RecordFaultError as fault:
                faults.append((listed.path, str(fault)))
        return found, faults


def _read(path: str, body: bytes) -> Sidecar:
    found = records.read(body, required=_REQUIRED, optional=_OPTIONAL)
    name = path.removeprefix(layout.RECOVERIES).removesuffix(".json")
    if found.pop("schema_version") != _VERSION:
        raise records.RecordFaultError("it was written by another release")
    if found["operation_id"] != name or not is_ulid(name) or not layout.is_graph_id(found["graph_id"]):
        raise records.RecordFaultError("its ids are invalid")
    if found["kind"] not in tuple(SidecarKind):
        raise records.RecordFaultError(f"unknown operation '{found['kind']}'")
    return Sidecar(**{**found, "kind": SidecarKind(found["kind"])})
