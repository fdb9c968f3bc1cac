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
from tests.support.result_agreement import disagreement

from omnigraph import limits
from omnigraph.execution.engine import QueryEngine
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.language.plan.pattern import Read
from omnigraph.language.query.compile import bind_params, compile
from omnigraph.language.schema import accept

SCHEMA = accept("""
node Doc {
  slug: String @key  title: String? @index @analyzer(simple)  body: String? @index  vec: Vector(2)? @index  year: I32?
}
node Author { name: String @key  bio: String? }
edge Cites: Doc -> Doc
edge Wrote: Author -> Doc
""")
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
WORDS = [
    *(
        "fox",
        "Fox",
        "foxes",
        "dog",
        "lazy",
        "quick",
        "quickly",
        "straße",
        "ÉTÉ",
        "e\u0301te\u0301",
        "ete",
        "12",
        "日本",
    ),
    *("a", "the", "The", "of"),
]
PHRASES = ["fox the dog", "fox of dog", "fox dog", "the quick dog", "quick a dog"]
MARKS = [" ", " ", " ", ", ", "-", " — ", "_", "…\n"]
draws = st.integers(0, 2**32 - 1).map(random.Random)


class Chance:
    """Random documents and questions, the same for the same seed."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def text(self, most: int = 7) -> str:
        return "".join(
            self.draw.choice(WORDS + PHRASES) + self.draw.choice(MARKS) for _ in range(self.draw.randint(0, most))
        )

    def maybe(self, value: object) -> object:
        return None if self.draw.random() < 0.15 else value

    def vector(self) -> list[float]:
        # Few values, exact in binary: many distances are equal, and equal however they are computed.
        return [self.draw.randint(-2, 2) / 2 for _ in range(2)]

    def doc(self, slug: str) -> dict[str, Any]:
        return {
            "id": slug,
            "slug": slug,
            "title": self.maybe(self.text(3)),
            "body": self.maybe(self.text()),
            "vec": self.maybe(self.vector()),
            "year": self.maybe(self.draw.randint(0, 5)),
        }

    def graph(self) -> PlainGraph:
        docs = [self.doc(f"d{number:02}") for number in range(self.draw.randint(0, 14))]
        authors = [{"id": name, "name": name, "bio": self.maybe(self.text())} for name in ("ann", "bob")]
        return PlainGraph(SCHEMA, {"Doc": docs, "Author": authors}, self.edges(docs, authors))

    def edges(self, docs: list[dict[str, Any]], authors: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        ends = [doc["id"] for doc in docs]
        if not ends:
            return {"Cites": [], "Wrote": []}
        writers = [author["id"] for author in authors]
        return {
            "Cites": [self.edge(f"c{each}", ends, ends) for each in range(18)],
            "Wrote": [self.edge(f"w{each}", writers, ends) for each in range(8)],
        }

    def edge(self, id_: str, sources: list[str], targets: list[str]) -> dict[str, Any]:
        return {"id": id_, "src": self.draw.choice(sources), "dst": self.draw.choice(targets)}

    def quoted(self) -> str:
        if self.draw.random() < 0.4:
            return f'"{self.draw.choice(PHRASES)}"'
        return '"' + " ".join(self.draw.choice(WORDS) for _ in range(self.draw.randint(1, 3))) + '"'

    def match(self, variable: str) -> str:
        field = f"${variable}.{self.draw.choice(['title', 'body'])}"
        function = self.draw.choice(["search", "fuzzy", "match_text"])
        edits = self.draw.choice(["", ", 1", ", 0"]) if function == "fuzzy" else ""
        return f"{function}({field}, {self.quoted()}{edits})"

    def arm(self, variable: str) -> str:
        if self.draw.random() < 0.5:
            return self.nearest(variable)
        return f"bm25(${variable}.{self.draw.choice(['title', 'body'])}, {self.quoted()})"

    def nearest(self, variable: str) -> str:
        return f"nearest(${variable}.vec, {self.draw.choice(['$v', '$w', '[0.5, 1.0]'])})"

    def score(self, variable: str) -> str:
        if self.draw.random() < 0.4:
            k = self.draw.choice(["", ", 1", ", $k"])
            return f"rrf({self.arm(variable)}, {self.arm(variable)}{k})"
        return self.arm(variable)

    def query(self) -> str:
        pattern, variables = self.draw.choice(
            [
                ("$d: Doc", ["d"]),
                ("$d: Doc", ["d"]),
                ("$d: Doc $d cites $e", ["d", "e"]),
                ("$a: Author $a wrote $d", ["d"]),
                ('$a: Author { name: "ann" } $a wrote $d $d cites{1,2} $e', ["d", "e"]),
                ("$d: Doc $d $c: cites $e", ["d", "e"]),
            ]
        )
        ranked = self.draw.choice(variables)
        clauses = [pattern, *self.draw.sample(self.clauses(variables), self.draw.randint(0, 2))]
        ordering, window = self.order(ranked)
        columns = ", ".join(f"${each}.slug as {each}" for each in variables)
        scores = "".join(f", {self.score(self.draw.choice(variables))} as s{n}" for n in range(self.draw.randint(0, 2)))
        if ordering and self.draw.random() < 0.5:
            scores += f", {ordering[0]} as o"
        order = f"order {{ {', '.join(ordering)} }}" if ordering else ""
        body = f"match {{ {' '.join(clauses)} }} return {{ {columns}{scores} }} {order} {window}"
        return f"query q($v: Vector(2), $w: Vector(2)?, $k: I64, $n: String?) {{ {body} }}"

    def clauses(self, variables: list[str]) -> list[str]:
        one = self.draw.choice(variables)
        return [
            self.match(one),
            self.match(self.draw.choice(variables)),
            f"${one}.year > 1",
            f"bm25(${one}.body, {self.quoted()}) > 0.6",
            f"not {{ ${one} cites $z {self.match('z')} }}",
            f"not {{ {self.match(one)} }}",
            f"search(${one}.title, $n)",
            f"{self.nearest(one)} <= 1.0",
        ]

    def order(self, variable: str) -> tuple[list[str], str]:
        window = f"limit {self.draw.choice([1, 2, 3, 30])}"
        if self.draw.random() < 0.2:
            return [], ""
        second = self.draw.choice([[], [], [f"${variable}.year desc"]])
        return [self.score(variable), *second], window

    def params(self) -> dict[str, object]:
        given: dict[str, object] = {"v": self.vector(), "k": self.draw.randint(1, 5)}
        if self.draw.random() < 0.5:
            given["w"] = self.vector()
        if self.draw.random() < 0.5:
            given["n"] = self.draw.choice(WORDS)
        return given


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

    def agree(self, plain: PlainGraph, chance: Chance, *, snapshot: Any = None) -> None:  # noqa: ANN401  (a snapshot of either kind)
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
    chance = Chance(draw)
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
