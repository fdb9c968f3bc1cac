"""Whatever is searched for, in whatever pattern, the engine answers what plain loops answer, however rows lie on disk.

Two engines live through all changes: one keeps everything in memory; the other has every limit at its smallest, so that
it looks rows up, extends its indexes and lets go of them at every step. The table has every index or none.
"""

import random  # noqa: TID251  (seeded by Hypothesis)
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.brute_force import answer
from tests.support.graphs import PlainGraph, StoredGraph, store_graph
from tests.support.random_searches import SCHEMA, RandomSearches
from tests.support.result_agreement import disagreement

from omnigraph import limits
from omnigraph.execution.engine import QueryEngine
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.language.plan.pattern import Read
from omnigraph.language.query.compile import bind_params, compile

THREE_ROWS = QueryLimits(batch_rows=3)
SMALLEST = {
    "READ_WHOLE_ROWS_MAX": 1,
    "LOOKUP_ROWS_MAX": 3,
    "SEARCH_TEXTS_AT_ONCE": 2,
    "VECTOR_COLUMN_SHARE_MAX": 0.0,
    "VECTOR_PIECE_BYTES": 64,
    "WORDS_FILE_TEXTS_MIN": 1,
    "WORDS_STALE_SHARE": 0.0,
}
draws = st.integers(0, 2**32 - 1).map(random.Random)


@contextmanager
def everything_at_its_smallest() -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in SMALLEST.items():
            stack.enter_context(patch.object(limits, name, value))
        yield


class Asked:
    """The engines, and what they must agree with."""

    def __init__(self, stored: StoredGraph) -> None:
        self.stored = stored
        self.ample = QueryEngine(stored.parts.tables)
        self.scarce = QueryEngine(stored.parts.tables, cache_bytes=20_000)

    def agree(self, plain: PlainGraph, chance: RandomSearches, *, snapshot: Any = None) -> None:  # noqa: ANN401  (a snapshot of either kind)
        text, given_params = chance.query(), chance.params()
        compiled = compile(text, SCHEMA)
        params = bind_params(compiled, given_params)
        read = compiled.bound.body
        assert isinstance(read, Read)
        expected = answer(read, plain, params.values)
        at = snapshot or self.stored.snapshot()

        def checked(engine: QueryEngine, how: str, bounds: QueryLimits) -> None:
            result = engine.run(at, compiled, params, schema=SCHEMA, limits=bounds)
            wrong = disagreement(read, result, expected)
            assert wrong is None, f"{how}: {wrong}\n{text}\n{given_params}\n{plain.nodes}"

        checked(self.ample, "in memory", DEFAULT_LIMITS)
        checked(self.ample, "in memory, three rows at a time", THREE_ROWS)
        with everything_at_its_smallest():
            checked(self.scarce, "everything at its smallest", THREE_ROWS)
            fresh = QueryEngine(self.stored.parts.tables, self.stored.parts.store, read_only=False)
            checked(fresh, "a process that has just started, with what others left beside the graph", DEFAULT_LIMITS)


@settings(max_examples=12, derandomize=True)
@given(draw=draws)
def test_searches_answer_what_plain_loops_answer_while_documents_come_change_and_go(draw: random.Random) -> None:
    chance = RandomSearches(draw)
    plain = chance.graph()
    with tempfile.TemporaryDirectory() as folder:
        stored = store_graph(folder, SCHEMA, plain.tables())
        asked = Asked(stored)
        states = [(stored.snapshot(), deepcopy(plain))]
        for step in range(5):
            for _ in range(5):
                asked.agree(plain, chance)
            then, was = draw.choice(states)
            asked.agree(was, chance, snapshot=then)
            docs = plain.nodes["Doc"]
            put = {row["id"]: row for row in (chance.doc(f"d{draw.randint(0, 20):02}") for _ in range(2))}
            docs[:] = [row for row in docs if row["id"] not in put] + list(put.values())
            stored.change({"node:Doc": stored.rows("node:Doc", list(put.values()))}, {})
            if step == 2:
                gone = docs.pop(0)["id"]
                lost = {
                    edge: [row["id"] for row in rows if gone in (row["src"], row["dst"])]
                    for edge, rows in plain.edges.items()
                }
                for edge, rows in plain.edges.items():
                    rows[:] = [row for row in rows if row["id"] not in lost[edge]]
                stored.change({}, {"node:Doc": [gone], **{f"edge:{key}": ids for key, ids in lost.items() if ids}})
            if step == 3:
                stored.compact("node:Doc")
            states.append((stored.snapshot(), deepcopy(plain)))
