"""Plans mean what queries mean: the plan as it was built, and after each rewrite, answers what plain loops answer."""

import random  # noqa: TID251  (seeded: the same graphs and queries in every run)
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pytest
from tests.support.brute_force import answer
from tests.support.graphs import PlainGraph, Row, StoredGraph, store_graph
from tests.support.result_agreement import disagreement

from omnigraph.errors import ParseError
from omnigraph.execution.engine import QueryEngine
from omnigraph.language.plan import pattern, steps
from omnigraph.language.plan.build import build
from omnigraph.language.plan.explain import explain
from omnigraph.language.plan.rewrite import REWRITES
from omnigraph.language.query.compile import CompiledQuery, compile_uncached
from omnigraph.language.schema import accept
from omnigraph.storage.object_stores import MemoryStore

SCHEMA = accept("""
    node Person { name: String @key  age: I64?  boss: String? }
    node Company { name: String @key  size: I64? @index }
    edge Knows: Person -> Person { since: I64? }
    edge WorksAt: Person -> Company { since: I64? }
""")
GRAPHS = 25


def random_graph(draw: random.Random) -> PlainGraph:
    people = [f"p{number}" for number in range(draw.randint(0, 5))]
    companies = [f"c{number}" for number in range(draw.randint(0, 3))]

    def edges(prefix: str, starts: list[str], ends: list[str]) -> list[Row]:
        pairs = [(start, end) for start in starts for end in ends]
        chosen = draw.choices(pairs, k=draw.randint(0, 8)) if pairs else []
        return [
            {"id": f"{prefix}{at}", "src": start, "dst": end, "since": draw.choice((None, 1, 2))}
            for at, (start, end) in enumerate(chosen)
        ]

    persons = [
        {
            "id": name,
            "name": name,
            "age": draw.choice((None, 1, 2, 3)),
            "boss": draw.choice((None, *people, "c0")),
        }
        for name in people
    ]
    firms = [{"id": name, "name": name, "size": draw.choice((None, 1, 2))} for name in companies]
    return PlainGraph(
        SCHEMA,
        {"Person": persons, "Company": firms},
        {"Knows": edges("k", people, people), "WorksAt": edges("w", people, companies)},
    )


@cache
def stored_graph(number: int) -> tuple[PlainGraph, StoredGraph, QueryEngine]:
    plain = random_graph(random.Random(number))
    stored = store_graph(MemoryStore(), SCHEMA, plain.tables())
    return plain, stored, QueryEngine(stored.parts.tables)


# --- queries ----------------------------------------------------------------------------------------------------------


