"""Death in the middle of a merge, at every step it takes: merged or not at all, and the next write goes through."""

from collections.abc import Callable, Iterable
from itertools import chain, islice
from pathlib import Path

import pytest
from tests.support.cuts import Copies, Cut, at_every_failpoint, at_every_request

import omnigraph
from omnigraph import Graph, GraphError, OpenOptions
from omnigraph.failpoints import Failpoint
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.recovery import Healed, heal

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person
"""
FAST = OpenOptions(durability="process", auto_compact=False)
State = dict[str, list[tuple[object, ...]]]

MERGES = {
    # People were changed on both branches, cities on one: rows are staged, and a version is taken over.
    "rows and versions": ("side", "main"),
    "only versions": ("ahead", "main"),
    "only rows": ("rows", "main"),
    "a schema": ("evolved", "main"),
}


def build(root: Path) -> None:
    with omnigraph.init(LocalStore(root, durability=Durability.PROCESS), SCHEMA, options=FAST) as graph:
        people = [{"name": name, "age": age} for name, age in (("Ann", 1), ("Ben", 2), ("Cid", 3))]
        graph.write({"Person": people}, {"Knows": [{"id": "k", "from": "Ann", "to": "Ben"}]})
        for branch in ("side", "ahead", "rows", "evolved"):
            graph.branches.create(branch)
        for branch in ("side", "rows"):
            graph.write({"Person": [{"name": "Ann", "age": 10}, {"name": "New"}]}, mode="merge", branch=branch)
            graph.mutate('query q() { delete Person where name = "Cid" }', branch=branch)
        for branch in ("side", "ahead"):
            graph.write({"City": [{"name": "Oslo"}]}, branch=branch)
        graph.schema_apply(SCHEMA.replace("age: I32?", "age: I32?  mail: String?"), branch="evolved")
        graph.write({"Person": [{"name": "Eve", "mail": "e@e"}]}, branch="evolved")
        graph.write({"Person": [{"name": "Ben", "age": 20}]}, mode="merge")


@pytest.fixture(scope="module")
def template(_fast_folder: Path) -> Path:
    build(_fast_folder / "merges")
    return _fast_folder / "merges"


@pytest.fixture
def merges(template: Path, folder: Path) -> Copies:
    return Copies(template, folder)


def opened(store: FaultyStore) -> Graph:
    return omnigraph.open(store, options=FAST, clock=ManualClock())


def state(graph: Graph) -> State:
    """Everything on the target, and which schema it has."""
    found: State = {"schema": [(graph.schema_text(),)]}
    for type_name in ("Person", "City", "Knows"):
        rows = graph.export_arrow(type_name).read_all().to_pylist()
        found[type_name] = sorted((tuple(row.values()) for row in rows), key=repr)
    return found


def merging(name: str) -> Callable[[FaultyStore], None]:
    source, target = MERGES[name]

    def work(store: FaultyStore) -> None:
        with opened(store) as graph:
            graph.merge(source, into=target)

    return work


def before_and_after(merges: Copies, name: str) -> tuple[State, State]:
    store = merges.fresh()
    with opened(store) as graph:
        before = state(graph)
        merging(name)(store)
        after = state(graph)
        check_graph(graph._parts)
    assert before != after
    merges.throw_away(store)
    return before, after


def check_after_death(cuts: Iterable[Cut], name: str, before: State, after: State) -> list[State]:
    """Open each graph again as a new process would; returns which of both states it was in."""
    found = []
    for cut in cuts:
        with opened(cut.store) as graph:
            seen = state(graph)
            assert seen in (before, after), cut.where
            graph.write({"City": [{"name": "next"}]})
            assert heal(graph._parts) == Healed(), cut.where
            source, target = MERGES[name]
            again = graph.merge(source, into=target)
            assert (again.outcome == "already_up_to_date") == (seen == after), cut.where
            whole = state(graph)
            whole["City"] = [row for row in whole["City"] if row[0] != "next"]
            assert whole == after, cut.where
            check_graph(graph._parts)
        found.append(seen)
    return found


@pytest.mark.parametrize("name", ["rows and versions", "a schema"])
def test_a_merge_that_dies_after_a_request_is_there_whole_or_not_at_all(name: str, merges: Copies) -> None:
    before, after = before_and_after(merges, name)
    work = merging(name)
    untouched = islice(at_every_request(merges, Fault.CRASH_BEFORE, work), 1)
    cuts = chain(untouched, at_every_request(merges, Fault.CRASH_AFTER, work))
    seen = check_after_death(cuts, name, before, after)
    assert (seen[0], seen[-1]) == (before, after)


@pytest.mark.parametrize("name", ["rows and versions"])
def test_a_merge_that_dies_between_two_steps_is_there_whole_or_not_at_all(name: str, merges: Copies) -> None:
    before, after = before_and_after(merges, name)
    places = [place for place in Failpoint if place.startswith(("write.", "publish.entry_put", "publish.intent"))]
    seen = check_after_death(at_every_failpoint(merges, merging(name), places), name, before, after)
    assert before in seen
    assert after in seen


def test_a_merge_that_meets_an_error_changes_nothing_and_says_so(merges: Copies) -> None:
    """A full disk, say. Only the note of the merge may stay behind where even that cannot be deleted."""
    name = "rows and versions"
    before, after = before_and_after(merges, name)
    for cut in at_every_request(merges, Fault.NO_SPACE, merging(name)):
        [seen] = check_after_death([cut], name, before, after)
        assert (seen == before) == isinstance(cut.raised, GraphError), cut.where


@pytest.mark.torture
@pytest.mark.parametrize("name", MERGES)
def test_a_merge_that_dies_anywhere_is_there_whole_or_not_at_all(name: str, merges: Copies) -> None:
    before, after = before_and_after(merges, name)
    work = merging(name)
    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
        check_after_death(at_every_request(merges, fault, work), name, before, after)
    # What takes over versions as they are has nothing to make durable.
    cuts = at_every_request(merges, Fault.CRASH_BEFORE, work, kind=RequestKind.MAKE_DURABLE, or_none=True)
    check_after_death(cuts, name, before, after)
    check_after_death(at_every_failpoint(merges, work), name, before, after)
