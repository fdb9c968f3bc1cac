"""Both branches change the schema and rows: every pair of changes, either direction, against a dictionary."""

from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, InvalidRequestError, MergeConflictError, OpenOptions

SCHEMA = """
node Person { name: String @key  age: I32?  note: String? }
node City { name: String @key  size: I32? }
edge Lives: Person -> City { since: I32? }
"""

# What a branch does: edits of the schema's text, and edits of rows. The model knows both by the same words.
MAIL = ("age: I32?", "age: I32?  mail: String?")
PHONE = ("note: String?", "note: String?  phone: String?")
WIDE = ("age: I32?", "age: I64?")
YEARS = ("age: I32?", 'years: I32? @rename_from("age")')
TOWN = [("node City {", 'node Town @rename_from("City") {'), ("-> City", "-> Town")]
NO_NOTE = ("note: String?", "")
RANK = ("age: I32?", 'age: I32?  rank: I32 @default("5")')
INDEX = ("note: String?", "note: String? @index")
RANGE = ("size: I32?", "size: I32?  @range(size, 0..900)")
BOOK = ("edge Lives", "node Book { name: String @key  pages: I32? }\nedge Read: Person -> Book\nedge Lives")
SHOP = ("edge Lives", "node Shop { name: String @key }\nedge Lives")
DOC = ("size: I32?", 'size: I32? @description("of people")')

CHANGES: dict[str, list[tuple[str, str]]] = {
    "mail": [MAIL],
    "phone": [PHONE],
    "wide": [WIDE],
    "years": [YEARS],
    "town": TOWN,
    "no note": [NO_NOTE],
    "rank": [RANK],
    "index": [INDEX],
    "range": [RANGE],
    "book": [BOOK],
    "shop": [SHOP],
    "doc": [DOC],
}
# Pairs that touch one item in ways that cannot both stand.
CLASH = {frozenset({"no note", "index"})}
# The name of a type or property in the result, where a change gives it another.
NAMES = {"years": {"age": "years"}, "town": {"City": "Town"}}


def changed(*edits: tuple[str, str]) -> str:
    """The text with all edits made; one that touches what another wrote already comes last."""
    text = SCHEMA
    for old, new in edits:
        assert old in text, (old, text)
        text = text.replace(old, new)
    return text


def rows(graph: Graph, type_name: str, branch: str = "main") -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in graph.export_arrow(type_name, branch=branch).read_all().to_pylist()}


def started() -> Graph:
    graph = omnigraph.init("memory://", SCHEMA, options=OpenOptions(durability="process"))
    people = [{"name": f"p{at}", "age": at, "note": f"n{at}"} for at in range(6)]
    graph.write(
        {"Person": people, "City": [{"name": "Oslo", "size": 1}, {"name": "Rome", "size": 2}]},
        {"Lives": [{"id": "l0", "from": "p0", "to": "Oslo", "since": 1}]},
    )
    graph.branches.create("side")
    return graph


@pytest.fixture
def graph() -> Iterator[Graph]:
    with started() as made:
        yield made


def named(word: str, changes: set[str]) -> str:
    for change in changes:
        word = NAMES.get(change, {}).get(word, word)
    return word


