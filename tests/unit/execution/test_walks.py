"""Walks over arrays in memory: the rows of the plan's operators, in the same order, and only where they may."""

import random  # noqa: TID251  (seeded by Hypothesis)
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.brute_force import answer
from tests.support.graphs import PlainGraph, StoredGraph, small_schema, store_graph
from tests.support.random_queries import RandomGraphs
from tests.support.result_agreement import disagreement

from omnigraph import limits
from omnigraph.errors import LimitError
from omnigraph.execution.engine import QueryEngine
from omnigraph.execution.query_limits import QueryLimits
from omnigraph.language.plan.pattern import Read
from omnigraph.language.query.compile import CompiledQuery, bind_params, compile

SCHEMA = small_schema()
STARTS = ("$p: Person { name: $k }", "$p: Person $p.name in $many")
# Where a walk may go from a person, beside `knows` against its direction.
WAYS = ("$%s knows $%s", "$%s <knows> $%s", "$%s livesIn $%s")
PERSON, PLACE = ("age", "city", "score"), ("code", "title")


def walk_text(draw: random.Random) -> str:
    """A query that is a walk."""
    pattern, at, last = draw.choice(STARTS), "p", "Person"
    variables = [("p", "Person")]
    for number in range(draw.randint(0, 3)):
        target = f"v{number}"
        if last == "Place":
            pattern += f" ${at} livesIn ${target}"
            last = "Person"
        else:
            way = draw.choice([*WAYS, "back"])
            pattern += f" ${target} knows ${at}" if way == "back" else " " + way % (at, target)
            last = "Place" if "livesIn" in way else "Person"
        at = target
        variables.append((at, last))
    returned = draw.choice(["listed", "listed", "count", "distinct", "both"])
    if returned == "listed":
        columns = []
        for number in range(draw.randint(1, 3)):
            variable, type_name = draw.choice(variables)
            names = PERSON if type_name == "Person" else PLACE
            columns.append(draw.choice([f"${variable}", f"${variable}.{draw.choice(names)}"]) + f" as c{number}")
        text = ", ".join(columns)
    else:
        counted = draw.choice(["*", f"${at}"])
        text = {
            "count": f"count({counted}) as n",
            "distinct": f"count(distinct ${at}) as n",
            "both": f"count({counted}) as n, count(distinct ${at}) as m",
        }[returned]
    return f"query q($k: String, $many: [String]) {{ match {{ {pattern} }} return {{ {text} }} }}"


def by_operators(engine: QueryEngine, graph: StoredGraph, compiled: CompiledQuery, params: dict[str, Any]) -> list[Any]:
    """Streams are never walks."""
    _, batches = engine.stream(graph.snapshot(), compiled, params, schema=SCHEMA)
    return [row for batch in batches for row in batch.to_pylist()]


@settings(max_examples=8, derandomize=True)
@given(draw=st.integers(0, 2**32 - 1).map(random.Random))
def test_walks_operators_and_plain_loops_agree_while_the_graph_changes(draw: random.Random) -> None:
    graphs = RandomGraphs(draw, SCHEMA)
    plain = graphs.graph()
    with tempfile.TemporaryDirectory() as folder:
        stored = store_graph(folder, SCHEMA, plain.tables())
        engine = QueryEngine(stored.parts.tables)
        for _ in range(3):
            for _ in range(10):
                compiled = compile(walk_text(draw), SCHEMA)
                names = [graphs.name() for _ in range(4)]
                params = {"k": names[0], "many": names}
                expected = by_operators(engine, stored, compiled, params)
                result = engine.run(stored.snapshot(), compiled, params, schema=SCHEMA)
                assert result.to_pylist() == expected
                read = compiled.bound.body
                assert isinstance(read, Read)
                wrong = disagreement(read, result, answer(read, plain, bind_params(compiled, params).values))
                assert wrong is None, wrong
            change(draw, graphs, stored, plain)
        # What is not in memory yet is left to operators; the rest was no idle comparison.
        assert engine.stats().walks >= 5


def change(draw: random.Random, graphs: RandomGraphs, stored: StoredGraph, plain: PlainGraph) -> None:
    """Somebody written again, some edges more, some edges less."""
    people = plain.nodes["Person"]
    row = graphs.person(graphs.name())
    people[:] = [each for each in people if each["id"] != row["id"]] + [row]
    added = [edge for _ in range(3) if (edge := graphs.add_edge(plain, "Knows")) is not None]
    put = {"node:Person": stored.rows("node:Person", [row])}
    if added:
        put["edge:Knows"] = stored.rows("edge:Knows", added)
    stored.change(put, {})
    edges = plain.edges["Knows"]
    gone = [edges.pop(draw.randrange(len(edges)))["id"] for _ in range(min(2, len(edges)))]
    if gone:
        stored.change({}, {"edge:Knows": gone})


# --- where a walk must not go -----------------------------------------------------------------------------------------

