"""The ledger: what was applied to a cluster, as a value."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.cluster import addresses, digests, layout
from omnigraph.cluster.addresses import Kind

VERSION = 1


class Status(StrEnum):
    """How a resource stands."""

    PENDING = "pending"
    PLANNED = "planned"
    APPLYING = "applying"
    APPLIED = "applied"
    DRIFTED = "drifted"
    BLOCKED = "blocked"
    ERROR = "error"


class LedgerFaultError(Exception):
    """The ledger cannot be read or written; the code is that of a diagnostic."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class State:
    """What was applied.

    Attributes:
        revision: counts the states of the ledger.
        config_digest: of the configuration that was applied wholly; None where none was yet.
        resources: what is there, by address.
        statuses: how each of them stands.
        approvals: those that were used, by id.
        recoveries: what was finished after a death, by id.
        observations: what was last seen of the graphs, by address.
    """

    revision: int = 0
    config_digest: str | None = None
    resources: Mapping[str, Entry] = field(default_factory=dict)
    statuses: Mapping[str, Entry] = field(default_factory=dict)
    approvals: Mapping[str, Entry] = field(default_factory=dict)
    recoveries: Mapping[str, Entry] = field(default_factory=dict)
    observations: Mapping[str, Entry] = field(default_factory=dict)

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each resource."""
        return {address: str(entry["digest"]) for address, entry in self.resources.items()}

    def graphs(self) -> tuple[str, ...]:
        """The ids of its graphs, in order."""
        found = (addresses.parse(text) for text in self.resources)
        return tuple(sorted(address.graph for address in found if address is not None and address.kind is Kind.GRAPH))

    def queries(self, graph: str) -> dict[str, str]:
        """The digests of a graph's stored queries, by name."""
        return queries_of(self.resources, graph)

    def to_bytes(self) -> bytes:
        """As it is stored."""
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
    """The digests of a graph's stored queries, by name."""
    prefix = str(addresses.query(graph, ""))
    return {
        address.removeprefix(prefix): str(entry["digest"])
        for address, entry in sorted(resources.items())
        if address.startswith(prefix)
    }


def graph_digest(resources: Mapping[str, Entry], graph: str) -> str:
    """The digest of a graph, worked out from what the ledger holds of it."""
    own = resources[str(addresses.graph(graph))]
    return digests.of_graph(
        schema=str(resources.get(str(addresses.schema(graph)), {}).get("digest", "")),
        queries=queries_of(resources, graph),
        provider=own.get("embedding_provider"),
        external_blobs=own.get("external_blob_policy"),
    )


def read_state(body: bytes) -> State:
    """A state as it was stored.

    Raises:
        LedgerFaultError: it is none, or one of a newer release.
    """
    try:
        document = json.loads(body)
    except ValueError as fault:
        raise LedgerFaultError("invalid_state_json", f"the ledger is not JSON: {fault}") from None
    if not isinstance(document, dict):
        raise _invalid("it is no mapping")
    if document.get("version") != VERSION:
        message = f"the ledger has version {document.get('version')!r}; this release knows {VERSION}"
        raise LedgerFaultError("unsupported_state_version", message)
    revision = document.get("state_revision")
    if not isinstance(revision, int) or isinstance(revision, bool) or revision < 0:
        raise _invalid("state_revision is no number")
    applied = _mapping(document, "applied_revision")
    config_digest = applied.get("config_digest")
    if config_digest is not None and not isinstance(config_digest, str):
        raise _invalid("config_digest is no text")
    resources = _entries(applied, "resources")
    for address, entry in resources.items():
        # Names become paths: one that is not ours must not get further than here.
        if addresses.parse(address) is None:
            raise _invalid(f"'{address}' is no address of a resource")
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
        raise _invalid(f"{key} is no mapping")
    return found


def _entries(document: Mapping[str, Any], key: str) -> dict[str, Entry]:
    found = _mapping(document, key)
    if not all(isinstance(entry, dict) for entry in found.values()):
        raise _invalid(f"{key} holds something that is no mapping")
    return found


def _invalid(what: str) -> LedgerFaultError:
    return LedgerFaultError("invalid_state_json", f"the ledger is damaged: {what}")
