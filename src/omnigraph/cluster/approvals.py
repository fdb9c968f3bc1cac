"""Approvals of irreversible changes: bound to one configuration and state, valid for one apply."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from omnigraph.cluster import layout, records
from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.ids import is_ulid
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore

_VERSION = 1
_REQUIRED = {
    "schema_version": int,
    "approval_id": str,
    "resource": str,
    "operation": str,
    "reason": str,
    "bound_config_digest": str,
    "approved_by": str,
    "created_at": str,
}
_OPTIONAL = {"bound_before_digest": str, "bound_after_digest": str, "consumed_at": str, "consumed_by_operation": str}


@dataclass(frozen=True, slots=True)
class Approval:
    """Consent to one change."""

    approval_id: str  # ULID, also the file name
    resource: str  # address of the resource to change
    operation: str  # approved operation, such as `delete`
    reason: str  # why the change needs an approval
    bound_config_digest: str  # configuration it was given for
    approved_by: str  # actor who approved
    created_at: str  # UTC timestamp
    bound_before_digest: str | None = None  # resource digest before the change
    bound_after_digest: str | None = None  # resource digest after the change
    consumed_at: str | None = None  # UTC timestamp of the apply that used it
    consumed_by_operation: str | None = None  # id of the apply that used it

    def to_document(self) -> dict[str, object]:
        """Return the JSON form."""
        document = {"schema_version": _VERSION, **asdict(self)}
        return {key: value for key, value in document.items() if value is not None}

    def consumed(self, at: str, operation: str) -> "Approval":
        """Return a copy marked as used."""
        return replace(self, consumed_at=at, consumed_by_operation=operation)


class Approvals:
    """Approval files of one cluster."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def put(self, approval: Approval) -> None:
        """Store an approval; a used one replaces its unused version."""
        self._store.put(layout.approval(approval.approval_id), records.to_bytes(approval.to_document()))

    def unused(self, used: Mapping[str, object], diagnostics: Diagnostics) -> tuple[Approval, ...]:
        """Return the approvals that have not been used, oldest first, and warn of unreadable ones."""
        return tuple(
            approval
            for approval in self._read_all(diagnostics)
            if approval.consumed_at is None and approval.approval_id not in used
        )

    def _read_all(self, diagnostics: Diagnostics) -> Iterator[Approval]:
        for listed in self._store.list(layout.APPROVALS):
            name = listed.path.removeprefix(layout.APPROVALS).removesuffix(".json")
            try:
                found = records.read(self._store.get(listed.path), required=_REQUIRED, optional=_OPTIONAL)
            except ObjectNotFound:
                continue
            except records.RecordFaultError as fault:
                diagnostics.warning(
                    "approval_stale", listed.path, f"the approval cannot be read and is ignored: {fault}"
                )
                continue
            if found.pop("schema_version") != _VERSION or found["approval_id"] != name or not is_ulid(name):
                diagnostics.warning("approval_stale", listed.path, "not an approval of this release; it is ignored")
                continue
            yield Approval(**found)
