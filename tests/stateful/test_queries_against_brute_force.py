"""Whatever is asked of a graph, while it changes, the engine answers what plain loops over its rows answer.

Two engines live through all changes: one keeps everything in memory and works on batches of three rows; the other has
every limit at its smallest, so that it reads, looks up, extends, writes and reads its files at every step.
"""

import random  # noqa: TID251  (seeded by Hypothesis)
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from tests.support.brute_force import answer
from tests.support.graphs import PlainGraph, StoredGraph, small_schema, store_graph
from tests.support.random_queries import RandomGraphs, RandomQueries
from tests.support.result_agreement import disagreement

from omnigraph import limits
from omnigraph.errors import ParseError
from omnigraph.execution.adjacency_cache import ExpandStrategy
from omnigraph.execution.engine import QueryEngine
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.language.plan.pattern import Read
from omnigraph.language.query.compile import CompiledQuery, bind_params, compile_uncached
from omnigraph.model.schema_document import digest
from omnigraph.transaction.snapshot import Snapshot

SCHEMA = small_schema()
DIGEST = digest(SCHEMA)
# What a query is about.
Kind = Callable[[RandomQueries], str]
KINDS: tuple[Kind, ...] = (
    RandomQueries.text,
    RandomQueries.traversal_text,
    RandomQueries.path_text,
    RandomQueries.text,
    RandomQueries.traversal_text,
)
THREE_ROWS = QueryLimits(batch_rows=3)
SMALLEST = {
    "READ_WHOLE_ROWS_MAX": 1,
    "LOOKUP_ROWS_MAX": 3,
    "LOOKUP_NODES_MAX": 2,
    "ORDINAL_SPACES_MAX": 2,
    "NEAR_ROWS_MAX": 3,
    "REMEMBERED_FRAGMENT_ROWS_MAX": 2,
    "CSR_PATCHED_NODES_MAX": 2,
    "ADJACENCY_VERSIONS_MAX": 2,
    "CSR_SPLICED_NODES_MAX": 2,
    "ADJACENCY_FILE_EDGES_MIN": 2,
    "ADJACENCY_CHUNK_EDGES": 2,
    "ADJACENCY_STALE_SHARE": 0.0,
    "REACH_MARKS_BYTES_MAX": 16,
    "GROUPS_IN_PLACE_MAX": 6,
}
# A seed, not Hypothesis' own generator: a query takes hundreds of draws, more than examples are made for.
draws = st.integers(0, 2**32 - 1).map(random.Random)


@contextmanager
def everything_at_its_smallest() -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in SMALLEST.items():
            stack.enter_context(patch.object(limits, name, value))
        yield


def well_typed(draw: random.Random, kind: Kind) -> tuple[CompiledQuery, str, dict[str, object]]:
    while True:
        queries = RandomQueries(draw)
        text = kind(queries)
        try:
            return compile_uncached(text, SCHEMA, None, DIGEST), text, queries.params()
        except ParseError:
            continue


class Asked:
    """The engines, and what they must agree with."""

    def __init__(self, stored: StoredGraph) -> None:
        parts = stored.parts
        self.in_memory = QueryEngine(parts.tables, strategy=ExpandStrategy.IN_MEMORY)
        self.looked_up = QueryEngine(parts.tables, strategy=ExpandStrategy.LOOKED_UP)
        self.frugal = QueryEngine(parts.tables, parts.store, read_only=False, cache_bytes=20_000)

    def agree(
        self, snapshot: Snapshot, plain: PlainGraph, draw: random.Random, kind: Kind = RandomQueries.text
    ) -> None:
        compiled, text, given_params = well_typed(draw, kind)
        params = bind_params(compiled, given_params)
        read = compiled.bound.body
        assert isinstance(read, Read)
        expected = answer(read, plain, params.values)

        def checked(engine: QueryEngine, how: str, bounds: QueryLimits = DEFAULT_LIMITS) -> None:
            result = engine.run(snapshot, compiled, params, schema=SCHEMA, limits=bounds)
            wrong = disagreement(read, result, expected)
            assert wrong is None, f"{how}: {wrong}\n{text}\n{given_params}"

        checked(self.in_memory, "in memory")
        checked(self.in_memory, "in memory, three rows at a time", THREE_ROWS)
        checked(self.looked_up, "looked up")
        with everything_at_its_smallest():
            checked(self.frugal, "everything at its smallest", THREE_ROWS)


