"""Random graphs and query texts over the schema of small graphs: every construct of the language, mostly well typed.

All chance comes from the generator given, so that a failing test can be run again, and made smaller.
"""

import random  # noqa: TID251  (only its class: the caller brings a seeded one)
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from tests.support.brute_force_values import as_f32
from tests.support.graphs import PlainGraph, Row

from omnigraph.model.schema import Schema

_NAMES = ("p0", "p1", "p2", "p3", "p4", "P5", "pé", "p'7")
_TEXTS = ("a", "b", "ab", "")
_NUMBERS, _TENTHS = "[0, 1, 2.25]", "[0.1, -0.3]"
_NAME, _LETTER, _LETTERS = '"p1"', '"a"', '["a", "p1"]'
_VARIABLE = re.compile(r"\$([a-z]\w*)")
_PARAMETERS = "$n: String, $k: I64, $l: [String], $f: F64, $g: F32, $m: [F64]"
# How many edges within a type lead from a node to itself, beside those that do so by chance.
_LOOPS = 0.2


class RandomGraphs:
    """Draws small graphs, and rows to change them with."""

    def __init__(self, draw: random.Random, schema: Schema) -> None:
        self._draw = draw
        self._schema = schema
        self._edges = 0

    def graph(self) -> PlainGraph:
        """A graph of a few nodes, with loops and parallel edges."""
        people = [self.person(name) for name in self._draw.sample(_NAMES, self._draw.randint(0, 6))]
        places = [self.place(code) for code in range(self._draw.randint(0, 3))]
        notes = [{"id": f"n{number}", "text": self._draw.choice(_TEXTS)} for number in range(self._draw.randint(0, 2))]
        graph = PlainGraph(self._schema, {"Person": people, "Place": places, "Note": notes}, {})
        for edge in ("Knows", "LivesIn", "Wrote"):
            graph.edges[edge] = []
            for _ in range(self._draw.randint(0, 10)):
                self.add_edge(graph, edge)
        return graph

    def person(self, name: str) -> Row:
        """A person of this name."""
        draw = self._draw
        return {
            "id": name,
            "name": name,
            "age": self._perhaps(draw.randint(-1, 3)),
            "score": self._perhaps(draw.choice((0.0, -0.0, 0.1, 0.5, 1.0, 2.25))),
            "city": self._perhaps(draw.choice(_TEXTS)),
            "tags": self._perhaps([draw.choice(_TEXTS) for _ in range(draw.randint(0, 2))]),
            "born": self._perhaps(date(2000, 1, draw.randint(1, 3))),
            "seen": self._perhaps(datetime(2020, 1, draw.randint(1, 2), draw.randint(0, 23), tzinfo=UTC)),
            "active": self._perhaps(draw.choice((True, False))),
            "big": self._perhaps(draw.choice((0, 1, 2**63, 2**64 - 1))),
            # No float of 64 bits equals what 32 bits make of the tenths.
            "ratio": self._perhaps(as_f32(draw.choice((0.0, 0.1, -0.3, 0.5, 1.0)))),
        }

    def place(self, code: int) -> Row:
        """A place with this code."""
        return {
            "id": str(code),
            "code": code,
            "title": self._perhaps(self._draw.choice(_TEXTS)),
            "size": self._perhaps(self._draw.randint(0, 2)),
        }

    def add_edge(self, graph: PlainGraph, edge: str) -> Row | None:
        """One more edge between nodes there are; None if there are none."""
        found = self._schema.edge(edge)
        assert found is not None
        sources, targets = graph.nodes[found.from_type.type_name], graph.nodes[found.to_type.type_name]
        if not sources or not targets:
            return None
        self._edges += 1
        source = self._draw.choice(sources)
        target = source if sources is targets and self._draw.random() < _LOOPS else self._draw.choice(targets)
        row: Row = {"id": f"{edge}{self._edges:04d}", "src": source["id"], "dst": target["id"]}
        if edge != "Wrote":
            row["since"] = self._perhaps(self._draw.randint(0, 2))
        if edge == "Knows":
            row["weight"] = self._perhaps(self._draw.choice((0.5, 1.0)))
        graph.edges[edge].append(row)
        return row

    def name(self) -> str:
        """A name, of somebody there is or not."""
        return self._draw.choice(_NAMES)

    def _perhaps(self, value: Any) -> Any:  # noqa: ANN401  (a value of any kind)
        return value if self._draw.random() < 0.75 else None


