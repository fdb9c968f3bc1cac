"""Where the time of small queries goes: what is not the work itself, each part by itself.

The floor is the same answer from bare arrays: a binary search, slices of rows of neighbours, and a list of strings.
Figures are medians of rounds, in microseconds of processor time.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from tests.support.graphs import POWER_LAW_SCHEMA, PowerLaw, power_law

import omnigraph
from benchmarks.report import Figure, Scale, alone, compared, run, seconds_each
from omnigraph.execution.lower import lower
from omnigraph.language.plan.steps import ReadPlan
from omnigraph.language.query import bind_params, compile
from omnigraph.language.query.compile import compile_uncached
from omnigraph.language.query.lifted import compile_lifted
from omnigraph.model.schema_document import digest

QUERIES = {
    "point": "query q($k: String) { match { $p: Person { name: $k } } return { $p.age } }",
    "one hop": "query q($k: String) { match { $p: Person { name: $k } $p knows $q } return { $q.city } }",
    "two hops": (
        "query q($k: String) { match { $p: Person { name: $k } $p knows $q $q knows $r } "
        "return { count(distinct $r) as n } }"
    ),
    "a condition and an order": (
        "query q($k: String) { match { $p: Person { name: $k } $p knows $q $q.age > 40 } "
        "return { $q.name as n, $q.age as a } order { a, n } limit 5 }"
    ),
}
_SEEDS = 97


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    try:
        persons, knows = scale.pick(full=100_000, quick=10_000), scale.pick(full=2_000_000, quick=100_000)
        data = power_law(persons, knows)
        with omnigraph.init(folder / "graph", POWER_LAW_SCHEMA) as graph:
            people = data.tables["node:Person"].drop_columns(["id"])
            graph.write({"Person": people}, {"Knows": data.tables["edge:Knows"].drop_columns(["id"])})
            names = [str(name) for name in people.column("name").to_pylist()]
            keys = [names[at * 7_919 % persons] for at in range(_SEEDS)]
            graph.query("query q() { match { $a: Person $a knows $b } return { count(*) as n } }")
            yield alone("the head of the branch looked for", _us(lambda _: graph.snapshot()), "µs")
            for name, text in QUERIES.items():
                yield from _parts(graph, name, text, keys)
            yield from _floors(graph, data, names, keys)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _us(work: Callable[[int], object], *, times: int = 400) -> float:
    """Microseconds of processor time of one call; every call gets another number."""
    calls = iter(range(10_000_000))
    return seconds_each(lambda: work(next(calls)), times=times, rounds=7, clock=time.process_time) * 1e6


def _parts(graph: omnigraph.Graph, name: str, text: str, keys: list[str]) -> Iterable[Figure]:
    schema = graph.schema()
    schema_digest = digest(schema)
    written = text.replace("$k: String", "").replace("$k", '"{}"').replace("{ ", "{{ ").replace(" }", " }}")

    def own(number: int) -> str:
        return written.format(keys[number % _SEEDS])

    compiled = compile(text, schema)
    plan = compiled.plan
    assert isinstance(plan, ReadPlan)
    snapshot = graph.snapshot()
    results = [graph.query(text, {"k": key}) for key in keys]
    # Often enough for everything to be in memory, whatever looking things up has cost so far.
    for at in range(2_000):
        graph.query(text, {"k": keys[at % _SEEDS]})
    yield alone(
        f"{name}: compiled", _us(lambda i: compile_uncached(own(i), schema, None, schema_digest), times=100), "µs"
    )
    yield alone(f"{name}: operators made of the plan", _us(lambda _: lower(plan, schema), times=100), "µs")
    yield alone(
        f"{name}: plan found for another text of its kind",
        _us(lambda i: compile_lifted(own(i), schema, name=None, schema_digest=schema_digest)),
        "µs",
    )
    yield alone(f"{name}: parameters checked", _us(lambda i: bind_params(compiled, {"k": keys[i % _SEEDS]})), "µs")
    yield alone(
        f"{name}: run at a snapshot, plan known", _us(lambda i: snapshot.query(text, {"k": keys[i % _SEEDS]})), "µs"
    )
    yield alone(f"{name}: rows to Python", _us(lambda i: results[i % _SEEDS].to_pylist()), "µs")
    yield alone(
        f"{name}: all of it, with a parameter",
        _us(lambda i: graph.query(text, {"k": keys[i % _SEEDS]}).to_pylist()),
        "µs",
    )
    yield alone(f"{name}: all of it, in the text", _us(lambda i: graph.query(own(i)).to_pylist()), "µs")


def _floors(graph: omnigraph.Graph, data: PowerLaw, names: list[str], keys: list[str]) -> Iterable[Figure]:
    """The same answers from arrays, without a product around them."""
    ordered = np.array(names)
    order = np.argsort(ordered)
    ordered = ordered[order]
    pairs = np.unique(data.sources.astype(np.int64) * len(names) + data.targets)
    sources, targets = pairs // len(names), (pairs % len(names)).astype(np.int32)
    starts = np.searchsorted(sources, np.arange(len(names) + 1))
    people = data.tables["node:Person"]
    ages, cities = people.column("age").to_numpy(), people.column("city").combine_chunks()

    def place(number: int) -> int:
        return int(order[np.searchsorted(ordered, keys[number % _SEEDS])])

    def one_hop(number: int) -> "np.typing.NDArray[np.int32]":
        node = place(number)
        return targets[starts[node] : starts[node + 1]]

    def two_hops(number: int) -> int:
        return len(np.unique(np.concatenate([targets[starts[node] : starts[node + 1]] for node in one_hop(number)])))

    floors: dict[str, Callable[[int], object]] = {
        "point": lambda number: ages[place(number)],
        "one hop": lambda number: cities.take(one_hop(number)).to_pylist(),
        "two hops": two_hops,
    }
    for name, floor in floors.items():
        text = QUERIES[name]
        least = _us(floor)
        ours = _us(lambda i, text=text: graph.query(text, {"k": keys[i % _SEEDS]}).to_pylist())  # type: ignore[misc]  # the default only fixes the text of this turn
        yield compared(f"{name}: all of it", ours, "µs", against="bare arrays", other=least)


if __name__ == "__main__":
    run("overhead", measure)