class Queries:
    """Draws query texts that are mostly well typed."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def text(self) -> str:
        clauses = [self._binding() if self._chance(0.8) else self._traversal()]
        clauses += [self._clause(2) for _ in range(self._draw.randint(0, 4))]
        self._draw.shuffle(clauses)
        return f"query q() {{ match {{ {' '.join(clauses)} }} {self._returned()} }}"

    def _chance(self, share: float) -> bool:
        return self._draw.random() < share

    def _person(self) -> str:
        return self._draw.choice(("$a", "$a", "$b", "$c"))

    def _company(self) -> str:
        return self._draw.choice(("$x", "$x", "$y"))

    def _binding(self) -> str:
        if self._chance(0.25):
            return f"{self._company()}: Company" + self._draw.choice(("", ' { name: "c0" }', " { size: 1 }"))
        return f"{self._person()}: Person" + self._draw.choice(("", "", ' { name: "p1" }', " { age: 2 }"))

    def _traversal(self) -> str:
        end = "$_" if self._chance(0.15) else ""
        if self._chance(0.3):
            ends = [self._person(), end or self._company()]
            if self._chance(0.2):
                ends.reverse()
            return f"{ends[0]} {self._draw.choice(('', '$w: '))}worksAt {ends[1]}"
        first, second = self._person(), end or self._person()
        kind = self._draw.randrange(6)
        if kind == 0:
            return f"{first} $e: knows {second}"
        if kind == 1:
            return f"{first} <knows> {second}"
        if kind == 2:
            bounds = self._draw.choice(("{1,2}", "{1,3}", "{2,3}", "{2,2}"))
            return f"{first} {self._draw.choice(('knows', '<knows>'))}{bounds} {second}"
        if kind == 3 and self._chance(0.5):
            return f"shortest {first} knows{{1,3}} {second} as $way"
        return f"{first} knows {second}"

    def _comparison(self) -> str:
        value = self._draw.choice(("$a.age", "$b.age", "$c.age", "$x.size", "$e.since", "$a.age + 1"))
        names = ("$a.name", "$b.name", "$a.boss", "$x.name")
        return self._draw.choice(
            (
                f"{value} {self._draw.choice(('=', '!=', '<', '>='))} {self._draw.randint(1, 3)}",
                f"{value} < {self._draw.choice(('$a.age', '$b.age', '$x.size'))}",
                f"{self._draw.choice(names)} = {self._draw.choice((*names, chr(34) + 'p1' + chr(34)))}",
                f"{value} is {self._draw.choice(('', 'not '))}null",
                f"{value} {self._draw.choice(('', 'not '))}in [1, 2]",
            )
        )

    def _condition(self, depth: int) -> str:
        if depth == 0 or self._chance(0.5):
            return self._comparison()
        one, other = self._condition(depth - 1), self._condition(depth - 1)
        return self._draw.choice(
            (
                f"({one} or {other})",
                f"({one} and {other})",
                f"not {one}",
                f"({one} or exists {{ {self._block(0)} }})",
                f"(not {{ {self._block(0)} }} or {one})",
            )
        )

    def _block(self, depth: int) -> str:
        return " ".join(self._clause(depth) for _ in range(self._draw.randint(1, 2)))

    def _clause(self, depth: int) -> str:
        kind = self._draw.randrange(12)
        if depth and kind == 0:
            return f"not {{ {self._block(depth - 1)} }}"
        if depth and kind == 1:
            return f"exists {{ {self._block(depth - 1)} }}"
        if depth and kind in (2, 3):
            return f"optional {{ {self._traversal()} {self._block(depth - 1) if self._chance(0.4) else ''} }}"
        if depth and kind == 4:
            blocks = [f"{{ {self._block(depth - 1)} }}" for _ in range(2)]
            return f"or {' '.join(blocks)}"
        if kind in (5, 6):
            return self._condition(depth)
        return self._traversal() if self._chance(0.7) else self._binding()

    def _returned(self) -> str:
        values = ("$a", "$b", "$a.name", "$b.age", "$x", "$x.size", "$e.since", "length($way)", "$c.name", "$a.age > 1")
        if self._chance(0.4):
            keys = [f"{self._draw.choice(values[:6])} as k{at}" for at in range(self._draw.randint(0, 2))]
            counts = ["count(*) as n", "count($b) as m", "count($a) as o"]
            others = ["count(distinct $b.age) as d", "max($a.age) as h", "collect($b.name) as l", "count($x) as p"]
            aggregates = self._draw.sample(counts if self._chance(0.7) else counts + others, 2)
            order = f" order {{ n desc{', k0' if keys else ''} }}" if "count(*) as n" in aggregates else ""
            return f"return {{ {', '.join(keys + aggregates)} }}{order}"
        chosen = self._draw.sample(values, self._draw.randint(1, 3))
        columns = ", ".join(f"{value} as v{at}" for at, value in enumerate(chosen))
        distinct = self._draw.choice(("", "", "distinct "))
        order = self._draw.choice(("", f" order {{ v0{self._draw.choice(('', ' desc'))} }}"))
        # Rows that agree in every key and every id can still differ in a path or an anonymous end, but not in values.
        limit = (
            f" limit {self._draw.randint(0, 4)} offset {self._draw.randint(0, 2)}"
            if order and self._chance(0.5)
            else ""
        )
        return f"return {distinct}{{ {columns} }}{order}{limit}"


def compiled(text: str) -> CompiledQuery | None:
    try:
        return compile_uncached(text, SCHEMA, None, "")
    except ParseError as mistake:
        assert mistake.stage == "type", text
        return None


def plans(read: pattern.Read) -> Iterable[tuple[str, steps.ReadPlan]]:
    """The plan as it was built, and after each rewrite."""
    plan = build(read)
    yield "build", plan
    for rewrite in REWRITES:
        plan = steps.ReadPlan(rewrite(plan.steps, SCHEMA), plan.columns)
        yield rewrite.__name__, plan


def agree(seed: int) -> bool:
    """Whether the query of this seed is well typed; if it is, every plan of it gives the right answer."""
    text = Queries(random.Random(seed)).text()
    query = compiled(text)
    if query is None:
        return False
    read = query.bound.body
    assert isinstance(read, pattern.Read)
    plain, stored, engine = stored_graph(seed % GRAPHS)
    expected = answer(read, plain, {})
    for name, plan in plans(read):
        result = engine.run(stored.snapshot(), replace(query, plan=plan), schema=SCHEMA)
        wrong = disagreement(read, result, expected)
        assert wrong is None, f"seed {seed}, after {name}: {wrong}\n{text}\n{plain}\n{explain(plan)}"
    return True


def test_the_plan_and_every_rewrite_of_it_give_the_right_answers() -> None:
    answered = sum(agree(seed) for seed in range(2_500))

    assert answered > 250


@pytest.mark.torture
def test_very_many_plans_give_the_right_answers() -> None:
    assert sum(agree(seed) for seed in range(2_500, 150_000)) > 10_000
