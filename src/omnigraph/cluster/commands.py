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
    """Show what an apply would do, without changing anything."""
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
    """Approve a change that an apply makes only with consent."""
    diagnostics = Diagnostics()
    approval: Approval | None = None
    try:
        session = ClusterSession(folder, environment or default_environment(), diagnostics=diagnostics)
        approval = _store_approval(session, resource, actor)
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


def _store_approval(session: ClusterSession, resource: str, actor: str) -> Approval:
    desired = session.valid_configuration.desired
    state = session.require_ledger().state
    if resource not in {str(addresses.graph(graph)) for graph in graphs_to_delete(desired, state)}:
        session.diagnostics.error("approval_not_required", resource, "no pending change of it needs an approval")
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
    """Show the ledger, and verify that the texts it references are stored."""
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
            state = _mark_damaged_payloads(session, stored.state)
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
    """Observe every graph and stored text, and record the results in the ledger."""
    return _run_locked(folder, environment, "refresh", _refresh)


def import_(folder: Path, *, environment: Environment | None = None) -> Outcome:
    """Create a ledger and adopt declared graphs that already exist."""
    return _run_locked(folder, environment, "import", _import)


def _run_locked(
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


def _refresh(session: ClusterSession) -> State:
    base = session.require_ledger()
    if session.warn_of_pending_work():
        message = "unfinished operations are not in the ledger yet; the graphs may be ahead of it"
        session.diagnostics.warning("actual_applied_state_pending", layout.STATE, message)
    draft = Draft(base.state)
    for graph in base.state.graphs():
        _refresh_graph(session, draft, graph)
    for address, (code, reason) in session.damaged_payloads(base.state).items():
        session.diagnostics.warning(code, address, reason)
        draft.mark(address, Status.DRIFTED, reason)
    state = draft.next_state()
    session.write_ledger(base, state)
    return state or base.state


def _import(session: ClusterSession) -> State:
    base = session.read_ledger()
    if base.exists:
        message = "the ledger already exists; run: omnigraph cluster refresh"
        session.diagnostics.error("state_already_exists", layout.STATE, message)
        raise StoppedError
    draft = Draft(base.state)
    for resource in session.valid_configuration.desired.resources.values():
        if resource.address.kind is Kind.GRAPH:
            _adopt(session, draft, resource.address.graph)
    state = draft.next_state() or State(revision=1)
    session.write_ledger(base, state)
    return state


def _refresh_graph(session: ClusterSession, draft: Draft, graph: str) -> None:
    address, schema = str(addresses.graph(graph)), str(addresses.schema(graph))
    observation = session.graphs.observe(graph)
    if observation.fault is not None:
        session.diagnostics.warning(
            "graph_observation_error", address, f"the graph cannot be opened: {observation.fault}"
        )
        draft.mark(address, Status.ERROR, observation.fault)
        return
    if not observation.exists:
        session.diagnostics.warning(
            "graph_observation_error", address, "the graph does not exist; an apply would create an empty one"
        )
        draft.remove(schema)
        draft.remove(address)
        return
    # A graph does not store a schema text that changes nothing: the digest observed when it was applied is valid too.
    known = {draft.resources.get(schema, {}).get("digest"), draft.last_observation(graph).get("schema_digest")}
    if observation.schema_digest in known:
        draft.mark(address, Status.APPLIED)
        draft.mark(schema, Status.APPLIED)
    else:
        draft.put(schema, {"digest": observation.schema_digest})
        draft.mark(schema, Status.DRIFTED, "the graph's schema differs from the applied one")
        session.diagnostics.warning(
            "conflicting_graph_manifest_observation", schema, "the graph's schema differs from the applied one"
        )
    draft.record_observation(graph, observation)


def _adopt(session: ClusterSession, draft: Draft, graph: str) -> None:
    observation = session.graphs.observe(graph)
    if observation.fault is not None:
        message = f"the existing graph cannot be opened: {observation.fault}"
        session.diagnostics.error("graph_observation_error", str(addresses.graph(graph)), message)
        raise StoppedError
    if observation.exists:
        draft.put(str(addresses.graph(graph)), {"digest": observation.schema_digest})
        draft.put(str(addresses.schema(graph)), {"digest": observation.schema_digest})
        draft.record_observation(graph, observation)


def _mark_damaged_payloads(session: ClusterSession, state: State) -> State:
    draft = Draft(state)
    for address, (code, reason) in session.damaged_payloads(state).items():
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
    """Remove the lock of a process that died."""
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
