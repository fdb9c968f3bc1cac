"""Typed expressions: what bound queries and plan steps compute.

Conditions follow three-valued logic: a comparison with an absent value is unknown, `not` of unknown is unknown, and
only what is true passes a filter.

Values of constants and parameters are Python's own: `str`, `int`, `float`, `bool`, `date`, an aware `datetime` in UTC
with whole milliseconds, a tuple of these for lists and vectors, or None.
"""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

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
    """A path: how long it is, and the ids of its nodes."""

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
    """A value that stood in the text."""

    value: Value
    type: PropertyType | NullValue


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value given with the call."""

    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the node or edge a variable is bound to; absent where the variable is."""

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
    """A column of the result, by position, where steps work on results and no longer on variables."""

    position: int
    name: str
    type: ValueType


# --- values of values ---------------------------------------------------------------------------------------------


class ArithmeticOp(StrEnum):
    """Operators; `/` gives a float, the others whole numbers for whole numbers. Division by zero gives null."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Two numbers, a date or time and a duration, two dates, or two durations."""

    op: ArithmeticOp
    left: "Expression"
    right: "Expression"
    type: PropertyType | DurationValue


@dataclass(frozen=True, slots=True)
class Negative:
    """A number or a duration with its sign changed."""

    operand: "Expression"
    type: PropertyType | DurationValue


class Function(StrEnum):
    """Functions of single values; null where an argument is."""

    LOWER = "lower"
    UPPER = "upper"
    LENGTH = "length"  # characters of a string, elements of a list
    DAYS = "days"  # a number to a duration
    HOURS = "hours"
    MINUTES = "minutes"
    SECONDS = "seconds"
    DAYS_BETWEEN = "days_between"  # whole days from the first to the second, towards zero


@dataclass(frozen=True, slots=True)
class Call:
    """A function of its arguments."""

    function: Function
    arguments: "tuple[Expression, ...]"
    type: PropertyType | DurationValue


# --- conditions ---------------------------------------------------------------------------------------------------


class CompareOp(StrEnum):
    """Order and equality; strings by their bytes, numbers after widening to a common type."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="


@dataclass(frozen=True, slots=True)
class Compare:
    """Two values of comparable types."""

    op: CompareOp
    left: "Expression"
    right: "Expression"
    type: PropertyType = BOOL


class StringOp(StrEnum):
    """Tests of a string against a part; no wildcards."""

    CONTAINS = "contains"
    STARTS_WITH = "starts_with"


@dataclass(frozen=True, slots=True)
class StringTest:
    """Whether `whole` contains, or starts with, `part`."""

    op: StringOp
    whole: "Expression"
    part: "Expression"
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True)
class Member:
    """Whether a list has an element equal to `item`; `negated` turns true and false around, never unknown."""

    item: "Expression"
    items: "Expression"
    negated: bool = False
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a value is absent, or with `negated` whether it is there; never unknown."""

    operand: "Expression"
    negated: bool = False
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; of unknown, unknown."""

    operand: "Expression"
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True)
class And:
    """All of them; at least two."""

    operands: "tuple[Expression, ...]"
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True)
class Or:
    """Any of them; at least two."""

    operands: "tuple[Expression, ...]"
    type: PropertyType = BOOL


# --- search -------------------------------------------------------------------------------------------------------


class TextFunction(StrEnum):
    """How text is searched: any word, any word with misspellings, the words in a row."""

    SEARCH = "search"
    FUZZY = "fuzzy"
    MATCH_TEXT = "match_text"


@dataclass(frozen=True, slots=True)
class TextMatch:
    """Whether a node's text property matches a query, by the words that its analyzer makes of both."""

    function: TextFunction
    target: Property
    query: "Expression"
    max_edits: "Expression | None" = None
    type: PropertyType = BOOL
    analyzer: Analyzer = DEFAULT_ANALYZER


@dataclass(frozen=True, slots=True)
class Nearest:
    """The distance of a node's vector to the query's.

    Attributes:
        target: the vector.
        query: a vector, or a string yet to be embedded.
        type: of the distance.
        model: what the stored vectors were made with, if the schema says.
    """

    target: Property
    query: "Expression"
    type: PropertyType = NULLABLE_F64
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Bm25:
    """How well a node's text property matches a query; greater is better, null where it does not match."""

    target: Property
    query: "Expression"
    type: PropertyType = NULLABLE_F64
    analyzer: Analyzer = DEFAULT_ANALYZER


@dataclass(frozen=True, slots=True)
class Rrf:
    """Two rankings of one variable fused: the sum of 1 / (k + rank + 1), ranks counted from 0; greater is better."""

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


class AggregateFunction(StrEnum):
    """Functions of the rows of a group; absent values take no part."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    COLLECT = "collect"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate of one value per row; of the rows themselves where `argument` is None."""

    function: AggregateFunction
    argument: Expression | None
    distinct: bool
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a result: its name and how it is computed."""

    name: str
    value: Expression | Aggregation

    @property
    def type(self) -> ValueType:
        """The type of its values."""
        return self.value.type