class Model:
    """What the rows are, as plain dictionaries; knows nothing of versions, tables and columns."""

    def __init__(self) -> None:
        self.people: dict[str, dict[str, Any]] = {
            f"p{at}": {"age": at, "note": f"n{at}", "mail": None, "phone": None, "rank": 5} for at in range(6)
        }
        self.cities: dict[str, int | None] = {"Oslo": 1, "Rome": 2}
        self.books: set[str] = set()

    def edit(self, graph: Graph, branch: str, change: str) -> None:
        """Change rows on a branch whose schema has one change, and here."""
        age, city = named("age", {change}), named("City", {change})
        mine = "0" if branch == "main" else "3"
        graph.mutate(f'query q() {{ update Person set {{ {age}: 10{mine} }} where name = "p{mine}" }}', branch=branch)
        self.people[f"p{mine}"]["age"] = int(f"10{mine}")
        gone = f"p{int(mine) + 2}"
        graph.mutate(f'query q() {{ delete Person where name = "{gone}" }}', branch=branch)
        del self.people[gone]
        new = {"name": f"new-{branch}", age: 7}
        told: dict[str, Any] = {"age": 7, "note": None, "mail": None, "phone": None, "rank": 5}
        if change == "mail":
            new["mail"] = told["mail"] = "m@m"
        if change == "phone":
            new["phone"] = told["phone"] = "12"
        if change == "rank":
            new["rank"] = told["rank"] = 9
        if change == "wide":
            new["age"] = told["age"] = 2**40
        graph.write({"Person": [new]}, branch=branch)
        self.people[f"new-{branch}"] = told
        graph.write(
            {city: [{"name": f"at-{branch}", "size": 3}]},
            {"Lives": [{"id": f"l-{branch}", "from": f"new-{branch}", "to": f"at-{branch}"}]},
            branch=branch,
        )
        self.cities[f"at-{branch}"] = 3
        if change == "book":
            graph.write({"Book": [{"name": f"b-{branch}", "pages": 1}, {"name": "both"}]}, branch=branch)
            self.books |= {f"b-{branch}", "both"}

    def people_under(self, changes: set[str]) -> dict[str, dict[str, Any]]:
        columns = {"age": named("age", changes)}
        columns |= {name: name for name in ("mail", "phone", "rank") if name in changes}
        columns |= {} if "no note" in changes else {"note": "note"}
        return {
            name: {"id": name, "name": name} | {columns[each]: row[each] for each in columns}
            for name, row in self.people.items()
        }


def check(graph: Graph, model: Model, changes: set[str], branch: str) -> None:
    """The branch has exactly the model's rows, by every way of reading."""
    assert rows(graph, "Person", branch) == model.people_under(changes)
    city = named("City", changes)
    assert {name: row["size"] for name, row in rows(graph, city, branch).items()} == model.cities
    assert sorted(rows(graph, "Lives", branch)) == ["l-main", "l-side", "l0"]
    if "book" in changes:
        assert set(rows(graph, "Book", branch)) == model.books
    assert ("node:Shop" in graph.snapshot(branch=branch).record.tables) == ("shop" in changes)
    look = "query q($n: String) { match { $p: Person { name: $n } $p lives $c } return { $c.name as c } }"
    assert graph.query(look, {"n": "new-main"}, branch=branch).to_pylist() == [{"c": "at-main"}]
    assert graph.verify(deep=True).is_whole


