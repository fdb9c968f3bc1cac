"""The differences between what a cluster is and what it should be, and what is to become of each. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from omnigraph.cluster import addresses
from omnigraph.cluster.addresses import Address, Kind
from omnigraph.cluster.approvals import Approval
from omnigraph.cluster.desired import Desired, Resource
from omnigraph.cluster.state import State

DELETES_DATA = "deleting a graph deletes its data for good"
NEEDS_APPROVAL = "approval_required"
_OWN_METADATA = ("embedding_provider", "external_blob_policy")


class Operation(StrEnum):
    """What is done to a resource."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class Disposition(StrEnum):
    """What becomes of a change."""

    APPLIED = "applied"
    DERIVED = "derived"
    DEFERRED = "deferred"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        address: of the resource.
        operation: what is to be done.
        disposition: what becomes of it.
        before: the digest it has.
        after: the digest it should have.
        reason: why it is not simply applied.
        binding_change: it is for other graphs than before.
        metadata_change: what else than content changes.
        migration: the steps from one schema to the next.
        keeps: graphs that are to go and have it, a policy or a provider, until they have gone.
    """

    address: Address
    operation: Operation
    disposition: Disposition = Disposition.APPLIED
    before: str | None = None
    after: str | None = None
    reason: str | None = None
    binding_change: bool = False
    metadata_change: str | None = None
    migration: Mapping[str, Any] | None = None
    keeps: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The wire form."""
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
        """For people, before it is done."""
        return f"  {self.operation.capitalize()} {self.address}{' [bindings]' if self.binding_change else ''}"

    def result_line(self) -> str:
        """For people, afterwards."""
        reason = f": {self.reason}" if self.disposition is Disposition.BLOCKED and self.reason else ""
        return f"{self.plan_line()} [{self.disposition.capitalize()}{reason}]"

    def blocked(self, reason: str) -> "Change":
        """The same, not to be done."""
        return replace(self, disposition=Disposition.BLOCKED, reason=reason)

    def deferred(self, reason: str) -> "Change":
        """The same, to be done some other time."""
        return replace(self, disposition=Disposition.DEFERRED, reason=reason)


def compute_changes(
    desired: Desired, state: State, *, lost: Collection[str] = (), approved: Collection[str] = ()
) -> list[Change]:
    """What is to be done, in the order in which it is done.

    Args:
        desired: what should be.
        state: what the ledger says is.
        lost: addresses whose stored text is not there, or damaged: it is put again.
        approved: graphs, by id, that may be deleted.
    """
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
    # What hangs on a graph goes before it, and the graph itself last of all.
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
    stays = before == resource.digest
    bindings = None if resource.applies_to is None else list(resource.applies_to)
    if address.kind is Kind.POLICY and entry.get("applies_to") != bindings:
        return replace(change, binding_change=True, metadata_change="policy_bindings")
    if address.kind is Kind.PROVIDER and entry.get("embedding_profile") != resource.embedding_profile:
        return replace(change, metadata_change="embedding_profile")
    if address.kind is Kind.GRAPH:
        own = any(entry.get(key) != getattr(resource, key) for key in _OWN_METADATA)
        if own:
            return change
        return None if stays else replace(change, disposition=Disposition.DERIVED)
    if is_lost:
        return replace(change, reason="its stored text is not there, or damaged")
    return None if stays else change


def _delete_change(address: str, entry: Mapping[str, Any], approved: Collection[str]) -> Change | None:
    parsed = addresses.parse(address)
    if parsed is None:  # the ledger was read strictly: there is none
        return None
    change = Change(parsed, Operation.DELETE, before=str(entry["digest"]))
    if parsed.kind is Kind.GRAPH and parsed.graph not in approved:
        return change.blocked(NEEDS_APPROVAL)
    return change


def _follow_graph(change: Change, going: Mapping[str, Change]) -> Change:
    """What belongs to a graph that is to go stays as long as the graph does."""
    graph = going.get(change.address.graph)
    if change.address.kind not in (Kind.SCHEMA, Kind.QUERY) or graph is None:
        return change
    if graph.disposition is Disposition.BLOCKED:
        return change.deferred(f"it goes with {graph.address}")
    return replace(change, disposition=Disposition.DERIVED)


def defer_while_needed(change: Change, desired: Desired, state: State, staying: Collection[str]) -> Change:
    """A change, held back as far as a graph that is to go still needs what it touches: its policy, its provider.

    Args:
        change: the change.
        desired: what should be.
        state: what the ledger said before.
        staying: the graphs that are to go and are still there.
    """
    entry = state.resources.get(str(change.address), {})
    served: Collection[str] = ()
    if change.address.kind is Kind.POLICY:
        served = entry.get("applies_to", ())
    if change.address.kind is Kind.PROVIDER and change.operation is Operation.DELETE:
        served = _graphs_using(state, change.address.name)
    still = tuple(sorted(set(served) & set(staying)))
    if not still:
        return change
    waiting = replace(change.deferred(f"{addresses.graph(still[0])} is still there"), keeps=still)
    if change.operation is Operation.DELETE:
        return waiting
    # What a policy says may be stricter now, and for others it is not any more something else may be: neither must
    # wait for somebody's word about one graph. Only that one goes on having it.
    bindings = sorted({*(desired.resources[str(change.address)].applies_to or ()), *still})
    is_done = change.before == change.after and bindings == list(entry["applies_to"])
    return waiting if is_done else replace(change, disposition=Disposition.APPLIED, reason=None, keeps=still)


def _graphs_using(state: State, provider: str) -> list[str]:
    """The graphs whose provider it is."""
    entries = ((graph, state.resources[str(addresses.graph(graph))]) for graph in state.graphs())
    return [graph for graph, entry in entries if entry.get("embedding_provider") == provider]


def block_dependents(changes: Sequence[Change], desired: Desired, failed: Collection[str]) -> list[Change]:
    """The changes, with all that depends on something which is not done put off.

    A policy is never held up: one for a graph that is not there yet does no harm, and one that is missing may.

    Args:
        changes: all of them.
        desired: knows who depends on whom.
        failed: addresses of what is not done.
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
    """All that depends on a resource, directly or not, in order."""
    found: list[str] = []
    front = {address}
    while front:
        front = {source for source, target in desired.dependencies if target in front} - set(found)
        found += front
    return sorted(found)


def blast_radius(changes: Sequence[Change], desired: Desired) -> list[dict[str, Any]]:
    """For every change what else it touches."""
    found = [(str(change.address), dependents(desired, str(change.address))) for change in changes]
    return [{"resource": resource, "affected": affected} for resource, affected in found if affected]


def matching_approvals(
    approvals: Sequence[Approval], graph: str, *, config_digest: str, state: State
) -> tuple[Approval, ...]:
    """The approvals for deleting a graph that were given for exactly what is there now."""
    address = str(addresses.graph(graph))
    digest = state.digests.get(address)
    wanted = (address, Operation.DELETE.value, config_digest, digest)
    return tuple(
        approval
        for approval in approvals
        if (approval.resource, approval.operation, approval.bound_config_digest, approval.bound_before_digest) == wanted
    )
