"""A cluster's apply, cut at every step it takes: the next one finishes it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.cuts import Copies, Cut, at_every_request
from tests.support.small_cluster import POLICY, QUERIES, SCHEMA, Cluster

from omnigraph.cluster.diagnostics import Outcome
from omnigraph.cluster.serving import load_applied
from omnigraph.errors import GraphError
from omnigraph.storage.object_stores.forwarding import DURABLE_REQUESTS, RequestKind, T
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.faults import Fault, Faults
from omnigraph.testing.stores import FaultyStore

CANNOT_SERVE = {"cluster_state_missing", "cluster_empty", "cluster_no_healthy_graphs"}


def at(folder: str | Path, faults: Faults | None = None) -> Cluster:
    """The cluster in a folder, on stores that fail where a test says."""
    shared = faults or Faults()
    return Cluster(Path(folder), lambda uri: FaultyStore(LocalStore(uri, durability=Durability.PROCESS), shared))


@dataclass(frozen=True, slots=True)
class Work:
    """What is cut, and what must come of it in the end."""

    prepare: Callable[[Cluster], object]
    command: Callable[[Cluster], Outcome]
    resources: frozenset[str]


def _declared(cluster: Cluster) -> None:
    assert cluster.begin().is_ok


def _changed(cluster: Cluster) -> None:
    _declared(cluster)
    assert cluster.apply().document["converged"]
    cluster.write("people.pg", SCHEMA.replace("}", " age: I32? }"))
    cluster.write("people.gq", QUERIES.replace("$p.name }", "$p.name, $p.age }"))
    cluster.write("base.policy.yaml", POLICY.replace("[read]", "[read, export]"))


def _removed(cluster: Cluster) -> None:
    _declared(cluster)
    assert cluster.apply().document["converged"]
    cluster.declare(graphs={}, policies={})
    assert cluster.approve("graph.people").is_ok


WHOLE = frozenset({"graph.people", "schema.people", "query.people.find", "policy.base"})
WORKS = {
    "import": Work(lambda cluster: None, Cluster.begin, frozenset()),
    "create": Work(_declared, Cluster.apply, WHOLE),
    "change": Work(_changed, Cluster.apply, WHOLE),
    "delete": Work(_removed, Cluster.apply, frozenset()),
}


def cuts(
    tmp_path: Path, work: Work, fault: Fault, *, kind: RequestKind | None = None, path_part: str = ""
) -> Iterator[Cut]:
    template = tmp_path / "template"
    template.mkdir()
    work.prepare(at(template))
    return at_every_request(
        Copies(template, tmp_path / "copies"),
        fault,
        lambda store: work.command(at(store.uri, store.faults)),
        kind=kind,
        path_part=path_part,
    )


def what_is_served_is_guarded(cluster: Cluster, *, wholly: bool = True) -> None:
    try:
        found = load_applied(cluster.folder)
    except GraphError as fault:
        assert fault.code in CANNOT_SERVE
        return
    for graph in found.graphs:
        if graph.quarantine is None:
            assert graph.policy is not None
            assert set(graph.queries) == {"find"} or not wholly
            assert graph.uri == str(cluster.folder / "graphs" / "people.omni")


def finished(cluster: Cluster, work: Work) -> None:
    """Do what an operator does: begin the ledger if need be, and apply again. The lock of the dead is no matter."""
    found = cluster.status().document["state_observations"]
    if not found["state_found"]:
        assert cluster.begin().is_ok
    if work.command is Cluster.begin:
        assert cluster.status().document["state_observations"]["state_revision"] == 1
        return
    outcome = cluster.apply()
    assert outcome.document["converged"], outcome.lines()
    assert set(cluster.state()["applied_revision"]["resources"]) == work.resources
    assert cluster.files("recoveries") == []
    assert not (cluster.folder / "__cluster" / "lock.json").exists()
    assert cluster.status().is_ok
    again = cluster.apply().document
    assert (again["changes"], again["state_written"]) == ([], False)
    if work.resources:
        what_is_served_is_guarded(cluster)
        assert all(graph.quarantine is None for graph in load_applied(cluster.folder).graphs)
    else:
        assert not list((cluster.folder / "graphs").rglob("*.lance"))
        assert all("consumed_at" in each for each in cluster.state()["approval_records"].values())
        assert len(cluster.state()["approval_records"]) == 1


# Dying before a step is dying after the one before, so one of the two is enough for every day.
@pytest.mark.parametrize("fault", [Fault.CRASH_AFTER, pytest.param(Fault.CRASH_BEFORE, marks=pytest.mark.torture)])
@pytest.mark.parametrize("name", WORKS)
def test_whoever_dies_at_any_step_leaves_something_the_next_apply_finishes(
    tmp_path: Path, name: str, fault: Fault
) -> None:
    work = WORKS[name]
    count = 0
    for cut in cuts(tmp_path, work, fault):
        count += 1
        assert cut.raised is not None, cut.where
        cluster = at(cut.store.uri)
        what_is_served_is_guarded(cluster)
        finished(cluster, work)
    assert count >= 4


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.NO_SPACE])
@pytest.mark.parametrize("name", ["create", "change", "delete"])
def test_a_request_that_fails_is_told_and_made_up_for_by_the_next_apply(
    tmp_path: Path, name: str, fault: Fault
) -> None:
    work = WORKS[name]
    for cut in cuts(tmp_path, work, fault):
        assert cut.raised is None, f"{cut.where}: {cut.raised}"  # told in the outcome, never thrown
        cluster = at(cut.store.uri)
        what_is_served_is_guarded(cluster, wholly=False)
        finished(cluster, work)


class Between(Faults):
    """Does something just before one of the requests that change anything."""

    def __init__(self, step: int, do: Callable[[], None]) -> None:
        super().__init__()
        self._left = step
        self._do = do

    def around(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        """Send a request, the chosen one after something else."""
        if kind in DURABLE_REQUESTS:
            self._left -= 1
            if self._left == 0:
                self._do()
        return send()


@pytest.mark.parametrize("name", ["create", "change"])
def test_two_that_apply_at_once_without_a_lock_end_where_one_would(tmp_path: Path, name: str) -> None:
    """The second comes in at every step of the first: the fence alone keeps the ledger right."""
    work = WORKS[name]
    template = tmp_path / "template"
    template.mkdir()
    prepared = at(template)
    work.prepare(prepared)
    prepared.declare(state={"lock": False})
    copies = Copies(template, tmp_path / "copies")
    for step in range(1, 100):
        folder = copies.fresh().uri
        second: list[Outcome] = []

        def come_in(folder: str = folder, second: list[Outcome] = second) -> None:
            second.append(at(folder).apply())

        first = at(folder, Between(step, come_in)).apply()
        if not second:
            break
        for outcome in (first, *second):
            refused = {each.code for each in outcome.diagnostics if each.severity == "error"}
            assert refused <= {"state_cas_mismatch", "graph_create_failed", "schema_apply_failed"}, outcome.lines()
        finished(at(folder), work)
    assert step > 4


@pytest.mark.parametrize("kind", [RequestKind.GET, RequestKind.LIST])
@pytest.mark.parametrize("name", ["create", "delete"])
def test_a_document_that_cannot_be_read_is_told_and_changes_nothing_for_good(
    tmp_path: Path, name: str, kind: RequestKind
) -> None:
    work = WORKS[name]
    for cut in cuts(tmp_path, work, Fault.FAIL_BEFORE, kind=kind, path_part="__cluster"):
        assert cut.raised is None, f"{cut.where}: {cut.raised}"
        cluster = at(cut.store.uri)
        what_is_served_is_guarded(cluster)
        finished(cluster, work)