ORDER = list(CHANGES)
# Every pair once, every change with itself, directions by turns.
PAIRS = [
    (one, other, ("into main", "into side")[(ORDER.index(one) + ORDER.index(other) // 2) % 2])
    for one in CHANGES
    for other in CHANGES
    if ORDER.index(one) <= ORDER.index(other) and frozenset({one, other}) not in CLASH
]


@pytest.mark.parametrize(("ours", "theirs", "direction"), PAIRS)
def test_two_changes_of_schema_merge_with_the_rows_written_under_each(ours: str, theirs: str, direction: str) -> None:
    source, target = ("side", "main") if direction == "into main" else ("main", "side")
    changes = {ours, theirs}
    with started() as graph:
        model = Model()
        for branch, change in (("main", ours), ("side", theirs)):
            graph.schema_apply(changed(*CHANGES[change]), branch=branch, validated=True, allow_data_loss=False)
            if change == "index":
                graph.optimize(branch=branch)
            model.edit(graph, branch, change)
        if len(ours) % 2:
            graph.optimize(branch="main")
        before = graph.snapshot(branch=target)
        seen = graph.merge(source, into=target, preview=True)
        done = graph.merge(source, into=target)
        assert (seen.outcome, seen.changes, done.conflicts) == (done.outcome, done.changes, ())
        check(graph, model, changes, target)
        assert graph.schema_plan(graph.schema_text(branch=target), branch=target).is_empty
        # Nothing is left to merge, and the other branch takes it all over.
        assert graph.merge(source, into=target).outcome == "already_up_to_date"
        graph.optimize(branch=target)
        assert graph.merge(target, into=source).outcome == "fast_forward"
        check(graph, model, changes, source)
        assert graph.schema_text(branch=source) == graph.schema_text(branch=target)
        assert len(graph.diff(target, source)) == 0
        # Time travel: what was before the merge is as it was.
        assert set(before.export_arrow("Person").read_all().column("id").to_pylist()) <= {*model.people, "p2", "p5"}
        # Both go on, and are merged once more.
        graph.write({"Person": [{"name": "later"} | ({"rank": 5} if "rank" in changes else {})]}, branch=source)
        model.people["later"] = dict.fromkeys(("age", "note", "mail", "phone")) | {"rank": 5}
        graph.mutate('query q() { delete Person where name = "p1" }', branch=target)
        del model.people["p1"]
        graph.merge(source, into=target)
        check(graph, model, changes, target)


def resolved(graph: Graph, source: str, target: str, item: str, side: str) -> None:
    with pytest.raises(MergeConflictError) as refused:
        graph.merge(source, into=target)
    [conflict] = refused.value.conflicts
    assert (conflict.kind, conflict.type_key, conflict.entity_id) == ("divergent_schema", "schema", item)
    assert graph.merge(source, into=target, preview=True).conflicts == refused.value.conflicts
    done = graph.merge(source, into=target, resolutions={"schema": {item: side}})
    assert (done.outcome, done.resolved) == ("merged", 1)
    assert graph.verify(deep=True).is_whole
    assert graph.merge(source, into=target).outcome == "already_up_to_date"


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_a_property_that_both_renamed_is_called_as_was_chosen(
    graph: Graph, source: str, target: str, side: str
) -> None:
    names = {"main": "years", "side": "old"}
    for branch, name in names.items():
        graph.schema_apply(changed(("age: I32?", f'{name}: I32? @rename_from("age")')), branch=branch)
        graph.mutate(f'query q() {{ update Person set {{ {name}: 50 }} where name = "p{len(name)}" }}', branch=branch)
    resolved(graph, source, target, "node:Person.age", side)
    name = names[source if side == "source" else target]
    assert {each: row[name] for each, row in rows(graph, "Person", target).items()} == {
        "p0": 0,
        "p1": 1,
        "p2": 2,
        "p3": 50,
        "p4": 4,
        "p5": 50,
    }


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_one_name_with_two_types_has_the_values_of_the_side_that_was_chosen(
    graph: Graph, source: str, target: str, side: str
) -> None:
    for branch, of, value in (("main", "String", '"x"'), ("side", "I32", "7")):
        graph.schema_apply(changed(("age: I32?", f"age: I32?  code: {of}?")), branch=branch)
        graph.mutate(
            f'query q() {{ update Person set {{ code: {value} }} where name = "p{len(value) + 2}" }}', branch=branch
        )
    resolved(graph, source, target, "node:Person.code", side)
    chosen = source if side == "source" else target
    found = {name: row["code"] for name, row in rows(graph, "Person", target).items() if row["code"] is not None}
    assert found == ({"p5": "x"} if chosen == "main" else {"p3": 7})


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_a_dropped_property_whose_values_changed_is_kept_or_dropped_as_was_chosen(
    graph: Graph, source: str, target: str, keeps: bool
) -> None:
    graph.schema_apply(changed(NO_NOTE), branch="side")
    graph.write({"Person": [{"name": "new", "age": 1}]}, branch="side")
    graph.mutate('query q() { update Person set { note: "said" } where name = "p0" }')
    keeper = "source" if source == "main" else "target"
    resolved(graph, source, target, "node:Person.note", keeper if keeps else {"source": "target"}.get(keeper, "source"))
    found = rows(graph, "Person", target)
    assert sorted(found) == ["new", "p0", "p1", "p2", "p3", "p4", "p5"]
    if keeps:
        notes = {name: row["note"] for name, row in found.items()}
        assert notes == {"new": None, "p0": "said"} | {f"p{at}": f"n{at}" for at in range(1, 6)}
    else:
        assert "note" not in found["p0"]


def test_a_dropped_property_stays_dropped_where_only_other_values_changed(graph: Graph) -> None:
    graph.schema_apply(changed(NO_NOTE), branch="side")
    graph.mutate('query q() { update Person set { age: 9 } where name = "p0" }')
    graph.mutate('query q() { delete Person where name = "p1" }')
    graph.optimize()
    graph.merge("side")
    assert rows(graph, "Person")["p0"] == {"id": "p0", "name": "p0", "age": 9}


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_a_dropped_type_whose_rows_changed_is_kept_or_dropped_as_was_chosen(
    graph: Graph, source: str, target: str, keeps: bool
) -> None:
    without = changed(("node City { name: String @key  size: I32? }\nedge Lives: Person -> City { since: I32? }\n", ""))
    graph.schema_apply(without, branch="side")
    graph.write({"City": [{"name": "Bonn", "size": 4}]})
    keeper = "source" if source == "main" else "target"
    resolved(graph, source, target, "node:City", keeper if keeps else {"source": "target"}.get(keeper, "source"))
    there = "node:City" in graph.snapshot(branch=target).record.tables
    assert there == keeps
    if keeps:
        assert sorted(rows(graph, "City", target)) == ["Bonn", "Oslo", "Rome"]


def test_a_dropped_type_that_was_only_compacted_stays_dropped(graph: Graph) -> None:
    graph.schema_apply(
        changed(("node City { name: String @key  size: I32? }\nedge Lives: Person -> City { since: I32? }\n", "")),
        branch="side",
    )
    graph.optimize()
    graph.write({"Person": [{"name": "new"}]})
    graph.merge("side")
    assert "node:City" not in graph.snapshot().record.tables


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_rules_of_either_side_hold_for_the_rows_of_both(graph: Graph, source: str, target: str) -> None:
    graph.schema_apply(changed(("age: I32?", "age: I32?  @range(age, 0..50)"), PHONE), branch="side", validated=True)
    graph.schema_apply(changed(("note: String?", "note: String?  @unique(note)")), validated=True)
    graph.write({"Person": [{"name": "old", "age": 99}]})
    graph.write({"Person": [{"name": "twin", "note": "n1"}]}, branch="side")
    with pytest.raises(MergeConflictError) as refused:
        graph.merge(source, into=target)
    assert sorted({each.kind.value for each in refused.value.conflicts}) == [
        "unique_violation",
        "value_constraint_violation",
    ]
    graph.mutate('query q() { update Person set { age: 9 } where name = "old" }')
    graph.mutate('query q() { update Person set { note: "new" } where name = "twin" }', branch="side")
    graph.merge(source, into=target)
    assert {"old", "twin"} <= set(rows(graph, "Person", target))


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_a_property_that_one_side_requires_can_stay_optional(graph: Graph, source: str, target: str) -> None:
    graph.schema_apply(changed(("age: I32?", "age: I32")), branch="side", validated=True)
    graph.schema_apply(changed(PHONE))
    graph.write({"Person": [{"name": "ageless"}]})
    with pytest.raises(MergeConflictError) as refused:
        graph.merge(source, into=target)
    assert [each.message for each in refused.value.conflicts] == [
        "node:Person 'ageless' has no value for 'age', which the schema requires"
    ]
    optional = "source" if source == "main" else "target"
    graph.merge(source, into=target, resolutions={"schema": {"node:Person.age": optional}})
    assert rows(graph, "Person", target)["ageless"]["age"] is None
    assert "age: I32?" in graph.schema_text(branch=target)


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_an_edge_of_a_new_type_to_a_node_deleted_under_another_schema_is_an_orphan(
    graph: Graph, source: str, target: str
) -> None:
    graph.schema_apply(changed(BOOK), branch="side")
    graph.write({"Book": [{"name": "Emma"}]}, {"Read": [{"id": "r", "from": "p1", "to": "Emma"}]}, branch="side")
    graph.schema_apply(changed(SHOP))
    graph.mutate('query q() { delete Person where name = "p1" }')
    with pytest.raises(MergeConflictError) as refused:
        graph.merge(source, into=target)
    assert [(each.kind, each.entity_id) for each in refused.value.conflicts] == [("orphan_edge", "r")]


def test_prefer_decides_schema_and_rows(graph: Graph) -> None:
    for branch, name in (("main", "years"), ("side", "old")):
        graph.schema_apply(changed(("age: I32?", f'{name}: I32? @rename_from("age")')), branch=branch)
        graph.mutate(f'query q() {{ update Person set {{ {name}: {len(name)} }} where name = "p0" }}', branch=branch)
    done = graph.merge("side", prefer="source")
    assert (done.resolved, rows(graph, "Person")["p0"]["old"]) == (2, 3)


def test_one_schema_can_be_taken_as_a_whole(graph: Graph) -> None:
    graph.schema_apply(changed(MAIL), branch="side")
    graph.schema_apply(changed(PHONE, WIDE), validated=True)
    graph.write({"Person": [{"name": "new", "phone": "1", "age": 8}]})
    graph.merge("side", resolutions={"schema": {"*": "source"}})
    assert graph.schema_text() == changed(MAIL)
    assert rows(graph, "Person")["new"] == {"id": "new", "name": "new", "age": 8, "mail": None, "note": None}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"schema": {"node:Person.age": {"name": "x"}}}, 'must be "source" or "target"'),
        ({"schema": {"node:Person.name": "source"}}, "which neither branch has changed"),
        ({"schema": {"node:Nothing": "source"}}, "which neither branch has changed"),
    ],
)
def test_resolutions_that_do_not_fit_are_refused(graph: Graph, given: dict[str, Any], told: str) -> None:
    graph.schema_apply(changed(MAIL), branch="side")
    graph.schema_apply(changed(PHONE))
    with pytest.raises(InvalidRequestError, match=told):
        graph.merge("side", resolutions=given)


