"""Looking at a cluster as it is: status writes nothing, refresh and import write down what they see."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from omnigraph.cluster import addresses, layout
from omnigraph.cluster.addresses import Kind
from omnigraph.cluster.diagnostics import Diagnostics, StoppedError
from omnigraph.cluster.draft import Draft
from omnigraph.cluster.outcome import Outcome
from omnigraph.cluster.site import Means, Site, usual_means
from omnigraph.cluster.state import State, Status


def status(folder: Path, *, means: Means | None = None) -> Outcome:
    """How a cluster stands by its ledger; what the ledger names is looked for.

    Args:
        folder: of the configuration.
        means: what to work with; real stores by default.

    Returns:
        The ledger, and what does not agree with it.
    """
    said = Diagnostics()
    site, state = None, None
    try:
        site = Site(folder, means or usual_means(), said=said, reads_files=False)
        site.require_configuration()
        site.look_at_lock()
        written = site.read()
        site.warn_of_pending_work()
        if written.is_there:
            state = _with_lost_payloads(site, written.state)
        else:
            message = "this cluster has no ledger yet; run: omnigraph cluster import"
            said.warning("cluster_state_missing", layout.STATE, message)
    except StoppedError:
        pass
    if not said.is_ok and state is None:
        summary = "cluster status failed"
    elif state is None:
        summary = "cluster state missing"
    else:
        summary = f"cluster state: revision {state.revision}, {len(state.resources)} resource(s)"
    return Outcome(_document(folder, site, state, said), (summary,), tuple(said))


def refresh(folder: Path, *, means: Means | None = None) -> Outcome:
    """Look at every graph and every stored text, and write down what is seen.

    Args:
        folder: of the configuration.
        means: what to work with; real stores by default.

    Returns:
        The ledger afterwards.
    """
    return _changed(folder, means, "refresh", _refreshed)


def import_(folder: Path, *, means: Means | None = None) -> Outcome:
    """Begin a ledger; graphs that are there already and are declared are taken in.

    Args:
        folder: of the configuration.
        means: what to work with; real stores by default.

    Returns:
        The ledger afterwards.
    """
    return _changed(folder, means, "import", _imported)


def _changed(folder: Path, means: Means | None, operation: str, step: Callable[[Site], State]) -> Outcome:
    said = Diagnostics()
    site, state = None, None
    try:
        site = Site(folder, means or usual_means(), said=said)
        _ = site.usable
        with site.locked(operation):
            state = step(site)
    except StoppedError:
        pass
    document = {"operation": operation, **_document(folder, site, state, said)}
    summary = f"cluster {operation} failed"
    if state is not None:
        summary = f"cluster {operation}: revision {state.revision}, {len(state.resources)} resource(s)"
    return Outcome(document, (summary,), tuple(said))


def _refreshed(site: Site) -> State:
    base = site.require()
    if site.warn_of_pending_work():
        message = "what is under way is not written down yet; the graphs may be ahead of the ledger"
        site.said.warning("actual_applied_state_pending", layout.STATE, message)
    draft = Draft(base.state)
    for graph in base.state.graphs():
        _look_again(site, draft, graph)
    for address, (code, reason) in site.lost_payloads(base.state).items():
        site.said.warning(code, address, reason)
        draft.mark(address, Status.DRIFTED, reason)
    state = draft.finished()
    site.write(base, state)
    return state or base.state


def _imported(site: Site) -> State:
    base = site.read()
    if base.is_there:
        message = "there is a ledger already; run: omnigraph cluster refresh"
        site.said.error("state_already_exists", layout.STATE, message)
        raise StoppedError
    draft = Draft(base.state)
    for each in site.usable.desired.resources.values():
        if each.address.kind is Kind.GRAPH:
            _adopt(site, draft, each.address.graph)
    state = draft.finished() or State(revision=1)
    site.write(base, state)
    return state


def _look_again(site: Site, draft: Draft, graph: str) -> None:
    address, schema = str(addresses.graph(graph)), str(addresses.schema(graph))
    seen = site.graphs.look(graph)
    if seen.fault is not None:
        site.said.warning("graph_observation_error", address, f"the graph cannot be looked at: {seen.fault}")
        draft.mark(address, Status.ERROR, seen.fault)
        return
    if not seen.is_there:
        site.said.warning("graph_observation_error", address, "the graph is gone; an apply would make it anew, empty")
        draft.drop(schema)
        draft.drop(address)
        return
    # A text that changes nothing is not stored with the graph: what was seen when it was applied counts as well.
    known = {draft.resources.get(schema, {}).get("digest"), draft.last_seen(graph).get("schema_digest")}
    if seen.schema_digest in known:
        draft.mark(address, Status.APPLIED)
        draft.mark(schema, Status.APPLIED)
    else:
        draft.keep(schema, {"digest": seen.schema_digest})
        draft.mark(schema, Status.DRIFTED, "the graph has another schema than was applied")
        site.said.warning(
            "conflicting_graph_manifest_observation", schema, "the graph has another schema than was applied"
        )
    draft.saw(graph, seen)


def _adopt(site: Site, draft: Draft, graph: str) -> None:
    seen = site.graphs.look(graph)
    if seen.fault is not None:
        message = f"the graph that is there cannot be looked at: {seen.fault}"
        site.said.error("graph_observation_error", str(addresses.graph(graph)), message)
        raise StoppedError
    if seen.is_there:
        draft.keep(str(addresses.graph(graph)), {"digest": seen.schema_digest})
        draft.keep(str(addresses.schema(graph)), {"digest": seen.schema_digest})
        draft.saw(graph, seen)


def _with_lost_payloads(site: Site, state: State) -> State:
    lost = site.lost_payloads(state)
    draft = Draft(state)
    for address, (code, reason) in lost.items():
        site.said.error(code, address, f"{reason}; run: omnigraph cluster apply")
        draft.mark(address, Status.ERROR, reason)
    return draft.so_far()


def _document(folder: Path, site: Site | None, state: State | None, said: Diagnostics) -> dict[str, Any]:
    shown = State() if state is None else state
    return {
        "ok": said.is_ok,
        "config_dir": str(folder),
        "state_observations": {} if site is None else site.observations(),
        "resource_digests": shown.digests,
        "resource_statuses": dict(shown.statuses),
        "observations": dict(shown.observations),
        "diagnostics": said.to_json(),
    }