HUB = PlainGraph(
    SCHEMA,
    {"Person": [{"id": f"p{at}", "name": f"p{at}", "age": at, "city": "x" * 100} for at in range(40)], "Place": []},
    {"Knows": [{"id": f"e{at}", "src": "p0", "dst": f"p{at}", "since": at} for at in range(40)], "LivesIn": []},
)
NEAR = "query q($k: String) { match { $p: Person { name: $k } $p knows $q } return { $q.city as c } }"
FAR = NEAR.replace("$p knows $q", "$p knows $q $q knows $r").replace("$q.city as c", "count(distinct $r) as n")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> StoredGraph:
    return store_graph(str(tmp_path_factory.mktemp("walks")), SCHEMA, HUB.tables())


def warm(
    hub: StoredGraph, text: str, cache_bytes: int = limits.QUERY_CACHE_BYTES_MAX
) -> tuple[QueryEngine, CompiledQuery]:
    engine = QueryEngine(hub.parts.tables, cache_bytes=cache_bytes)
    compiled = compile(text, SCHEMA)
    for _ in range(2):
        engine.run(hub.snapshot(), compiled, {"k": "p0"}, schema=SCHEMA)
    return engine, compiled


@pytest.mark.parametrize("text", [NEAR, FAR])
def test_a_walk_answers_as_soon_as_everything_is_in_memory(hub: StoredGraph, text: str) -> None:
    engine, _ = warm(hub, text)
    assert engine.stats().walks == 1


@pytest.mark.parametrize(
    "text",
    [
        "query q($k: String) { match { $p: Person { name: $k } $p.age > 1 } return { $p.age } }",
        "query q($k: String) { match { $p: Person { name: $k } $p $e: knows $q } return { $q.age } }",
        "query q($k: String) { match { $p: Person { name: $k } $p knows $q $q.age > 3 } return { $q.age } }",
        "query q($k: String) { match { $p: Person { name: $k } $p knows{1,2} $q } return { $q.age } }",
        "query q($k: String) { match { $p: Person { name: $k } $p knows $q $p knows $r } return { $q.age, $r.age } }",
        "query q($k: String) { match { $p: Person { name: $k } $p knows $q } return { count($q.age) as n } }",
        "query q($k: String) { match { $p: Person { name: $k } $p knows $q } return { $q.age } limit 3 }",
        "query q($k: String) { match { $p: Person { city: $k } } return { $p.age } }",
    ],
)
def test_what_is_no_walk_is_left_to_operators(hub: StoredGraph, text: str) -> None:
    engine, _ = warm(hub, text)
    assert engine.stats().walks == 0


def test_a_walk_over_many_rows_is_left_to_operators(hub: StoredGraph) -> None:
    engine, compiled = warm(hub, NEAR)
    walks = engine.stats().walks
    with patch.object(limits, "WALK_ROWS_MAX", 39):
        assert engine.run(hub.snapshot(), compiled, {"k": "p0"}, schema=SCHEMA).num_rows == 40
    assert engine.stats().walks == walks


def test_a_walk_keeps_to_the_memory_a_query_may_use(hub: StoredGraph) -> None:
    engine, compiled = warm(hub, NEAR)
    with pytest.raises(LimitError) as refused:
        engine.run(hub.snapshot(), compiled, {"k": "p0"}, schema=SCHEMA, limits=QueryLimits(memory_bytes=2_000))
    assert refused.value.code == "query_memory"


def test_a_walk_lets_go_of_what_the_cache_lets_go_of(hub: StoredGraph) -> None:
    just_enough = warm(hub, NEAR)[0].stats().cache.bytes
    engine, compiled = warm(hub, NEAR, cache_bytes=just_enough)
    assert engine.stats().walks == 1
    assert engine._bound
    more = compile("query q() { match { $p: Person } return { $p.age } }", SCHEMA)
    engine.run(hub.snapshot(), more, schema=SCHEMA)
    assert engine.stats().cache.evictions > 0
    assert not engine._bound
    assert engine.run(hub.snapshot(), compiled, {"k": "p0"}, schema=SCHEMA).num_rows == 40


def test_a_walk_sees_the_commit_it_is_asked_about(tmp_path: Path) -> None:
    graph = store_graph(str(tmp_path), SCHEMA, HUB.tables())
    engine, compiled = warm(graph, FAR)
    before = graph.snapshot()
    graph.change({}, {"edge:Knows": [f"e{at}" for at in range(30)]})
    answers = []
    for snapshot in (before, graph.snapshot(), before, graph.snapshot(), graph.snapshot()):
        answers += engine.run(snapshot, compiled, {"k": "p0"}, schema=SCHEMA).column(0).to_pylist()
    # Without its edge to itself the hub leads nowhere in two hops.
    assert answers == [40, 0, 40, 0, 0]
    assert engine.stats().walks >= 3
