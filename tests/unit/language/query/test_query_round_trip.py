"""Canonical text: whatever tree there is, its text parses to an equal tree, and the canonical form of it is itself."""

import random  # noqa: TID251  (seeded: the same trees in every run)
from collections.abc import Callable
from typing import TypeVar

import pytest

from omnigraph.language.query import format_file, parse, statements, syntax

NAMES = ("a", "b2", "_c", "name", "age", "desc_", "counted", "in_", "knows", "x")
VARIABLES = ("a", "p", "q", "_x1", "path")
TYPES = ("Person", "T", "Vector9")
CHARACTERS = 'az AZ09"\\\n\r\t$@{}()[]é\N{SNOWMAN}\N{GRINNING FACE}\x01/*-'
CONDITIONS = (
    syntax.Comparison,
    syntax.In,
    syntax.IsNull,
    syntax.Not,
    syntax.And,
    syntax.Or,
    syntax.Exists,
    syntax.TextMatch,
)
Drawn = TypeVar("Drawn")


class Trees:
    """Draws syntax trees: every one that a text can have, and no other."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def file(self) -> statements.QueryFile:
        return statements.QueryFile(self._several(self.query, 0, 2))

    def query(self) -> statements.Query:
        parameters = self._several(lambda: statements.Parameter(self._variable(), self._parameter_type()), 0, 3)
        body = self._read() if self._random.random() < 0.7 else self._mutation()
        return statements.Query(
            self._name(),
            parameters,
            body,
            self._maybe(self._text),
            self._maybe(self._text),
            self._random.random() < 0.2,
        )

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _several(self, draw: Callable[[], Drawn], least: int, most: int) -> tuple[Drawn, ...]:
        return tuple(draw() for _ in range(self._random.randint(least, most)))

    def _maybe(self, draw: Callable[[], Drawn]) -> Drawn | None:
        return draw() if self._random.random() < 0.4 else None

    def _flag(self) -> bool:
        return self._random.random() < 0.5

    def _name(self) -> str:
        return self._random.choice(NAMES)

    def _variable(self) -> str:
        return self._random.choice(VARIABLES)

    def _end(self) -> str:
        return "_" if self._random.random() < 0.2 else self._variable()

    def _text(self) -> str:
        return "".join(self._random.choices(CHARACTERS, k=self._random.randint(0, 6)))

    def _parameter_type(self) -> statements.ParameterType:
        if self._random.random() < 0.2:
            return statements.ParameterType("Vector", dimension=self._random.randint(0, 99), nullable=self._flag())
        base = self._random.choice(("String", "I64", "DateTime", "Date", "Blob"))
        return statements.ParameterType(base, self._flag(), None, self._flag())

    # --- expressions ----------------------------------------------------------------------------------------------

    def _literal(self) -> syntax.Literal:
        kind = self._random.choice(tuple(syntax.LiteralKind))
        match kind:
            case syntax.LiteralKind.INTEGER:
                value: object = self._random.choice((0, 1, -1, 2**63 - 1, -(2**63), self._random.randint(-999, 999)))
            case syntax.LiteralKind.FLOAT:
                value = self._random.choice((0.0, -0.5, 1e300, 5e-324, 0.1, -1e22, self._random.uniform(-9, 9)))
            case syntax.LiteralKind.BOOL:
                value = self._flag()
            case syntax.LiteralKind.NULL:
                value = None
            case _:
                value = self._text()
        assert value is None or isinstance(value, str | int | float)
        return syntax.Literal(kind, value)

    def _list(self, depth: int) -> syntax.ListLiteral:
        return syntax.ListLiteral(
            self._several(lambda: self._list(depth - 1) if depth and self._flag() else self._literal(), 0, 2)
        )

    def _property(self) -> syntax.Property:
        return syntax.Property(self._variable(), self._name())

    def _leaf(self) -> syntax.Expression:
        return self._random.choice(
            (
                self._literal,
                lambda: self._list(1),
                lambda: syntax.Variable(self._variable()),
                self._property,
                self._property,
                syntax.Now,
            )
        )()

    def _expression(self, depth: int) -> syntax.Expression:
        if depth == 0 or self._random.random() < 0.2:
            return self._leaf()
        inner = self._inner(depth - 1)
        return self._random.choice(
            (
                lambda: syntax.Or(self._several(inner, 2, 3)),
                lambda: syntax.And(self._several(inner, 2, 3)),
                lambda: syntax.Not(inner()),
                lambda: syntax.Comparison(self._random.choice(tuple(syntax.ComparisonOp)), inner(), inner()),
                lambda: syntax.In(inner(), inner(), self._flag()),
                lambda: syntax.IsNull(inner(), self._flag()),
                lambda: syntax.Arithmetic(self._random.choice(tuple(syntax.ArithmeticOp)), inner(), inner()),
                lambda: self._negative(inner()),
                lambda: self._call(inner),
                lambda: self._text_match(inner),
                lambda: self._ranking(inner),
                lambda: syntax.Rrf(self._ranking(inner), self._ranking(inner), self._maybe(inner)),
                lambda: self._aggregate(inner),
                lambda: syntax.Exists(self._clauses(depth - 1)),
            )
        )()

    def _inner(self, depth: int) -> Callable[[], syntax.Expression]:
        return lambda: self._expression(depth)

    def _negative(self, operand: syntax.Expression) -> syntax.Expression:
        # A sign before digits belongs to the number: such a tree has no text of its own.
        numbers = (syntax.LiteralKind.INTEGER, syntax.LiteralKind.FLOAT)
        is_number = isinstance(operand, syntax.Literal) and operand.kind in numbers
        return operand if is_number else syntax.Negative(operand)

    def _call(self, inner: Callable[[], syntax.Expression]) -> syntax.Call:
        function = self._random.choice(tuple(syntax.Function))
        count = 2 if function is syntax.Function.DAYS_BETWEEN else 1
        return syntax.Call(function, self._several(inner, count, count))

    def _text_match(self, inner: Callable[[], syntax.Expression]) -> syntax.TextMatch:
        function = self._random.choice(tuple(syntax.TextFunction))
        edits = self._maybe(inner) if function is syntax.TextFunction.FUZZY else None
        return syntax.TextMatch(function, inner(), inner(), edits)

    def _ranking(self, inner: Callable[[], syntax.Expression]) -> syntax.Nearest | syntax.Bm25:
        return syntax.Nearest(self._property(), inner()) if self._flag() else syntax.Bm25(inner(), inner())

    def _aggregate(self, inner: Callable[[], syntax.Expression]) -> syntax.Aggregate:
        if self._random.random() < 0.2:
            return syntax.Aggregate(syntax.AggregateFunction.COUNT, None)
        return syntax.Aggregate(self._random.choice(tuple(syntax.AggregateFunction)), inner(), self._flag())

    def _condition(self, depth: int) -> syntax.Expression:
        while True:
            drawn = self._expression(depth + 1)
            if isinstance(drawn, CONDITIONS):
                return drawn

    def _value(self, depth: int) -> syntax.Expression:
        while True:
            drawn = self._expression(depth)
            if not isinstance(drawn, CONDITIONS):
                return drawn

    # --- patterns -------------------------------------------------------------------------------------------------

    def _assignment(self) -> syntax.Assignment:
        return syntax.Assignment(self._name(), self._value(2))

    def _hops(self) -> syntax.Hops:
        most = self._random.choice((None, 0, 7, 2**32 - 1))
        return syntax.Hops(self._random.randint(0, 9), most)

    def _clauses(self, depth: int) -> tuple[syntax.Clause, ...]:
        return self._several(lambda: self._clause(depth), 1, 3)

    def _clause(self, depth: int) -> syntax.Clause:
        plain: tuple[Callable[[], syntax.Clause], ...] = (
            lambda: syntax.Binding(self._end(), self._random.choice(TYPES), self._several(self._assignment, 0, 2)),
            lambda: syntax.Traversal(
                self._end(), self._name(), self._end(), self._maybe(self._end), self._flag(), self._maybe(self._hops)
            ),
            lambda: syntax.Shortest(
                self._end(), self._name(), self._end(), self._variable(), self._flag(), self._hops()
            ),
            lambda: syntax.Filter(self._condition(min(depth, 2))),
        )
        blocks: tuple[Callable[[], syntax.Clause], ...] = (
            lambda: syntax.Negation(self._clauses(depth - 1)),
            lambda: syntax.Optional(self._clauses(depth - 1)),
            lambda: syntax.Alternatives(self._several(lambda: self._clauses(depth - 1), 2, 3)),
            lambda: syntax.Filter(syntax.Exists(self._clauses(depth - 1))),
            lambda: syntax.Filter(syntax.Not(syntax.Exists(self._clauses(depth - 1)))),
        )
        return self._random.choice((*plain, *blocks) if depth else plain)()

    # --- bodies ---------------------------------------------------------------------------------------------------

    def _count(self) -> syntax.Literal | syntax.Variable:
        if self._flag():
            return syntax.Variable(self._variable())
        return syntax.Literal(syntax.LiteralKind.INTEGER, self._random.choice((0, 10, 2**64 - 1)))

    def _read(self) -> statements.Read:
        return statements.Read(
            self._clauses(2),
            self._several(lambda: statements.Projection(self._returned(), self._maybe(self._name)), 1, 3),
            self._flag(),
            self._several(self._ordering, 0, 2),
            self._maybe(self._count),
            self._maybe(self._count),
        )

    def _returned(self) -> syntax.Expression:
        return syntax.Name(self._name()) if self._random.random() < 0.2 else self._expression(3)

    def _ordering(self) -> statements.Ordering:
        value = self._returned()
        if value == syntax.Literal(syntax.LiteralKind.NULL, None):
            value = syntax.Name("null")
        return statements.Ordering(value, False if isinstance(value, syntax.Nearest) else self._flag())

    def _mutation(self) -> statements.Mutation:
        return statements.Mutation(self._several(self._statement, 1, 3))

    def _statement(self) -> statements.Statement:
        type_name = self._random.choice(TYPES)
        kind = self._random.randrange(3)
        if kind == 0:
            return statements.Insert(type_name, self._several(self._assignment, 1, 3))
        # A predicate that starts with a property of a variable is refused at once, with a hint.
        where = syntax.Comparison(syntax.ComparisonOp.EQUAL, syntax.Name(self._name()), self._value(2))
        condition: syntax.Expression = where if self._flag() else syntax.Or((where, self._expression(2)))
        if kind == 1:
            return statements.Update(type_name, self._several(self._assignment, 1, 3), condition)
        return statements.Delete(type_name, condition)


def keeps_its_tree(seed: int) -> None:
    tree = Trees(seed).file()
    written = format_file(tree)

    assert parse(written) == tree, written
    assert format_file(parse(written)) == written
    assert parse(" ".join(written.split("\n"))) == tree, "line breaks mean nothing"


def test_the_canonical_text_of_a_tree_parses_to_the_same_tree() -> None:
    for seed in range(400):
        keeps_its_tree(seed)


@pytest.mark.torture
def test_the_canonical_text_of_very_many_trees_parses_to_the_same_tree() -> None:
    for seed in range(400, 100_000):
        keeps_its_tree(seed)


def _sign(operand: syntax.Expression) -> syntax.Negative:
    return syntax.Negative(operand)


def test_every_pair_of_operators_keeps_its_grouping() -> None:
    a, b, c = (syntax.Property("p", name) for name in "abc")
    outer: list[Callable[[syntax.Expression, syntax.Expression], syntax.Expression]] = [
        lambda left, right: syntax.Or((left, right)),
        lambda left, right: syntax.And((left, right)),
        lambda left, right: syntax.Comparison(syntax.ComparisonOp.LESS, left, right),
        syntax.In,
        lambda left, right: syntax.Arithmetic(syntax.ArithmeticOp.SUBTRACT, left, right),
        lambda left, right: syntax.Arithmetic(syntax.ArithmeticOp.DIVIDE, left, right),
        lambda left, right: syntax.Comparison(syntax.ComparisonOp.EQUAL, _sign(left), syntax.Not(right)),
        lambda left, right: syntax.And((syntax.IsNull(left), syntax.IsNull(right, negated=True))),
    ]
    for make in outer:
        for inside in outer:
            for tree in (make(inside(a, b), c), make(a, inside(b, c))):
                projected = statements.Read((syntax.Binding("p", "P"),), (statements.Projection(tree),))
                file = statements.QueryFile((statements.Query("q", (), projected),))

                assert parse(format_file(file)) == file, format_file(file)
