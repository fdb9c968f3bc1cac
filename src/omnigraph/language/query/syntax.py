"""Syntax tree of expressions and patterns; `statements.py` has that of whole queries.

Spans are ignored when trees are compared, so that a text and its canonical form have equal trees.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.language.plan.operators import AggregateFunction as AggregateFunction
from omnigraph.language.plan.operators import ArithmeticOp as ArithmeticOp
from omnigraph.language.plan.operators import TextFunction as TextFunction
from omnigraph.language.text import NOWHERE, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Syntax:
    """Base class of tree nodes, with the span in the text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- expressions ------------------------------------------------------------------------------------------------------


class LiteralKind(StrEnum):
    """Lexical kind of a literal."""

    STRING = "string"
    INTEGER = "integer"
    FLOAT = "float"
    BOOL = "bool"
    NULL = "null"
    DATE = "date"
    DATETIME = "datetime"


@dataclass(frozen=True, slots=True)
class Literal(Syntax):
    """A value in the text; dates keep the text between their quotes."""

    kind: LiteralKind
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ListLiteral(Syntax):
    """`[a, b]`."""

    items: "tuple[Literal | ListLiteral, ...]"


@dataclass(frozen=True, slots=True)
class Variable(Syntax):
    """`$p`: something a pattern binds, or a parameter."""

    name: str


ALL_PROPERTIES = "*"


@dataclass(frozen=True, slots=True)
class Property(Syntax):
    """`$p.name`; in `return` also `$p.*`, which the binder expands."""

    variable: str
    name: str


@dataclass(frozen=True, slots=True)
class Name(Syntax):
    """A bare identifier: an alias in reads, a property of the target in mutations."""

    name: str


@dataclass(frozen=True, slots=True)
class Now(Syntax):
    """`now()`."""


@dataclass(frozen=True, slots=True)
class Nearest(Syntax):
    """`nearest($v.p, query)`."""

    target: Property
    query: "Expression"


@dataclass(frozen=True, slots=True)
class TextMatch(Syntax):
    """`search(field, query)`, `fuzzy(field, query[, max_edits])`, `match_text(field, query)`."""

    function: TextFunction
    target: "Expression"
    query: "Expression"
    max_edits: "Expression | None" = None


@dataclass(frozen=True, slots=True)
class Bm25(Syntax):
    """`bm25(field, query)`."""

    target: "Expression"
    query: "Expression"


@dataclass(frozen=True, slots=True)
class Rrf(Syntax):
    """`rrf(a, b[, k])`."""

    first: "Nearest | Bm25"
    second: "Nearest | Bm25"
    k: "Expression | None" = None


@dataclass(frozen=True, slots=True)
class Aggregate(Syntax):
    """`count($p)`, `sum(distinct $p.age)`; `argument` is None for `count(*)`."""

    function: AggregateFunction
    argument: "Expression | None"
    distinct: bool = False


class Function(StrEnum):
    """Scalar functions."""

    LOWER = "lower"
    UPPER = "upper"
    LENGTH = "length"
    NODES = "nodes"
    DAYS = "days"
    HOURS = "hours"
    MINUTES = "minutes"
    SECONDS = "seconds"
    DAYS_BETWEEN = "days_between"


@dataclass(frozen=True, slots=True)
class Call(Syntax):
    """`lower($p.name)` and the like."""

    function: Function
    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Negative(Syntax):
    """`-x`, where x is not a number literal."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Arithmetic(Syntax):
    """`a + b`; left to right, `*`, `/` and `%` before `+` and `-`."""

    op: ArithmeticOp
    left: "Expression"
    right: "Expression"


class ComparisonOp(StrEnum):
    """Comparison operators."""

    STARTS_WITH = "starts_with"
    CONTAINS = "contains"
    GREATER_EQUAL = ">="
    LESS_EQUAL = "<="
    NOT_EQUAL = "!="
    GREATER = ">"
    LESS = "<"
    EQUAL = "="


@dataclass(frozen=True, slots=True)
class Comparison(Syntax):
    """`a = b`, `a contains b`."""

    op: ComparisonOp
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class In(Syntax):
    """`a in [1, 2]`, `a not in $list`."""

    operand: "Expression"
    choices: "Expression"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(Syntax):
    """`a is null`, `a is not null`."""

    operand: "Expression"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Not(Syntax):
    """`not c`."""

    operand: "Expression"


@dataclass(frozen=True, slots=True)
class And(Syntax):
    """`a and b and c`."""

    operands: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Or(Syntax):
    """`a or b or c`."""

    operands: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Exists(Syntax):
    """`exists { … }`."""

    clauses: "tuple[Clause, ...]"


Expression = (
    Literal
    | ListLiteral
    | Variable
    | Property
    | Name
    | Now
    | Nearest
    | TextMatch
    | Bm25
    | Rrf
    | Aggregate
    | Call
    | Negative
    | Arithmetic
    | Comparison
    | In
    | IsNull
    | Not
    | And
    | Or
    | Exists
)


# --- patterns ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assignment(Syntax):
    """`name: value`, in a binding or in a mutation."""

    property: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Binding(Syntax):
    """`$p: Person { name: $n }`."""

    variable: str
    type_name: str
    matches: tuple[Assignment, ...] = ()


@dataclass(frozen=True, slots=True)
class Hops(Syntax):
    """`{1,3}`; `most` is None where it was left out."""

    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Traversal(Syntax):
    """`$a knows $b`, `$a $e: knows $b`, `$a <knows>{1,3} $b`."""

    source: str
    edge: str
    target: str
    edge_variable: str | None = None
    undirected: bool = False
    hops: Hops | None = None


@dataclass(frozen=True, slots=True)
class Shortest(Syntax):
    """`shortest $a knows{1,6} $b as $path`."""

    source: str
    edge: str
    target: str
    path: str
    undirected: bool
    hops: Hops


@dataclass(frozen=True, slots=True)
class Filter(Syntax):
    """A condition as a clause."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Negation(Syntax):
    """`not { … }`."""

    clauses: "tuple[Clause, ...]"


@dataclass(frozen=True, slots=True)
class Optional(Syntax):
    """`optional { … }`."""

    clauses: "tuple[Clause, ...]"


@dataclass(frozen=True, slots=True)
class Alternatives(Syntax):
    """`or { … } { … }`."""

    blocks: "tuple[tuple[Clause, ...], ...]"


Clause = Binding | Traversal | Shortest | Filter | Negation | Optional | Alternatives
