"""The next state of the ledger, while it is made."""

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
    """The next state of the ledger, while it is made."""

    def __init__(self, base: State) -> None:
        self._base = base
        self.resources: dict[str, Mapping[str, Any]] = dict(base.resources)
        self._statuses = dict(base.statuses)
        self._approvals = dict(base.approvals)
        self._recoveries = dict(base.recoveries)
        self._observations = dict(base.observations)

    def put(self, address: str, entry: Mapping[str, Any]) -> None:
        """A resource is there."""
        self.resources[address] = dict(entry)
        self.mark(address, Status.APPLIED)

    def remove(self, address: str) -> None:
        """A resource is there no more."""
        for part in (self.resources, self._statuses, self._observations):
            part.pop(address, None)

    def restore(self, address: str, before: State) -> None:
        """A resource is after all what it was."""
        if address in before.resources:
            self.resources[address] = before.resources[address]

    def remove_graph(self, graph: str) -> None:
        """A graph is there no more, nor anything that belongs to it."""
        owned = (addresses.parse(text) for text in list(self.resources))
        for address in owned:
            if address is not None and address.graph == graph:
                self.remove(str(address))
        self.remove(str(addresses.graph(graph)))

    def mark(self, address: str, status: Status, message: str | None = None) -> None:
        """How a resource stands."""
        self._statuses[address] = (
            {"status": status.value}
            if message is None
            else {
                "status": status.value,
                "message": message,
            }
        )

    def record_observation(self, graph: str, observation: GraphObservation) -> None:
        """What was seen of a graph."""
        self._observations[str(addresses.graph(graph))] = {
            "schema_digest": observation.schema_digest,
            "graph_manifest_version": observation.number,
        }

    def last_observation(self, graph: str) -> Mapping[str, Any]:
        """What was seen of a graph when it was last looked at."""
        return self._observations.get(str(addresses.graph(graph)), {})

    def record_used_approval(self, approval: Approval) -> None:
        """An approval counts no more."""
        self._approvals[approval.approval_id] = approval.to_document()

    def record_recovery(self, sidecar: Sidecar, outcome: str) -> None:
        """What an earlier command began was dealt with."""
        self._recoveries[sidecar.operation_id] = {**sidecar.to_document(), "outcome": outcome}
        for old in sorted(self._recoveries)[: -limits.CLUSTER_RECOVERIES_KEPT]:
            del self._recoveries[old]

    def reset_statuses(self, changed: Iterable[str]) -> None:
        """Statuses are those of this run: what needed no change stands as applied, what is not wanted any more not."""
        kept = set(changed)
        for address in set(self._statuses) - kept - set(self.resources):
            del self._statuses[address]
        for address in set(self.resources) - kept:
            self.mark(address, Status.APPLIED)

    def used_approvals(self) -> Mapping[str, Mapping[str, Any]]:
        """The approvals that count no more."""
        return self._approvals

    def current_state(self) -> State:
        """The state as far as it has come, under the number of the one before."""
        for graph in replace(self._base, resources=self.resources).graphs():
            # A graph's digest is that of all that belongs to it, of which some may have been applied and some not.
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
        """The state that follows; None where nothing is different.

        Args:
            desired: the configuration that has been applied wholly; None where none has.
        """
        made = self.current_state()
        if desired is not None:
            made = replace(made, config_digest=desired.config_digest)
        return None if made == self._base else replace(made, revision=self._base.revision + 1)
