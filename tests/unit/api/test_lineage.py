"""The log of one entity, and who set each of its properties."""

import pytest

import omnigraph
from omnigraph import limits
from omnigraph.api.graph import Graph
from omnigraph.errors import ChangeRefusedError, NotFoundError
from omnigraph.ids import UlidSource

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture
def graph() -> Graph:
    return omnigraph.init(f"memory://lineage-{UlidSource().new()}", SCHEMA)


def do(graph: Graph, actor: str, *statements: str, branch: str = "main") -> str:
    """Statements as one commit of an actor."""
    commit = graph.mutate(f"query q() {{ {' '.join(statements)} }}", branch=branch, actor=actor).commit
    assert commit is not None
    return commit


def who(graph: Graph, entity_id: str, **where: str) -> dict[str, str | None]:
    """The actor behind each property."""
    found = graph.blame("Person", entity_id, **where)
    return {name: entry.actor for name, entry in found.properties.items()}


def test_the_log_of_an_entity_tells_each_change_of_it_and_nothing_else(graph: Graph) -> None:
    made = do(graph, "w", 'insert Person { name: "a", age: 1 }', 'insert Person { name: "b" }')
    do(graph, "w", 'update Person set { age: 7 } where name = "b"')
    grown = do(graph, "x", 'update Person set { age: 2, city: "ulm" } where name = "a"')
    same = graph.write(nodes={"Person": [{"name": "a", "age": 2, "city": "ulm"}]}, mode="merge").commit
    gone = do(graph, "y", 'delete Person where name = "a"')
    back = do(graph, "z", 'insert Person { name: "a", age: 3 }')
    log = graph.log_of("Person", "a")
    assert [(each.op, each.commit) for each in log] == [
        ("insert", back),
        ("delete", gone),
        ("update", grown),
        ("insert", made),
    ]
    assert same not in [each.commit for each in log]
    assert [each.changed for each in log] == [
        ("age", "name"),
        ("age", "city", "name"),
        ("age", "city"),
        ("age", "name"),
    ]
    assert log[2].before is not None
    assert dict(log[2].before.properties) == {"age": 1, "city": None, "name": "a"}
    assert [each.commit for each in graph.log_of("Person", "a", limit=2)] == [back, gone]
    assert graph.log_of("Person", "nobody") == []
    with pytest.raises(NotFoundError, match="there is no type 'Nothing'"):
        graph.log_of("Nothing", "a")


def test_blame_tells_who_last_set_each_property(graph: Graph) -> None:
    made = do(graph, "w", 'insert Person { name: "a", age: 1 }')
    do(graph, "x", 'update Person set { age: 2, city: "ulm" } where name = "a"')
    last = do(graph, "y", 'update Person set { age: 3 } where name = "a"')
    do(graph, "z", 'insert Person { name: "other" }')
    assert who(graph, "a") == {"name": "w", "age": "y", "city": "x"}
    found = graph.blame("Person", "a")
    assert found.created is not None
    assert found.last is not None
    assert (found.created.commit, found.last.commit) == (made, last)
    with pytest.raises(NotFoundError, match="there is no entity 'ghost'"):
        graph.blame("Person", "ghost")


def test_an_entity_that_came_back_has_no_past(graph: Graph) -> None:
    do(graph, "w", 'insert Person { name: "a", age: 1, city: "ulm" }')
    do(graph, "x", 'delete Person where name = "a"')
    do(graph, "y", 'insert Person { name: "a", age: 1, city: "ulm" }')
    do(graph, "z", 'update Person set { age: 2 } where name = "a"')
    assert who(graph, "a") == {"name": "y", "age": "z", "city": "y"}


