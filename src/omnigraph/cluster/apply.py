"""Making a cluster what its configuration says, so that a death at any step is made up for by the next apply.

What is done to a graph is noted first, then done, then written into the ledger in one put with everything else, and
only then is the note deleted. Texts of queries and policies are stored under their digests before the ledger names
them. So a server that starts at any moment finds a state that was whole.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnigraph.cluster import addresses, layout, moments
from omnigraph.cluster.addresses import Address, Kind
from omnigraph.cluster.approvals import Approval
from omnigraph.cluster.catalog import payload_path
from omnigraph.cluster.changes import Change, Disposition, Operation, fitting, held_up, while_needed
from omnigraph.cluster.desired import Desired, Resource
from omnigraph.cluster.diagnostics import Diagnostics, StoppedError
from omnigraph.cluster.draft import Draft
from omnigraph.cluster.files import read_file
from omnigraph.cluster.graphs import Seen
from omnigraph.cluster.ledger import Written
from omnigraph.cluster.outcome import Outcome
from omnigraph.cluster.planning import planned
from omnigraph.cluster.recovery import recover
from omnigraph.cluster.sidecars import Sidecar, SidecarKind
from omnigraph.cluster.site import Means, Site, usual_means
from omnigraph.cluster.state import Status
from omnigraph.errors import GraphError


def apply(folder: Path, *, actor: str | None = None, means: Means | None = None) -> Outcome:
    """Make a cluster what its configuration says.

    Args:
        folder: of the configuration.
        actor: who does it.
        means: what to work with; real stores by default.

    Returns:
        What was done, what was not, and whether anything is left to do.
    """
    said = Diagnostics()
    run: _Apply | None = None
    site: Site | None = None
    try:
        site = Site(folder, means or usual_means(), said=said)
        desired = site.usable.desired
        with site.locked("apply"):
            run = _Apply(site, desired, site.require(), actor)
            run.carry_out()
    except StoppedError:
        pass
    return _outcome(folder, site, run, said, actor=actor)


class _Apply:
    def __init__(self, site: Site, desired: Desired, base: Written, actor: str | None) -> None:
        self.site = site
        self.desired = desired
        self.actor = actor
        self.changes: list[Change] = []
        self.is_written = False
        self.draft = Draft(base.state)
        self._base = base
        self._start = base.state
        self._created: set[str] = set()
        self._settled: list[Sidecar] = []
        self._used: list[Approval] = []

    @property
    def is_converged(self) -> bool:
        """Whether nothing is left to do."""
        settled = (Disposition.APPLIED, Disposition.DERIVED)
        return self.site.said.is_ok and all(each.disposition in settled for each in self.changes)

    def carry_out(self) -> None:
        """Do what is to be done, write it down, and clear away."""
        recovered = recover(self.site, self.draft)
        self._settled += recovered.done
        self._used += recovered.approvals
        self._start = self.draft.so_far()
        plan = planned(self.site, self.desired, self._start)
        self.changes = plan.changes
        for at in range(len(self.changes)):
            self._one(at, plan.approvals)
        self._write_down()
        self._clear_away()

    def _one(self, at: int, approvals: Mapping[str, Sequence[Approval]]) -> None:
        change = self.changes[at]
        address = str(change.address)
        resource = self.desired.resources.get(address)
        match change.disposition:
            case Disposition.DERIVED:
                if resource is not None:  # else it goes with its graph
                    self.draft.keep(address, resource.entry())
            case Disposition.DEFERRED:
                self._hold_back(change)
            case Disposition.BLOCKED:
                self.draft.mark(address, Status.BLOCKED, change.reason)
            case Disposition.APPLIED:
                try:
                    self._do(change, resource, approvals)
                except (StoppedError, GraphError) as fault:
                    self._failed(at, fault)

    def _failed(self, at: int, fault: StoppedError | GraphError) -> None:
        change = self.changes[at]
        address = str(change.address)
        if isinstance(fault, GraphError):
            self.site.said.error(_failure(change), address, str(fault))
        if change.address.kind is Kind.POLICY:
            # Never a ledger with a graph in it and not the policy that was to guard it.
            raise StoppedError from fault
        self.draft.mark(address, Status.ERROR, str(fault) or None)
        self.changes[at] = change.blocked(_failure(change))
        self.changes = held_up(self.changes, self.desired, [address])
        if change.address.kind is Kind.GRAPH and change.operation is Operation.DELETE:
            self._keep_what_it_needs(change.address)

    def _keep_what_it_needs(self, graph: Address) -> None:
        """A graph that could not be deleted is still there: what guards and feeds it must not go either."""
        staying = {
            each.address.graph
            for each in self.changes
            if each.address.kind is Kind.GRAPH
            and each.operation is Operation.DELETE
            and each.disposition is Disposition.BLOCKED
        }
        for at, change in enumerate(self.changes):
            kept = while_needed(change, self.desired, self._start, staying)
            if change.address.graph == graph.graph and change.disposition is Disposition.DERIVED:
                kept = change.deferred(f"it goes with {graph}")
            if kept is change:
                continue
            self.changes[at] = kept
            if kept.disposition is Disposition.DEFERRED:
                self._hold_back(kept)
            else:
                self.draft.keep(str(kept.address), _entry(kept, self.desired.resources[str(kept.address)]))

    def _hold_back(self, change: Change) -> None:
        """A resource stays what it was; a policy that is to go, only for the graphs that still need it."""
        address = str(change.address)
        self.draft.restore(address, self._start)
        if change.address.kind is Kind.POLICY and change.operation is Operation.DELETE:
            self.draft.keep(address, {**self.draft.resources[address], "applies_to": list(change.keeps)})
        self.draft.mark(address, Status.PENDING, change.reason)

    def _do(self, change: Change, resource: Resource | None, approvals: Mapping[str, Sequence[Approval]]) -> None:
        address, kind, graph = str(change.address), change.address.kind, change.address.graph
        if resource is None:
            if kind is Kind.GRAPH:
                self._delete_graph(graph, approvals.get(graph, ()))
            self.draft.drop(address)
            return
        if kind is not Kind.SCHEMA or graph not in self._created:  # else the graph was made with it
            self._check_unchanged(resource)
        if kind is Kind.GRAPH and change.operation is Operation.CREATE:
            self._create_graph(graph)
        if kind is Kind.SCHEMA and graph not in self._created:
            self._apply_schema(graph, resource)
        path = payload_path(address, resource.digest)
        if path is not None:
            self.site.store.put(path, resource.body)
        self.draft.keep(address, _entry(change, resource))

    def _check_unchanged(self, resource: Resource) -> None:
        """A file that is edited while it is applied is not: the ledger would tell of a text that is nowhere."""
        if resource.file is None:
            return
        code, address = "resource_content_changed", str(resource.address)
        body = read_file(self.site.folder, resource.file, code=code, path=address, said=self.site.said)
        if body is not None and body != resource.body:
            message = f"'{resource.file}' was changed while it was applied; run it again"
            self.site.said.error(code, address, message)
        if body != resource.body:
            raise StoppedError

    # -- graphs -------------------------------------------------------------------------------------------------------

    def _create_graph(self, graph: str) -> None:
        schema = self.desired.resources[str(addresses.schema(graph))]
        self._check_unchanged(schema)
        self._settled.append(self._note(SidecarKind.GRAPH_CREATE, graph, schema.digest))
        if not self.site.graphs.create(graph, schema.body.decode(), actor=self.actor):
            message = "the graph was there already, with that very schema"
            self.site.said.warning("graph_create_skipped", str(addresses.graph(graph)), message)
        self._take_in(graph, self.site.graphs.look(graph), "graph_create_incomplete")
        self._created.add(graph)

    def _apply_schema(self, graph: str, schema: Resource) -> None:
        before = self.site.graphs.look(graph)
        if before.schema_digest == schema.digest:
            message = "the graph has that very schema already"
            self.site.said.warning("schema_apply_skipped", str(schema.address), message)
            self.draft.saw(graph, before)
            return
        self._settled.append(self._note(SidecarKind.SCHEMA_APPLY, graph, schema.digest, number=before.number))
        seen = self.site.graphs.apply_schema(graph, schema.body.decode(), actor=self.actor)
        self._take_in(graph, seen, "graph_observation_error")

    def _delete_graph(self, graph: str, approvals: Sequence[Approval]) -> None:
        address = str(addresses.graph(graph))
        # The plan lets nothing come here without an approval. What cannot be undone is looked at twice.
        if not fitting(approvals, graph, config_digest=self.desired.config_digest, state=self._start):
            self.site.said.error("apply_approval_invariant_violation", address, "nobody approved that it goes")
            raise StoppedError
        if readers := self.site.graphs.readers(graph):
            message = f"somebody still reads it, at commit {readers[0]}: apply again when that is done"
            self.site.said.error("graph_delete_export_in_progress", address, message)
            raise StoppedError
        note = self._note(SidecarKind.GRAPH_DELETE, graph, "", approval=approvals[0].approval_id)
        if not self.site.graphs.is_anything_left(graph):
            self.site.said.warning("graph_delete_skipped", address, "the graph was gone already")
        elif not self.site.graphs.delete(graph):
            self.site.said.error("graph_delete_incomplete", address, "something of the graph is still there")
            raise StoppedError
        self.draft.drop_graph(graph)
        # Only now: a deletion that failed half way stays noted, so that the next apply carries it through.
        self._settled.append(note)
        self._used += approvals

    def _take_in(self, graph: str, seen: Seen, code: str) -> None:
        if seen.fault is not None or not seen.is_there:
            self.site.said.error(code, str(addresses.graph(graph)), seen.fault or "the graph is not there")
            raise StoppedError
        self.draft.saw(graph, seen)

    def _note(
        self, kind: SidecarKind, graph: str, digest: str, *, number: int | None = None, approval: str | None = None
    ) -> Sidecar:
        self.site.check_lock()
        sidecar = Sidecar(
            self.site.means.ids.new(),
            moments.now(self.site.means.clock),
            kind,
            graph,
            self.site.graphs.uri(graph),
            digest,
            self.actor,
            observed_manifest_version=number,
            expected_manifest_version=None if number is None else number + 1,
            state_cas_base=self._base.cas,
            approval_id=approval,
        )
        try:
            self.site.sidecars.put(sidecar)
        except GraphError as fault:
            self.site.said.error("recovery_sidecar_write_error", str(addresses.graph(graph)), str(fault))
            raise StoppedError from None
        return sidecar

    # -- the end ------------------------------------------------------------------------------------------------------

    def _write_down(self) -> None:
        at, operation = moments.now(self.site.means.clock), self.site.means.ids.new()
        self._used = [each.consumed(at, operation) for each in self._used]
        for each in self._used:
            self.draft.used(each)
        self.draft.tidy(str(each.address) for each in self.changes)
        state = self.draft.finished(self.desired if self.is_converged else None)
        self.site.write(self._base, state)  # if that fails the notes stay, for whoever comes next
        self.is_written = state is not None

    def _clear_away(self) -> None:
        """What is left here is cleared by the next apply; nothing depends on it."""
        for each in self._used:
            try:
                self.site.approvals.put(each)
            except GraphError as fault:
                self.site.said.warning("approval_write_error", each.resource, str(fault))
        for note in self._settled:
            try:
                self.site.sidecars.delete(note)
            except GraphError as fault:
                path = layout.recovery(note.operation_id)
                self.site.said.warning("recovery_sidecar_cleanup_failed", path, str(fault))


def _entry(change: Change, resource: Resource) -> dict[str, Any]:
    """What the ledger keeps of a resource: a policy also for graphs that are still to go."""
    entry = resource.entry()
    if change.keeps:
        entry["applies_to"] = sorted({*entry["applies_to"], *change.keeps})
    return entry


def _failure(change: Change) -> str:
    match change.address.kind, change.operation:
        case Kind.GRAPH, Operation.DELETE:
            return "graph_delete_failed"
        case Kind.GRAPH, Operation.CREATE:
            return "graph_create_failed"
        case Kind.SCHEMA, _:
            return "schema_apply_failed"
        case _:
            return "resource_payload_write_error"


def _outcome(folder: Path, site: Site | None, run: _Apply | None, said: Diagnostics, *, actor: str | None) -> Outcome:
    changes = [] if run is None else run.changes
    done = sum(each.disposition is Disposition.APPLIED for each in changes)
    left = sum(each.disposition in (Disposition.DEFERRED, Disposition.BLOCKED) for each in changes)
    converged = run is not None and run.is_converged
    is_written = run is not None and run.is_written
    configuration = None if site is None else site.configuration
    document: dict[str, Any] = {"ok": said.is_ok, "config_dir": str(folder)}
    if actor is not None:
        document["actor"] = actor
    observations = {} if site is None else site.observations()
    document |= {
        "desired_revision": {} if configuration is None else {"config_digest": configuration.desired.config_digest},
        "state_observations": observations,
        "changes": [each.to_json() for each in changes],
        "applied_count": done,
        "deferred_count": left,
        "converged": converged,
        "state_written": is_written,
        "resource_statuses": {} if run is None else dict(run.draft.so_far().statuses),
        "diagnostics": said.to_json(),
    }
    if run is None:
        return Outcome(document, ("cluster apply failed",), tuple(said))
    summary = (
        f"cluster apply: {done} applied, {left} deferred/blocked",
        *(each.applied_line() for each in changes),
        f"  state: revision {observations['state_revision']}, converged: {str(converged).lower()}, "
        f"written: {str(is_written).lower()}",
    )
    return Outcome(document, summary, tuple(said))
