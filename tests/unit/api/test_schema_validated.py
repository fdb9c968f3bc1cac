"""Changes of a schema that the data must allow."""

import re
from pathlib import Path

import pytest

import omnigraph
from omnigraph import ConstraintError, Graph, InvalidRequestError
from omnigraph.model.schema_change import SchemaPlan

BEFORE = """\
node Person { name: String @key  age: I32?  score: F32  mood: enum(good, bad)  mail: String? }
edge Knows: Person -> Person { since: U32? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph", BEFORE)
    graph.write(
        nodes={
            "Person": [
                {"name": "a", "age": 1, "score": 0.5, "mood": "good", "mail": "x@y"},
                {"name": "b", "age": 2**31 - 1, "score": 1.5, "mood": "bad", "mail": "x@y"},
            ]
        },
        edges={"Knows": [{"from": "a", "to": "b", "since": 2**32 - 1}, {"from": "a", "to": "a"}]},
    )
    graph.mutate('query q() { insert Person { name: "c", score: 2.5, mood: "good" } }')
    graph.mutate('query q() { delete Person where name = "c" }')
    graph.mutate('query q() { insert Person { name: "d", score: 3.5, mood: "bad" } }')
    return graph


def changed(graph: Graph, old: str, new: str) -> SchemaPlan:
    text = BEFORE.replace(old, new)
    assert text != BEFORE
    assert not graph.schema_plan(text).supported, "only when asked for"
    with pytest.raises(InvalidRequestError, match="not supported in schema migration v1"):
        graph.schema_apply(text)
    return graph.schema_apply(text, validated=True).plan


def people(graph: Graph, *columns: str) -> list[dict[str, object]]:
    shown = ", ".join(f"$p.{each} as {each}" for each in columns)
    return graph.query(f"query q() {{ match {{ $p: Person }} return {{ {shown} }} order {{ $p.name }} }}").to_pylist()


def test_a_wider_type_keeps_every_value(graph: Graph) -> None:
    plan = changed(graph, "age: I32?", "age: I64?")

    assert [str(step) for step in plan.steps] == ["change property 'Person.age' (I32? -> I64?) on node 'Person'"]
    graph.mutate('query q() { insert Person { name: "e", age: 9000000000, score: 1.0, mood: "good" } }')
    assert [row["age"] for row in people(graph, "name", "age")] == [1, 2**31 - 1, None, 9_000_000_000]


def test_several_types_may_widen_at_once_together_with_a_rename(graph: Graph) -> None:
    text = BEFORE.replace("age: I32?", 'years: F64? @rename_from("age")').replace("score: F32", "score: F64")
    text = text.replace("since: U32?", "since: I64?").replace("mood: enum(good, bad)", "mood: String")
    old = graph.snapshot().record.commit

    graph.schema_apply(text, validated=True)

    assert people(graph, "name", "years", "score", "mood")[:2] == [
        {"name": "a", "years": 1.0, "score": 0.5, "mood": "good"},
        {"name": "b", "years": float(2**31 - 1), "score": 1.5, "mood": "bad"},
    ]
    edges = graph.query("query q() { match { $p: Person $p $k: knows $q } return { $k.since as s } order { s } }")
    assert [row["s"] for row in edges] == [None, 2**32 - 1]
    graph.mutate('query q() { insert Person { name: "z", years: 0.5, score: 1.0, mood: "any" } }')
    asked = "query q() { match { $p: Person } return { $p.age as age } order { $p.name } }"
    assert [row["age"] for row in graph.query(asked, commit=old)] == [1, 2**31 - 1, None]


def test_the_elements_of_lists_widen_as_numbers_do_and_rows_of_both_sides_meet_in_a_merge(tmp_path: Path) -> None:
    before = "node Log { name: String @key  whole: [I32]?  parts: [F32] }"
    after = "node Log { name: String @key  whole: [I64]?  parts: [F64] }"
    with omnigraph.init(tmp_path / "lists", before) as graph:
        graph.write({"Log": [{"name": "a", "whole": [1, -2], "parts": [0.5]}, {"name": "b", "parts": []}]})
        graph.branches.create("side")
        done = graph.schema_apply(after, validated=True, branch="side")
        assert [str(step) for step in done.plan.steps] == [
            "change property 'Log.parts' ([F32] -> [F64]) on node 'Log'",
            "change property 'Log.whole' ([I32]? -> [I64]?) on node 'Log'",
        ]
        graph.write({"Log": [{"name": "c", "whole": [2**40], "parts": [1e300]}]}, branch="side")
        graph.write({"Log": [{"name": "a", "whole": [9], "parts": [0.5]}]}, mode="merge")
        graph.merge("side")
        found = "query q() { match { $l: Log } return { $l.whole as w, $l.parts as p } order { $l.name } }"
        assert graph.query(found).to_pylist() == [
            {"w": [9], "p": [0.5]}, {"w": None, "p": []}, {"w": [2**40], "p": [1e300]}
        ]  # fmt: skip
    assert not graph_plan_is_supported(after, before), "and never narrow"


def graph_plan_is_supported(before: str, after: str) -> bool:
    with omnigraph.init("memory://", before) as graph:
        return graph.schema_plan(after, validated=True).supported


def test_a_type_that_does_not_hold_every_value_stays_unsupported(graph: Graph) -> None:
    for old, new in (
        ("age: I32?", "age: U32?"),
        ("score: F32", "score: I64"),
        ("mail: String?", "mail: [String]?"),
        ("mail: String?", "mail: Date?"),
    ):
        plan = graph.schema_plan(BEFORE.replace(old, new), validated=True)
        assert not plan.supported, new


def test_a_property_may_become_nullable(graph: Graph) -> None:
    changed(graph, "score: F32 ", "score: F32? ")
    graph.mutate('query q() { insert Person { name: "e", mood: "good" } }')
    assert [row["score"] for row in people(graph, "name", "score")] == [0.5, 1.5, 3.5, None]


def test_a_property_may_be_required_when_everybody_has_it(graph: Graph) -> None:
    required = BEFORE.replace("mail: String?", "mail: String")
    with pytest.raises(ConstraintError) as refused:
        graph.schema_apply(required, validated=True)
    assert refused.value.message == (
        "cannot change property 'Person.mail' (String? -> String) on node 'Person': 1 entity breaks it ('d'); "
        "correct them first"
    )
    assert refused.value.code == "schema_data_conflict"

    graph.mutate('query q() { update Person set { mail: "d@y" } where name = "d" }')
    graph.schema_apply(required, validated=True)

    with pytest.raises(omnigraph.GraphError, match="mail"):
        graph.mutate('query q() { insert Person { name: "e", score: 1.0, mood: "good" } }')
    graph.mutate('query q() { insert Person { name: "e", score: 1.0, mood: "good", mail: "e@y" } }')
    assert [row["mail"] for row in people(graph, "name", "mail")] == ["x@y", "x@y", "d@y", "e@y"]


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ('rank: I64 @default("7")', 7),
        ('rank: String @default("none")', "none"),
        ('rank: enum(low, high) @default("low")', "low"),
        ('rank: Bool @default("true")', True),
        ('rank: Date @default("2024-02-29")', "2024-02-29"),
        ('rank: F64 @default("0.25")', 0.25),
        ('rank: [I32] @default("[1, 2]")', [1, 2]),
        ('rank: [String] @default("[]")', []),
        ('rank: [Date] @default("[\\"2024-02-29\\"]")', ["2024-02-29"]),
        ('rank: Vector(2) @default("[0.5, 1]")', [0.5, 1.0]),
    ],
)
def test_a_required_property_comes_with_its_default(graph: Graph, declared: str, value: object) -> None:
    changed(graph, "mail: String?", f"mail: String?  {declared}")
    assert [row["rank"] for row in people(graph, "name", "rank")] == [value] * 3


def test_a_default_that_is_no_value_is_refused(graph: Graph) -> None:
    for declared, message in (
        ('rank: I64 @default("x")', "the @default of 'rank' is no I64"),
        ('rank: enum(low) @default("high")', "the @default of 'rank' is not among low"),
        ('rank: F64 @default("nan")', "the @default of 'rank' is no F64: nan is not finite"),
        ('rank: F32 @default("inf")', "the @default of 'rank' is no F32: inf is not finite"),
        ('rank: Blob @default("base64:AA==")', "adding required property 'Person.rank' requires a backfill"),
        ('rank: [I32] @default("[1")', r"the @default of 'rank' is no \[I32\]: it is not JSON"),
        ('rank: [I32] @default("1")', r"the @default of 'rank' is no \[I32\]: it must be a list, like \[1, 2\]"),
        ('rank: [I32] @default("[1.5]")', r"the @default of 'rank' is no \[I32\]: .*contains a null or invalid item"),
        ('rank: [I32] @default("[null]")', r"the @default of 'rank' is no \[I32\]: .*contains a null or invalid item"),
        ('rank: Vector(2) @default("[1]")', r"the @default of 'rank' is no Vector\(2\): .*2 dimensions, got 1"),
        ('rank: Vector(1) @default("[1e999]")', r"the @default of 'rank' is no Vector\(1\): "),
    ):
        before = graph.snapshot().record
        with pytest.raises(InvalidRequestError, match=message):
            graph.schema_apply(BEFORE.replace("mail:", f"{declared}  mail:"), validated=True)
        assert graph.snapshot().record == before


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("@range(age, 2..)", "cannot add constraint @range(age, 2..) on node 'Person': 1 entity breaks it ('a')"),
        ("@range(age, ..5)", "1 entity breaks it ('b')"),
        ('@check(mail, "z")', "2 entities break it ('a', 'b')"),
        ("@unique(mail)", "cannot add constraint @unique(mail) on node 'Person': 2 entities break it ('a', 'b')"),
    ],
)
def test_a_rule_comes_only_when_everybody_keeps_to_it(graph: Graph, rule: str, message: str) -> None:
    text = BEFORE.replace("mail: String? }", f"mail: String?  {rule} }}")
    with pytest.raises(ConstraintError) as refused:
        graph.schema_apply(text, validated=True)
    assert message in refused.value.message

    graph.mutate(
        'query q() @ordered { update Person set { mail: "zz" } where name = "a" '
        'update Person set { mail: "z", age: 4 } where name = "b" update Person set { age: 3 } where name = "a" }'
    )
    graph.schema_apply(text, validated=True)

    bad = {"@range(age, 2..)": "age: 1", "@range(age, ..5)": "age: 6"}.get(
        rule, 'mail: "zz"' if "unique" in rule else 'mail: "y"'
    )
    with pytest.raises(ConstraintError):
        graph.mutate(f'query q() {{ insert Person {{ name: "e", score: 1.0, mood: "good", {bad} }} }}')
    # And goes without looking.
    graph.schema_apply(BEFORE, validated=True)
    graph.mutate(f'query q() {{ insert Person {{ name: "e", score: 1.0, mood: "good", {bad} }} }}')


@pytest.mark.parametrize(
    "declared",
    [
        "rank: String?  @unique(rank)",
        "rank: String? @unique",
        "rank: I32?  @range(rank, 1..3)",
        'rank: String?  @check(rank, "z")',
        "rank: I32?  @unique(mail, rank)",
        "rank: I32 @default(2)  @range(rank, 1..3)",
        'rank: String @default("zz")  @check(rank, "z")',
        "rank: I32 @default(2)  @unique(name, rank)",
    ],
)
def test_a_new_property_may_come_with_a_rule(graph: Graph, declared: str) -> None:
    changed(graph, "mail: String? }", f"mail: String?  {declared} }}")
    assert len(people(graph, "name", "rank")) == 3


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("rank: I32 @default(7)  @range(rank, 1..3)", "cannot add constraint @range(rank, 1..3) on node 'Person': 3"),
        ('rank: String @default("y")  @check(rank, "z")', "3 entities break it ('a', 'b', 'd')"),
        ("rank: I32 @default(2) @unique", "3 entities break it ('a', 'b', 'd')"),
        ("rank: I32 @default(2)  @unique(mail, rank)", "2 entities break it ('a', 'b')"),
    ],
)
def test_a_default_that_breaks_the_rule_it_comes_with_is_refused(graph: Graph, declared: str, message: str) -> None:
    text = BEFORE.replace("mail: String? }", f"mail: String?  {declared} }}")
    with pytest.raises(ConstraintError) as refused:
        graph.schema_apply(text, validated=True)
    assert message in refused.value.message


def test_a_rule_whose_pattern_is_none_is_refused(graph: Graph) -> None:
    text = BEFORE.replace("mail: String? }", 'mail: String?  @check(mail, "(?=a)") }')
    with pytest.raises(InvalidRequestError, match=r"@check on Person\.mail has invalid regex"):
        graph.schema_apply(text, validated=True)
    assert graph.schema_text() == BEFORE


def test_a_cardinality_may_change_when_the_edges_keep_to_it(graph: Graph) -> None:
    for bounds, message in (("0..1", "1 entity breaks it ('a')"), ("1..", "2 entities break it ('b', 'd')")):
        with pytest.raises(ConstraintError) as refused:
            graph.schema_apply(
                BEFORE.replace("Person {", f"Person @card({bounds}) {{").replace(
                    "node Person @card(" + bounds + ")", "node Person"
                ),
                validated=True,
            )
        assert message in refused.value.message
    wider = BEFORE.replace("-> Person {", "-> Person @card(0..2) {")
    assert [str(step) for step in graph.schema_apply(wider, validated=True).plan.steps] == [
        "change cardinality of edge 'Knows' to @card(0..2)"
    ]
    with pytest.raises(ConstraintError):
        graph.mutate('query q() { insert Knows { from: "a", to: "d" } }')


@pytest.mark.parametrize(
    ("declared", "steps"),
    [
        ("n: I64?", ["change property 'Numbered.n' (I32? -> I64?) on interface 'Numbered'"]),
        ("n: I32", ["change property 'Numbered.n' (I32? -> I32) on interface 'Numbered'"]),
        ("n: I32? @unique", ["add constraint @unique(n) on interface 'Numbered'"]),
        ("n: I32?  m: I32 @default(4)", ["add property 'Numbered.m' (I32) on interface 'Numbered', filled with \"4\""]),
    ],
)
def test_a_change_to_an_interface_reaches_the_nodes_that_inherit_it(
    tmp_path: Path, declared: str, steps: list[str]
) -> None:
    before = "interface Numbered { n: I32? }\nnode Page implements Numbered { name: String @key }"
    graph = omnigraph.init(tmp_path / "pages", before)
    graph.write({"Page": [{"name": "a", "n": 1}, {"name": "b", "n": 2}]})
    text = before.replace("n: I32?", declared)
    assert not graph.schema_plan(text).supported

    done = graph.schema_apply(text, validated=True)

    of_nodes = [step.replace("interface 'Numbered'", "node 'Page'").replace("Numbered.", "Page.") for step in steps]
    assert [str(step) for step in done.plan.steps] == steps + of_nodes
    found = graph.query("query q() { match { $p: Page } return { $p.n as n } order { n } }")
    assert found.to_pylist() == [{"n": 1}, {"n": 2}]


def test_what_breaks_a_change_to_an_interface_is_told_of_the_nodes(tmp_path: Path) -> None:
    before = "interface Numbered { n: I32? }\nnode Page implements Numbered { name: String @key }"
    graph = omnigraph.init(tmp_path / "pages", before)
    graph.write({"Page": [{"name": "a", "n": 1}, {"name": "b"}]})
    with pytest.raises(ConstraintError, match=r"on node 'Page': 1 entity breaks it \('b'\)"):
        graph.schema_apply(before.replace("n: I32?", "n: I32"), validated=True)


def test_a_rule_of_an_interface_goes_from_the_nodes_too(tmp_path: Path) -> None:
    before = "interface Numbered { n: I32? @unique }\nnode Page implements Numbered { name: String @key }"
    graph = omnigraph.init(tmp_path / "pages", before)
    done = graph.schema_apply(before.replace(" @unique", ""), validated=True)
    assert [str(step) for step in done.plan.steps] == [
        "remove constraint @unique(n) from interface 'Numbered'",
        "remove constraint @unique(n) from node 'Page'",
    ]
    graph.write({"Page": [{"name": "a", "n": 1}, {"name": "b", "n": 1}]})


@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("name: String @key", "name: String", "removing property constraints from 'Person.name'"),
        ("since: U32? }", "since: U32?  @key(src, dst) }", "adding constraint '@key(src, dst)' to 'Knows'"),
    ],
)
def test_a_key_is_never_added_or_removed(graph: Graph, old: str, new: str, reason: str, *, validated: bool) -> None:
    text = BEFORE.replace(old, new)
    assert not graph.schema_plan(text, validated=validated).supported
    with pytest.raises(InvalidRequestError, match=re.escape(reason)):
        graph.schema_apply(text, validated=validated)


@pytest.mark.parametrize(
    ("before", "wider", "is_supported"),
    [
        ("k: I32 @key", "k: I64 @key", True),
        ("k: U32 @key", "k: F64 @key", True),
        ("k: F32 @key", "k: F64 @key", False),  # 0.1 is not the same number in both, and ids are made from it
        ("k: F32  m: I32  @key(k, m)", "k: F64  m: I32  @key(k, m)", False),
        ("k: F32  m: I32  @key(k, m)", "k: F32  m: I64  @key(k, m)", True),
    ],
)
def test_a_key_widens_only_where_ids_stay_those_of_its_values(before: str, wider: str, *, is_supported: bool) -> None:
    row = {"k": 3} if "F32" not in before else {"k": 0.1}
    with omnigraph.init("memory://", f"node X {{ {before}  n: I32? }}") as graph:
        graph.write({"X": [row | ({"m": 1} if "m:" in before else {})]})
        text = f"node X {{ {wider}  n: I32? }}"
        assert graph.schema_plan(text, validated=True).supported is is_supported
        if is_supported:
            graph.schema_apply(text, validated=True)
            graph.write({"X": [row | {"n": 1} | ({"m": 1} if "m:" in before else {})]}, mode="merge")
            assert [each["n"] for each in graph.export_arrow("X").read_all().to_pylist()] == [1]
