"""Merge bases outlive pruning, sweeping and the deletion of branches."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.needed_files import AT_ONCE

import omnigraph
from omnigraph import ConflictError, Graph, NotFoundError, limits
from omnigraph.api.schemas import Schemas
from omnigraph.branch import adoption
from omnigraph.branch.lineage import entry_of_commit
from omnigraph.failpoints import Failpoint, armed
from omnigraph.ids import UlidSource
from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.storage.object_stores import MemoryStore
from omnigraph.storage.records.read import CUT_MARK
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import open_root

SCHEMA = "node Person { name: String @key  age: I32? }"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(f"ancestry-{UlidSource().new()}")


@pytest.fixture
def graph(store: MemoryStore) -> Iterator[Graph]:
    omnigraph.init(store, SCHEMA).close()
    parts = open_root(store, settings=AT_ONCE)
    with Graph(parts, Schemas(parts)) as opened:
        put(opened, "main", a=0, b=0, c=0)
        opened.branches.create("agent")
        yield opened


def put(graph: Graph, branch: str, **ages: int) -> None:
    rows = [{"name": name, "age": age} for name, age in ages.items()]
    graph.write({"Person": rows}, mode="merge", branch=branch)


def drop(graph: Graph, branch: str, name: str) -> None:
    graph.mutate(f'query q() {{ delete Person where name = "{name}" }}', branch=branch)


def ages(graph: Graph, branch: str = "main") -> dict[str, int]:
    rows = graph.export_arrow("Person", branch=branch).read_all().to_pylist()
    return {row["id"]: row["age"] for row in sorted(rows, key=lambda row: str(row["id"]))}


def clean(graph: Graph, keep: int) -> None:
    graph.cleanup(keep=keep, confirm=True)


def test_a_row_deleted_after_it_was_merged_does_not_come_back(graph: Graph) -> None:
    put(graph, "agent", bad=1)
    graph.merge("agent")
    drop(graph, "main", "bad")
    for number in range(3):
        put(graph, "agent", good=number)
        put(graph, "main", a=number)
    clean(graph, keep=2)
    assert graph.merge("agent", prefer="target").outcome == "merged"
    assert ages(graph) == {"a": 2, "b": 0, "c": 0, "good": 2}


def test_what_a_branch_did_to_merged_rows_is_not_dropped(graph: Graph) -> None:
    put(graph, "agent", x=1, y=1)
    graph.merge("agent")
    put(graph, "agent", x=2)
    drop(graph, "agent", "y")
    for number in range(3):
        put(graph, "main", a=number)
    clean(graph, keep=2)
    assert graph.merge("agent").outcome == "merged"
    assert ages(graph) == {"a": 2, "b": 0, "c": 0, "x": 2}


@pytest.mark.parametrize("keep", [1, 2])
def test_after_a_cleanup_branches_are_merged_in_both_directions(graph: Graph, keep: int) -> None:
    for number in range(4):
        put(graph, "agent", a=number, agent=number)
        put(graph, "main", b=number, main=number)
        clean(graph, keep=keep)
    put(graph, "main", late=1)
    assert graph.merge("main", into="agent").outcome == "merged"
    assert ages(graph, "agent") == {"a": 3, "agent": 3, "b": 3, "c": 0, "late": 1, "main": 3}
    clean(graph, keep=keep)
    put(graph, "main", c=5)
    clean(graph, keep=keep)
    drop(graph, "agent", "late")
    assert graph.merge("agent").outcome == "merged"
    assert ages(graph) == {"a": 3, "agent": 3, "b": 3, "c": 5, "main": 3}
    clean(graph, keep=keep)
    assert graph.merge("main", into="agent").outcome == "fast_forward"
    assert ages(graph, "agent") == ages(graph)


def test_a_base_on_a_branch_that_was_deleted_is_kept(graph: Graph) -> None:
    """`topic` came to both branches by a merge: what one of them did to its rows since is done by that one alone."""
    graph.branches.create("topic")
    put(graph, "topic", t=1, u=1)
    put(graph, "agent", a=1)
    put(graph, "main", b=1)
    graph.merge("topic")
    graph.merge("topic", into="agent")
    graph.branches.delete("topic")
    drop(graph, "main", "t")
    put(graph, "agent", u=2)
    clean(graph, keep=1)
    clean(graph, keep=1)
    assert graph.merge("agent").outcome == "merged"
    assert ages(graph) == {"a": 1, "b": 1, "c": 0, "u": 2}


def test_a_branch_of_a_deleted_branch_is_merged_from_where_it_began(graph: Graph) -> None:
    put(graph, "agent", x=1)
    graph.branches.create("child", source="agent")
    put(graph, "agent", y=1)
    put(graph, "child", x=2)
    graph.merge("agent")
    drop(graph, "main", "a")
    graph.branches.delete("agent")
    clean(graph, keep=1)
    clean(graph, keep=1)
    assert graph.merge("child").outcome == "merged"
    assert ages(graph) == {"b": 0, "c": 0, "x": 2, "y": 1}


@pytest.mark.parametrize("has_commit", [False, True])
def test_a_base_is_found_where_the_fork_that_led_to_it_was_cut(graph: Graph, *, has_commit: bool) -> None:
    graph.branches.create("other")
    put(graph, "other", d=1)
    graph.branches.create("helper")  # the first entry of a log is never cut, so this is not the life that counts
    graph.branches.delete("helper")
    graph.branches.create("helper", source="other")
    if has_commit:
        put(graph, "helper", d=2)
    put(graph, "agent", b=1)
    graph.merge("helper", into="agent")
    graph.branches.delete("helper")
    graph.sweep(older_than=0)
    graph.sweep(older_than=0)
    drop(graph, "main", "a")
    graph.merge("agent")
    assert ages(graph) == {"b": 1, "c": 0, "d": 2 if has_commit else 1}
    assert graph.verify(deep=True).is_whole


@pytest.mark.parametrize("is_source_cut", [False, True])
@pytest.mark.parametrize("has_older", [False, True])
@pytest.mark.parametrize("sweeps", [1, 2])
def test_a_base_is_found_where_the_mark_before_a_held_commit_was_cut(
    graph: Graph, sweeps: int, *, has_older: bool, is_source_cut: bool
) -> None:
    """The commit that `topic` began with lies on main; its own log showed it by a mark that is cut."""
    put(graph, "main", bad=1)
    graph.branches.create("late")
    put(graph, "main", a=1)
    graph.branches.create("topic")
    put(graph, "agent", x=1)
    put_marks(graph, 4)
    drop(graph, "topic", "bad")
    graph.branches.create("holder", source="topic")
    if has_older:
        graph.merge("agent", into="topic")  # another way down, to a commit below the base
    for number in range(3):
        put(graph, "topic", t=number)
        put(graph, "main", m=number)
    if is_source_cut:
        graph.prune("main", keep=1, now=True)
    for number in range(sweeps):
        put(graph, "topic", c=number)
        graph.prune("topic", keep=1, now=True)
        graph.sweep(older_than=0)
    put(graph, "late", b=1)
    for branch in ("late", "agent", "main"):
        graph.merge(branch, into="topic")
    assert ages(graph, "topic") == {"a": 1, "b": 1, "c": sweeps - 1, "m": 2, "t": 2, "x": 1}
    assert graph.verify(deep=True).is_whole


@pytest.mark.parametrize("counted", [1, 2, 3, 4])
def test_a_base_is_found_behind_entries_that_are_kept_for_others(
    graph: Graph, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, counted: int
) -> None:
    """In graphs of many types, entries stay that others count from: marks, and commits that cannot be read any more."""
    monkeypatch.setattr(limits, "WHOLE_MAP_TYPES_MAX", 0)
    monkeypatch.setattr(limits, "WHOLE_MAP_EVERY_ENTRIES", counted)
    put(graph, "main", bad=1)
    graph.branches.create("late")
    graph.branches.create("topic")
    for number in range(4):
        put(graph, "topic", t=number)
    for _ in range(2):
        put_marks(graph, 4)
    drop(graph, "topic", "bad")
    graph.branches.create("holder", source="topic")
    for number in range(4):
        put(graph, "topic", t=number)
    commits = [commit.id for commit in graph.commits.list("topic")]
    graph.prune("topic", keep=1, now=True)
    for _ in range(2):
        graph.sweep(older_than=0)
    context = open_root(store, settings=AT_ONCE)
    found = [entry_of_commit(context, context.log.live_head("topic"), commit) for commit in commits]
    assert all(entry is None or entry.commit == commit for entry, commit in zip(found, commits, strict=True))
    assert found[0] is not None
    put(graph, "late", x=1)
    graph.merge("late", into="topic")
    assert ages(graph, "topic") == {"a": 0, "b": 0, "c": 0, "t": 3, "x": 1}


def put_marks(graph: Graph, branches: int) -> None:
    """Put an entry that is no commit on every branch."""
    graph.branches.create("other")
    put(graph, "other", a=2)
    graph.branches.delete("other")
    assert graph.sweep(older_than=0).swept.barriers == branches


def test_ancestry_that_nobody_needs_is_given_back(graph: Graph, store: MemoryStore) -> None:
    put(graph, "agent", x=1)
    put(graph, "main", a=1)
    graph.merge("agent")
    for number in range(3):
        put(graph, "main", a=number)
    clean(graph, keep=1)
    graph.branches.delete("agent")
    clean(graph, keep=1)
    put(graph, "main", a=9)
    clean(graph, keep=1)
    clean(graph, keep=1)
    assert not list(store.list(paths.ANCESTRY))


def test_a_base_that_is_gone_is_refused_and_never_replaced(graph: Graph, store: MemoryStore) -> None:
    """As graphs are that an earlier release has swept: the log is cut, and nothing tells what was there."""
    put(graph, "agent", bad=1)
    graph.merge("agent")
    graph.branches.create("kept", source="agent")
    base = graph.snapshot(branch="kept").commit
    drop(graph, "main", "bad")
    for number in range(3):
        put(graph, "agent", good=number)
        put(graph, "main", a=number)
    clean(graph, keep=1)
    for file in list(store.list(paths.ANCESTRY)):
        store.delete(file.path)
    with pytest.raises(ConflictError) as refused:
        graph.merge("agent")
    assert refused.value.code == "merge_base_missing"
    assert "base=" in refused.value.message
    assert ages(graph) == {"a": 2, "b": 0, "c": 0}
    with pytest.raises(NotFoundError):
        graph.merge("agent", base="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert graph.merge("agent", base=base).base == base
    assert ages(graph) == {"a": 2, "b": 0, "c": 0, "good": 2}


# -- what a branch has inherited from one that was deleted ------------------------------------------------------------


@pytest.fixture
def orphan(graph: Graph) -> dict[str, Any]:
    """`child` came from `agent`, which is deleted and swept; what its history was before that."""
    put(graph, "agent", x=1)
    put(graph, "agent", x=2)
    graph.branches.create("child", source="agent")
    put(graph, "agent", x=3)
    put(graph, "child", y=1)
    return {
        "commits": [commit.id for commit in graph.commits.list("child")],
        "blame": blamed(graph),
        "feed": fed(graph),
    }


def blamed(graph: Graph) -> dict[str, str]:
    told = graph.blame("Person", "x", branch="child")
    return {name: entry.commit for name, entry in told.properties.items()}


def fed(graph: Graph) -> list[tuple[str, int]]:
    page = graph.changes.poll(branch="child", start="beginning")
    return [(block.entry.commit, len(block.changes)) for block in page.blocks]


def delete_and_sweep(graph: Graph) -> None:
    graph.branches.delete("agent")
    graph.sweep(older_than=0)
    graph.sweep(older_than=0)


def use_the_name_again(graph: Graph) -> None:
    graph.branches.delete("agent")
    graph.branches.create("agent")
    for number in range(3):
        put(graph, "agent", other=number)
    graph.prune("agent", keep=1, now=True)
    graph.sweep(older_than=0)
    graph.sweep(older_than=0)


def use_the_name_twice(graph: Graph) -> None:
    use_the_name_again(graph)
    delete_and_sweep(graph)


FATES = [delete_and_sweep, use_the_name_again, use_the_name_twice]


@pytest.mark.parametrize("fate", FATES)
def test_the_history_of_a_branch_stays_when_its_source_goes(
    graph: Graph, orphan: dict[str, Any], fate: Callable[[Graph], None]
) -> None:
    fate(graph)
    assert [commit.id for commit in graph.commits.list("child")] == orphan["commits"]
    assert blamed(graph) == orphan["blame"]
    assert fed(graph) == orphan["feed"]
    assert [event.commit for event in graph.log_of("Person", "x", branch="child")] == orphan["commits"][1:3]
    for commit in orphan["commits"][:3]:
        assert graph.snapshot(commit=commit).commit == commit
    assert graph.merge("child").outcome == "fast_forward"
    assert ages(graph) == {"a": 0, "b": 0, "c": 0, "x": 2, "y": 1}


@pytest.mark.parametrize("fate", FATES)
def test_an_inherited_commit_is_tagged_and_branched(
    graph: Graph, orphan: dict[str, Any], fate: Callable[[Graph], None]
) -> None:
    fate(graph)
    inherited = orphan["commits"][2]
    graph.tags.create("there", commit=inherited)
    graph.branches.create("from there", commit=inherited)
    graph.branches.delete("child")
    graph.sweep(older_than=0)
    assert ages(graph, "from there") == {"a": 0, "b": 0, "c": 0, "x": 1}
    assert graph.snapshot(tag="there").commit == inherited


def test_what_a_deleted_branch_left_goes_with_the_last_branch_that_inherited_it(
    graph: Graph, orphan: dict[str, Any], store: MemoryStore
) -> None:
    delete_and_sweep(graph)
    graph.prune("child", keep=1, now=True)
    graph.sweep(older_than=0)
    with pytest.raises(NotFoundError):
        graph.snapshot(commit=orphan["commits"][2])
    graph.branches.delete("child")
    graph.sweep(older_than=0)
    graph.sweep(older_than=0)
    left = [file for file in store.list(paths.log_folder("agent")) if paths.entry_number(file.path)]
    assert len([file for file in left if file.size > len(CUT_MARK)]) == 3


def test_a_branch_keeps_its_head_commit_when_its_source_is_pruned(graph: Graph) -> None:
    head = graph.snapshot(branch="agent").commit
    for number in range(3):
        put(graph, "main", a=number)
    clean(graph, keep=1)
    assert graph.snapshot(commit=head).commit == head
    assert (graph.commits.show(head).id, graph.commits.show(head).record.kind) == (head, "load")
    graph.tags.create("there", commit=head)
    graph.branches.create("from there", commit=head)
    assert ages(graph, "from there") == {"a": 0, "b": 0, "c": 0}


@pytest.mark.parametrize("keep", [1, 100])
def test_a_prune_of_a_branch_without_commits_of_its_own_hides_nothing(graph: Graph, keep: int) -> None:
    before = [commit.id for commit in graph.commits.list("agent")]
    put_marks(graph, 2)
    graph.prune("agent", keep=keep, now=True)
    assert [commit.id for commit in graph.commits.list("agent")] == before


def once(action: Callable[[], object]) -> Callable[[], None]:
    """An action for a failpoint that is reached again by what it does."""
    waiting = [action]

    def act() -> None:
        if waiting:
            waiting.pop()()

    return act


def move_on(graph: Graph, branch: str) -> None:
    """Prune everything that was there of a branch."""
    put(graph, branch, later=1)
    clean(graph, 1)


def test_a_merge_begins_again_where_its_source_is_pruned_meanwhile(graph: Graph) -> None:
    put(graph, "main", a=1)
    graph.branches.create("side")
    put(graph, "main", b=2)
    with armed(Failpoint.WRITE_INTENT_PUT, once(lambda: move_on(graph, "main"))):
        graph.merge("main", into="side")
    assert ages(graph, "side") == {"a": 1, "b": 2, "c": 0, "later": 1}


def test_a_branch_is_made_where_its_source_is_pruned_meanwhile(graph: Graph) -> None:
    put(graph, "main", a=1)
    with armed(Failpoint.BRANCH_ENTRY_PUT, once(lambda: move_on(graph, "main"))):
        graph.branches.create("side", source="main")
    assert ages(graph, "side")["a"] == 1


def test_a_tag_is_made_where_its_commit_is_pruned_meanwhile(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    put(graph, "main", a=1)
    act, check = once(lambda: move_on(graph, "main")), adoption.check_named

    def check_after_a_prune(parts: GraphContext, entry: Record, named: str) -> None:
        act()
        check(parts, entry, named)

    monkeypatch.setattr(adoption, "check_named", check_after_a_prune)
    graph.tags.create("newest")
    assert graph.snapshot(tag="newest").commit == graph.snapshot().commit
