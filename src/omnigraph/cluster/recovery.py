"""Finishing what an earlier apply began and did not live to write down.

Nothing is guessed: the graph itself is asked how far it came. What had been done is written down, what had not is left
to the plan, and a deletion, which cannot be taken back half way, is carried through.
"""

from dataclasses import dataclass, field

from omnigraph.cluster import addresses, layout
from omnigraph.cluster.approvals import Approval
from omnigraph.cluster.diagnostics import StoppedError
from omnigraph.cluster.draft import Draft
from omnigraph.cluster.sidecars import Sidecar, SidecarKind
from omnigraph.cluster.site import Site
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


def recover(site: Site, draft: Draft) -> Recovered:
    """Deal with every note that was left behind.

    Args:
        site: the cluster.
        draft: the next state, which gets what had been done.

    Raises:
        StoppedError: a note cannot be read, or what it is about cannot be seen.
    """
    try:
        pending, faults = site.sidecars.left_behind()
    except GraphError as fault:
        site.said.error("recovery_sidecar_read_error", layout.RECOVERIES, str(fault))
        raise StoppedError from None
    for path, reason in faults:
        site.said.error("recovery_sidecar_read_error", path, f"{reason}; look at it, then delete it")
    if faults:
        raise StoppedError
    found = Recovered()
    for each in pending:
        match each.kind:
            case SidecarKind.GRAPH_DELETE:
                _carry_through(site, draft, each, found)
            case SidecarKind.GRAPH_CREATE | SidecarKind.SCHEMA_APPLY:
                _take_note(site, draft, each)
        found.done.append(each)
    return found


def _take_note(site: Site, draft: Draft, sidecar: Sidecar) -> None:
    graph, schema = str(addresses.graph(sidecar.graph_id)), str(addresses.schema(sidecar.graph_id))
    seen = site.graphs.look(sidecar.graph_id)
    if seen.fault is not None:
        site.said.error("graph_observation_error", graph, f"the graph cannot be looked at: {seen.fault}")
        raise StoppedError
    if not seen.is_there:
        draft.recovered(sidecar, "not_begun")
        return
    if seen.schema_digest != sidecar.desired_schema_digest:
        if sidecar.kind is SidecarKind.GRAPH_CREATE:
            message = "there is a graph, and not the one that was to be made; it is left as it is"
            site.said.warning("cluster_recovery_unattributed", graph, message)
        draft.recovered(sidecar, "not_done")
        return
    if draft.resources.get(schema, {}).get("digest") == seen.schema_digest:
        return  # written down already; only the note was left
    draft.keep(graph, {**draft.resources.get(graph, {}), "digest": sidecar.desired_schema_digest})
    draft.keep(schema, {"digest": sidecar.desired_schema_digest})
    draft.saw(sidecar.graph_id, seen)
    draft.recovered(sidecar, "rolled_forward")
    message = f"{sidecar.kind} of {sidecar.started_at} had been done, and is written down now"
    site.said.warning("cluster_recovery_rolled_forward", graph, message)


def _carry_through(site: Site, draft: Draft, sidecar: Sidecar, found: Recovered) -> None:
    graph = str(addresses.graph(sidecar.graph_id))
    if graph not in draft.resources:
        return  # written down already; only the note was left
    try:
        unused = site.approvals.unused(draft.known_approvals(), site.said)
        is_gone = site.graphs.delete(sidecar.graph_id)
    except GraphError as fault:
        site.said.error("graph_delete_failed", graph, f"the deletion could not be finished: {fault}")
        raise StoppedError from None
    if not is_gone:
        site.said.error("graph_delete_incomplete", graph, "something of the graph is still there")
        raise StoppedError
    draft.drop_graph(sidecar.graph_id)
    draft.recovered(sidecar, "rolled_forward")
    found.approvals += [each for each in unused if each.resource == graph]
    site.said.warning("cluster_recovery_rolled_forward", graph, "a deletion that had begun was finished")
