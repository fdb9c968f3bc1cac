"""Who agreed to what cannot be undone: bound to exactly what they saw, good for one apply."""

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
    """Somebody's word for one change.

    Attributes:
        approval_id: its name.
        resource: what is changed.
        operation: how.
        reason: why that needs somebody's word.
        bound_config_digest: of the configuration they saw.
        approved_by: who.
        created_at: when.
        bound_before_digest: of the resource as it was.
        bound_after_digest: and as it was to be.
        consumed_at: when it was used.
        consumed_by_operation: by what.
    """

    approval_id: str
    resource: str
    operation: str
    reason: str
    bound_config_digest: str
    approved_by: str
    created_at: str
    bound_before_digest: str | None = None
    bound_after_digest: str | None = None
    consumed_at: str | None = None
    consumed_by_operation: str | None = None

    def to_document(self) -> dict[str, object]:
        """The wire form."""
        found = {"schema_version": _VERSION, **asdict(self)}
        return {key: value for key, value in found.items() if value is not None}

    def consumed(self, at: str, operation: str) -> "Approval":
        """The same, used."""
        return replace(self, consumed_at=at, consumed_by_operation=operation)


class Approvals:
    """The approvals of one cluster."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def put(self, approval: Approval) -> None:
        """Store one; a used one takes the place of itself unused."""
        self._store.put(layout.approval(approval.approval_id), records.to_bytes(approval.to_document()))

    def unused(self, used: Mapping[str, object], diagnostics: Diagnostics) -> tuple[Approval, ...]:
        """Those that have not been used.

        Args:
            used: those that the ledger knows to be: it decides, as a death may have come before the file said so.
            diagnostics: gets what cannot be read.

        Returns:
            Oldest first.
        """
        return tuple(
            approval
            for approval in self._all(diagnostics)
            if approval.consumed_at is None and approval.approval_id not in used
        )

    def _all(self, diagnostics: Diagnostics) -> Iterator[Approval]:
        for listed in self._store.list(layout.APPROVALS):
            name = listed.path.removeprefix(layout.APPROVALS).removesuffix(".json")
            try:
                found = records.read(self._store.get(listed.path), required=_REQUIRED, optional=_OPTIONAL)
            except ObjectNotFound:
                continue
            except records.RecordFaultError as fault:
                diagnostics.warning(
                    "approval_stale", listed.path, f"the approval cannot be read, and does not count: {fault}"
                )
                continue
            if found.pop("schema_version") != _VERSION or found["approval_id"] != name or not is_ulid(name):
                diagnostics.warning(
                    "approval_stale", listed.path, "this is no approval of this release, and does not count"
                )
                continue
            yield Approval(**found)