def test_both_texts_on_both_branches_are_one_schema(graph: Graph) -> None:
    """What the advice of a conflict was, and never helped."""
    both = changed(MAIL, PHONE)
    graph.schema_apply(changed(MAIL), branch="side")
    graph.schema_apply(changed(PHONE))
    for branch in ("side", "main"):
        graph.schema_apply(both, branch=branch)
        graph.write({"Person": [{"name": f"of-{branch}", "mail": branch, "phone": branch}]}, branch=branch)
    assert graph.snapshot().record.schema == graph.snapshot(branch="side").record.schema
    graph.merge("side")
    assert rows(graph, "Person")["of-side"]["phone"] == "side"


def test_three_branches(graph: Graph) -> None:
    branches = {"one": MAIL, "two": PHONE, "three": BOOK}
    for name, edit in branches.items():
        graph.branches.create(name)
        graph.schema_apply(changed(edit), branch=name)
        graph.write({"Person": [{"name": name}]}, branch=name)
    for name in branches:
        assert graph.merge(name).outcome == ("fast_forward" if name == "one" else "merged")
        graph.optimize()
    assert graph.schema_plan(changed(MAIL, PHONE, BOOK)).is_empty
    assert {"one", "two", "three"} <= set(rows(graph, "Person"))
    for name in branches:
        graph.write({"Person": [{"name": f"{name}-again"}]}, branch=name)
        graph.merge(name)
        assert graph.merge("main", into=name).outcome == "fast_forward"
        assert rows(graph, "Person", name) == rows(graph, "Person")