class RandomQueries:
    """Draws query texts; those that are not well typed are for the caller to pass over."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._names = 0
        # The variables that patterns mention so far, and the parameters.
        self._known = {"n", "k", "l", "f", "g", "m"}

    def text(self) -> str:
        """One query."""
        clauses = [self._binding() if self._chance(0.85) else self._traversal()]
        clauses += [
            self._binding() if self._chance(0.3) else self._traversal() for _ in range(self._draw.randint(0, 2))
        ]
        clauses += [self._clause(2) for _ in range(self._draw.randint(0, 3))]
        self._draw.shuffle(clauses)
        return f"query q({_PARAMETERS}) {{ match {{ {' '.join(clauses)} }} {self._returned()} }}"

    def params(self) -> dict[str, Any]:
        """Parameters for any of them."""
        names = [self._draw.choice(_NAMES) for _ in range(self._draw.randint(0, 3))]
        tenths = (0.0, 0.1, -0.3, 0.5)
        return {
            "n": self._draw.choice(_NAMES),
            "k": self._draw.randint(0, 2),
            "l": names,
            "f": self._draw.choice(tenths),
            "g": self._draw.choice(tenths),
            "m": [self._draw.choice(tenths) for _ in range(2)],
        }

    def traversal_text(self) -> str:
        """One query whose heart is a traversal."""
        clauses = [self._traversal() for _ in range(self._draw.randint(1, 3))]
        if self._chance(0.25):
            # Between two ends that are bound, along any bounds: beside an edge, and where there need be none.
            clauses = ["$a: Person", "$b: Person", self._noted(self._far("$a", "$b")), *clauses[1:]]
        clauses += [self._clause(1) for _ in range(self._draw.randint(0, 2))]
        return f"query q({_PARAMETERS}) {{ match {{ {' '.join(clauses)} }} {self._returned()} }}"

    def path_text(self) -> str:
        """One query for paths: from either end, or between both, whichever is bound."""
        bound = self._draw.choice(
            (
                ("$a: Person",),
                ("$b: Person",),
                ("$a: Person", "$b: Person { name: $n }"),
                # Joined already, by edges that have nothing to do with the path.
                ("$a: Person", "$a livesIn $_", "$b: Person"),
                ("$a <knows> $b",),
                ("$a knows $c", "$c <knows> $b"),
            )
        )
        clauses = [self._noted(each) for each in bound]
        clauses.append(self._noted(self._shortest("$a", "$b")))
        returned = "$a, $b, nodes($way) as nodes, length($way) as hops"
        return f"query q({_PARAMETERS}) {{ match {{ {' '.join(clauses)} }} return {{ {returned} }} }}"

    # --- patterns -------------------------------------------------------------------------------------------------

    def _chance(self, share: float) -> bool:
        return self._draw.random() < share

    def _person(self) -> str:
        return self._draw.choice(("$a", "$a", "$b", "$c"))

    def _place(self) -> str:
        return self._draw.choice(("$x", "$x", "$y"))

    def _clause(self, depth: int) -> str:
        kind = self._draw.randrange(12 if depth else 8)
        if kind < 2:
            return self._binding()
        if kind < 5:
            return self._traversal()
        if kind < 8:
            return self._condition(depth)
        inner = " ".join(self._clause(depth - 1) for _ in range(self._draw.randint(1, 2)))
        if kind == 8:
            return f"not {{ {inner} }}"
        if kind == 9:
            return f"optional {{ {inner} }}"
        if kind == 10:
            other = " ".join(self._clause(depth - 1) for _ in range(self._draw.randint(1, 2)))
            return f"or {{ {inner} }} {{ {other} }}"
        return f"exists {{ {inner} }}"

    def _binding(self) -> str:
        if self._chance(0.25):
            place = self._place() + ": Place"
            return self._noted(place + self._draw.choice(("", " { code: 1 }", " { size: 1 }", " { code: $k }")))
        if self._chance(0.05):
            return "$n1: Note"
        matched = (
            *("", "", "", ""),
            *(' { name: "p1" }', " { name: $n }", " { age: 2 }", ' { tags: "a" }', ' { city: "b" }'),
            *(" { ratio: 0.1 }", " { ratio: $f }", " { score: $g }"),
        )
        return self._noted(f"{self._person()}: Person" + self._draw.choice(matched))

    def _noted(self, clause: str) -> str:
        self._known.update(_VARIABLE.findall(clause))
        return clause

    def _pick(self, options: Sequence[str]) -> str:
        """One that mentions only what is known; if there is none, any."""
        fit = [each for each in options if self._known.issuperset(_VARIABLE.findall(each))]
        return self._draw.choice(fit if fit and self._chance(0.97) else options)

    def _traversal(self) -> str:
        return self._noted(self._any_traversal())

    def _any_traversal(self) -> str:
        anonymous = "$_" if self._chance(0.15) else ""
        self._names += 1
        if self._chance(0.25):
            ends = [self._person(), anonymous or self._place()]
            if self._chance(0.25):
                ends.reverse()
            edge = self._draw.choice(("livesIn", "livesIn", f"$w{self._names}: livesIn", "livesIn{1,2}"))
            return f"{ends[0]} {edge} {ends[1]}"
        if self._chance(0.05):
            return f"{self._person()} wrote {self._draw.choice(('$n1', '$_'))}"
        ends = [self._person(), anonymous or self._person()]
        if self._chance(0.1):
            ends.reverse()
        way = self._draw.choice(("knows", "knows", "knows", "<knows>"))
        kind = self._draw.randrange(8)
        if kind < 2:
            return f"{ends[0]} $e{self._draw.choice(('', str(self._names)))}: {way} {ends[1]}"
        if kind < 5:
            return self._far(*ends)
        return f"{ends[0]} {way} {ends[1]}"

    def _far(self, start: str, end: str) -> str:
        way = self._draw.choice(("knows", "knows", "knows", "<knows>"))
        if self._chance(1 / 3):
            return self._shortest(start, end)
        bounds = self._draw.choice(("{1,1}", "{1,2}", "{1,3}", "{2,2}", "{2,4}", "{3,3}", "{1,9}"))
        return f"{start} {way}{bounds} {end}"

    def _shortest(self, start: str, end: str) -> str:
        way = self._draw.choice(("knows", "knows", "knows", "<knows>"))
        bounds = self._draw.choice(("{1,4}", "{2,2}", "{2,3}", "{3,4}"))
        return f"shortest {start} {way}{bounds} {end} as $way"

    # --- conditions -----------------------------------------------------------------------------------------------

    def _condition(self, depth: int) -> str:
        kind = self._draw.randrange(10)
        if kind == 0:
            return f"not ({self._test(depth)})"
        if kind == 1:
            return f"({self._test(depth)} {self._draw.choice(('or', 'and'))} {self._test(depth)})"
        return self._tenths() if kind < 5 else self._test(depth)

    def _tenths(self) -> str:
        """A number that 32 bits and 64 bits do not have in common, against one of the other width."""
        value = self._pick(("$a.ratio", "$b.ratio", "$c.ratio", "$a.score"))
        if self._chance(0.5):
            return f"{value} {self._draw.choice(('', 'not '))}in {self._draw.choice((_TENTHS, '$m'))}"
        return f"{value} {self._comparison()} {self._draw.choice(('0.1', '-0.3', '$f', '$g'))}"

    def _comparison(self) -> str:
        return self._draw.choice(("=", "!=", "<", "<=", ">", ">="))

    def _number(self) -> str:
        return self._pick(
            (
                "$a.age",
                "$b.age",
                "$c.age",
                "$a.score",
                "$a.ratio",
                "$b.ratio",
                "$a.big",
                "$x.size",
                "$x.code",
                "$e.since",
                "$e.weight",
                "$a.age + 1",
                "$b.age * 2 - $a.age",
                "$a.age / $b.age",
                "$a.age % 2",
                "-$a.score",
                "length($a.name)",
                "length($a.tags)",
                "length($way)",
                "days_between($a.born, $b.seen)",
            )
        )

    def _text(self) -> str:
        return self._pick(("$a.name", "$b.name", "$a.city", "$b.city", "$x.title", "lower($a.name)", "$n"))

    def _test(self, depth: int) -> str:
        op = self._comparison()
        tests = [
            f"{self._number()} {op} {self._draw.choice(('0', '1', '2', '0.5', '$k', self._number()))}",
            self._tenths(),
            f"{self._text()} {op} {self._draw.choice((_NAME, self._text()))}",
            f"{self._draw.choice((self._number(), self._text()))} is {self._draw.choice(('', 'not '))}null",
            f"{self._number()} {self._draw.choice(('', 'not '))}in {_NUMBERS}",
            f"{self._text()} {self._draw.choice(('', 'not '))}in {self._draw.choice(('$l', '[]', _LETTERS))}",
            f"{self._text()} contains {self._draw.choice((_LETTER, self._text()))}",
            f"{self._text()} starts_with {self._draw.choice((_LETTER, self._text()))}",
            f"$a.tags contains {self._draw.choice((_LETTER, '$n'))}",
            f'$a.born {op} date("2000-01-02")',
            f"$a.seen {op} $b.seen - hours(3)",
            f"$b.born + days(1) {op} $a.born",
            f"$a.active = {self._draw.choice(('true', 'false', '$b.active'))}",
        ]
        if depth:
            tests.append(f"exists {{ {self._clause(depth - 1)} }}")
        return self._pick(tests)

    # --- results --------------------------------------------------------------------------------------------------

    def _returned(self) -> str:
        window = self._draw.choice(("", "", "", "limit 3", "limit 2 offset 1", "limit 0", "offset 2", "limit $k"))
        kind = self._draw.randrange(5)
        if kind < 2:
            return f"{self._aggregates()} {window}"
        distinct = "distinct " if kind == 2 else ""
        columns = [f"{self._value()} as c{at}" for at in range(self._draw.randint(1, 3))]
        order = ""
        if self._chance(0.5):
            # A distinct read is ordered by what it returns.
            value = "c0" if distinct else self._draw.choice((self._number(), self._text(), "c0"))
            order = f"order {{ {value} {self._draw.choice(('', 'desc'))} }}"
        return f"return {distinct}{{ {', '.join(columns)} }} {order} {window}"

    def _aggregates(self) -> str:
        keys = [f"{self._key()} as k{at}" for at in range(self._draw.randint(0, 2))]
        aggregates = [
            self._pick(
                (
                    "count(*)",
                    f"count({self._person()})",
                    f"count(distinct {self._person()})",
                    f"count({self._number()})",
                    f"count(distinct {self._text()})",
                    f"sum({self._number()})",
                    f"avg({self._draw.choice(('', 'distinct '))}{self._number()})",
                    f"min({self._draw.choice((self._number(), self._text()))})",
                    f"max({self._draw.choice((self._number(), self._text()))})",
                    f"collect({self._draw.choice((self._person(), self._text(), 'distinct ' + self._number()))})",
                )
            )
            + f" as r{at}"
            for at in range(self._draw.randint(1, 2))
        ]
        order = ""
        if self._chance(0.4):
            term = self._draw.choice(("r0", *(f"k{at}" for at in range(len(keys)))))
            order = f"order {{ {term} {self._draw.choice(('', 'desc'))} }}"
        return f"return {{ {', '.join(keys + aggregates)} }} {order}"

    def _key(self) -> str:
        return self._pick(
            ("$a", "$b", "$a.city", "$b.age", "$a.score", "$x.title", "$a.tags", "$a.active", "$e.since", "$a.age + 1")
        )

    def _value(self) -> str:
        return self._pick(
            (
                "$a",
                "$b",
                "$x",
                "$a.name",
                "$b.city",
                "$a.tags",
                "$a.born",
                "$a.seen",
                "$a.active",
                "$e.since",
                "nodes($way)",
                "$n",
                self._number(),
                self._text(),
            )
        )
