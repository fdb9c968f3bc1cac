"""Merging: what is decided by itself, what is reported, what the caller may say, and what it costs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.interleaving import once

import omnigraph
from omnigraph import (
    ConflictError,
    Graph,
    InvalidRequestError,
    MergeConflictError,
    NotFoundError,
    OpenOptions,
    PermissionDeniedError,
)
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import CommitKind, Pin
from omnigraph.storage.object_stores import MemoryStore
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.tables.tables import Table, Tables
from omnigraph.testing.stores import CountingStore

SCHEMA = """
node Person { name: String @key  age: I32?  mail: String? @unique  mood: enum(good, bad)? }
node City { name: String @key  size: I64? }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City @card(0..1)
edge Twin: City -> City { rank: I32?  @unique(src, dst) }
"""
FAST = OpenOptions(durability="process")


@pytest.fixture
def store() -> CountingStore:
    return CountingStore(MemoryStore(f"merge-{omnigraph.ids.UlidSource().new()}"))


@pytest.fixture
def graph(store: CountingStore) -> Iterator[Graph]:
    with omnigraph.init(store, SCHEMA, options=FAST) as made:
        people = [{"name": name, "age": age} for name, age in (("Ann", 1), ("Ben", 2), ("Cid", 3))]
        cities = [{"name": "Oslo", "size": 7}, {"name": "Rome", "size": 9}]
        made.write({"Person": people, "City": cities}, {"Knows": [{"id": "k", "from": "Ann", "to": "Ben"}]})
        made.branches.create("side")
        yield made


def person(graph: Graph, branch: str, name: str, **values: Any) -> None:  # noqa: ANN401  (any property's)
    graph.write({"Person": [{"name": name} | values]}, mode="merge", branch=branch)


def edge(graph: Graph, branch: str, type_name: str, source: str, target: str, **more: Any) -> None:  # noqa: ANN401  (any)
    graph.write({}, {type_name: [{"from": source, "to": target} | more]}, mode="merge", branch=branch)


def gone(graph: Graph, branch: str, what: str) -> None:
    graph.mutate(f"query q() {{ delete {what} }}", branch=branch)


def rows(graph: Graph, type_name: str, branch: str = "main") -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in graph.export_arrow(type_name, branch=branch).read_all().to_pylist()}


def ages(graph: Graph, branch: str = "main") -> dict[str, int | None]:
    return {name: row["age"] for name, row in sorted(rows(graph, "Person", branch).items())}


def refused(graph: Graph, **how: Any) -> tuple[omnigraph.MergeConflict, ...]:  # noqa: ANN401  (as `merge` takes them)
    head = graph.snapshot(branch=how.get("into", "main")).commit
    with pytest.raises(MergeConflictError) as conflict:
        graph.merge("side", **how)
    assert graph.snapshot(branch=how.get("into", "main")).commit == head
    found: tuple[omnigraph.MergeConflict, ...] = conflict.value.conflicts
    return found


# -- conflicts --------------------------------------------------------------------------------------------------------


def test_every_kind_of_conflict_is_reported_and_all_of_them_at_once(graph: Graph) -> None:
    for branch, age in (("side", 10), ("main", 20)):
        person(graph, branch, "New", age=age)
        person(graph, branch, "Ann", age=age)
        edge(graph, branch, "LivesIn", "Cid", "Oslo" if branch == "main" else "Rome")
        person(graph, branch, f"mailer of {branch}", mail="x@y")
    gone(graph, "side", 'Person where name = "Ben"')
    person(graph, "main", "Ben", age=20)
    gone(graph, "main", 'City where name = "Rome"')
    edge(graph, "side", "Twin", "Oslo", "Rome", id="t")
    edge(graph, "main", "Twin", "Oslo", "Oslo")
    found = {(each.kind.value, each.type_key, each.entity_id) for each in refused(graph)}
    assert found == {
        ("divergent_insert", "node:Person", "New"),
        ("divergent_update", "node:Person", "Ann"),
        ("delete_vs_update", "node:Person", "Ben"),
        ("unique_violation", "node:Person", "mailer of side"),
        ("cardinality_violation", "edge:LivesIn", None),
        ("orphan_edge", "edge:Twin", "t"),
        ("orphan_edge", "edge:LivesIn", rows(graph, "LivesIn", "side").popitem()[0]),
    }


def test_the_message_tells_three_conflicts_and_how_many_more_there_are(graph: Graph) -> None:
    for branch, age in (("side", 10), ("main", 20)):
        for number in range(5):
            person(graph, branch, f"P{number}", age=age)
    with pytest.raises(MergeConflictError, match=r"entity id 'P0' (.*); and 2 more$") as conflict:
        graph.merge("side")
    assert (conflict.value.code, len(conflict.value.conflicts)) == ("merge_conflicts", 5)
    assert isinstance(conflict.value, ConflictError)


def test_an_orphan_has_its_values_on_the_side_that_has_it(graph: Graph) -> None:
    gone(graph, "side", 'Person where name = "Cid"')
    edge(graph, "main", "Knows", "Ann", "Cid", id="new", since=4)
    [conflict] = refused(graph)
    assert (conflict.kind, conflict.entity_id, conflict.message) == (
        "orphan_edge",
        "new",
        "dst 'Cid' not found in Person",
    )
    assert (conflict.base, conflict.source) == (None, None)
    assert conflict.target is not None
    assert conflict.target["since"] == 4


def test_an_edge_taken_over_whole_is_checked_against_nodes_deleted_on_the_other_side(graph: Graph) -> None:
    gone(graph, "side", 'Person where name = "Cid"')
    edge(graph, "main", "Knows", "Ann", "Cid", id="new")
    with pytest.raises(MergeConflictError) as conflict:
        graph.merge("main", into="side")
    assert [(each.kind, each.entity_id) for each in conflict.value.conflicts] == [("orphan_edge", "new")]


def test_a_row_given_as_resolution_must_keep_to_the_rules(graph: Graph) -> None:
    for branch, mood in (("side", "good"), ("main", "bad")):
        person(graph, branch, "Ann", mood=mood)
    [conflict] = refused(graph, resolutions={"Person": {"Ann": {"name": "Ann", "mood": "odd"}}})
    assert (conflict.kind, conflict.entity_id) == ("value_constraint_violation", None)
    assert "invalid enum value 'odd'" in conflict.message


def test_unique_tuples_are_compared_component_by_component(graph: Graph) -> None:
    for name in ("a", "a|b", "b|c", "c"):
        graph.write({"City": [{"name": name}]})
    graph.branches.create("both")
    edge(graph, "both", "Twin", "a|b", "c")
    edge(graph, "main", "Twin", "a", "b|c")
    assert graph.merge("both").outcome == "merged"
    graph.branches.create("again", source="both")
    edge(graph, "again", "Twin", "c", "a", id="one")
    edge(graph, "main", "Twin", "c", "a", id="other")
    edge(graph, "again", "Twin", "c", "c", id="only here")
    with pytest.raises(MergeConflictError) as conflict:
        graph.merge("again")
    assert [(each.kind, each.entity_id) for each in conflict.value.conflicts] == [("unique_violation", "one")]


def test_a_node_that_one_side_updated_and_the_other_deleted_makes_no_orphans_of_its_edges(graph: Graph) -> None:
    person(graph, "side", "Cid", age=9)
    edge(graph, "side", "Knows", "Ann", "Cid")
    gone(graph, "main", 'Person where name = "Cid"')
    edge(graph, "main", "Knows", "Ann", "Ann")
    [conflict] = refused(graph)
    assert (conflict.kind, conflict.entity_id) == ("delete_vs_update", "Cid")


# -- what the caller may say ------------------------------------------------------------------------------------------


def clashing(graph: Graph) -> None:
    for branch, age in (("side", 10), ("main", 20)):
        person(graph, branch, "Ann", age=age)
        person(graph, branch, "New", age=age)
        person(graph, branch, f"only on {branch}", age=age)
    gone(graph, "side", 'Person where name = "Cid"')
    person(graph, "main", "Cid", age=20)
    person(graph, "side", "Ben", age=10)
    gone(graph, "main", 'Person where name = "Ben"')


@pytest.mark.parametrize(
    ("prefer", "expected"),
    [
        ("source", {"Ann": 10, "Ben": 10, "New": 10, "only on main": 20, "only on side": 10}),
        ("target", {"Ann": 20, "Cid": 20, "New": 20, "only on main": 20, "only on side": 10}),
    ],
)
def test_a_preferred_side_wins_every_conflict_over_rows(graph: Graph, prefer: str, expected: dict[str, int]) -> None:
    clashing(graph)
    seen = graph.merge("side", prefer=prefer, preview=True)
    done = graph.merge("side", prefer=prefer)
    assert ages(graph) == expected
    assert (done.resolved, seen.resolved, seen.changes) == (4, 4, done.changes)
    note = graph.snapshot().record.notes["merge"]
    assert isinstance(note, dict)
    assert (note["prefer"], note["resolved_count"]) == (prefer, 4)
    assert {(each["type"], each["id"], each["took"]) for each in note["resolved"]} == {
        ("node:Person", name, prefer) for name in ("Ann", "Ben", "Cid", "New")
    }


def test_each_conflict_can_be_resolved_by_itself(graph: Graph, tmp_path: Path) -> None:
    clashing(graph)
    said = {
        "Person": {"Ann": {"name": "Ann", "age": 99}, "New": "source", "Cid": None},
        "node:Person": {"Ben": "target"},
    }
    file = tmp_path / "resolutions.json"
    file.write_text(json.dumps(said))
    done = graph.merge("side", resolutions=file)
    assert ages(graph) == {"Ann": 99, "New": 10, "only on main": 20, "only on side": 10}
    assert done.resolved == 4
    note = graph.snapshot().record.notes["merge"]
    assert isinstance(note, dict)
    assert {each["id"]: each["took"] for each in note["resolved"]} == {
        "Ann": "row",
        "New": "source",
        "Cid": "deleted",
        "Ben": "target",
    }


def test_conflicts_without_a_resolution_are_still_reported(graph: Graph) -> None:
    clashing(graph)
    found = refused(graph, resolutions={"Person": {"Ann": "source", "New": "target"}})
    assert {each.entity_id for each in found} == {"Ben", "Cid"}


def test_an_orphan_is_resolved_by_dropping_the_edge_or_keeping_the_node(graph: Graph) -> None:
    gone(graph, "side", 'Person where name = "Cid"')
    edge(graph, "main", "Knows", "Ann", "Cid", id="new")
    graph.branches.create("twin")
    graph.merge("side", into="twin", resolutions={"Knows": {"new": "source"}})
    assert (sorted(rows(graph, "Knows", "twin")), "Cid" in ages(graph, "twin")) == (["k"], False)
    graph.merge("side", resolutions={"Person": {"Cid": "target"}})
    assert (sorted(rows(graph, "Knows")), "Cid" in ages(graph)) == (["k", "new"], True)


def test_an_edge_given_as_resolution_keeps_its_ends(graph: Graph) -> None:
    for branch, since in (("side", 1), ("main", 2)):
        edge(graph, branch, "Knows", "Ann", "Ben", id="k", since=since)
    graph.merge("side", resolutions={"Knows": {"k": {"since": 5}}})
    assert rows(graph, "Knows")["k"] == {"id": "k", "src": "Ann", "dst": "Ben", "since": 5}


@pytest.mark.parametrize(
    ("resolutions", "message"),
    [
        ({"Person": {"Nobody": "source"}}, "which neither branch has changed"),
        ({"Animal": {"Ann": "source"}}, "names the type 'Animal', which there is not"),
        ({"Person": {"Ann": "ours"}}, 'must be "source", "target", a row or null'),
        ({"Person": ["Ann"]}, "must be an object of ids"),
        ({"Person": {"Ann": {"name": "Someone else"}}}, "does not match its canonical @key id"),
        ({"Person": {"Ann": {"name": "Ann", "age": "old"}}}, "age"),
        ("nowhere.json", "the resolutions in nowhere.json cannot be read: No such file or directory$"),
        (__file__, "cannot be read: no JSON: "),
        (5, "an object of types, or the path of a file"),
    ],
)
def test_resolutions_that_mean_nothing_are_refused(graph: Graph, resolutions: Any, message: str) -> None:  # noqa: ANN401  (wrong on purpose)
    person(graph, "side", "Ann", age=9)
    with pytest.raises(InvalidRequestError, match=message):
        graph.merge("side", resolutions=resolutions)


@pytest.mark.parametrize("wrong", [{"by": "cell"}, {"prefer": "ours"}])
def test_words_that_mean_nothing_are_refused(graph: Graph, wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError, match="one of"):
        graph.merge("side", **wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_two_updates_of_one_row_are_put_together_property_by_property(graph: Graph) -> None:
    person(graph, "side", "Ann", age=10)
    person(graph, "main", "Ann", age=1, mood="good")
    person(graph, "side", "Ben", age=2, mail="b@b")
    assert [each.entity_id for each in refused(graph)] == ["Ann"]
    done = graph.merge("side", by="property")
    assert (rows(graph, "Person")["Ann"]["age"], rows(graph, "Person")["Ann"]["mood"]) == (10, "good")
    assert rows(graph, "Person")["Ben"]["mail"] == "b@b"
    assert done.changes["node:Person"].updated == 2


def test_one_property_that_both_changed_is_a_conflict_that_names_it(graph: Graph) -> None:
    person(graph, "side", "Ann", age=10, mood="good")
    person(graph, "main", "Ann", age=20, mail="a@a")
    [conflict] = refused(graph, by="property")
    assert conflict.message == "divergent update for id 'Ann' in age"
    graph.merge("side", by="property", prefer="source")
    assert rows(graph, "Person")["Ann"] == {"id": "Ann", "name": "Ann", "age": 10, "mail": "a@a", "mood": "good"}


# -- what it does and does not do -------------------------------------------------------------------------------------


def test_a_merge_makes_one_commit_with_two_parents_and_its_changes(graph: Graph) -> None:
    person(graph, "side", "New", age=1)
    gone(graph, "side", 'City where name = "Rome"')
    person(graph, "main", "Other", age=2)
    before = graph.snapshot()
    done = graph.merge("side", actor="ada", message="why")
    record = graph.snapshot().record
    assert (record.kind, record.actor, record.message) == (CommitKind.MERGE, "ada", "why")
    assert (record.parent, record.merged_parent) == (before.commit, graph.snapshot(branch="side").commit)
    assert record.number == before.number + 1
    assert {key: (each.inserted, each.updated, each.deleted) for key, each in record.changes.types.items()} == {
        "node:Person": (1, 0, 0),
        "node:City": (0, 0, 1),
    }
    assert {key: (each.inserted, each.updated, each.deleted) for key, each in done.changes.items()} == {
        "node:Person": (1, 0, 0),
        "node:City": (0, 0, 1),
    }
    assert [(each.op.value, each.id) for each in graph.diff(before, "main")] == [("delete", "Rome"), ("insert", "New")]


def test_edits_that_cancel_out_move_no_table(graph: Graph) -> None:
    edge(graph, "side", "Knows", "Ann", "Cid", id="passing")
    gone(graph, "side", 'Knows where from = "Ann"')
    edge(graph, "side", "Knows", "Ann", "Ben", id="k")
    gone(graph, "side", 'City where name = "Rome"')
    graph.write({"City": [{"name": "Rome", "size": 9}]}, branch="side")
    pins = graph.snapshot().record.tables
    done = graph.merge("side")
    assert (done.outcome, done.commit is not None, done.changes) == ("fast_forward", True, {})
    assert graph.snapshot().record.tables == pins
    assert {key: row["since"] for key, row in rows(graph, "Knows").items()} == {"k": None}
    assert graph.merge("side").outcome == "already_up_to_date"


@pytest.mark.parametrize("on_main", [False, True])
def test_edits_that_cancel_out_are_not_counted(graph: Graph, on_main: bool) -> None:
    for age in (5, 1):
        person(graph, "side", "Ann", age=age)
    person(graph, "side", "Ben", age=2)  # as it is
    person(graph, "side", "Cid", age=9)
    if on_main:
        person(graph, "main", "New", age=9)
        person(graph, "main", "Cid", age=9)
    seen = graph.merge("side", preview=True)
    done = graph.merge("side")
    counted = {key: (each.inserted, each.updated, each.deleted) for key, each in done.changes.items()}
    assert counted == ({} if on_main else {"node:Person": (0, 1, 0)})
    assert seen.changes == done.changes
    assert done.commit is not None
    assert [each.id for each in graph.commits.changes(done.commit).changes] == ([] if on_main else ["Cid"])


def test_a_table_that_one_side_changed_is_taken_over_without_reading_a_row(store: CountingStore, graph: Graph) -> None:
    for number in range(3):
        graph.write({"City": [{"name": f"C{number}"}]}, branch="side")
        person(graph, "main", f"P{number}")
    parts = graph._parts
    opened: list[str] = []
    real = type(parts.tables).open

    def noticed(tables: Tables, pin: Pin) -> Table:
        opened.append(pin.table)
        return real(tables, pin)

    store.reset()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(parts.tables), "open", noticed)
        done = graph.merge("side")
    assert (done.outcome, opened) == ("merged", [])
    assert graph.snapshot().record.tables["node:City"] == graph.snapshot(branch="side").record.tables["node:City"]
    # The note of the merge, and the entry: the rest are looks at the two logs.
    counted = store.counts()
    assert (counted.get(RequestKind.PUT, 0), counted.get(RequestKind.PUT_IF_ABSENT, 0)) == (0, 2)


def test_a_preview_writes_nothing(store: CountingStore, graph: Graph) -> None:
    clashing(graph)
    store.reset()
    seen = graph.merge("side", preview=True)
    assert (seen.is_preview, seen.commit, len(seen.conflicts)) == (True, None, 4)
    assert {kind for kind, times in store.counts().items() if times} <= {RequestKind.GET, RequestKind.LIST}


def test_the_source_can_be_deleted_with_the_merge(graph: Graph) -> None:
    person(graph, "side", "New")
    done = graph.merge("side", delete_branch=True)
    assert (done.branch_deleted, done.branch_delete_error, "side" in graph.branches) == (True, None, False)
    with pytest.raises(NotFoundError):
        graph.merge("side")


def test_a_source_that_cannot_be_deleted_does_not_fail_the_merge(graph: Graph) -> None:
    person(graph, "main", "New")
    done = graph.merge("main", into="side", delete_branch=True)
    assert (done.outcome, done.branch_deleted) == ("fast_forward", False)
    assert done.branch_delete_error == "cannot delete branch 'main'"
    assert "New" in ages(graph, "side")


def test_a_branch_is_not_merged_into_itself_or_from_nowhere(graph: Graph) -> None:
    with pytest.raises(InvalidRequestError, match="requires distinct source and target branches"):
        graph.merge("side", into=" side ")
    with pytest.raises(NotFoundError):
        graph.merge("nowhere")
    with pytest.raises(NotFoundError):
        graph.merge("side", into="nowhere")


def test_a_graph_opened_for_reading_is_not_merged_into(store: CountingStore, graph: Graph) -> None:
    person(graph, "side", "New")
    with omnigraph.open(store, read_only=True) as reader:
        assert reader.merge("side", preview=True).outcome == "fast_forward"
        with pytest.raises(PermissionDeniedError):
            reader.merge("side")


# -- others at the same time ------------------------------------------------------------------------------------------


def test_commits_made_on_the_source_meanwhile_are_not_brought_in(graph: Graph) -> None:
    person(graph, "side", "In time")
    captured = graph.snapshot(branch="side").commit
    with armed(Failpoint.WRITE_PREPARED, once(lambda: person(graph, "side", "Too late"))):
        done = graph.merge("side")
    assert (done.source_commit, graph.snapshot().record.merged_parent) == (captured, captured)
    assert ("In time" in ages(graph), "Too late" in ages(graph)) == (True, False)


def test_what_others_write_to_the_target_meanwhile_is_kept(graph: Graph) -> None:
    person(graph, "side", "Ann", age=10)
    person(graph, "main", "Ben", age=20)
    with armed(Failpoint.WRITE_TABLES_STAGED, once(lambda: person(graph, "main", "Late", age=30))):
        graph.merge("side")
    assert ages(graph) == {"Ann": 10, "Ben": 20, "Cid": 3, "Late": 30}


def test_a_type_taken_over_is_worked_out_again_when_others_write_to_it_meanwhile(graph: Graph) -> None:
    person(graph, "side", "Ann", age=10)
    with armed(Failpoint.WRITE_TABLES_STAGED, once(lambda: person(graph, "main", "Late", age=30))):
        done = graph.merge("side")
    assert (done.outcome, done.attempts) == ("merged", 2)
    assert ages(graph) == {"Ann": 10, "Ben": 2, "Cid": 3, "Late": 30}


def test_a_node_deleted_meanwhile_that_a_merged_edge_needs_is_a_conflict(graph: Graph) -> None:
    edge(graph, "side", "Knows", "Ann", "Cid", id="new")
    with (
        armed(Failpoint.WRITE_TABLES_STAGED, once(lambda: gone(graph, "main", 'Person where name = "Cid"'))),
        pytest.raises(MergeConflictError) as conflict,
    ):
        graph.merge("side")
    assert [(each.kind, each.entity_id) for each in conflict.value.conflicts] == [("orphan_edge", "new")]


def test_an_edge_inserted_meanwhile_at_a_node_that_the_merge_deletes_is_a_conflict(graph: Graph) -> None:
    gone(graph, "side", 'Person where name = "Cid"')
    with (
        armed(Failpoint.WRITE_TABLES_STAGED, once(lambda: edge(graph, "main", "Knows", "Ann", "Cid", id="new"))),
        pytest.raises(MergeConflictError) as conflict,
    ):
        graph.merge("side")
    assert [(each.kind, each.entity_id) for each in conflict.value.conflicts] == [("orphan_edge", "new")]


def test_a_source_deleted_meanwhile_is_not_merged(graph: Graph) -> None:
    person(graph, "side", "New")
    with (
        armed(Failpoint.WRITE_INTENT_PUT, once(lambda: graph.branches.delete("side"))),
        pytest.raises(NotFoundError, match="side"),
    ):
        graph.merge("side")
    assert "New" not in ages(graph)
    person(graph, "main", "Next")


def test_the_same_merge_made_twice_at_once_is_made_once(graph: Graph) -> None:
    person(graph, "side", "New")
    person(graph, "main", "Other")
    with armed(Failpoint.WRITE_PREPARED, once(lambda: graph.merge("side"))):
        done = graph.merge("side")
    assert done.outcome == "already_up_to_date"
    assert len(graph.commits.list(kind="merge")) == 1
