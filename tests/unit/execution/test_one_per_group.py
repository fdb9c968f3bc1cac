"""Groups of one row: told before anything runs, and the same answers as grouping."""

import pytest
from tests.support.brute_force import answer
from tests.support.graphs import PlainGraph, StoredGraph, store_graph
from tests.support.result_agreement import disagreement

from omnigraph.execution.engine import QueryEngine
from omnigraph.execution.lower import lower
from omnigraph.execution.operators.aggregate import Aggregate, OnePerGroup
from omnigraph.execution.query_limits import QueryLimits
from omnigraph.language.plan.pattern import Read
from omnigraph.language.plan.steps import ReadPlan
from omnigraph.language.query.compile import CompiledQuery, compile
from omnigraph.language.schema import accept

SCHEMA = accept(
    """
    node Person { name: String @key  age: I32? }
    node Spot { x: F64 @key  name: String? }
    node Pair { a: String  b: String  @key(a, b) }
    edge Knows: Person -> Person { since: I32? }
    """
)
PEOPLE = "abcdefg"
GRAPH = PlainGraph(
    SCHEMA,
    {
        "Person": [{"id": name, "name": name, "age": at % 3 or None} for at, name in enumerate(PEOPLE)],
        "Spot": [{"id": text, "x": float(text), "name": "zero"} for text in ("0", "-0", "1")],
        "Pair": [{"id": f'["{a}","{b}"]', "a": a, "b": b} for a in "xy" for b in "xy"],
    },
    {
        "Knows": [
            {"id": f"k{at:02d}", "src": PEOPLE[at % 5], "dst": PEOPLE[at * at % 7], "since": at % 4} for at in range(20)
        ]
    },
)
ONE = [
    "$p: Person $p knows $q | $p.name, count($q) as n",
    "$p: Person $p knows $q | $p, $p.age, count(*) as n",
    "$p: Person $p knows $q | $q.name, count(*) as n",
    "$p: Person $p $e: knows $q | $p.name, count(*) as n",
    "$p: Person | $p.name, count(*) as n",
    "$p: Person $p.age > 1 | $p.name, count($p) as n, count(*) as m",
    "$p: Person not { $p knows $_ } | $p.name, count(*) as n",
    "$p: Person $p knows{1,2} $q | $p.name, count($q) as n",
    "$p: Pair | $p, $p.a, count(*) as n",
]
SEVERAL = [
    "$p: Person $p knows $q | $p.age, count($q) as n",
    "$p: Person $p knows $q | $p.name, count(distinct $q) as n",
    "$p: Person $p knows $q | $p.name, count($q.age) as n",
    "$p: Person $p knows $q | $p.name, $q.name, count(*) as n",
    "$p: Person $p knows $q | $p.name, $q.age, count(*) as n",
    "$p: Person | $p.name, count(*) as n, max($p.age) as m",
    "$p: Person $q: Person | $p.name, count(*) as n",
    "$p: Pair | $p.a, count(*) as n",
    # Both zeros are one value.
    "$p: Spot | $p.x, count(*) as n",
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredGraph:
    graph = store_graph(str(tmp_path_factory.mktemp("groups")), SCHEMA, GRAPH.tables())
    # A second version of some rows, so that the table has holes.
    again = [row for row in GRAPH.nodes["Person"] if row["name"] in "bd"]
    graph.change({"node:Person": graph.rows("node:Person", again)}, {})
    return graph


def compiled(case: str) -> CompiledQuery:
    pattern, returned = case.split(" | ")
    return compile(f"query q() {{ match {{ {pattern} }} return {{ {returned} }} }}", SCHEMA)


@pytest.mark.parametrize("case", [*ONE, *SEVERAL])
@pytest.mark.parametrize("batch_rows", [3, 1_000])
def test_groups_are_those_of_plain_loops(stored: StoredGraph, case: str, batch_rows: int) -> None:
    query = compiled(case)
    read = query.bound.body
    assert isinstance(read, Read)
    engine = QueryEngine(stored.parts.tables)
    found = engine.run(stored.snapshot(), query, schema=SCHEMA, limits=QueryLimits(batch_rows=batch_rows))
    wrong = disagreement(read, found, answer(read, GRAPH, {}))
    assert wrong is None, wrong


@pytest.mark.parametrize("case", ONE)
def test_rows_that_are_groups_by_themselves_are_not_grouped(case: str) -> None:
    plan = compiled(case).plan
    assert isinstance(plan, ReadPlan)
    assert isinstance(lower(plan, SCHEMA).rows, OnePerGroup)


@pytest.mark.parametrize("case", SEVERAL)
def test_rows_that_may_share_a_group_are_grouped(case: str) -> None:
    plan = compiled(case).plan
    assert isinstance(plan, ReadPlan)
    assert isinstance(lower(plan, SCHEMA).rows, Aggregate)
