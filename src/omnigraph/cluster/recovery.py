"""Finishing what an earlier apply began and did not live to write down.

Nothing is guessed: the graph itself is asked how far it came. What had been done is written down, what had not is left
to the plan, and a deletion, which cannot be taken back half way, is carried through.
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
    """What was found under way.

    Attributes:
        done: notes to be deleted once the ledger has been written.
        approvals: those that were used up.
    """

    done: list[Sidecar] = field(default_factory=list)
    approvals: list[Approval] = field(default_factory=list)


def recover(session: ClusterSession, draft: Draft) -> Recovered:
    """Deal with every note that was left behind.

    Args:
        session: the cluster.
        draft: the next state, which gets what had been done.

    Raises:
        StoppedError: a note cannot be read, or what it is about cannot be seen.
    """
    try:
        pending, faults = session.sidecars.read_all()
    except GraphError as fault:
        session.diagnostics.error("recovery_sidecar_read_error", layout.RECOVERIES, str(fault))
        raise StoppedError from None
    for path, reason in faults:
        session.diagnostics.error("recovery_sidecar_read_error", path, f"{reason}; look at it, then delete it")
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
        session.diagnostics.error(
            "graph_observation_error", graph, f"the graph cannot be looked at: {observation.fault}"
        )
        raise StoppedError
    if not observation.exists:
        draft.record_recovery(sidecar, "not_begun")
        return
    if observation.schema_digest != sidecar.desired_schema_digest:
        if sidecar.kind is SidecarKind.GRAPH_CREATE:
            message = "there is a graph, and not the one that was to be made; it is left as it is"
            session.diagnostics.warning("cluster_recovery_unattributed", graph, message)
        draft.record_recovery(sidecar, "not_done")
        return
    if draft.resources.get(schema, {}).get("digest") == observation.schema_digest:
        return  # written down already; only the note was left
    draft.put(graph, {**draft.resources.get(graph, {}), "digest": sidecar.desired_schema_digest})
    draft.put(schema, {"digest": sidecar.desired_schema_digest})
    draft.record_observation(sidecar.graph_id, observation)
    draft.record_recovery(sidecar, "rolled_forward")
    message = f"{sidecar.kind} of {sidecar.started_at} had been done, and is written down now"
    session.diagnostics.warning("cluster_recovery_rolled_forward", graph, message)


def _finish_delete(session: ClusterSession, draft: Draft, sidecar: Sidecar, found: Recovered) -> None:
    graph = str(addresses.graph(sidecar.graph_id))
    if graph not in draft.resources:
        return  # written down already; only the note was left
    try:
        unused = session.approvals.unused(draft.used_approvals(), session.diagnostics)
        is_gone = session.graphs.delete(sidecar.graph_id)
    except GraphError as fault:
        session.diagnostics.error("graph_delete_failed", graph, f"the deletion could not be finished: {fault}")
        raise StoppedError from None
    if not is_gone:
        session.diagnostics.error("graph_delete_incomplete", graph, "something of the graph is still there")
        raise StoppedError
    draft.remove_graph(sidecar.graph_id)
    draft.record_recovery(sidecar, "rolled_forward")
    found.approvals += [approval for approval in unused if approval.resource == graph]
    session.diagnostics.warning("cluster_recovery_rolled_forward", graph, "a deletion that had begun was finished")
