"""Differences between the actual and the desired state of a cluster, and what happens to each. Pure functions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from omnigraph.cluster import addresses
from omnigraph.cluster.addresses import Address, Kind
from omnigraph.cluster.approvals import Approval
from omnigraph.cluster.desired import Desired, Resource
from omnigraph.cluster.state import State

DELETES_DATA = "deleting a graph deletes its data permanently"
NEEDS_APPROVAL = "approval_required"
_OWN_METADATA = ("embedding_provider", "external_blob_policy")


class Operation(StrEnum):
    """Operation on a resource."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class Disposition(StrEnum):
    """Fate of a change."""

    APPLIED = "applied"
    DERIVED = "derived"
    DEFERRED = "deferred"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between actual and desired state."""

    address: Address  # affected resource
    operation: Operation  # create, update or delete
    # whether it is applied, derived from other changes, deferred or blocked
    disposition: Disposition = Disposition.APPLIED
    before: str | None = None  # actual digest
    after: str | None = None  # desired digest
    reason: str | None = None  # why it is not simply applied
    binding_change: bool = False  # a policy applies to other graphs than before
    metadata_change: str | None = None  # part of the metadata that changes besides the content
    migration: Mapping[str, Any] | None = None  # schema migration plan
    keeps: tuple[str, ...] = ()  # graphs to be deleted that keep this policy or provider until they are gone

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        found = {
            "resource": str(self.address),
            "operation": self.operation.value,
            "before_digest": self.before,
            "after_digest": self.after,
            "disposition": self.disposition.value,
            "reason": self.reason,
            "binding_change": self.binding_change or None,
            "metadata_change": self.metadata_change,
            "migration": self.migration,
        }
        return {key: value for key, value in found.items() if value is not None}

    def plan_line(self) -> str:
        """Return the line shown by `cluster plan`."""
        return f"  {self.operation.capitalize()} {self.address}{' [bindings]' if self.binding_change else ''}"

    def result_line(self) -> str:
        """Return the line shown by `cluster apply`."""
        reason = f": {self.reason}" if self.disposition is Disposition.BLOCKED and self.reason else ""
        return f"{self.plan_line()} [{self.disposition.capitalize()}{reason}]"

    def blocked(self, reason: str) -> "Change":
        """Return a copy that is not applied."""
        return replace(self, disposition=Disposition.BLOCKED, reason=reason)

    def deferred(self, reason: str) -> "Change":
        """Return a copy left to a later apply."""
        return replace(self, disposition=Disposition.DEFERRED, reason=reason)


def compute_changes(
    desired: Desired, state: State, *, lost: Collection[str] = (), approved: Collection[str] = ()
) -> list[Change]:
    """Compute the changes from actual to desired state, in execution order."""
    wanted = [
        _upsert_change(resource, state.resources.get(address), is_lost=address in lost)
        for address, resource in desired.resources.items()
    ]
    gone = [
        _delete_change(address, entry, approved)
        for address, entry in state.resources.items()
        if address not in desired.resources
    ]
    going = {
        change.address.graph: change for change in gone if change is not None and change.address.kind is Kind.GRAPH
    }
    staying = {name for name, change in going.items() if change.disposition is Disposition.BLOCKED}
    wanted = [change and defer_while_needed(change, desired, state, staying) for change in wanted]
    deletes = [
        defer_while_needed(_follow_graph(change, going), desired, state, staying)
        for change in gone
        if change is not None
    ]
    # Resources of a graph are deleted before the graph itself.
    deletes.sort(
        key=lambda change: (change.address.kind is Kind.GRAPH, [-change.address.order[0]], change.address.order)
    )
    return [change for change in wanted if change is not None] + deletes


def _upsert_change(resource: Resource, entry: Mapping[str, Any] | None, *, is_lost: bool) -> Change | None:
    address = resource.address
    if entry is None:
        return Change(address, Operation.CREATE, after=resource.digest)
    before = str(entry["digest"])
    change = Change(address, Operation.UPDATE, before=before, after=resource.digest)
    is_same = before == resource.digest
    bindings = None if resource.applies_to is None else list(resource.applies_to)
    if address.kind is Kind.POLICY and entry.get("applies_to") != bindings:
        return replace(change, binding_change=True, metadata_change="policy_bindings")
    if address.kind is Kind.PROVIDER and entry.get("embedding_profile") != resource.embedding_profile:
        return replace(change, metadata_change="embedding_profile")
    if address.kind is Kind.GRAPH:
        has_new_metadata = any(entry.get(key) != getattr(resource, key) for key in _OWN_METADATA)
        if has_new_metadata:
            return change
        return None if is_same else replace(change, disposition=Disposition.DERIVED)
    if is_lost:
        return replace(change, reason="its stored text is missing or damaged")
    return None if is_same else change


def _delete_change(address: str, entry: Mapping[str, Any], approved: Collection[str]) -> Change | None:
    parsed = addresses.parse(address)
    if parsed is None:  # cannot happen: the ledger is read strictly
        return None
    change = Change(parsed, Operation.DELETE, before=str(entry["digest"]))
    if parsed.kind is Kind.GRAPH and parsed.graph not in approved:
        return change.blocked(NEEDS_APPROVAL)
    return change


def _follow_graph(change: Change, going: Mapping[str, Change]) -> Change:
    """Tie a schema or query of a graph to be deleted to the fate of that graph."""
    graph = going.get(change.address.graph)
    if change.address.kind not in (Kind.SCHEMA, Kind.QUERY) or graph is None:
        return change
    if graph.disposition is Disposition.BLOCKED:
        return change.deferred(f"it is deleted with {graph.address}")
    return replace(change, disposition=Disposition.DERIVED)


def defer_while_needed(change: Change, desired: Desired, state: State, staying: Collection[str]) -> Change:
    """Defer the part of a change that would take a policy or provider from a graph that still needs it."""
    entry = state.resources.get(str(change.address), {})
    served: Collection[str] = ()
    if change.address.kind is Kind.POLICY:
        served = entry.get("applies_to", ())
    if change.address.kind is Kind.PROVIDER and change.operation is Operation.DELETE:
        served = _graphs_using(state, change.address.name)
    still = tuple(sorted(set(served) & set(staying)))
    if not still:
        return change
    waiting = replace(change.deferred(f"{addresses.graph(still[0])} still exists"), keeps=still)
    if change.operation is Operation.DELETE:
        return waiting
    # The rules may be stricter now, and other graphs may have another policy: neither must wait for the approval to
    # delete one graph. Only that graph keeps its binding.
    bindings = sorted({*(desired.resources[str(change.address)].applies_to or ()), *still})
    is_unchanged = change.before == change.after and bindings == list(entry["applies_to"])
    return waiting if is_unchanged else replace(change, disposition=Disposition.APPLIED, reason=None, keeps=still)


def _graphs_using(state: State, provider: str) -> list[str]:
    """Return the graphs that use an embedding provider."""
    entries = ((graph, state.resources[str(addresses.graph(graph))]) for graph in state.graphs())
    return [graph for graph, entry in entries if entry.get("embedding_provider") == provider]


def block_dependents(changes: Sequence[Change], desired: Desired, failed: Collection[str]) -> list[Change]:
    """Block the changes that depend on a resource whose change is not applied.

    Policies are never blocked: a policy for a graph that does not exist yet is harmless, a missing one may not be.
    """
    affected = {dependent: source for source in failed for dependent in dependents(desired, source)}
    return [
        change.blocked(f"it depends on {affected[str(change.address)]}")
        if str(change.address) in affected
        and change.disposition is Disposition.APPLIED
        and change.address.kind is not Kind.POLICY
        else change
        for change in changes
    ]


def dependents(desired: Desired, address: str) -> list[str]:
    """Return the direct and indirect dependents of a resource, sorted."""
    found: list[str] = []
    front = {address}
    while front:
        front = {source for source, target in desired.dependencies if target in front} - set(found)
        found += front
    return sorted(found)


def blast_radius(changes: Sequence[Change], desired: Desired) -> list[dict[str, Any]]:
    """Return the dependents of every changed resource, in JSON form."""
    found = [(str(change.address), dependents(desired, str(change.address))) for change in changes]
    return [{"resource": resource, "affected": affected} for resource, affected in found if affected]


def matching_approvals(
    approvals: Sequence[Approval], graph: str, *, config_digest: str, state: State
) -> tuple[Approval, ...]:
    """Return the approvals to delete a graph that are bound to the current configuration and state."""
    address = str(addresses.graph(graph))
    digest = state.digests.get(address)
    wanted = (address, Operation.DELETE.value, config_digest, digest)
    return tuple(
        approval
        for approval in approvals
        if (approval.resource, approval.operation, approval.bound_config_digest, approval.bound_before_digest) == wanted
    )
