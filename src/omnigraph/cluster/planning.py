"""What an apply would do: the differences, with what is known of each beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.cluster import addresses
from omnigraph.cluster.addresses import Kind
from omnigraph.cluster.approvals import Approval
from omnigraph.cluster.changes import (
    DELETES_DATA,
    NEEDS_APPROVAL,
    Change,
    Disposition,
    Operation,
    differences,
    fitting,
    held_up,
)
from omnigraph.cluster.desired import Desired
from omnigraph.cluster.diagnostics import StoppedError
from omnigraph.cluster.site import Site
from omnigraph.cluster.state import State
from omnigraph.errors import GraphError
from omnigraph.model.schema_change_document import plan_document


@dataclass(frozen=True, slots=True)
class Planned:
    """What an apply would do.

    Attributes:
        changes: in the order in which they are made.
        approvals: by id of the graph that may go, on whose word; all of them are used up together.
    """

    changes: list[Change]
    approvals: dict[str, tuple[Approval, ...]]

    def gates(self) -> list[dict[str, Any]]:
        """What needs somebody's word, and whether it was given."""
        return [
            {
                "resource": str(each.address),
                "reason": DELETES_DATA,
                "satisfied": each.address.graph in self.approvals,
            }
            for each in self.changes
            if each.address.kind is Kind.GRAPH and each.operation is Operation.DELETE
        ]


def planned(site: Site, desired: Desired, state: State) -> Planned:
    """Work out what is to be done.

    Args:
        site: the cluster.
        desired: what should be.
        state: what the ledger says is.

    Raises:
        StoppedError: the approvals cannot be read.
    """
    lost = site.lost_payloads(state)
    approvals = _approvals(site, desired, state)
    changes = differences(desired, state, lost=lost, approved=approvals)
    changes = [_previewed(site, desired, each) for each in changes]
    stuck = [str(each.address) for each in changes if each.disposition is Disposition.BLOCKED]
    changes = held_up(changes, desired, stuck)
    for each in changes:
        if each.disposition is Disposition.BLOCKED and each.reason == NEEDS_APPROVAL:
            message = f"{DELETES_DATA}; run: omnigraph cluster approve {each.address} --as ACTOR"
            site.said.warning("approval_required", str(each.address), message)
        elif each.disposition is Disposition.BLOCKED and each.migration is None:
            site.said.warning("apply_dependency_blocked", str(each.address), each.reason or "")
    return Planned(changes, approvals)


def graphs_to_go(desired: Desired, state: State) -> list[str]:
    """The graphs that are there and are declared no more, by id."""
    return [graph for graph in state.graphs() if str(addresses.graph(graph)) not in desired.resources]


def _approvals(site: Site, desired: Desired, state: State) -> dict[str, tuple[Approval, ...]]:
    gone = graphs_to_go(desired, state)
    if not gone:
        return {}
    try:
        unused = site.approvals.unused(state.approvals, site.said)
    except GraphError as fault:
        site.said.error("state_read_error", "approvals", f"the approvals cannot be read: {fault}")
        raise StoppedError from None
    found = {}
    for graph in gone:
        match = fitting(unused, graph, config_digest=desired.config_digest, state=state)
        if match:
            found[graph] = match
        elif _is_about(unused, graph):
            message = "an approval was given for another state of the cluster, and does not count any more"
            site.said.warning("approval_stale", str(addresses.graph(graph)), message)
    return found


def _is_about(approvals: Sequence[Approval], graph: str) -> bool:
    return any(each.resource == str(addresses.graph(graph)) for each in approvals)


def _previewed(site: Site, desired: Desired, change: Change) -> Change:
    """A change of a schema, with its steps; blocked where one of them cannot be made."""
    if change.address.kind is not Kind.SCHEMA or change.operation is not Operation.UPDATE:
        return change
    address = str(change.address)
    try:
        steps = site.graphs.preview(change.address.graph, desired.resources[address].body.decode())
    except GraphError as fault:
        site.said.warning("schema_preview_unavailable", address, f"the steps cannot be told: {fault}")
        return change
    change = replace(change, migration=plan_document(steps.steps))
    if steps.supported:
        return change
    reasons = "; ".join(str(step) for step in steps.steps if step.kind == "unsupported_change")
    site.said.error("apply_unsupported_change", address, reasons)
    return change.blocked("apply_unsupported_change")
