"""Commands on a cluster besides apply: plan, approve, status, refresh, import and force-unlock."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from omnigraph.cluster import addresses, layout, timestamps
from omnigraph.cluster.addresses import Kind
from omnigraph.cluster.approvals import Approval
from omnigraph.cluster.changes import DELETES_DATA, Operation, blast_radius
from omnigraph.cluster.diagnostics import Diagnostics, Outcome, StoppedError
from omnigraph.cluster.draft import Draft
from omnigraph.cluster.lock import LockFaultError
from omnigraph.cluster.planning import Plan, graphs_to_delete, make_plan
from omnigraph.cluster.session import ClusterSession, Environment, default_environment
from omnigraph.cluster.state import State, Status
from omnigraph.errors import GraphError


def plan(folder: Path, *, environment: Environment | None = None) -> Outcome:
    """Show what an apply would do.

    Args:
        folder: of the configuration.
        environment: what to work with; real stores by default.

    Returns:
        The changes, what each of them touches, and whose word is needed.
    """
    diagnostics = Diagnostics()
    session = None
    found = Plan([], {})
    try:
        session = ClusterSession(folder, environment or default_environment(), diagnostics=diagnostics)
        desired = session.valid_configuration.desired
        with session.hold_lock("plan"):
            stored = session.read_ledger()
            if not stored.exists:
                message = "this cluster has no ledger yet, so everything is new; run: omnigraph cluster import"
                diagnostics.warning("state_missing", layout.STATE, message)
            session.warn_of_pending_work()
            found = make_plan(session, desired, stored.state)
    except StoppedError:
        pass
    configuration = None if session is None else session.configuration
    desired_digests = {} if configuration is None else configuration.desired.digests
    document = {
        "ok": diagnostics.is_ok,
        "config_dir": str(folder),
        "desired_revision": {} if configuration is None else {"config_digest": configuration.desired.config_digest},
        "resource_digests": desired_digests,
        "dependencies": [] if configuration is None else configuration.desired.dependencies_json(),
        "state_observations": {} if session is None else session.observations(),
        "changes": [change.to_json() for change in found.changes],
        "blast_radius": [] if configuration is None else blast_radius(found.changes, configuration.desired),
        "approvals_required": found.approval_gates(),
        "diagnostics": diagnostics.to_json(),
    }
    if not diagnostics.is_ok and not found.changes:
        return Outcome(document, ("cluster plan failed",), tuple(diagnostics))
    lines = [change.plan_line() for change in found.changes] or ["  no changes"]
    summary = f"cluster plan: {len(found.changes)} change(s), {len(found.approval_gates())} approval gate(s)"
    return Outcome(document, (summary, *lines), tuple(diagnostics))


def approve(folder: Path, resource: str, *, actor: str, environment: Environment | None = None) -> Outcome:
    """Approve a change that an apply would not make by itself.

    Args:
        folder: of the configuration.
        resource: the address of what is to go, like `graph.knowledge`.
        actor: who gives their word.
        environment: what to work with; real stores by default.

    Returns:
        The approval. It is good for one apply of exactly this configuration to exactly this state.
    """
    diagnostics = Diagnostics()
    approval: Approval | None = None
    try:
        session = ClusterSession(folder, environment or default_environment(), diagnostics=diagnostics)
        approval = _given(session, resource, actor)
    except StoppedError:
        pass
    document: dict[str, Any] = {"ok": diagnostics.is_ok, "config_dir": str(folder)}
    if approval is not None:
        document |= {
            "approval_id": approval.approval_id,
            "resource": approval.resource,
            "operation": approval.operation,
            "approved_by": approval.approved_by,
        }
    document["diagnostics"] = diagnostics.to_json()
    if approval is None:
        return Outcome(document, ("cluster approve failed",), tuple(diagnostics))
    summary = (
        f"cluster approve: {approval.operation} {approval.resource} approved by {approval.approved_by} "
        f"(approval {approval.approval_id})"
    )
    return Outcome(document, (summary,), tuple(diagnostics))


def _given(session: ClusterSession, resource: str, actor: str) -> Approval:
    desired = session.valid_configuration.desired
    state = session.require_ledger().state
    if resource not in {str(addresses.graph(graph)) for graph in graphs_to_delete(desired, state)}:
        session.diagnostics.error(
            "approval_not_required", resource, "an apply would do nothing to it that needs an approval"
        )
        raise StoppedError
    approval = Approval(
        session.environment.ids.new(),
        resource,
        Operation.DELETE.value,
        DELETES_DATA,
        desired.config_digest,
        actor,
        timestamps.now(session.environment.clock),
        bound_before_digest=str(state.resources[resource]["digest"]),
    )
    try:
        session.approvals.put(approval)
    except GraphError as fault:
        session.diagnostics.error("approval_write_error", resource, f"the approval cannot be stored: {fault}")
        raise StoppedError from None
    return approval


def status(folder: Path, *, environment: Environment | None = None) -> Outcome:
    """How a cluster stands by its ledger; what the ledger names is looked for.

    Args:
        folder: of the configuration.
        environment: what to work with; real stores by default.

    Returns:
        The ledger, and what does not agree with it.
    """
    diagnostics = Diagnostics()
    session, state = None, None
    try:
        session = ClusterSession(
            folder, environment or default_environment(), diagnostics=diagnostics, reads_files=False
        )
        session.require_configuration()
        session.observe_lock()
        stored = session.read_ledger()
        session.warn_of_pending_work()
        if stored.exists:
            state = _with_lost_payloads(session, stored.state)
        else:
            message = "this cluster has no ledger yet; run: omnigraph cluster import"
            diagnostics.warning("cluster_state_missing", layout.STATE, message)
    except StoppedError:
        pass
    if not diagnostics.is_ok and state is None:
        summary = "cluster status failed"
    elif state is None:
        summary = "cluster state missing"
    else:
        summary = f"cluster state: revision {state.revision}, {len(state.resources)} resource(s)"
    return Outcome(_document(folder, session, state, diagnostics), (summary,), tuple(diagnostics))


def refresh(folder: Path, *, environment: Environment | None = None) -> Outcome:
    """Look at every graph and every stored text, and write down what is seen.

    Args:
        folder: of the configuration.
        environment: what to work with; real stores by default.

    Returns:
        The ledger afterwards.
    """
    return _changed(folder, environment, "refresh", _refreshed)


def import_(folder: Path, *, environment: Environment | None = None) -> Outcome:
    """Begin a ledger; graphs that are there already and are declared are taken in.

    Args:
        folder: of the configuration.
        environment: what to work with; real stores by default.

    Returns:
        The ledger afterwards.
    """
    return _changed(folder, environment, "import", _imported)


def _changed(
    folder: Path, environment: Environment | None, operation: str, step: Callable[[ClusterSession], State]
) -> Outcome:
    diagnostics = Diagnostics()
    session, state = None, None
    try:
        session = ClusterSession(folder, environment or default_environment(), diagnostics=diagnostics)
        _ = session.valid_configuration
        with session.hold_lock(operation):
            state = step(session)
    except StoppedError:
        pass
    document = {"operation": operation, **_document(folder, session, state, diagnostics)}
    summary = f"cluster {operation} failed"
    if state is not None:
        summary = f"cluster {operation}: revision {state.revision}, {len(state.resources)} resource(s)"
    return Outcome(document, (summary,), tuple(diagnostics))


def _refreshed(session: ClusterSession) -> State:
    base = session.require_ledger()
    if session.warn_of_pending_work():
        message = "what is under way is not written down yet; the graphs may be ahead of the ledger"
        session.diagnostics.warning("actual_applied_state_pending", layout.STATE, message)
    draft = Draft(base.state)
    for graph in base.state.graphs():
        _look_again(session, draft, graph)
    for address, (code, reason) in session.damaged_payloads(base.state).items():
        session.diagnostics.warning(code, address, reason)
        draft.mark(address, Status.DRIFTED, reason)
    state = draft.next_state()
    session.write_ledger(base, state)
    return state or base.state


def _imported(session: ClusterSession) -> State:
    base = session.read_ledger()
    if base.exists:
        message = "there is a ledger already; run: omnigraph cluster refresh"
        session.diagnostics.error("state_already_exists", layout.STATE, message)
        raise StoppedError
    draft = Draft(base.state)
    for resource in session.valid_configuration.desired.resources.values():
        if resource.address.kind is Kind.GRAPH:
            _adopt(session, draft, resource.address.graph)
    state = draft.next_state() or State(revision=1)
    session.write_ledger(base, state)
    return state


def _look_again(session: ClusterSession, draft: Draft, graph: str) -> None:
    address, schema = str(addresses.graph(graph)), str(addresses.schema(graph))
    observation = session.graphs.observe(graph)
    if observation.fault is not None:
        session.diagnostics.warning(
            "graph_observation_error", address, f"the graph cannot be looked at: {observation.fault}"
        )
        draft.mark(address, Status.ERROR, observation.fault)
        return
    if not observation.exists:
        session.diagnostics.warning(
            "graph_observation_error", address, "the graph is gone; an apply would make it anew, empty"
        )
        draft.remove(schema)
        draft.remove(address)
        return
    # A text that changes nothing is not stored with the graph: what was seen when it was applied counts as well.
    known = {draft.resources.get(schema, {}).get("digest"), draft.last_observation(graph).get("schema_digest")}
    if observation.schema_digest in known:
        draft.mark(address, Status.APPLIED)
        draft.mark(schema, Status.APPLIED)
    else:
        draft.put(schema, {"digest": observation.schema_digest})
        draft.mark(schema, Status.DRIFTED, "the graph has another schema than was applied")
        session.diagnostics.warning(
            "conflicting_graph_manifest_observation", schema, "the graph has another schema than was applied"
        )
    draft.record_observation(graph, observation)


def _adopt(session: ClusterSession, draft: Draft, graph: str) -> None:
    observation = session.graphs.observe(graph)
    if observation.fault is not None:
        message = f"the graph that is there cannot be looked at: {observation.fault}"
        session.diagnostics.error("graph_observation_error", str(addresses.graph(graph)), message)
        raise StoppedError
    if observation.exists:
        draft.put(str(addresses.graph(graph)), {"digest": observation.schema_digest})
        draft.put(str(addresses.schema(graph)), {"digest": observation.schema_digest})
        draft.record_observation(graph, observation)


def _with_lost_payloads(session: ClusterSession, state: State) -> State:
    lost = session.damaged_payloads(state)
    draft = Draft(state)
    for address, (code, reason) in lost.items():
        session.diagnostics.error(code, address, f"{reason}; run: omnigraph cluster apply")
        draft.mark(address, Status.ERROR, reason)
    return draft.current_state()


def _document(
    folder: Path, session: ClusterSession | None, state: State | None, diagnostics: Diagnostics
) -> dict[str, Any]:
    shown = State() if state is None else state
    return {
        "ok": diagnostics.is_ok,
        "config_dir": str(folder),
        "state_observations": {} if session is None else session.observations(),
        "resource_digests": shown.digests,
        "resource_statuses": dict(shown.statuses),
        "observations": dict(shown.observations),
        "diagnostics": diagnostics.to_json(),
    }


def force_unlock(folder: Path, lock_id: str, *, environment: Environment | None = None) -> Outcome:
    """Remove a lock.

    Args:
        folder: of the configuration.
        lock_id: of the lock, so that nobody removes another one than they saw.
        environment: what to work with; real stores by default.

    Returns:
        Whether it was removed.
    """
    diagnostics = Diagnostics()
    session = None
    is_removed = False
    try:
        session = ClusterSession(
            folder, environment or default_environment(), diagnostics=diagnostics, reads_files=False
        )
        session.require_configuration()
        session.observe_lock()
        session.lock.force_unlock(lock_id)
        is_removed = True
        session.read_ledger()
    except LockFaultError as fault:
        diagnostics.error(fault.code, layout.LOCK, str(fault))
    except StoppedError:
        pass
    document = {
        "ok": diagnostics.is_ok,
        "config_dir": str(folder),
        "state_observations": {} if session is None else session.observations(),
        "lock_removed": is_removed,
        "diagnostics": diagnostics.to_json(),
    }
    summary = f"cluster force-unlock: removed lock {lock_id}" if is_removed else "cluster force-unlock failed"
    return Outcome(document, (summary,), tuple(diagnostics))
