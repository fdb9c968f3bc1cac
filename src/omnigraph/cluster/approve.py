"""Giving one's word for what cannot be undone."""

from pathlib import Path
from typing import Any

from omnigraph.cluster import addresses, moments
from omnigraph.cluster.approvals import Approval
from omnigraph.cluster.changes import DELETES_DATA, Operation
from omnigraph.cluster.diagnostics import Diagnostics, StoppedError
from omnigraph.cluster.outcome import Outcome
from omnigraph.cluster.planning import graphs_to_go
from omnigraph.cluster.site import Means, Site, usual_means
from omnigraph.errors import GraphError


def approve(folder: Path, resource: str, *, actor: str, means: Means | None = None) -> Outcome:
    """Approve a change that an apply would not make by itself.

    Args:
        folder: of the configuration.
        resource: the address of what is to go, like `graph.knowledge`.
        actor: who gives their word.
        means: what to work with; real stores by default.

    Returns:
        The approval. It is good for one apply of exactly this configuration to exactly this state.
    """
    said = Diagnostics()
    approval: Approval | None = None
    try:
        site = Site(folder, means or usual_means(), said=said)
        approval = _given(site, resource, actor)
    except StoppedError:
        pass
    document: dict[str, Any] = {"ok": said.is_ok, "config_dir": str(folder)}
    if approval is not None:
        document |= {
            "approval_id": approval.approval_id,
            "resource": approval.resource,
            "operation": approval.operation,
            "approved_by": approval.approved_by,
        }
    document["diagnostics"] = said.to_json()
    if approval is None:
        return Outcome(document, ("cluster approve failed",), tuple(said))
    summary = (
        f"cluster approve: {approval.operation} {approval.resource} approved by {approval.approved_by} "
        f"(approval {approval.approval_id})"
    )
    return Outcome(document, (summary,), tuple(said))


def _given(site: Site, resource: str, actor: str) -> Approval:
    desired = site.usable.desired
    state = site.require().state
    if resource not in {str(addresses.graph(each)) for each in graphs_to_go(desired, state)}:
        site.said.error("approval_not_required", resource, "an apply would do nothing to it that needs an approval")
        raise StoppedError
    approval = Approval(
        site.means.ids.new(),
        resource,
        Operation.DELETE.value,
        DELETES_DATA,
        desired.config_digest,
        actor,
        moments.now(site.means.clock),
        bound_before_digest=str(state.resources[resource]["digest"]),
    )
    try:
        site.approvals.put(approval)
    except GraphError as fault:
        site.said.error("approval_write_error", resource, f"the approval cannot be stored: {fault}")
        raise StoppedError from None
    return approval
