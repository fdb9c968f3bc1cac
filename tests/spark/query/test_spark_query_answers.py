"""Whatever is asked, a query on Spark returns the rows, types and order that it returns in process."""

import random  # noqa: TID251  (seeded)
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession
from tests.support.brute_force import answer
from tests.support.graphs import PlainGraph, StoredGraph, small_schema, store_graph
from tests.support.random_queries import RandomGraphs, RandomQueries
from tests.support.random_searches import RandomSearches
from tests.support.result_agreement import disagreement
from tests.support.text_fixtures import sections_of

from omnigraph import limits
from omnigraph.errors import GraphError, ParseError
from omnigraph.execution.engine import QueryEngine
from omnigraph.execution.search.query_text import Embedder
from omnigraph.language.plan.expressions import Value
from omnigraph.language.plan.pattern import Read
from omnigraph.language.plan.pipeline import Pipeline, get_nested_steps
from omnigraph.language.plan.steps import ReadPlan
from omnigraph.language.query import parse
from omnigraph.language.query.compile import CompiledQuery, bind_params, compile_uncached
from omnigraph.language.schema import accept
from omnigraph.model.schema import Schema
from omnigraph.pipeline.query.run import SparkQuery
from omnigraph.storage.tables.location import location_of

NOW_MS = 1_600_000_000_123
FIXTURES = Path(__file__).parents[2] / "language" / "query"


@dataclass
class Engines:
    """Both engines, and what they must agree with."""

    spark: SparkSession
    stored: StoredGraph
    plain: PlainGraph

    def agree(self, text: str, params: dict[str, object]) -> None:
        compiled = compile_uncached(text, self.stored.schema, None, "")
        bound = bind_params(compiled, params)
        snapshot = self.stored.snapshot()
        local = QueryEngine(self.stored.parts.tables).run(snapshot, compiled, bound, schema=self.stored.schema)
        found = spark_query(self.spark, self.stored).table(compiled.plan, bound.values)
        read = compiled.bound.body
        assert isinstance(read, Read)
        wrong = disagreement(read, found, answer(read, self.plain, bound.values, now_ms=NOW_MS))
        assert wrong is None, f"{wrong}\n{text}\n{params}\n{self.plain.nodes}\n{self.plain.edges}"
        assert found.schema == local.schema, text


def spark_query(spark: SparkSession, stored: StoredGraph) -> SparkQuery:
    record = stored.snapshot().record
    return SparkQuery(spark, location_of(stored.parts.tables), record, stored.schema, NOW_MS, Embedder(), "test")


@pytest.fixture
def engines(spark: SparkSession) -> Iterator[Callable[[PlainGraph], Engines]]:
    with tempfile.TemporaryDirectory() as folder:
        yield lambda plain: Engines(
            spark, store_graph(tempfile.mkdtemp(dir=folder), plain.schema, plain.tables()), plain
        )


def well_typed(draw: random.Random, number: int) -> tuple[str, dict[str, object]]:
    kinds = (RandomQueries.text, RandomQueries.traversal_text, RandomQueries.text, RandomQueries.path_text)
    while True:
        queries = RandomQueries(draw)
        text = kinds[number % len(kinds)](queries)
        try:
            compile_uncached(text, small_schema(), None, "")
        except ParseError:
            continue
        return text, queries.params()


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_random_queries_answer_what_plain_loops_answer(engines: Callable[[PlainGraph], Engines], seed: int) -> None:
    draw = random.Random(seed)
    both = engines(RandomGraphs(draw, small_schema()).graph())
    for number in range(6):
        both.agree(*well_typed(draw, number))


@pytest.mark.parametrize("seed", [21, 22])
def test_random_searches_answer_what_plain_loops_answer(engines: Callable[[PlainGraph], Engines], seed: int) -> None:
    chance = RandomSearches(random.Random(seed))
    both = engines(chance.graph())
    for _ in range(4):
        both.agree(chance.query(), chance.params())


def test_tables_that_tasks_read_by_fragments_answer_the_same(engines: Callable[[PlainGraph], Engines]) -> None:
    draw = random.Random(31)
    both = engines(RandomGraphs(draw, small_schema()).graph())
    searched = RandomSearches(random.Random(32))
    documents = engines(searched.graph())
    with patch.object(limits, "SPARK_QUERY_LOCAL_ROWS", 0):
        for number in range(3):
            both.agree(*well_typed(draw, number))
        documents.agree(searched.query(), searched.params())


# --- the fixtures of the language -----------------------------------------------------------------------------------


@cache
def fixture_schema(name: str) -> Schema:
    return accept((FIXTURES / "schemas" / f"{name}.pg").read_text(encoding="utf-8"))


def readable(sections: dict[str, str], schema: Schema) -> Iterator[CompiledQuery]:
    """The reads of a fixture that compile."""
    try:
        names = [query.name for query in parse(sections["query"]).queries]
        found = [compile_uncached(sections["query"], schema, name, "") for name in names]
    except GraphError:
        return
    yield from (each for each in found if isinstance(each.plan, ReadPlan))


def step_names(pipeline: Pipeline) -> tuple[object, ...]:
    """The names of steps, nested ones included."""
    return tuple((type(step).__name__, *map(step_names, get_nested_steps(step))) for step in pipeline)


def test_every_combination_of_steps_in_the_fixtures_is_lowered(spark: SparkSession, tmp_path: Path) -> None:
    stored: dict[str, StoredGraph] = {}
    lowered: set[object] = set()
    for path in sorted(FIXTURES.rglob("*.txt")):
        sections = sections_of(path)
        if "query" not in sections:
            continue
        name = sections.get("schema", "people").strip()
        for compiled in readable(sections, fixture_schema(name)):
            assert isinstance(compiled.plan, ReadPlan)
            combination = step_names(compiled.plan.steps)
            if combination in lowered:
                continue
            lowered.add(combination)
            if name not in stored:
                stored[name] = store_graph(str(tmp_path / name), fixture_schema(name))
            values: dict[str, Value] = dict.fromkeys((each.name for each in compiled.parameters), None)
            values |= dict.fromkeys(compiled.counts, 1)
            frame = spark_query(spark, stored[name]).frame(compiled.plan, values)
            assert frame.columns == [column.name for column in compiled.columns], path
    assert len(lowered) > 30
