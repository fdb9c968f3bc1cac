"""Finish what an interrupted apply has not recorded in the ledger.

The graphs themselves tell how far it came. Completed operations are recorded, others are left to the plan, and a
deletion, which cannot be undone half way, is finished.
"""

from dataclasses import dataclass, field

from omnigraph.cluster import addresses, layout
from omnigraph.cluster.approvals import Approval
from omnigraph.cluster.diagnostics import StoppedError
from omnigraph.cluster.draft import Draft
from omnigraph.cluster.session import ClusterSession
from omnigraph.cluster.sidecars import Sidecar, SidecarKind
from omnigraph.errors import GraphError


@dataclass(slots=True)
class Recovered:
    """Result of a recovery."""

    done: list[Sidecar] = field(default_factory=list)  # sidecars to delete once the ledger is written
    approvals: list[Approval] = field(default_factory=list)  # approvals used up by finished deletions


def recover(session: ClusterSession, draft: Draft) -> Recovered:
    """Recover every operation that left a sidecar, and record the results in the draft."""
    try:
        pending, faults = session.sidecars.read_all()
    except GraphError as fault:
        session.diagnostics.error("recovery_sidecar_read_error", layout.RECOVERIES, str(fault))
        raise StoppedError from None
    for path, reason in faults:
        session.diagnostics.error("recovery_sidecar_read_error", path, f"{reason}; inspect it, then delete it")
    if faults:
        raise StoppedError
    found = Recovered()
    for sidecar in pending:
        match sidecar.kind:
            case SidecarKind.GRAPH_DELETE:
                _finish_delete(session, draft, sidecar, found)
            case SidecarKind.GRAPH_CREATE | SidecarKind.SCHEMA_APPLY:
                _record_outcome(session, draft, sidecar)
        found.done.append(sidecar)
    return found


def _record_outcome(session: ClusterSession, draft: Draft, sidecar: Sidecar) -> None:
    graph, schema = str(addresses.graph(sidecar.graph_id)), str(addresses.schema(sidecar.graph_id))
    observation = session.graphs.observe(sidecar.graph_id)
    if observation.fault is not None:
        session.diagnostics.error("graph_observation_error", graph, f"the graph cannot be opened: {observation.fault}")
        raise StoppedError
    if not observation.exists:
        draft.record_recovery(sidecar, "not_begun")
        return
    if observation.schema_digest != sidecar.desired_schema_digest:
        if sidecar.kind is SidecarKind.GRAPH_CREATE:
            message = "another graph exists where one was to be created; it is left as it is"
            session.diagnostics.warning("cluster_recovery_unattributed", graph, message)
        draft.record_recovery(sidecar, "not_done")
        return
    if draft.resources.get(schema, {}).get("digest") == observation.schema_digest:
        return  # already recorded; only the sidecar was left
    draft.put(graph, {**draft.resources.get(graph, {}), "digest": sidecar.desired_schema_digest})
    draft.put(schema, {"digest": sidecar.desired_schema_digest})
    draft.record_observation(sidecar.graph_id, observation)
    draft.record_recovery(sidecar, "rolled_forward")
    message = f"{sidecar.kind} of {sidecar.started_at} had been completed, and is recorded now"
    session.diagnostics.warning("cluster_recovery_rolled_forward", graph, message)


def _finish_delete(session: ClusterSession, draft: Draft, sidecar: Sidecar, found: Recovered) -> None:
    graph = str(addresses.graph(sidecar.graph_id))
    if graph not in draft.resources:
        return  # already recorded; only the sidecar was left
    try:
        unused = session.approvals.unused(draft.used_approvals(), session.diagnostics)
        is_deleted = session.graphs.delete(sidecar.graph_id)
    except GraphError as fault:
        session.diagnostics.error("graph_delete_failed", graph, f"the deletion could not be finished: {fault}")
        raise StoppedError from None
    if not is_deleted:
        session.diagnostics.error("graph_delete_incomplete", graph, "some files of the graph are still there")
        raise StoppedError
    draft.remove_graph(sidecar.graph_id)
    draft.record_recovery(sidecar, "rolled_forward")
    found.approvals += [approval for approval in unused if approval.resource == graph]
    session.diagnostics.warning("cluster_recovery_rolled_forward", graph, "an interrupted deletion was finished")
