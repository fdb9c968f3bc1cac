"""Contents of the ledger: what was applied to a cluster."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.cluster import addresses, digests, layout
from omnigraph.cluster.addresses import Kind

VERSION = 1


class Status(StrEnum):
    """Condition of a resource."""

    PENDING = "pending"
    PLANNED = "planned"
    APPLYING = "applying"
    APPLIED = "applied"
    DRIFTED = "drifted"
    BLOCKED = "blocked"
    ERROR = "error"


class LedgerFaultError(Exception):
    """Ledger cannot be read or written; the code is that of a diagnostic."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class State:
    """Applied state of a cluster."""

    revision: int = 0  # revision number of the ledger
    config_digest: str | None = None  # configuration that was applied completely; None if none was yet
    resources: Mapping[str, Entry] = field(default_factory=dict)  # applied resources by address
    statuses: Mapping[str, Entry] = field(default_factory=dict)  # condition by address
    approvals: Mapping[str, Entry] = field(default_factory=dict)  # used approvals by id
    recoveries: Mapping[str, Entry] = field(default_factory=dict)  # recovered operations by id
    # last observed schema and version of the graphs, by address
    observations: Mapping[str, Entry] = field(default_factory=dict)

    @property
    def digests(self) -> dict[str, str]:
        """Resource digests by address."""
        return {address: str(entry["digest"]) for address, entry in self.resources.items()}

    def graphs(self) -> tuple[str, ...]:
        """Return the graph ids, sorted."""
        found = (addresses.parse(text) for text in self.resources)
        return tuple(sorted(address.graph for address in found if address is not None and address.kind is Kind.GRAPH))

    def queries(self, graph: str) -> dict[str, str]:
        """Return the digests of a graph's stored queries, by name."""
        return queries_of(self.resources, graph)

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        applied: dict[str, Any] = {"resources": dict(self.resources)}
        if self.config_digest is not None:
            applied = {"config_digest": self.config_digest, **applied}
        document = {
            "version": VERSION,
            "state_revision": self.revision,
            "applied_revision": applied,
            "resource_statuses": dict(self.statuses),
            "approval_records": dict(self.approvals),
            "recovery_records": dict(self.recoveries),
            "observations": dict(self.observations),
        }
        return f"{json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)}\n".encode()


def queries_of(resources: Mapping[str, Entry], graph: str) -> dict[str, str]:
    """Return the digests of a graph's stored queries, by name."""
    prefix = str(addresses.query(graph, ""))
    return {
        address.removeprefix(prefix): str(entry["digest"])
        for address, entry in sorted(resources.items())
        if address.startswith(prefix)
    }


def graph_digest(resources: Mapping[str, Entry], graph: str) -> str:
    """Compute the digest of a graph from its ledger entries."""
    own = resources[str(addresses.graph(graph))]
    return digests.of_graph(
        schema=str(resources.get(str(addresses.schema(graph)), {}).get("digest", "")),
        queries=queries_of(resources, graph),
        provider=own.get("embedding_provider"),
        external_blobs=own.get("external_blob_policy"),
    )


def read_state(body: bytes) -> State:
    """Parse a stored state."""
    try:
        document = json.loads(body)
    except ValueError as fault:
        raise LedgerFaultError("invalid_state_json", f"the ledger is not JSON: {fault}") from None
    if not isinstance(document, dict):
        raise _invalid("it is not a mapping")
    if document.get("version") != VERSION:
        message = f"the ledger has version {document.get('version')!r}; this release knows {VERSION}"
        raise LedgerFaultError("unsupported_state_version", message)
    revision = document.get("state_revision")
    if not isinstance(revision, int) or isinstance(revision, bool) or revision < 0:
        raise _invalid("state_revision is not a number")
    applied = _mapping(document, "applied_revision")
    config_digest = applied.get("config_digest")
    if config_digest is not None and not isinstance(config_digest, str):
        raise _invalid("config_digest is not a text")
    resources = _entries(applied, "resources")
    for address, entry in resources.items():
        # Names become paths, so invalid ones must be rejected here.
        if addresses.parse(address) is None:
            raise _invalid(f"'{address}' is not a resource address")
        if not isinstance(entry.get("digest"), str) or not layout.is_digest(entry["digest"]):
            raise _invalid(f"'{address}' has no digest")
    return State(
        revision,
        config_digest,
        resources,
        _entries(document, "resource_statuses"),
        _entries(document, "approval_records"),
        _entries(document, "recovery_records"),
        _entries(document, "observations"),
    )


def _mapping(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = document.get(key, {})
    if not isinstance(found, dict):
        raise _invalid(f"{key} is not a mapping")
    return found


def _entries(document: Mapping[str, Any], key: str) -> dict[str, Entry]:
    found = _mapping(document, key)
    if not all(isinstance(entry, dict) for entry in found.values()):
        raise _invalid(f"{key} has a member that is not a mapping")
    return found


def _invalid(what: str) -> LedgerFaultError:
    return LedgerFaultError("invalid_state_json", f"the ledger is damaged: {what}")