def test_ends_of_edges_are_blamed_too(graph: Graph) -> None:
    do(graph, "w", 'insert Person { name: "a" }', 'insert Person { name: "b" }')
    do(graph, "x", 'insert Knows { from: "a", to: "b", since: 1 }')
    [edge] = graph.export_arrow("Knows").read_all()["id"].to_pylist()
    found = graph.blame("Knows", str(edge))
    assert {name: entry.actor for name, entry in found.properties.items()} == dict.fromkeys(
        ("from", "to", "since"), "x"
    )


def test_a_branch_inherits_the_past_of_its_entities(graph: Graph) -> None:
    do(graph, "w", 'insert Person { name: "a", age: 1 }')
    graph.branches.create("side")
    do(graph, "main", 'update Person set { age: 9 } where name = "a"')
    do(graph, "s", 'update Person set { city: "ulm" } where name = "a"', branch="side")
    assert who(graph, "a", branch="side") == {"name": "w", "age": "w", "city": "s"}
    assert [each.entry.actor for each in graph.log_of("Person", "a", branch="side")] == ["s", "w"]


def test_what_a_merge_brought_in_is_told_of_the_commit_that_set_it(graph: Graph) -> None:
    do(graph, "w", 'insert Person { name: "a", age: 1 }', 'insert Person { name: "b", age: 1 }')
    graph.branches.create("deep")
    graph.branches.create("side")
    do(graph, "d", 'update Person set { city: "rom" } where name = "b"', branch="deep")
    do(graph, "s", 'update Person set { city: "ulm" } where name = "a"', 'insert Person { name: "n" }', branch="side")
    graph.merge("deep", into="side", actor="m1")
    do(graph, "x", 'insert Person { name: "x" }')
    graph.merge("side", actor="m2")
    assert who(graph, "a") == {"name": "w", "age": "w", "city": "s"}
    assert who(graph, "b") == {"name": "w", "age": "w", "city": "d"}
    assert set(who(graph, "n").values()) == {"s"}
    assert [(each.op, each.entry.actor) for each in graph.log_of("Person", "n")] == [("insert", "m2")]
    found = graph.blame("Person", "n")
    assert found.created is not None
    assert found.created.actor == "s"


def test_what_was_decided_in_a_merge_is_told_of_the_merge(graph: Graph) -> None:
    do(graph, "w", 'insert Person { name: "a", age: 1 }')
    graph.branches.create("side")
    do(graph, "s", 'update Person set { age: 2 } where name = "a"', branch="side")
    do(graph, "t", 'update Person set { city: "ulm" } where name = "a"')
    graph.merge("side", by="property", actor="m")
    assert who(graph, "a") == {"name": "w", "age": "s", "city": "t"}
    graph.branches.create("other")
    do(graph, "o", 'update Person set { age: 5 } where name = "a"', branch="other")
    do(graph, "t", 'update Person set { age: 6 } where name = "a"')
    row = {"name": "a", "age": 7, "city": "ulm"}
    graph.merge("other", resolutions={"node:Person": {"a": row}}, actor="m")
    assert who(graph, "a")["age"] == "m"


