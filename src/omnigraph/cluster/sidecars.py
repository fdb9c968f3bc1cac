"""What is under way with a graph, noted before it begins: whoever comes after a death finds it here."""

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
    """What is done."""

    GRAPH_CREATE = "graph_create"
    SCHEMA_APPLY = "schema_apply"
    GRAPH_DELETE = "graph_delete"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One note.

    Attributes:
        operation_id: its name.
        started_at: when.
        kind: what is done.
        graph_id: to which graph.
        graph_uri: where that is.
        desired_schema_digest: of the schema it is to have; empty where it is deleted.
        actor: by whom.
        observed_manifest_version: the graph's version before.
        expected_manifest_version: and after.
        state_cas_base: of the ledger it began from.
        approval_id: on whose word.
    """

    operation_id: str
    started_at: str
    kind: SidecarKind
    graph_id: str
    graph_uri: str
    desired_schema_digest: str = ""
    actor: str | None = None
    observed_manifest_version: int | None = None
    expected_manifest_version: int | None = None
    state_cas_base: str | None = None
    approval_id: str | None = None

    def to_document(self) -> dict[str, object]:
        """The wire form."""
        found = {"schema_version": _VERSION, **asdict(self), "kind": self.kind.value}
        return {key: value for key, value in found.items() if value is not None}


class Sidecars:
    """The notes of one cluster."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def put(self, sidecar: Sidecar) -> None:
        """Note what is about to begin."""
        self._store.put(layout.recovery(sidecar.operation_id), records.to_bytes(sidecar.to_document()))

    def delete(self, sidecar: Sidecar) -> None:
        """It is done, and the ledger says so."""
        self._store.delete(layout.recovery(sidecar.operation_id))

    def read_all(self) -> tuple[list[Sidecar], list[tuple[str, str]]]:
        """Every note there is, oldest first, and those that cannot be read, with the reason."""
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
        raise records.RecordFaultError("it is of another release")
    if found["operation_id"] != name or not is_ulid(name) or not layout.is_graph_id(found["graph_id"]):
        raise records.RecordFaultError("its names are not what they should be")
    if found["kind"] not in tuple(SidecarKind):
        raise records.RecordFaultError(f"'{found['kind']}' is nothing this release does")
    return Sidecar(**{**found, "kind": SidecarKind(found["kind"])})