def test_a_type_that_both_made_is_merged_again_and_again(graph: Graph) -> None:
    for branch in ("side", "main"):
        graph.schema_apply(changed(BOOK), branch=branch)
        graph.write({"Book": [{"name": "both", "pages": 1}, {"name": branch, "pages": 2}]}, branch=branch)
    graph.merge("side")
    for turn in range(3):
        graph.write({"Book": [{"name": f"side-{turn}"}]}, branch="side")
        graph.mutate(f'query q() {{ update Book set {{ pages: {turn} }} where name = "side" }}', branch="side")
        graph.write({"Book": [{"name": f"main-{turn}"}]})
        assert graph.merge("side").outcome == "merged"
        assert rows(graph, "Book")["side"]["pages"] == turn
        if turn == 1:
            assert graph.merge("main", into="side").outcome == "fast_forward"
            assert rows(graph, "Book", "side") == rows(graph, "Book")
    assert len(rows(graph, "Book")) == 9


def test_a_merge_of_schemas_can_be_followed_reverted_and_branched_from(graph: Graph) -> None:
    graph.schema_apply(changed(MAIL), branch="side")
    graph.write({"Person": [{"name": "new", "mail": "m"}]}, branch="side")
    graph.schema_apply(changed(PHONE))
    before = graph.snapshot()
    done = graph.merge("side")
    assert done.commit is not None
    graph.branches.create("next")
    graph.write({"Person": [{"name": "later", "mail": "l", "phone": "p"}]}, branch="next")
    graph.merge("next")
    last = graph.snapshot().record.head_commit
    graph.revert(last)
    assert "later" not in rows(graph, "Person")
    assert [(each.op.value, each.id) for each in graph.diff(before, "main")] == [("insert", "new")]