def test_a_type_keeps_its_past_under_another_name(graph: Graph) -> None:
    do(graph, "w", 'insert Person { name: "a", age: 1 }')
    renamed = SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {')
    graph.schema_apply(renamed.replace("Person -> Person", "Human -> Human"), actor="schema")
    do(graph, "x", 'update Human set { age: 2 } where name = "a"')
    found = graph.blame("Human", "a")
    assert {name: entry.actor for name, entry in found.properties.items()} == {"name": "w", "age": "x", "city": "w"}


def test_a_value_that_went_with_its_property_is_told_of_who_dropped_it(graph: Graph) -> None:
    do(graph, "w", 'insert Person { name: "a", age: 1 }', 'insert Person { name: "b" }')
    before = graph.snapshot()
    dropped = graph.schema_apply(SCHEMA.replace("  age: I32?", ""), actor="dropper").commit
    again = graph.schema_apply(SCHEMA, actor="adder").commit
    assert who(graph, "a") == {"name": "w", "city": "w", "age": "dropper"}
    assert who(graph, "b") == {"name": "w", "city": "w", "age": "w"}
    [lost, _] = graph.log_of("Person", "a")
    assert (lost.op, lost.commit, lost.changed) == ("update", dropped, ("age",))
    assert [each.op for each in graph.log_of("Person", "b")] == ["insert"]
    # A diff compares properties as they are known, not as they are called; the feed refuses rather than guess.
    assert list(graph.diff(before, "main")) == []
    for commit in (dropped, again):
        assert commit is not None
        with pytest.raises(ChangeRefusedError, match="schema boundary"):
            graph.commits.changes(commit)


def test_changes_in_files_of_their_own_are_looked_through(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INLINE_CHANGE_IDS_MAX", 2)
    graph.write(nodes={"Person": [{"name": f"p{number}", "age": 1} for number in range(9)]}, actor="w")
    graph.write(nodes={"Person": [{"name": f"p{n}", "age": 2} for n in range(5)]}, mode="merge", actor="x")
    assert graph.commits.list()[0].record.changes.file is not None
    assert who(graph, "p3") == {"name": "w", "age": "x", "city": "w"}
    assert who(graph, "p7") == {"name": "w", "age": "w", "city": "w"}


def test_a_property_keeps_its_past_under_another_name(graph: Graph) -> None:
    """A rename sets nothing: neither a commit of its own, nor a merge that brings it along."""
    do(graph, "w", 'insert Person { name: "a", age: 1, city: "ulm" }')
    do(graph, "x", 'update Person set { age: 2 } where name = "a"')
    graph.branches.create("other")
    renamed = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")')
    graph.schema_apply(renamed, actor="schema", branch="other")
    assert who(graph, "a", branch="other") == {"name": "w", "years": "x", "city": "w"}
    assert [event.op for event in graph.log_of("Person", "a", branch="other")] == ["update", "insert"]
    do(graph, "m", 'update Person set { city: "bonn" } where name = "a"')
    graph.merge("other", actor="merger")
    assert who(graph, "a") == {"name": "w", "years": "x", "city": "m"}
    do(graph, "y", 'update Person set { years: 3 } where name = "a"')
    assert who(graph, "a") == {"name": "w", "years": "y", "city": "m"}


@pytest.mark.parametrize("now", [False, True])
def test_what_a_pruned_commit_set_is_told_of_no_other(graph: Graph, now: bool) -> None:
    do(graph, "w", 'insert Person { name: "a", age: 1, city: "ulm" }')
    pruned = do(graph, "p", 'update Person set { age: 2 } where name = "a"')
    do(graph, "x", 'update Person set { city: "bonn" } where name = "a"')
    do(graph, "o", 'insert Person { name: "b" }')
    graph.prune(commits=[pruned], now=now)
    graph.sweep(older_than=0)
    found = who(graph, "a")
    assert found.pop("age", None) is None
    assert found in ({"name": "w", "city": "x"}, {"name": "w"})  # once the data is gone, who set the city is not known
    assert found == {"name": "w", "city": "x"} or now
    assert [event.entry.actor for event in graph.log_of("Person", "a")] in (["x", "w"], ["w"])


def test_what_a_pruned_commit_made_is_told_of_no_other(graph: Graph) -> None:
    do(graph, "o", 'insert Person { name: "b" }')
    pruned = do(graph, "p", 'insert Person { name: "a", age: 1 }')
    do(graph, "x", 'update Person set { age: 2 } where name = "a"')
    do(graph, "o", 'insert Person { name: "c" }')
    graph.prune(commits=[pruned])
    found = graph.blame("Person", "a")
    assert {name: entry.actor for name, entry in found.properties.items()} == {"age": "x"}
    assert (found.created, found.last and found.last.actor) == (None, "x")


@pytest.mark.parametrize("wider", ["main", "side", None])
@pytest.mark.parametrize("into", ["main", "side"])
def test_a_type_that_two_branches_added_keeps_both_pasts(graph: Graph, wider: str | None, into: str) -> None:
    graph.branches.create("side")
    for branch in ("main", "side"):
        more = "  more: I32?" if branch == wider else ""
        graph.schema_apply(f"{SCHEMA}node Place {{ name: String @key  size: I32?{more} }}", branch=branch)
        graph.write({"Place": [{"name": branch, "size": 1}]}, branch=branch, actor=f"w {branch}")
        do(graph, f"u {branch}", f'update Place set {{ size: 2 }} where name = "{branch}"', branch=branch)
    graph.merge("side" if into == "main" else "main", into=into, actor="m")
    for branch in ("main", "side"):
        found = graph.blame("Place", branch, branch=into)
        assert {name: found.properties[name].actor for name in ("name", "size")} == {
            "name": f"w {branch}",
            "size": f"u {branch}",
        }
        assert found.created is not None and found.created.actor == f"w {branch}"
        log = [event.entry.actor for event in graph.log_of("Place", branch, branch=into)]
        assert log == ([f"u {branch}", f"w {branch}"] if branch == into else ["m"])


def test_of_what_a_merge_decided_in_part_each_property_is_told_of_who_set_it(graph: Graph) -> None:
    do(graph, "w", 'insert Person { name: "a", age: 1 }')
    graph.branches.create("side")
    do(graph, "s", 'update Person set { age: 2, city: "ulm" } where name = "a"', branch="side")
    do(graph, "t", 'update Person set { age: 3 } where name = "a"')
    graph.merge("side", resolutions={"Person": {"a": {"$properties": {"age": {"value": 9}}}}}, actor="m")
    assert who(graph, "a") == {"name": "w", "age": "m", "city": "s"}
    found = graph.blame("Person", "a")
    assert found.last is not None and found.last.actor == "m"


@pytest.mark.parametrize("gone", ["pruned", "deleted"])
def test_a_merge_is_not_blamed_for_what_a_branch_that_is_gone_had_set(graph: Graph, gone: str) -> None:
    do(graph, "w", 'insert Person { name: "a", age: 1 }')
    graph.branches.create("side")
    do(graph, "s", 'update Person set { age: 2 } where name = "a"', 'insert Person { name: "b" }', branch="side")
    do(graph, "t", 'update Person set { city: "ulm" } where name = "a"')
    graph.merge("side", by="property", actor="m")
    if gone == "deleted":
        graph.branches.delete("side")
    else:
        graph.prune("side", keep=1, now=True)
    graph.cleanup(keep=10, confirm=True)
    assert who(graph, "a") == {"name": "w", "city": "t"}
    found = graph.blame("Person", "a")
    assert (found.pruned, found.last) == (("age",), None)
    found = graph.blame("Person", "b")
    assert (dict(found.properties), found.created, found.last) == ({}, None, None)
    assert found.pruned == ("age", "city", "name")


def test_a_value_that_a_merge_brought_back_with_its_property_is_blamed_on_who_set_it(graph: Graph) -> None:
    do(graph, "w", 'insert Person { name: "a", city: "ulm" }', 'insert Person { name: "b" }')
    graph.branches.create("side")
    do(graph, "s", 'update Person set { city: "bonn" } where name = "b"', branch="side")
    do(graph, "t", 'update Person set { city: "kiel" } where name = "a"')
    graph.schema_apply(SCHEMA.replace("city: String?", ""), validated=True, actor="d")
    graph.merge("side", resolutions={"schema": {"node:Person.city": "source"}}, actor="m")
    assert graph.query("query q() { match { $p: Person } return { $p.city as c } order { c } }").to_pylist() == [
        {"c": "bonn"},
        {"c": "ulm"},
    ]
    assert who(graph, "a")["city"] == "w"
    assert who(graph, "b")["city"] == "s"
    assert [event.entry.actor for event in graph.log_of("Person", "a")] == ["m", "d", "t", "w"]
