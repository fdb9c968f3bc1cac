"""The rules that make plans better, and what plans are made of."""

import ast
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from omnigraph.language import plan as plan_package
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.build import build
from omnigraph.language.plan.explain import explain
from omnigraph.language.plan.pattern import Read
from omnigraph.language.plan.pipeline import get_nested_steps
from omnigraph.language.plan.rewrite import REWRITES, Rewrite
from omnigraph.language.plan.walk import find_variables, get_children, join_conjuncts, replaced, split_conjuncts, walk
from omnigraph.language.query import parse
from omnigraph.language.query.bind import bind
from omnigraph.language.schema import accept
from omnigraph.language.text import Source

SCHEMA = accept("""
    node Person { name: String @key  email: String? @unique  city: String? @index  age: I64?  score: I64? }
    node Company { name: String @key }
    edge Knows: Person -> Person { since: I64? }
    edge WorksAt: Person -> Company
""")


def built(clauses: str, rest: str = "return { $p }") -> tuple[steps.Step, ...]:
    text = f"query q() {{ match {{ {clauses} }} {rest} }}"
    body = bind(parse(text).queries[0], SCHEMA, Source(text)).body
    assert isinstance(body, Read)
    return build(body).steps


def after(rule: str, pipeline: tuple[steps.Step, ...]) -> list[str]:
    """The lines of a plan after the rules up to and including this one."""
    for rewrite in REWRITES:
        pipeline = rewrite(pipeline, SCHEMA)
        if name_of(rewrite) == rule:
            return explain(steps.ReadPlan(pipeline, ())).splitlines()
    raise AssertionError(f"no rule is called {rule}")


def name_of(rewrite: Rewrite) -> str:
    return str(getattr(rewrite, "__name__", ""))


def test_filters_reach_scans_expansions_and_edges() -> None:
    pipeline = built("$p: Person $p $e: knows $q $p.age > 1 $q.age > 2 $e.since > 3 $p.age < $q.age")

    assert after("push_filters", pipeline) == [
        "scan $p: Person {…} where $p.age > 1",
        "expand $p -[$e: Knows {…}]-> $q: Person {…} where $e.since > 3 and $q.age > 2",
        "filter $p.age < $q.age",
        "return $p",
    ]


def test_a_condition_on_two_variables_stands_right_behind_the_second() -> None:
    pipeline = built("$p: Person $p knows $q $q knows $r $p.age < $q.age")

    assert after("push_filters", pipeline)[2] == "filter $p.age < $q.age"


def test_filters_on_what_is_optional_stay_behind_the_block() -> None:
    pipeline = built("$p: Person optional { $p knows $q } $q.age is null")

    assert after("push_filters", pipeline)[-2:] == ["filter $q.age is null", "return $p"]


def test_filters_go_into_the_component_they_are_about() -> None:
    pipeline = built("$p: Person $c: Company $c.name = $p.name $c.name > $c.name")

    assert after("push_filters", pipeline) == [
        "scan $p: Person {…}",
        "each with",
        "  scan $c: Company {…} where $c.name > $c.name",
        "filter $c.name = $p.name",
        "return $p",
    ]


@pytest.mark.parametrize(
    ("condition", "other"),
    [
        ('$q.name = "a"', '$p.city = "b" $p.age = 3'),
        ('$q.email = "a"', '$p.city = "b"'),
        ('$q.city = "a"', "$p.age = 3"),
        ("$q.age = 3", "$p.age > 3"),
        ("$q.age > 3", "$p.name = $q.name"),
        ('$q.name in ["a", "b"]', "$p.age = 3"),
        ('"a" = $q.name', "$p.age = 3"),
    ],
)
def test_the_more_selective_variable_is_scanned_first(condition: str, other: str) -> None:
    for clauses in (f"$p: Person $p knows $q {condition} {other}", f"$q: Person $p knows $q {other} {condition}"):
        assert after("order_expands", built(clauses))[0].startswith("scan $q: Person")


def test_of_equals_the_first_written_stays_first() -> None:
    assert after("order_expands", built("$p: Person $p knows $q"))[0].startswith("scan $p")
    assert after("order_expands", built("$q: Person $p knows $q"))[0].startswith("scan $q")


def test_an_edge_between_two_that_are_there_goes_before_any_expansion() -> None:
    lines = after("order_expands", built('$p: Person { name: "a" } $p knows $q $q knows $r $q knows $p'))

    assert [line.split()[0] for line in lines] == ["scan", "expand", "connect", "expand", "return"]


@pytest.mark.parametrize("clause", ["$p knows{2,3} $q", "shortest $p knows{1,3} $q as $w"])
def test_walks_that_depend_on_their_start_are_not_turned_round(clause: str) -> None:
    lines = after("order_expands", built(f'$p: Person {clause} $q.name = "a"'))

    assert lines[0] == "scan $p: Person {…}"


def test_walks_that_do_not_depend_on_their_start_are() -> None:
    lines = after("order_expands", built('$p: Person $p knows{1,3} $q $q.name = "a"'))

    assert lines[:2] == [
        'scan $q: Person {…} where $q.name = "a"',
        "expand $q <-[Knows{1,3}]- $p: Person {…}",
    ]


@pytest.mark.parametrize(
    ("clauses", "returned"),
    [
        ("$p: Person $p knows $q", "count(distinct $q) as n"),
        ("$p: Person $p knows $q", "$q.name, count(*) as n"),
        ("$p: Person $p knows $q", "count($q.age) as n"),
        ("$p: Person $p knows $q", "sum($q.age) as n"),
        ("$p: Person $p knows $q $p.age > 3 $q.age > 3", "count(*) as n"),
        ("$p: Person $p knows $q $q knows $p", "count(*) as n"),
        ("$p: Person $p knows $q not { $q worksAt $_ }", "count(*) as n"),
    ],
)
def test_neighbours_that_somebody_looks_at_are_listed(clauses: str, returned: str) -> None:
    lines = after("count_without_listing", built(clauses, f"return {{ {returned} }}"))

    assert not any(line.startswith("count") for line in lines)


