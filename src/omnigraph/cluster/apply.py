"""`cluster apply`: make a cluster match its configuration; the next apply recovers from a crash at any step.

A graph operation is noted in a sidecar first, then executed, then recorded in the ledger together with everything else
in one put, and only then is the sidecar deleted. Query and policy texts are stored under their digests before the
ledger references them. So a server that starts at any time finds a complete state.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omnigraph.cluster import addresses, layout, timestamps
from omnigraph.cluster.addresses import Address, Kind
from omnigraph.cluster.approvals import Approval
from omnigraph.cluster.catalog import payload_path
from omnigraph.cluster.changes import (
    Change,
    Disposition,
    Operation,
    block_dependents,
    defer_while_needed,
    matching_approvals,
)
from omnigraph.cluster.desired import Desired, Resource
from omnigraph.cluster.diagnostics import Diagnostics, Outcome, StoppedError
from omnigraph.cluster.draft import Draft
from omnigraph.cluster.files import read_file
from omnigraph.cluster.graphs import GraphObservation
from omnigraph.cluster.ledger import StoredState
from omnigraph.cluster.planning import make_plan
from omnigraph.cluster.recovery import recover
from omnigraph.cluster.session import ClusterSession, Environment, default_environment
from omnigraph.cluster.sidecars import Sidecar, SidecarKind
from omnigraph.cluster.state import Status
from omnigraph.errors import GraphError


def apply(folder: Path, *, actor: str | None = None, environment: Environment | None = None) -> Outcome:
    """Make a cluster match its configuration."""
    diagnostics = Diagnostics()
    run: _Apply | None = None
    session: ClusterSession | None = None
    try:
        session = ClusterSession(folder, environment or default_environment(), diagnostics=diagnostics)
        desired = session.valid_configuration.desired
        with session.hold_lock("apply"):
            run = _Apply(session, desired, session.require_ledger(), actor)
            run.run()
    except StoppedError:
        pass
    return _outcome(folder, session, run, diagnostics, actor=actor)


class _Apply:
    def __init__(self, session: ClusterSession, desired: Desired, base: StoredState, actor: str | None) -> None:
        self.session = session
        self.desired = desired
        self.actor = actor
        self.changes: list[Change] = []
        self.is_written = False
        self.draft = Draft(base.state)
        self._base = base
        self._start = base.state
        self._created: set[str] = set()
        self._finished_sidecars: list[Sidecar] = []
        self._used_approvals: list[Approval] = []

    @property
    def is_converged(self) -> bool:
        """True if nothing is left to apply."""
        settled = (Disposition.APPLIED, Disposition.DERIVED)
        return self.session.diagnostics.is_ok and all(change.disposition in settled for change in self.changes)

    def run(self) -> None:
        """Recover, plan, execute every change, write the ledger and clean up."""
        recovered = recover(self.session, self.draft)
        self._finished_sidecars += recovered.done
        self._used_approvals += recovered.approvals
        self._start = self.draft.current_state()
        plan = make_plan(self.session, self.desired, self._start)
        self.changes = plan.changes
        for index in range(len(self.changes)):
            self._apply_change(index, plan.approvals)
        self._write_ledger()
        self._clean_up()

    def _apply_change(self, index: int, approvals: Mapping[str, Sequence[Approval]]) -> None:
        change = self.changes[index]
        address = str(change.address)
        resource = self.desired.resources.get(address)
        match change.disposition:
            case Disposition.DERIVED:
                if resource is not None:  # else it is deleted with its graph
                    self.draft.put(address, resource.entry())
            case Disposition.DEFERRED:
                self._defer(change)
            case Disposition.BLOCKED:
                self.draft.mark(address, Status.BLOCKED, change.reason)
            case Disposition.APPLIED:
                try:
                    self._execute(change, resource, approvals)
                except (StoppedError, GraphError) as fault:
                    self._handle_failure(index, fault)

    def _handle_failure(self, index: int, fault: StoppedError | GraphError) -> None:
        change = self.changes[index]
        address = str(change.address)
        if isinstance(fault, GraphError):
            self.session.diagnostics.error(_failure_code(change), address, str(fault))
        if change.address.kind is Kind.POLICY:
            # The ledger must never have a graph without the policy that guards it.
            raise StoppedError from fault
        self.draft.mark(address, Status.ERROR, str(fault) or None)
        self.changes[index] = change.blocked(_failure_code(change))
        self.changes = block_dependents(self.changes, self.desired, [address])
        if change.address.kind is Kind.GRAPH and change.operation is Operation.DELETE:
            self._keep_dependencies(change.address)

    def _keep_dependencies(self, graph: Address) -> None:
        """Keep the policy and provider of a graph that could not be deleted."""
        staying = {
            change.address.graph
            for change in self.changes
            if change.address.kind is Kind.GRAPH
            and change.operation is Operation.DELETE
            and change.disposition is Disposition.BLOCKED
        }
        for index, change in enumerate(self.changes):
            kept = defer_while_needed(change, self.desired, self._start, staying)
            if change.address.graph == graph.graph and change.disposition is Disposition.DERIVED:
                kept = change.deferred(f"it is deleted with {graph}")
            if kept is change:
                continue
            self.changes[index] = kept
            if kept.disposition is Disposition.DEFERRED:
                self._defer(kept)
            else:
                self.draft.put(str(kept.address), _entry(kept, self.desired.resources[str(kept.address)]))

    def _defer(self, change: Change) -> None:
        """Leave a resource as it was; a policy to be deleted stays bound only to the graphs that still need it."""
        address = str(change.address)
        self.draft.restore(address, self._start)
        if change.address.kind is Kind.POLICY and change.operation is Operation.DELETE:
            self.draft.put(address, {**self.draft.resources[address], "applies_to": list(change.keeps)})
        self.draft.mark(address, Status.PENDING, change.reason)

    def _execute(self, change: Change, resource: Resource | None, approvals: Mapping[str, Sequence[Approval]]) -> None:
        address, kind, graph = str(change.address), change.address.kind, change.address.graph
        if resource is None:
            if kind is Kind.GRAPH:
                self._delete_graph(graph, approvals.get(graph, ()))
            self.draft.remove(address)
            return
        if kind is not Kind.SCHEMA or graph not in self._created:  # else the graph was created with it
            self._require_unchanged(resource)
        if kind is Kind.GRAPH and change.operation is Operation.CREATE:
            self._create_graph(graph)
        if kind is Kind.SCHEMA and graph not in self._created:
            self._apply_schema(graph, resource)
        path = payload_path(address, resource.digest)
        if path is not None:
            self.session.store.put(path, resource.body)
        self.draft.put(address, _entry(change, resource))

    def _require_unchanged(self, resource: Resource) -> None:
        """Stop if a file was edited during the apply: the ledger would reference a text that is not stored."""
        if resource.file is None:
            return
        code, address = "resource_content_changed", str(resource.address)
        body = read_file(
            self.session.folder, resource.file, code=code, path=address, diagnostics=self.session.diagnostics
        )
        if body is not None and body != resource.body:
            message = f"'{resource.file}' was changed during the apply; run it again"
            self.session.diagnostics.error(code, address, message)
        if body != resource.body:
            raise StoppedError

    # -- graphs -------------------------------------------------------------------------------------------------------

    def _create_graph(self, graph: str) -> None:
        schema = self.desired.resources[str(addresses.schema(graph))]
        self._require_unchanged(schema)
        self._finished_sidecars.append(self._write_sidecar(SidecarKind.GRAPH_CREATE, graph, schema.digest))
        if not self.session.graphs.create(graph, schema.body.decode(), actor=self.actor):
            message = "the graph already exists with this schema"
            self.session.diagnostics.warning("graph_create_skipped", str(addresses.graph(graph)), message)
        self._record_graph(graph, self.session.graphs.observe(graph), "graph_create_incomplete")
        self._created.add(graph)

    def _apply_schema(self, graph: str, schema: Resource) -> None:
        before = self.session.graphs.observe(graph)
        if before.schema_digest == schema.digest:
            message = "the graph already has this schema"
            self.session.diagnostics.warning("schema_apply_skipped", str(schema.address), message)
            self.draft.record_observation(graph, before)
            return
        self._finished_sidecars.append(
            self._write_sidecar(SidecarKind.SCHEMA_APPLY, graph, schema.digest, number=before.number)
        )
        observation = self.session.graphs.apply_schema(graph, schema.body.decode(), actor=self.actor)
        self._record_graph(graph, observation, "graph_observation_error")

    def _delete_graph(self, graph: str, approvals: Sequence[Approval]) -> None:
        address = str(addresses.graph(graph))
        # The plan already requires an approval; an irreversible change is checked twice.
        if not matching_approvals(approvals, graph, config_digest=self.desired.config_digest, state=self._start):
            self.session.diagnostics.error(
                "apply_approval_invariant_violation", address, "the deletion is not approved"
            )
            raise StoppedError
        if readers := self.session.graphs.readers(graph):
            message = f"a reader still holds commit {readers[0]}; apply again when it has finished"
            self.session.diagnostics.error("graph_delete_export_in_progress", address, message)
            raise StoppedError
        sidecar = self._write_sidecar(SidecarKind.GRAPH_DELETE, graph, "", approval=approvals[0].approval_id)
        if not self.session.graphs.has_files(graph):
            self.session.diagnostics.warning("graph_delete_skipped", address, "the graph was already deleted")
        elif not self.session.graphs.delete(graph):
            self.session.diagnostics.error(
                "graph_delete_incomplete", address, "some files of the graph are still there"
            )
            raise StoppedError
        self.draft.remove_graph(graph)
        # Only now: the sidecar of a failed deletion stays, so that the next apply finishes it.
        self._finished_sidecars.append(sidecar)
        self._used_approvals += approvals

    def _record_graph(self, graph: str, observation: GraphObservation, code: str) -> None:
        if observation.fault is not None or not observation.exists:
            self.session.diagnostics.error(
                code, str(addresses.graph(graph)), observation.fault or "the graph does not exist"
            )
            raise StoppedError
        self.draft.record_observation(graph, observation)

    def _write_sidecar(
        self, kind: SidecarKind, graph: str, digest: str, *, number: int | None = None, approval: str | None = None
    ) -> Sidecar:
        self.session.check_lock()
        sidecar = Sidecar(
            self.session.environment.ids.new(),
            timestamps.now(self.session.environment.clock),
            kind,
            graph,
            self.session.graphs.uri(graph),
            digest,
            self.actor,
            observed_manifest_version=number,
            expected_manifest_version=None if number is None else number + 1,
            state_cas_base=self._base.cas,
            approval_id=approval,
        )
        try:
            self.session.sidecars.put(sidecar)
        except GraphError as fault:
            self.session.diagnostics.error("recovery_sidecar_write_error", str(addresses.graph(graph)), str(fault))
            raise StoppedError from None
        return sidecar

    # -- ledger -------------------------------------------------------------------------------------------------------

    def _write_ledger(self) -> None:
        now, operation = timestamps.now(self.session.environment.clock), self.session.environment.ids.new()
        self._used_approvals = [approval.consumed(now, operation) for approval in self._used_approvals]
        for approval in self._used_approvals:
            self.draft.record_used_approval(approval)
        self.draft.reset_statuses(str(change.address) for change in self.changes)
        state = self.draft.next_state(self.desired if self.is_converged else None)
        self.session.write_ledger(self._base, state)  # if that fails, the sidecars stay for the next apply
        self.is_written = state is not None

    def _clean_up(self) -> None:
        """Update approval files and delete sidecars; the next apply cleans up what is left."""
        for approval in self._used_approvals:
            try:
                self.session.approvals.put(approval)
            except GraphError as fault:
                self.session.diagnostics.warning("approval_write_error", approval.resource, str(fault))
        for sidecar in self._finished_sidecars:
            try:
                self.session.sidecars.delete(sidecar)
            except GraphError as fault:
                path = layout.recovery(sidecar.operation_id)
                self.session.diagnostics.warning("recovery_sidecar_cleanup_failed", path, str(fault))


def _entry(change: Change, resource: Resource) -> dict[str, Any]:
    """Return the ledger entry of a resource; a policy keeps its bindings to graphs that are still to be deleted."""
    entry = resource.entry()
    if change.keeps:
        entry["applies_to"] = sorted({*entry["applies_to"], *change.keeps})
    return entry


def _failure_code(change: Change) -> str:
    match change.address.kind, change.operation:
        case Kind.GRAPH, Operation.DELETE:
            return "graph_delete_failed"
        case Kind.GRAPH, Operation.CREATE:
            return "graph_create_failed"
        case Kind.SCHEMA, _:
            return "schema_apply_failed"
        case _:
            return "resource_payload_write_error"


def _outcome(
    folder: Path, session: ClusterSession | None, run: _Apply | None, diagnostics: Diagnostics, *, actor: str | None
) -> Outcome:
    changes = [] if run is None else run.changes
    done = sum(change.disposition is Disposition.APPLIED for change in changes)
    left = sum(change.disposition in (Disposition.DEFERRED, Disposition.BLOCKED) for change in changes)
    converged = run is not None and run.is_converged
    is_written = run is not None and run.is_written
    configuration = None if session is None else session.configuration
    document: dict[str, Any] = {"ok": diagnostics.is_ok, "config_dir": str(folder)}
    if actor is not None:
        document["actor"] = actor
    observations = {} if session is None else session.observations()
    document |= {
        "desired_revision": {} if configuration is None else {"config_digest": configuration.desired.config_digest},
        "state_observations": observations,
        "changes": [change.to_json() for change in changes],
        "applied_count": done,
        "deferred_count": left,
        "converged": converged,
        "state_written": is_written,
        "resource_statuses": {} if run is None else dict(run.draft.current_state().statuses),
        "diagnostics": diagnostics.to_json(),
    }
    if run is None:
        return Outcome(document, ("cluster apply failed",), tuple(diagnostics))
    summary = (
        f"cluster apply: {done} applied, {left} deferred/blocked",
        *(change.result_line() for change in changes),
        f"  state: revision {observations['state_revision']}, converged: {str(converged).lower()}, "
        f"written: {str(is_written).lower()}",
    )
    return Outcome(document, summary, tuple(diagnostics))
