"""Typed expressions of bound queries and plan steps.

Conditions follow three-valued logic: a comparison with an absent value is unknown, `not` of unknown is unknown, and
only true passes a filter.

Values of constants and parameters are Python's own: `str`, `int`, `float`, `bool`, `date`, an aware `datetime` in UTC
with whole milliseconds, a tuple of these for lists and vectors, or None.
"""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from omnigraph.language.plan.operators import AggregateFunction as AggregateFunction
from omnigraph.language.plan.operators import ArithmeticOp as ArithmeticOp
from omnigraph.language.plan.operators import CompareOp as CompareOp
from omnigraph.language.plan.operators import Function as Function
from omnigraph.language.plan.operators import StringOp as StringOp
from omnigraph.language.plan.operators import TextFunction as TextFunction
from omnigraph.model.analyzer import DEFAULT_ANALYZER, Analyzer
from omnigraph.model.types import PropertyType, Scalar

SingleValue = str | int | float | bool | date | datetime | None
Value = SingleValue | tuple[SingleValue, ...]

BOOL = PropertyType(Scalar.BOOL)
STRING = PropertyType(Scalar.STRING)
I64 = PropertyType(Scalar.I64)
F64 = PropertyType(Scalar.F64)
NULLABLE_F64 = PropertyType(Scalar.F64, nullable=True)
DATE = PropertyType(Scalar.DATE)
DATETIME = PropertyType(Scalar.DATETIME)

# The row a mutation's predicate or assignment is about; no variable can be called that.
TARGET = "#target"


# --- types of what is no property ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeValue:
    """A node; its value in results is its id."""

    type_name: str
    nullable: bool = False

    def __str__(self) -> str:
        return f"node `{self.type_name}`"


@dataclass(frozen=True, slots=True)
class EdgeValue:
    """An edge record; only its properties have values."""

    type_name: str
    nullable: bool = False

    def __str__(self) -> str:
        return f"edge `{self.type_name}`"


@dataclass(frozen=True, slots=True)
class PathValue:
    """A path: its length and the ids of its nodes."""

    nullable: bool = False

    def __str__(self) -> str:
        return "path"


@dataclass(frozen=True, slots=True)
class DurationValue:
    """A span of time, in milliseconds; `whole_days` where it is known to be whole days."""

    whole_days: bool
    nullable: bool = False

    def __str__(self) -> str:
        return "duration"


@dataclass(frozen=True, slots=True)
class NullValue:
    """The type of `null` alone."""

    nullable: bool = True

    def __str__(self) -> str:
        return "null"


ValueType = PropertyType | NodeValue | EdgeValue | PathValue | DurationValue | NullValue


# --- leaves -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of the text."""

    value: Value
    type: PropertyType | NullValue


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value supplied by the caller."""

    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the node or edge a variable is bound to; null if the variable is."""

    variable: str
    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Entity:
    """The node or edge record a variable is bound to; as a value, its id."""

    variable: str
    type: NodeValue | EdgeValue


class End(StrEnum):
    """The two ends of an edge."""

    FROM = "from"
    TO = "to"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The id of the node at one end of the edge a mutation is about."""

    variable: str
    end: End
    type: PropertyType = STRING


@dataclass(frozen=True, slots=True)
class Path:
    """A path variable, bare; only its length and its nodes have values."""

    variable: str
    type: PathValue


@dataclass(frozen=True, slots=True)
class PathLength:
    """The number of edges of a path."""

    variable: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class PathNodes:
    """The ids of a path's nodes, both ends included, in order."""

    variable: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Now:
    """The instant the query began, one for the whole execution."""

    type: PropertyType = DATETIME


@dataclass(frozen=True, slots=True)
class Computed:
    """A hidden column that an earlier step put beside the rows; its name starts with `#`."""

    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result by position, for steps that work on results instead of variables."""

    position: int
    name: str
    type: ValueType


# --- values of values ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers, a date or time and a duration, two dates, or two durations."""

    op: ArithmeticOp
    left: "Expression"
    right: "Expression"
    type: PropertyType | DurationValue


@dataclass(frozen=True, slots=True)
class Negative:
    """Negation of a number or a duration."""

    operand: "Expression"
    type: PropertyType | DurationValue


@dataclass(frozen=True, slots=True)
class Call:
    """A function of its arguments."""

    function: Function
    arguments: "tuple[Expression, ...]"
    type: PropertyType | DurationValue


# --- conditions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compare:
    """Two values of comparable types."""

    op: CompareOp
    left: "Expression"
    right: "Expression"
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True)
class StringTest:
    """True if `whole` contains, or starts with, `part`."""

    op: StringOp
    whole: "Expression"
    part: "Expression"
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True)
class Member:
    """Membership of `item` in a list; `negated` inverts true and false, never unknown."""

    item: "Expression"
    items: "Expression"
    negated: bool = False
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True)
class IsNull:
    """Test for an absent value, or with `negated` for a present one; never unknown."""

    operand: "Expression"
    negated: bool = False
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True)
class Not:
    """Logical negation; unknown stays unknown."""

    operand: "Expression"
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of at least two operands."""

    operands: "tuple[Expression, ...]"
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of at least two operands."""

    operands: "tuple[Expression, ...]"
    type: PropertyType = BOOL


# --- search -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextMatch:
    """Match of a node's text property with a query, after both are tokenized by its analyzer."""

    function: TextFunction
    target: Property
    query: "Expression"
    max_edits: "Expression | None" = None
    type: PropertyType = BOOL
    analyzer: Analyzer = DEFAULT_ANALYZER


@dataclass(frozen=True, slots=True)
class Nearest:
    """Distance of a node's vector to the query vector.

    Attributes:
        target: vector property.
        query: a vector, or a string to be embedded.
        type: type of the distance.
        model: embedding model of the stored vectors, if declared.
    """

    target: Property
    query: "Expression"
    type: PropertyType = NULLABLE_F64
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Bm25:
    """BM25 score of a node's text property; greater is better, null if it does not match."""

    target: Property
    query: "Expression"
    type: PropertyType = NULLABLE_F64
    analyzer: Analyzer = DEFAULT_ANALYZER


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion of two rankings: the sum of 1 / (k + rank + 1), ranks from 0; greater is better."""

    first: "Nearest | Bm25"
    second: "Nearest | Bm25"
    k: "Expression"
    type: PropertyType = NULLABLE_F64


Score = Nearest | Bm25 | Rrf

Expression = (
    Constant
    | Parameter
    | Property
    | Entity
    | Endpoint
    | Path
    | PathLength
    | PathNodes
    | Now
    | Computed
    | Output
    | Arithmetic
    | Negative
    | Call
    | Compare
    | StringTest
    | Member
    | IsNull
    | Not
    | And
    | Or
    | TextMatch
    | Nearest
    | Bm25
    | Rrf
)


# --- aggregates ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Aggregate over the rows of a group; over the rows themselves if `argument` is None."""

    function: AggregateFunction
    argument: Expression | None
    distinct: bool
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a result: its name and its expression."""

    name: str
    value: Expression | Aggregation

    @property
    def type(self) -> ValueType:
        """Type of the column's values."""
        return self.value.type
