"""What a query may use, what an engine may keep, and many threads at once."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from tests.support.graphs import PowerLaw, StoredGraph, power_law, store_graph

from omnigraph import limits
from omnigraph.errors import InvalidRequestError, LimitError
from omnigraph.execution.cache import ByteCache
from omnigraph.execution.engine import QueryEngine
from omnigraph.execution.query_limits import QueryLimits
from omnigraph.language.query.compile import CompiledQuery, compile
from omnigraph.model.schema import Schema

PEOPLE, KNOWN = 300, 3_000
PERSON, KNOWS = "node:Person", "edge:Knows"


@pytest.fixture(scope="module")
def graph() -> PowerLaw:
    return power_law(PEOPLE, KNOWN)


@pytest.fixture(scope="module")
def stored(graph: PowerLaw, tmp_path_factory: pytest.TempPathFactory) -> StoredGraph:
    return store_graph(str(tmp_path_factory.mktemp("limits")), graph.schema, graph.tables)


def read(schema: Schema, body: str) -> CompiledQuery:
    return compile(f"query q() {{ {body} }}", schema)


@pytest.mark.parametrize(
    "wrong", [{"batch_rows": 0}, {"batch_rows": -1}, {"memory_bytes": -1}, {"seconds": -0.5}, {"seconds": float("nan")}]
)
def test_limits_under_which_nothing_could_run_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match=f"{next(iter(wrong))} must be"):
        QueryLimits(**wrong)


# --- memory of one query ----------------------------------------------------------------------------------------------

PRODUCT = "match { $a: Person $b: Person $c: Person } return { $a, $b, $c }"


@pytest.mark.parametrize(
    "body",
    [
        PRODUCT,
        "match { $a: Person $b: Person $c: Person } return distinct { $a, $b, $c }",
        "match { $a: Person $b: Person $c: Person } return { $a, $b, $c } order { $a.age }",
        "match { $a: Person $b: Person } return { $a, $b, count(*) as n, collect($b.city) as l }",
        "match { $a: Person or { $a knows{1,9} $b } { $a <knows>{1,9} $b } } return { $a, $b }",
    ],
)
def test_a_query_that_needs_too_much_memory_is_refused(stored: StoredGraph, body: str) -> None:
    engine = QueryEngine(stored.parts.tables)
    bounds = QueryLimits(memory_bytes=300_000, batch_rows=1_000)
    with pytest.raises(LimitError) as refused:
        engine.run(stored.snapshot(), read(stored.schema, body), schema=stored.schema, limits=bounds)
    assert refused.value.code == "query_memory"
    assert refused.value.details["bytes_max"] == 300_000


def test_what_a_refused_query_held_does_not_count_for_the_next(stored: StoredGraph) -> None:
    engine = QueryEngine(stored.parts.tables)
    bounds = QueryLimits(memory_bytes=300_000, batch_rows=1_000)
    for _ in range(3):
        with pytest.raises(LimitError):
            engine.run(stored.snapshot(), read(stored.schema, PRODUCT), schema=stored.schema, limits=bounds)
    few = read(stored.schema, "match { $a: Person } return { $a } limit 5")
    assert engine.run(stored.snapshot(), few, schema=stored.schema, limits=bounds).num_rows == 5


def test_a_stream_holds_nothing_of_what_it_has_handed_over(stored: StoredGraph) -> None:
    engine = QueryEngine(stored.parts.tables)
    bounds = QueryLimits(memory_bytes=300_000, batch_rows=1_000)
    columns, batches = engine.stream(
        stored.snapshot(), read(stored.schema, PRODUCT), schema=stored.schema, limits=bounds
    )
    assert columns.names == ["a", "b", "c"]
    rows = 0
    for batch in batches:
        assert batch.schema == columns
        assert 0 < batch.num_rows <= 1_000
        rows += batch.num_rows
        if rows > 200_000:
            break
    assert rows > 200_000


def test_counting_a_product_needs_no_memory(stored: StoredGraph) -> None:
    engine = QueryEngine(stored.parts.tables)
    bounds = QueryLimits(memory_bytes=300_000)
    compiled = read(stored.schema, "match { $a: Person $b: Person $c: Person $d: Person } return { count(*) as n }")
    assert engine.run(stored.snapshot(), compiled, schema=stored.schema, limits=bounds).to_pylist() == [
        {"n": PEOPLE**4}
    ]


def test_more_rows_than_can_be_counted_are_refused_and_not_miscounted(stored: StoredGraph) -> None:
    engine = QueryEngine(stored.parts.tables)

    def counted(variables: int) -> int:
        pattern = " ".join(f"$p{number}: Person" for number in range(variables))
        compiled = read(stored.schema, f"match {{ {pattern} }} return {{ count(*) as n }}")
        found = engine.run(stored.snapshot(), compiled, schema=stored.schema).to_pylist()[0]["n"]
        assert isinstance(found, int)
        return found

    assert counted(7) == PEOPLE**7
    with pytest.raises(LimitError) as refused:
        counted(8)
    assert refused.value.code == "too_many_to_count"


def test_a_limit_stops_the_search(stored: StoredGraph) -> None:
    engine = QueryEngine(stored.parts.tables)
    bounds = QueryLimits(memory_bytes=100_000, batch_rows=100)
    compiled = read(
        stored.schema, "match { $a: Person $b: Person $c: Person $d: Person } return { $a, $d } limit 7 offset 50"
    )
    assert engine.run(stored.snapshot(), compiled, schema=stored.schema, limits=bounds).num_rows == 7


@pytest.mark.parametrize("batch_rows", [1, 7, 100_000])
def test_the_size_of_batches_changes_no_answer(stored: StoredGraph, graph: PowerLaw, batch_rows: int) -> None:
    engine = QueryEngine(stored.parts.tables)
    paths = np.bincount(graph.sources, minlength=PEOPLE)
    simple = np.unique(graph.sources * PEOPLE + graph.targets)
    out, into = (np.bincount(each, minlength=PEOPLE) for each in (simple // PEOPLE, simple % PEOPLE))
    bounds = QueryLimits(batch_rows=batch_rows)

    def one(body: str) -> dict[str, object]:
        found: dict[str, object] = engine.run(
            stored.snapshot(), read(stored.schema, body), schema=stored.schema, limits=bounds
        ).to_pylist()[0]
        return found

    assert one("match { $a: Person $a $e: knows $b } return { count(*) as n }") == {"n": int(paths.sum())}
    assert one("match { $a: Person $a knows $b $b knows $c } return { count(*) as n }") == {
        "n": int((out * into).sum())
    }
    few = "$a.age < 30 $b.age < 60"
    listed = one(f"match {{ $a: Person $a knows $b {few} }} return {{ count($b.age) as n, count(distinct $b) as d }}")
    ages = graph.tables[PERSON].column("age").to_numpy()
    kept = simple[(ages[simple // PEOPLE] < 30) & (ages[simple % PEOPLE] < 60)]
    assert listed == {"n": len(kept), "d": len(np.unique(kept % PEOPLE))}


# --- what is kept -----------------------------------------------------------------------------------------------------


class Weight:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def test_a_cache_keeps_no_more_bytes_than_it_may() -> None:
    cache = ByteCache(100)
    for number in range(10):
        cache.get(number, lambda: Weight(30))
    stats = cache.stats()
    assert (stats.bytes, stats.values, stats.misses, stats.evictions) == (90, 3, 10, 7)
    assert cache.peek(9) is not None
    assert cache.peek(0) is None


def test_what_was_used_last_stays() -> None:
    cache = ByteCache(100)
    kept = cache.get("a", lambda: Weight(40))
    cache.get("b", lambda: Weight(40))
    assert cache.get("a", lambda: Weight(1)) is kept
    cache.get("c", lambda: Weight(40))
    assert cache.peek("b") is None
    assert cache.get("a", lambda: Weight(1)) is kept
    assert cache.stats().hits == 2


def test_a_value_larger_than_the_cache_is_used_and_not_kept() -> None:
    cache = ByteCache(100)
    assert cache.get("a", lambda: Weight(101)).nbytes == 101
    assert cache.stats().bytes == 0


def test_a_value_under_two_keys_counts_once() -> None:
    cache = ByteCache(100)
    shared = Weight(60)
    cache.get("a", lambda: shared)
    cache.get("b", lambda: shared)
    assert (cache.stats().bytes, cache.stats().values) == (60, 1)
    cache.drop("a")
    assert cache.stats().bytes == 60
    cache.drop("b")
    assert cache.stats().bytes == 0


def test_of_many_threads_one_makes_a_value() -> None:
    cache = ByteCache(100)
    made = []
    together = threading.Barrier(8)

    def make() -> Weight:
        made.append(threading.get_ident())
        return Weight(1)

    def get(_: int) -> Weight:
        together.wait()
        return cache.get("a", make)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(get, range(8)))
    assert len(made) == 1
    assert all(each is found[0] for each in found)


def test_a_value_that_could_not_be_made_is_tried_again() -> None:
    cache = ByteCache(100)

    def fail() -> Weight:
        raise LimitError("not now")

    with pytest.raises(LimitError):
        cache.get("a", fail)
    assert cache.get("a", lambda: Weight(1)).nbytes == 1


def test_an_engine_with_little_memory_answers_the_same(stored: StoredGraph) -> None:
    ample = QueryEngine(stored.parts.tables)
    scarce = QueryEngine(stored.parts.tables, cache_bytes=60_000)
    bodies = [
        "match { $a: Person $a knows $b } return { $b.city as c, count(*) as n } order { c }",
        "match { $a: Person $a.age > 50 $a knows{1,2} $b } return { count(*) as n, avg($b.score) as s }",
        "match { $a: Person } return { $a.name, $a.city, $a.age, $a.score } order { $a.name }",
    ]
    for _ in range(2):
        for body in bodies:
            compiled = read(stored.schema, body)
            answers = [engine.run(stored.snapshot(), compiled, schema=stored.schema) for engine in (ample, scarce)]
            assert answers[0].equals(answers[1])
            assert scarce.stats().cache.bytes <= 60_000
    assert scarce.stats().cache.evictions > 0
    assert ample.stats().cache.evictions == 0
    assert ample.stats().cache.hits > 0


def test_a_column_or_adjacency_that_does_not_fit_is_refused(stored: StoredGraph) -> None:
    engine = QueryEngine(stored.parts.tables, cache_bytes=1_000)
    with pytest.raises(LimitError) as column:
        engine.run(
            stored.snapshot(), read(stored.schema, "match { $a: Person } return { $a.name }"), schema=stored.schema
        )
    assert column.value.code == "column_too_large"
    with pytest.raises(LimitError) as adjacency:
        engine.run(
            stored.snapshot(),
            read(stored.schema, "match { $a: Person $a knows $b } return { count(*) as n }"),
            schema=stored.schema,
        )
    assert adjacency.value.code == "adjacency_too_large"


# --- many threads -----------------------------------------------------------------------------------------------------


@pytest.fixture
def small_batches() -> Iterator[None]:
    with patch.object(limits, "CSR_SPLICED_NODES_MAX", 2):
        yield


def test_readers_of_any_state_are_right_beside_a_writer(tmp_path: Path, small_batches: None) -> None:
    """Every state has as many people, edges and edges of one person as its number says, however it is read."""
    graph = power_law(20, 40)
    stored = store_graph(str(tmp_path), graph.schema, graph.tables)
    engine = QueryEngine(stored.parts.tables, stored.parts.store, read_only=False)
    people = read(graph.schema, "match { $a: Person } return { count(*) as n, max($a.age) as a }")
    edges = read(graph.schema, "match { $a: Person $a $e: knows $b } return { count(*) as n }")
    hub = compile(
        "query q($n: String) { match { $a: Person { name: $n } $b $e: knows $a } return { count(*) as n } }",
        graph.schema,
    )
    # Over arrays in memory, once they are there.
    walk = compile(
        "query q($n: String) { match { $a: Person { name: $n } $b knows $a } return { count(distinct $b) as n } }",
        graph.schema,
    )
    name = graph.tables[PERSON].column("name")[0].as_py()
    known = int((graph.targets == 0).sum())
    different = len(np.unique(graph.sources[graph.targets == 0]))
    states = [(stored.snapshot(), 0)]
    done = threading.Event()

    def write() -> None:
        for step in range(1, 13):
            person = {"id": f"new{step}", "name": f"new{step}", "age": 100 + step, "city": "x", "score": 0.5}
            first = {"id": name, "name": name, "age": 1, "city": f"c{step}", "score": 0.0}
            edge = {"id": f"new{step}", "src": f"new{step}", "dst": name, "since": step}
            stored.change({PERSON: stored.rows(PERSON, [person, first]), KNOWS: stored.rows(KNOWS, [edge])}, {})
            states.append((stored.snapshot(), step))
        done.set()

    def check(seed: int) -> int:
        chance = np.random.default_rng(seed)
        checks = 0
        while not done.is_set() or checks < 20:
            snapshot, step = states[int(chance.integers(len(states)))]
            counted = engine.run(snapshot, people, schema=graph.schema).to_pylist()[0]
            assert counted["n"] == 20 + step
            assert step == 0 or counted["a"] == 100 + step
            assert engine.run(snapshot, edges, schema=graph.schema).to_pylist() == [{"n": 40 + step}]
            assert engine.run(snapshot, hub, {"n": name}, schema=graph.schema).to_pylist() == [{"n": known + step}]
            assert engine.run(snapshot, walk, {"n": name}, schema=graph.schema).to_pylist() == [{"n": different + step}]
            checks += 1
        return checks

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(check, seed) for seed in range(3)]
        writer = pool.submit(write)
        writer.result()
        assert all(reader.result() >= 20 for reader in readers)
    assert engine.stats().adjacency.extended > 0
    assert engine.stats().walks > 0
