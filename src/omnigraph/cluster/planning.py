"""Compute what an apply would do: changes with their migrations and approvals."""

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
    block_dependents,
    compute_changes,
    matching_approvals,
)
from omnigraph.cluster.desired import Desired
from omnigraph.cluster.diagnostics import StoppedError
from omnigraph.cluster.session import ClusterSession
from omnigraph.cluster.state import State
from omnigraph.errors import GraphError
from omnigraph.model.schema_change_document import dump_plan


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes that an apply would make."""

    changes: list[Change]  # in execution order
    approvals: dict[str, tuple[Approval, ...]]  # by id of the graph to delete; an apply uses up all of them

    def approval_gates(self) -> list[dict[str, Any]]:
        """Return the changes that need an approval, and whether they have it."""
        return [
            {
                "resource": str(change.address),
                "reason": DELETES_DATA,
                "satisfied": change.address.graph in self.approvals,
            }
            for change in self.changes
            if change.address.kind is Kind.GRAPH and change.operation is Operation.DELETE
        ]


def make_plan(session: ClusterSession, desired: Desired, state: State) -> Plan:
    """Compute the changes from the ledger state to the desired state."""
    lost = session.damaged_payloads(state)
    approvals = _find_approvals(session, desired, state)
    changes = compute_changes(desired, state, lost=lost, approved=approvals)
    changes = [_preview(session, desired, change) for change in changes]
    blocked = [str(change.address) for change in changes if change.disposition is Disposition.BLOCKED]
    changes = block_dependents(changes, desired, blocked)
    for change in changes:
        if change.disposition is Disposition.BLOCKED and change.reason == NEEDS_APPROVAL:
            message = f"{DELETES_DATA}; run: omnigraph cluster approve {change.address} --as ACTOR"
            session.diagnostics.warning("approval_required", str(change.address), message)
        elif change.disposition is Disposition.BLOCKED and change.migration is None:
            session.diagnostics.warning("apply_dependency_blocked", str(change.address), change.reason or "")
    return Plan(changes, approvals)


def graphs_to_delete(desired: Desired, state: State) -> list[str]:
    """Return the ids of graphs in the ledger that the configuration no longer declares."""
    return [graph for graph in state.graphs() if str(addresses.graph(graph)) not in desired.resources]


def _find_approvals(session: ClusterSession, desired: Desired, state: State) -> dict[str, tuple[Approval, ...]]:
    deleted = graphs_to_delete(desired, state)
    if not deleted:
        return {}
    try:
        unused = session.approvals.unused(state.approvals, session.diagnostics)
    except GraphError as fault:
        session.diagnostics.error("state_read_error", "approvals", f"the approvals cannot be read: {fault}")
        raise StoppedError from None
    found = {}
    for graph in deleted:
        match = matching_approvals(unused, graph, config_digest=desired.config_digest, state=state)
        if match:
            found[graph] = match
        elif _has_approval_for(unused, graph):
            message = "the approval was given for another state of the cluster and is no longer valid"
            session.diagnostics.warning("approval_stale", str(addresses.graph(graph)), message)
    return found


def _has_approval_for(approvals: Sequence[Approval], graph: str) -> bool:
    return any(approval.resource == str(addresses.graph(graph)) for approval in approvals)


def _preview(session: ClusterSession, desired: Desired, change: Change) -> Change:
    """Add the migration plan to a schema change; block it if a step is unsupported."""
    if change.address.kind is not Kind.SCHEMA or change.operation is not Operation.UPDATE:
        return change
    address = str(change.address)
    try:
        steps = session.graphs.preview(change.address.graph, desired.resources[address].body.decode())
    except GraphError as fault:
        session.diagnostics.warning(
            "schema_preview_unavailable", address, f"the migration cannot be previewed: {fault}"
        )
        return change
    change = replace(change, migration=dump_plan(steps.steps))
    if steps.supported:
        return change
    reasons = "; ".join(str(step) for step in steps.steps if step.kind == "unsupported_change")
    session.diagnostics.error("apply_unsupported_change", address, reasons)
    return change.blocked("apply_unsupported_change")