def test_chains_are_counted_at_their_end_only() -> None:
    lines = after("count_without_listing", built("$p: Person $p knows $q $q knows $r", "return { count(*) as n }"))

    assert lines == [
        "scan $p: Person {…}",
        "expand $p -[Knows]-> $q: Person {…}",
        "count #times1 neighbours of $q -[Knows]->",
        "aggregate count(*) as n, each row #times1 times",
    ]


@pytest.mark.parametrize(
    ("clauses", "rest", "reaches"),
    [
        ("$p: Person", "return { $p } limit 3", True),
        ("$p: Person $p.age > 3", "return { $p } limit 3 offset 2", True),
        ("$p: Person optional { $p knows $q }", "return { $p } limit 3", True),
        ("$p: Person $p knows $q", "return { $p } limit 3", False),
        ("$p: Person $p.age > 3 not { $p knows $_ }", "return { $p } limit 3", False),
        ("$p: Person", "return distinct { $p.age } limit 3", False),
        ("$p: Person", "return { count(*) as n } limit 3", False),
        ("$p: Person", "return { $p } order { $p.age } limit 3", False),
        ("$p: Person", "return { $p } offset 3", False),
        ("$p: Person $c: Company", "return { $p } limit 3", False),
    ],
)
def test_a_limit_reaches_the_scan_only_where_no_step_drops_rows(clauses: str, rest: str, reaches: bool) -> None:
    assert ("at most" in after("push_limits", built(clauses, rest))[0]) is reaches


def test_only_what_later_steps_need_is_read() -> None:
    lines = after(
        "narrow_scans",
        built("$p: Person $p.age > 3 $p knows $q $q.score < $p.score", "return { $q.name } order { $p.city }"),
    )

    assert lines[0] == "scan $p: Person {city, score} where $p.age > 3"
    assert lines[1] == "expand $p -[Knows]-> $q: Person {name, score}"


# --- walks over expressions -------------------------------------------------------------------------------------------

A = ex.Compare(ex.CompareOp.LESS, ex.Property("p", "age", ex.I64), ex.Parameter("n", ex.I64))
B = ex.IsNull(ex.Property("q", "age", ex.I64))
C = ex.Computed("#exists1", ex.BOOL)


def test_conjunctions_are_taken_apart_and_put_together() -> None:
    assert split_conjuncts(ex.And((A, ex.And((B, C))))) == (A, B, C)
    assert join_conjuncts([A, None, ex.And((B, C))]) == ex.And((A, B, C))
    assert join_conjuncts([A]) == A
    assert join_conjuncts([]) is None


def test_an_expression_tells_what_it_needs() -> None:
    assert find_variables(ex.Or((A, ex.Not(B), C))) == {"p", "q", "#exists1"}
    assert len(list(walk(ex.Or((A, B))))) == 6


def test_a_part_is_replaced_and_the_rest_is_shared() -> None:
    whole = ex.Or((ex.And((A, B)), C))

    changed = replaced(whole, lambda part: ex.Constant(value=True, type=ex.BOOL) if part == B else None)

    assert changed == ex.Or((ex.And((A, ex.Constant(value=True, type=ex.BOOL))), C))
    assert replaced(whole, lambda _: None) is whole


def test_every_expression_inside_another_is_found() -> None:
    kinds: list[Any] = [each for each in vars(ex).values() if isinstance(each, type) and is_dataclass(each)]
    nested = [kind for kind in kinds if any("Expression" in str(each.type) for each in fields(kind))]

    assert {kind.__name__ for kind in nested} >= {"And", "Member", "Call", "TextMatch", "Rrf", "Nearest"}
    leaf = ex.Now()
    for kind in nested:
        if kind in (ex.Aggregation, ex.Column):
            continue
        values = {each.name: argument(each.name, str(each.type), leaf) for each in fields(kind)}
        assert leaf in get_children(kind(**values)), kind


def argument(name: str, declared: str, leaf: ex.Expression) -> object:
    if name in ("arguments", "operands"):
        return (leaf,)
    return (
        leaf
        if "Expression" in declared
        else ex.Property("p", "a", ex.STRING)
        if name in ("target", "first", "second")
        else None
    )


# --- the house --------------------------------------------------------------------------------------------------------


def test_plans_know_nothing_of_texts_engines_or_files() -> None:
    folder = Path(plan_package.__file__).parent
    allowed = ("omnigraph.language.plan", "omnigraph.model", "omnigraph.language.lexer", "omnigraph.limits")
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("omnigraph"):
                assert node.module.startswith(allowed) or node.module == "omnigraph", f"{path.name}: {node.module}"


def test_every_rule_has_a_file_of_its_own() -> None:
    folder = Path(plan_package.__file__).parent / "rewrites"

    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == {name_of(rule) for rule in REWRITES}


def test_steps_inside_steps_are_all_reached() -> None:
    holders: list[Any] = [
        kind
        for kind in vars(steps).values()
        if isinstance(kind, type) and is_dataclass(kind) and "Plan" not in kind.__name__
        if any(each.name in ("steps", "branches") for each in fields(kind))
    ]
    scan = steps.Scan("p", "Person")
    assert len(holders) > 1
    for kind in holders:
        values: dict[str, object] = {each.name: () for each in fields(kind)}
        values |= {"steps": (scan,)} if "steps" in values else {"branches": ((scan,),)}

        assert get_nested_steps(kind(**values)) == ((scan,),), kind