@settings(
    max_examples=20,
    derandomize=True,
)
@given(draw=draws)
def test_every_form_of_every_query_answers_what_plain_loops_answer(draw: random.Random) -> None:
    plain = RandomGraphs(draw, SCHEMA).graph()
    with tempfile.TemporaryDirectory() as folder:
        stored = store_graph(folder, SCHEMA, plain.tables())
        stored.index("edge:Knows", "src", "dst")
        asked = Asked(stored)
        for place in range(24):
            asked.agree(stored.snapshot(), plain, draw, KINDS[place % len(KINDS)])


class ChangingGraph(RuleBasedStateMachine):
    """A graph that changes between queries; queries may ask about any state it was in."""

    @initialize(draw=draws)
    def start(self, draw: random.Random) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.random = RandomGraphs(draw, SCHEMA)
        self.plain = self.random.graph()
        self.stored = store_graph(self.folder.name, SCHEMA, self.plain.tables())
        self.asked = Asked(self.stored)
        self.states: list[tuple[Snapshot, PlainGraph]] = []
        self.remember()

    def remember(self) -> None:
        self.states.append((self.stored.snapshot(), deepcopy(self.plain)))

    def change(self, put: dict[str, pa.Table], gone: dict[str, list[str]]) -> None:
        self.stored.change(put, {key: ids for key, ids in gone.items() if ids})
        self.remember()

    @rule(count=st.integers(1, 3))
    def put_people(self, count: int) -> None:
        """New ones, and others in the place of those there are."""
        people = self.plain.nodes["Person"]
        rows = {row["id"]: row for row in (self.random.person(self.random.name()) for _ in range(count))}
        people[:] = [row for row in people if row["id"] not in rows] + list(rows.values())
        self.change({"node:Person": self.stored.rows("node:Person", list(rows.values()))}, {})

    @rule(count=st.integers(1, 4), edge=st.sampled_from(["Knows", "Knows", "LivesIn"]))
    def add_edges(self, count: int, edge: str) -> None:
        added = [row for _ in range(count) if (row := self.random.add_edge(self.plain, edge)) is not None]
        if added:
            self.change({f"edge:{edge}": self.stored.rows(f"edge:{edge}", added)}, {})

    @rule(place=st.integers(0, 9), edge=st.sampled_from(["Knows", "LivesIn"]))
    def delete_edge(self, place: int, edge: str) -> None:
        edges = self.plain.edges[edge]
        if edges:
            gone = edges.pop(place % len(edges))
            self.change({}, {f"edge:{edge}": [gone["id"]]})

    @rule(place=st.integers(0, 9))
    def delete_person(self, place: int) -> None:
        """With all their edges, as the language does."""
        people = self.plain.nodes["Person"]
        if not people:
            return
        gone = people.pop(place % len(people))["id"]
        lost: dict[str, list[str]] = {"node:Person": [gone]}
        for edge, rows in self.plain.edges.items():
            ends = ("src", "dst") if edge == "Knows" else ("src",)
            lost[f"edge:{edge}"] = [row["id"] for row in rows if gone in [row[end] for end in ends]]
            rows[:] = [row for row in rows if row["id"] not in lost[f"edge:{edge}"]]
        self.change({}, lost)

    @rule(type_key=st.sampled_from(["node:Person", "edge:Knows"]))
    def compact(self, type_key: str) -> None:
        self.stored.compact(type_key)
        self.remember()

    @rule()
    def index(self) -> None:
        self.stored.index("edge:Knows", "src", "dst")
        self.remember()

    @rule(draw=draws)
    def ask_now(self, draw: random.Random) -> None:
        for place in range(3):
            self.asked.agree(*self.states[-1], draw, KINDS[place])

    @rule(draw=draws, back=st.integers(1, 5))
    def ask_about_the_past(self, draw: random.Random, back: int) -> None:
        state = self.states[-1 - min(back, len(self.states) - 1)]
        self.asked.agree(*state, draw, draw.choice(KINDS[1:]))

    @rule()
    def open_again(self) -> None:
        """Caches are lost, files are not."""
        self.asked = Asked(self.stored)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


QUICK = settings(
    max_examples=20,
    stateful_step_count=16,
    derandomize=True,
)
LONG = settings(max_examples=600, stateful_step_count=40, suppress_health_check=list(HealthCheck))


def test_answers_stay_right_while_the_graph_changes() -> None:
    run_state_machine_as_test(ChangingGraph, settings=QUICK)


@pytest.mark.torture
def test_answers_stay_right_for_long_while_the_graph_changes() -> None:
    run_state_machine_as_test(ChangingGraph, settings=LONG)
