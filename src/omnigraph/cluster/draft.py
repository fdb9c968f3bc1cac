"""Mutable draft of the next ledger state."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from omnigraph import limits
from omnigraph.cluster import addresses
from omnigraph.cluster.approvals import Approval
from omnigraph.cluster.desired import Desired
from omnigraph.cluster.graphs import GraphObservation
from omnigraph.cluster.sidecars import Sidecar
from omnigraph.cluster.state import State, Status, graph_digest


class Draft:
    """Mutable draft of the next ledger state."""

    def __init__(self, base: State) -> None:
        self._base = base
        self.resources: dict[str, Mapping[str, Any]] = dict(base.resources)
        self._statuses = dict(base.statuses)
        self._approvals = dict(base.approvals)
        self._recoveries = dict(base.recoveries)
        self._observations = dict(base.observations)

    def put(self, address: str, entry: Mapping[str, Any]) -> None:
        """Record an applied resource."""
        self.resources[address] = dict(entry)
        self.mark(address, Status.APPLIED)

    def remove(self, address: str) -> None:
        """Remove a resource with its status and observation."""
        for entries in (self.resources, self._statuses, self._observations):
            entries.pop(address, None)

    def restore(self, address: str, before: State) -> None:
        """Restore the entry a resource had before."""
        if address in before.resources:
            self.resources[address] = before.resources[address]

    def remove_graph(self, graph: str) -> None:
        """Remove a graph and everything that belongs to it."""
        owned = (addresses.parse(text) for text in list(self.resources))
        for address in owned:
            if address is not None and address.graph == graph:
                self.remove(str(address))
        self.remove(str(addresses.graph(graph)))

    def mark(self, address: str, status: Status, message: str | None = None) -> None:
        """Set the status of a resource."""
        self._statuses[address] = (
            {"status": status.value}
            if message is None
            else {
                "status": status.value,
                "message": message,
            }
        )

    def record_observation(self, graph: str, observation: GraphObservation) -> None:
        """Record the observed schema and version of a graph."""
        self._observations[str(addresses.graph(graph))] = {
            "schema_digest": observation.schema_digest,
            "graph_manifest_version": observation.number,
        }

    def last_observation(self, graph: str) -> Mapping[str, Any]:
        """Return the last recorded observation of a graph."""
        return self._observations.get(str(addresses.graph(graph)), {})

    def record_used_approval(self, approval: Approval) -> None:
        """Record an approval as used."""
        self._approvals[approval.approval_id] = approval.to_document()

    def record_recovery(self, sidecar: Sidecar, outcome: str) -> None:
        """Record how an interrupted operation was recovered."""
        self._recoveries[sidecar.operation_id] = {**sidecar.to_document(), "outcome": outcome}
        for old in sorted(self._recoveries)[: -limits.CLUSTER_RECOVERIES_KEPT]:
            del self._recoveries[old]

    def reset_statuses(self, changed: Iterable[str]) -> None:
        """Mark unchanged resources as applied and drop the statuses of resources that no longer exist."""
        changed_addresses = set(changed)
        for address in set(self._statuses) - changed_addresses - set(self.resources):
            del self._statuses[address]
        for address in set(self.resources) - changed_addresses:
            self.mark(address, Status.APPLIED)

    def used_approvals(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the used approvals by id."""
        return self._approvals

    def current_state(self) -> State:
        """Return the state drafted so far, with the revision of the base."""
        for graph in replace(self._base, resources=self.resources).graphs():
            # A graph's digest covers all its resources, of which only some may have been applied.
            address = str(addresses.graph(graph))
            self.resources[address] = {**self.resources[address], "digest": graph_digest(self.resources, graph)}
        return State(
            self._base.revision,
            self._base.config_digest,
            dict(self.resources),
            dict(self._statuses),
            dict(self._approvals),
            dict(self._recoveries),
            dict(self._observations),
        )

    def next_state(self, desired: Desired | None = None) -> State | None:
        """Return the next state; None if nothing changed."""
        state = self.current_state()
        if desired is not None:
            state = replace(state, config_digest=desired.config_digest)
        return None if state == self._base else replace(state, revision=self._base.revision + 1)
