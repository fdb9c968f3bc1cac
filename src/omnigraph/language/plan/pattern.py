"""Typed, bound reads: the input of the plan builder.

Every `$_` has become a variable of its own with a name that starts with `#`; every name is resolved, every direction
decided, and every top-level `and` split into separate clauses.
"""

from dataclasses import dataclass
from enum import StrEnum

from omnigraph.language.plan.expressions import Column, Constant, Entity, Expression, Parameter


class Direction(StrEnum):
    """Direction in which edges are followed from the source of a traversal."""

    OUT = "out"
    IN = "in"
    BOTH = "both"

    @property
    def reversed(self) -> "Direction":
        """Direction as seen from the other end."""
        match self:
            case Direction.OUT:
                return Direction.IN
            case Direction.IN:
                return Direction.OUT
            case Direction.BOTH:
                return Direction.BOTH


@dataclass(frozen=True, slots=True)
class Binding:
    """Bind a variable to nodes of a type that satisfy all conditions."""

    variable: str
    type_name: str
    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Traversal:
    """Connect two variables by a path of `least` to `most` edges.

    Attributes:
        source: variable at the start.
        target: variable at the end.
        source_type: node type at the start.
        target_type: node type at the end.
        edge: edge type.
        direction: direction in which edges are followed.
        least: minimum number of hops.
        most: maximum number of hops.
        edge_variable: bound to the edge record, one row per record; without it parallel edges count once.
        path: bound to one shortest path.
    """

    source: str
    target: str
    source_type: str
    target_type: str
    edge: str
    direction: Direction
    least: int = 1
    most: int = 1
    edge_variable: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """Keep rows for which the condition is true."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Negation:
    """Keep rows for which the block has no solution."""

    block: "Block"


@dataclass(frozen=True, slots=True)
class Existence:
    """Keep rows for which the block has a solution."""

    block: "Block"


@dataclass(frozen=True, slots=True)
class Mark:
    """Store whether the block has a solution in a hidden column that conditions refer to."""

    block: "Block"
    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """Left join with the block's solutions: `variables` are null if there are none."""

    block: "Block"
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Distinct union of the solutions of all blocks; `variables` are those that every block binds for the outside."""

    blocks: "tuple[Block, ...]"
    variables: tuple[str, ...]


Clause = Binding | Traversal | Condition | Negation | Existence | Mark | Optional | Alternatives


@dataclass(frozen=True, slots=True)
class Block:
    """Clauses that must all hold, and every variable they mention, including nested blocks."""

    clauses: tuple[Clause, ...]
    mentions: frozenset[str]


@dataclass(frozen=True, slots=True)
class OrderKey:
    """Sort key; absent values come first ascending, last descending.

    Attributes:
        value: expression sorted by.
        descending: True if the greatest come first.
        ranks: True for a score written directly as the order: rows without a score are dropped.
    """

    value: Expression
    descending: bool = False
    ranks: bool = False


Count = Constant | Parameter


@dataclass(frozen=True, slots=True)
class Window:
    """Limit and offset; None is unlimited, or no offset."""

    count: Count | None = None
    skip: Count | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A complete typed read.

    Attributes:
        block: pattern to match.
        columns: columns to return.
        is_aggregate: True if rows are grouped by the non-aggregate columns.
        distinct: True if duplicate rows are removed.
        order: sort keys; of a distinct or aggregate read they refer to result columns.
        window: limit and offset.
        entities: named nodes and edges in scope; their ids are the tie-breakers of the order.
    """

    block: Block
    columns: tuple[Column, ...]
    is_aggregate: bool
    distinct: bool
    order: tuple[OrderKey, ...]
    window: Window
    entities: tuple[Entity, ...]
