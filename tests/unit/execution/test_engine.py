"""What queries mean, rule by rule, on one small graph; and that plain loops over its rows say the same."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pytest
from tests.support.brute_force import answer
from tests.support.graphs import PlainGraph, StoredGraph, small_schema, store_graph
from tests.support.result_agreement import disagreement

from omnigraph.errors import InvalidRequestError
from omnigraph.execution.engine import QueryEngine
from omnigraph.language.plan.pattern import Read
from omnigraph.language.query.compile import bind_params, compile
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction.snapshot import Snapshot

SCHEMA = small_schema()

PEOPLE: list[dict[str, Any]] = [
    {
        "id": "Ann",
        "name": "Ann",
        "age": 30,
        "score": 0.0,
        "city": "Oslo",
        "tags": ["x", "y"],
        "born": date(2000, 1, 1),
        "seen": datetime(2020, 1, 1, 12, tzinfo=UTC),
        "active": True,
        "big": 2**64 - 1,
        "ratio": 0.5,
    },
    {"id": "Bob", "name": "Bob", "age": 25, "score": -0.0, "city": "Oslo", "tags": [], "active": False, "big": 1},
    {"id": "Cid", "name": "Cid", "age": 25, "score": 1.5, "city": "Rome", "tags": ["y"], "born": date(1999, 5, 5)},
    {"id": "Dee", "name": "Dee", "city": None, "ratio": 1.0},
]
PLACES = [{"id": str(code), "code": code, "title": title} for code, title in ((1, "one"), (2, None))]
GRAPH = PlainGraph(
    SCHEMA,
    {"Person": PEOPLE, "Place": PLACES, "Note": []},
    {
        "Knows": [
            {"id": "k1", "src": "Ann", "dst": "Bob", "since": 1},
            {"id": "k2", "src": "Ann", "dst": "Cid", "since": 2},
            {"id": "k3", "src": "Bob", "dst": "Cid", "since": None},
        ],
        "LivesIn": [{"id": "l1", "src": "Ann", "dst": "1", "since": 1}],
        "Wrote": [],
    },
)
NOW_US = 1_600_000_000_123_456


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredGraph:
    return store_graph(str(tmp_path_factory.mktemp("engine")), SCHEMA, GRAPH.tables())


@pytest.fixture(scope="module")
def engine(stored: StoredGraph) -> QueryEngine:
    return QueryEngine(stored.parts.tables, clock=ManualClock(NOW_US))


class Asked:
    """A result, checked against plain loops."""

    def __init__(self, stored: StoredGraph, engine: QueryEngine, text: str, params: dict[str, object]) -> None:
        compiled = compile(text, SCHEMA)
        bound = bind_params(compiled, params)
        self.table: pa.Table = engine.run(stored.snapshot(), compiled, bound, schema=SCHEMA)
        read = compiled.bound.body
        assert isinstance(read, Read)
        wrong = disagreement(read, self.table, answer(read, GRAPH, bound.values, now_ms=NOW_US // 1_000))
        assert wrong is None, wrong

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return list(zip(*(column.to_pylist() for column in self.table.columns), strict=True))

    @property
    def column(self) -> list[Any]:
        return list(self.table.column(0).to_pylist())


class Ask(Protocol):
    """Asks one query."""

    def __call__(self, body: str, signature: str = "", **params: object) -> Asked: ...


@pytest.fixture
def ask(stored: StoredGraph, engine: QueryEngine) -> Ask:
    def run(body: str, signature: str = "", **params: object) -> Asked:
        return Asked(stored, engine, f"query q({signature}) {{ {body} }}", params)

    return run


def names(ask: Ask, condition: str, signature: str = "", **params: object) -> list[str]:
    """Who satisfies a condition."""
    found = ask(f"match {{ $p: Person {condition} }} return {{ $p }} order {{ $p.name }}", signature, **params)
    return [str(each) for each in found.column]


# --- null -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
def test_a_comparison_with_null_never_matches(ask: Ask, op: str) -> None:
    assert "Dee" not in names(ask, f"$p.age {op} 25")
    assert "Dee" not in names(ask, f"not ($p.age {op} 25)")


def test_an_omitted_parameter_matches_nothing(ask: Ask) -> None:
    assert names(ask, "$p.city = $c", "$c: String?") == []
    assert names(ask, "$p.city != $c", "$c: String?") == []
    assert ask("match { $p: Person { city: $c } } return { $p }", "$c: String?").rows == []


def test_is_null_is_never_unknown(ask: Ask) -> None:
    assert names(ask, "$p.age is null") == ["Dee"]
    assert names(ask, "$p.age is not null") == ["Ann", "Bob", "Cid"]


def test_or_and_not_follow_three_valued_logic(ask: Ask) -> None:
    assert names(ask, '($p.age > 26 or $p.name = "Dee")') == ["Ann", "Dee"]
    assert names(ask, '($p.age > 26 and $p.name = "Dee")') == []
    assert names(ask, '(not ($p.age > 26) or $p.name = "Dee")') == ["Bob", "Cid", "Dee"]


# --- values -----------------------------------------------------------------------------------------------------------


def test_numbers_of_different_widths_are_compared_by_value(ask: Ask) -> None:
    assert names(ask, "$p.age = 25.0") == ["Bob", "Cid"]
    assert names(ask, "$p.age = 25.5") == []
    assert names(ask, "$p.age < 25.5") == ["Bob", "Cid"]
    assert names(ask, "$p.ratio = 0.5") == ["Ann"]
    assert names(ask, "$p.age > 3000000000") == []
    assert names(ask, "$p.age > $n", "$n: I64", n=-(2**40)) == ["Ann", "Bob", "Cid"]


def test_unsigned_and_signed_numbers_meet_without_overflow(ask: Ask) -> None:
    assert names(ask, "$p.big > -1") == ["Ann", "Bob"]
    assert names(ask, "$p.big > $p.age") == ["Ann"]
    assert names(ask, "$p.big in [1, -1]") == ["Bob"]


def test_strings_are_compared_by_their_bytes(ask: Ask) -> None:
    assert names(ask, '$p.name > "Bo"') == ["Bob", "Cid", "Dee"]
    assert names(ask, '$p.name >= "ann"') == []


def test_membership_in_a_list_property(ask: Ask) -> None:
    assert names(ask, '$p.tags contains "y"') == ["Ann", "Cid"]
    assert ask('match { $p: Person { tags: "x" } } return { $p }').column == ["Ann"]
    assert names(ask, "$p.tags contains $p.name") == []
    assert names(ask, 'not ($p.tags contains "x")') == ["Bob", "Cid"]


def test_membership_in_a_list_of_values(ask: Ask) -> None:
    assert names(ask, "$p.age in [25, 31]") == ["Bob", "Cid"]
    assert names(ask, "$p.age not in [25, 31]") == ["Ann"]
    assert names(ask, "$p.city in $l", "$l: [String]", l=["Rome"]) == ["Cid"]
    assert names(ask, "$p.city in $l", "$l: [String]?") == []
    assert names(ask, "$p.city not in []") == ["Ann", "Bob", "Cid"]
    assert names(ask, "$p.score in [0]") == ["Ann", "Bob"]


def test_strings_contain_and_start_with_others(ask: Ask) -> None:
    assert names(ask, '$p.city contains "sl"') == ["Ann", "Bob"]
    assert names(ask, '$p.city starts_with "O"') == ["Ann", "Bob"]
    assert names(ask, '"Annabel" starts_with $p.name') == ["Ann"]
    assert names(ask, "$p.city contains $p.name") == []


def test_dates_and_times_move_by_durations(ask: Ask) -> None:
    assert names(ask, '$p.born + days(1) = date("2000-01-02")') == ["Ann"]
    assert names(ask, '$p.seen - hours(13) < datetime("2020-01-01T00:00:00Z")') == ["Ann"]
    assert ask("match { $p: Person $p.seen is not null } return { days_between($p.born, $p.seen) as d }").column == [
        7305
    ]


def test_division_and_remainder_by_zero_are_null(ask: Ask) -> None:
    found = ask(
        "match { $p: Person { name: $n } } return { $p.age / 0, $p.age % 0, $p.age / 4, -$p.age % 7 }",
        "$n: String",
        n="Ann",
    )
    assert found.rows == [(None, None, 7.5, -2)]


def test_a_number_out_of_range_is_null(ask: Ask) -> None:
    found = ask("match { $p: Person { name: $n } } return { $p.age * 9223372036854775807 as x }", "$n: String", n="Ann")
    assert found.column == [None]


def test_now_is_one_instant_for_the_whole_query(ask: Ask) -> None:
    found = ask("match { $p: Person } return distinct { now() as n }")
    assert found.column == [datetime(2020, 9, 13, 12, 26, 40, 123_000, tzinfo=UTC)]


# --- patterns ---------------------------------------------------------------------------------------------------------


def test_unconnected_bindings_are_a_product(ask: Ask) -> None:
    assert len(ask("match { $p: Person $x: Place } return { $p, $x }").rows) == 8
    assert ask("match { $p: Person $x: Place $n: Note } return { $p, $x }").rows == []
    assert ask("match { $p: Person $x: Place $n: Note } return { count(*) as n }").rows == [(0,)]


def test_negation_keeps_rows_without_a_solution_and_nests(ask: Ask) -> None:
    assert names(ask, "not { $p knows $_ }") == ["Cid", "Dee"]
    assert names(ask, "not { $p knows $q not { $q knows $_ } }") == ["Cid", "Dee"]
    assert names(ask, "not { $p knows $q $q.age > 100 }") == ["Ann", "Bob", "Cid", "Dee"]


def test_existence_is_the_opposite_of_negation(ask: Ask) -> None:
    assert names(ask, "exists { $p knows $_ }") == ["Ann", "Bob"]
    assert names(ask, '(exists { $p knows $_ } or $p.name = "Dee")') == ["Ann", "Bob", "Dee"]


def test_optional_brings_variables_or_nothing(ask: Ask) -> None:
    found = ask("match { $p: Person optional { $p livesIn $x } } return { $p, $x, $x.title } order { $p.name }")
    assert found.rows == [("Ann", "1", "one"), ("Bob", None, None), ("Cid", None, None), ("Dee", None, None)]
    assert ask("match { $p: Person optional { $p knows $q } } return { count($q) as n, count(*) as r }").rows == [
        (3, 5)
    ]


def test_alternatives_count_equal_results_once(ask: Ask) -> None:
    found = ask('match { $p: Person or { $p.age = 25 } { $p.city = "Oslo" } } return { $p } order { $p.name }')
    assert found.column == ["Ann", "Bob", "Cid"]
    both = ask(
        'match { or { $p: Person { name: "Ann" } } { $p: Person { city: "Oslo" } } } return { $p } order { $p.name }'
    )
    assert both.column == ["Ann", "Bob"]


def test_a_binding_given_twice_is_a_conjunction(ask: Ask) -> None:
    assert ask('match { $p: Person { age: 25 } $p: Person { city: "Rome" } } return { $p }').column == ["Cid"]


def test_a_traversal_without_bindings_scans_its_source(ask: Ask) -> None:
    assert sorted(ask("match { $p knows $q } return { $p, $q }").rows) == [
        ("Ann", "Bob"),
        ("Ann", "Cid"),
        ("Bob", "Cid"),
    ]


# --- results ----------------------------------------------------------------------------------------------------------


def test_columns_are_named_after_what_they_hold(ask: Ask) -> None:
    found = ask(
        'match { $p: Person { name: $n } } return { $p, $p.age, "x", $n, $p.city as town }', "$n: String", n="Ann"
    )
    assert found.table.column_names == ["p", "p.age", "literal", "n", "town"]
    assert found.rows == [("Ann", 30, "x", "Ann", "Oslo")]
    unnamed = ask("match { $p: Person } return { count($p), avg($p.age) }")
    assert unnamed.table.column_names == ["p", "p.age"]


def test_types_of_columns_are_those_of_the_schema(ask: Ask) -> None:
    found = ask(
        "match { $p: Person } return { $p.age, $p.born, $p.seen, $p.tags, $p.ratio, count(*) as n, avg($p.age) as a }"
    )
    assert [field.type for field in found.table.schema] == [
        pa.int32(),
        pa.date32(),
        pa.timestamp("ms", tz="UTC"),
        pa.list_(pa.field("item", pa.string())),
        pa.float32(),
        pa.int64(),
        pa.float64(),
    ]
    nobody = ask('match { $p: Person { name: "Nobody" } } return { $p.age, $p.tags }')
    assert nobody.table.schema.types == [pa.int32(), pa.list_(pa.field("item", pa.string()))]


def test_null_and_both_zeros_are_group_keys(ask: Ask) -> None:
    found = ask("match { $p: Person } return { $p.score, count(*) as n }")
    assert sorted(found.rows, key=repr) == [(0.0, 2), (1.5, 1), (None, 1)]


def test_groups_of_several_keys(ask: Ask) -> None:
    found = ask("match { $p: Person } return { $p.city, $p.age, count(*) as n, min($p.name) as first }")
    assert sorted(found.rows, key=repr) == [
        ("Oslo", 25, 1, "Bob"),
        ("Oslo", 30, 1, "Ann"),
        ("Rome", 25, 1, "Cid"),
        (None, None, 1, "Dee"),
    ]


def test_lists_are_group_keys_too(ask: Ask) -> None:
    found = ask("match { $p: Person } return { $p.tags, count(*) as n }")
    assert sorted(found.rows, key=repr) == [(None, 1), (["x", "y"], 1), (["y"], 1), ([], 1)]


def test_aggregates_pass_over_absent_values(ask: Ask) -> None:
    body = "return { count(*) as r, count($p.age) as c, sum($p.age) as s, avg($p.age) as a,"
    body += " min($p.age) as l, max($p.city) as g }"
    assert ask(f"match {{ $p: Person }} {body}").rows == [(4, 3, 80.0, 80 / 3, 25, "Rome")]


def test_distinct_aggregates_take_each_value_once(ask: Ask) -> None:
    body = "return { count(distinct $p.age) as c, sum(distinct $p.age) as s, collect(distinct $p.city) as l,"
    body += " count(distinct $p) as p }"
    ((count, total, collected, people),) = ask(f"match {{ $p: Person }} {body}").rows
    assert (count, total, sorted(collected), people) == (2, 55.0, ["Oslo", "Rome"], 4)


def test_aggregates_of_nothing_are_one_row_without_keys_and_none_with(ask: Ask) -> None:
    nobody = 'match { $p: Person { name: "Nobody" } }'
    body = (
        "count(*) as r, count($p.age) as c, sum($p.age) as s, avg($p.age) as a, min($p.name) as l, collect($p.age) as x"
    )
    assert ask(f"{nobody} return {{ {body} }}").rows == [(0, 0, None, None, None, [])]
    assert ask(f"{nobody} return {{ $p.city, {body} }}").rows == []


def test_a_sum_of_only_nulls_is_null(ask: Ask) -> None:
    assert ask('match { $p: Person { name: "Dee" } } return { sum($p.age) as s, max($p.age) as m }').rows == [
        (None, None)
    ]


def test_counting_rows_and_counting_values_of_a_traversal(ask: Ask) -> None:
    found = ask(
        "match { $p: Person $p $e: knows $q } return { $p.name, count($q) as n, count($e.since) as s } order { n desc }"
    )
    assert found.rows == [("Ann", 2, 2), ("Bob", 1, 0)]


def test_nulls_come_first_ascending_and_last_descending(ask: Ask) -> None:
    assert ask("match { $p: Person } return { $p } order { $p.age }").column == ["Dee", "Bob", "Cid", "Ann"]
    assert ask("match { $p: Person } return { $p } order { $p.age desc }").column == ["Ann", "Bob", "Cid", "Dee"]
    assert ask("match { $p: Person } return { $p } order { $p.city desc }").column == ["Cid", "Ann", "Bob", "Dee"]
    assert ask("match { $p: Person } return { $p } order { $p.active, $p.born desc }").column == [
        "Cid",
        "Dee",
        "Bob",
        "Ann",
    ]


def test_ids_decide_between_rows_that_sort_alike(ask: Ask) -> None:
    found = ask("match { $p: Person $x: Place } return { $p, $x } order { $p.age desc } limit 5")
    assert found.rows == [("Ann", "1"), ("Ann", "2"), ("Bob", "1"), ("Bob", "2"), ("Cid", "1")]
    edges = ask("match { $p: Person $p $e: knows $q } return { $e.since } order { $p.active }")
    assert edges.column == [None, 1, 2]


def test_limit_and_offset_cut_after_the_order(ask: Ask) -> None:
    order = "match { $p: Person } return { $p } order { $p.name }"
    assert ask(f"{order} limit 2").column == ["Ann", "Bob"]
    assert ask(f"{order} limit 2 offset 1").column == ["Bob", "Cid"]
    assert ask(f"{order} offset 3").column == ["Dee"]
    assert ask(f"{order} limit 0").column == []
    assert ask(f"{order} limit $n", "$n: I64", n=1).column == ["Ann"]
    assert ask(f"{order} limit 9 offset 9").column == []


def test_distinct_returns_equal_rows_once(ask: Ask) -> None:
    found = ask("match { $p: Person } return distinct { $p.city as c } order { c }")
    assert found.column == [None, "Oslo", "Rome"]
    assert ask("match { $p: Person } return distinct { $p.score as s } order { s desc }").column == [1.5, 0.0, None]


def test_a_composite_or_numeric_key_is_looked_up_by_any_number_equal_to_it(ask: Ask) -> None:
    assert ask("match { $x: Place { code: 1 } } return { $x.title }").column == ["one"]
    assert ask("match { $x: Place $x.code = 1.0 } return { $x.title }").column == ["one"]
    assert ask("match { $x: Place $x.code = 1.5 } return { $x.title }").column == []
    assert ask("match { $x: Place $x.code in [2, 1, 7] } return { $x.code } order { $x.code }").column == [1, 2]


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_mutation_is_not_a_read(stored: StoredGraph, engine: QueryEngine) -> None:
    compiled = compile('query q() { delete Person where name = "Ann" }', SCHEMA)
    with pytest.raises(InvalidRequestError, match="writes"):
        engine.run(stored.snapshot(), compiled, schema=SCHEMA)


# --- states -----------------------------------------------------------------------------------------------------------


def test_a_snapshot_never_changes(tmp_path: Path) -> None:
    graph = store_graph(str(tmp_path), SCHEMA, GRAPH.tables())
    engine = QueryEngine(graph.parts.tables)
    counts = compile("query q() { match { $p: Person } return { count(*) as n, max($p.age) as a } }", SCHEMA)
    lonely = compile("query q() { match { $p: Person not { $p knows $_ } } return { $p } order { $p.name } }", SCHEMA)

    def seen(at: Snapshot) -> tuple[Any, ...]:
        row = engine.run(at, counts, schema=SCHEMA).to_pylist()[0]
        return row["n"], row["a"], engine.run(at, lonely, schema=SCHEMA).column(0).to_pylist()

    states = [graph.snapshot()]
    graph.add({"node:Person": graph.rows("node:Person", [{"id": "Eve", "name": "Eve", "age": 22}])})
    states.append(graph.snapshot())
    graph.change({"node:Person": graph.rows("node:Person", [{"id": "Eve", "name": "Eve", "age": 50}])}, {})
    states.append(graph.snapshot())
    graph.change({}, {"node:Person": ["Bob"], "edge:Knows": ["k1", "k3"]})
    states.append(graph.snapshot())

    expected = [
        (4, 30, ["Cid", "Dee"]),
        (5, 30, ["Cid", "Dee", "Eve"]),
        (5, 50, ["Cid", "Dee", "Eve"]),
        (4, 50, ["Cid", "Dee", "Eve"]),
    ]
    assert [seen(state) for state in states[::-1]] == expected[::-1]
    assert [seen(state) for state in states] == expected


def test_the_same_plan_serves_many_snapshots_and_is_lowered_once(stored: StoredGraph) -> None:
    engine = QueryEngine(stored.parts.tables)
    compiled = compile("query q() { match { $p: Person } return { count(*) as n } }", SCHEMA)
    for _ in range(3):
        assert engine.run(stored.snapshot(), compiled, schema=SCHEMA).to_pylist() == [{"n": 4}]
    assert engine.stats().plans == 1
