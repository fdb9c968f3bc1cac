"""What a read asks for, bound and typed: the input of the plan builder.

Every `$_` has become a variable of its own with a name that starts with `#`; every name is resolved, every direction
decided, and every top-level `and` taken apart into clauses of its own.
"""

from dataclasses import dataclass
from enum import StrEnum

from omnigraph.language.plan.expressions import Column, Constant, Entity, Expression, Parameter


class Direction(StrEnum):
    """Which way edges are followed from the source of a traversal."""

    OUT = "out"
    IN = "in"
    BOTH = "both"

    @property
    def reversed(self) -> "Direction":
        """The same edges, seen from the other end."""
        match self:
            case Direction.OUT:
                return Direction.IN
            case Direction.IN:
                return Direction.OUT
            case Direction.BOTH:
                return Direction.BOTH


@dataclass(frozen=True, slots=True)
class Binding:
    """A variable stands for nodes of a type that satisfy all conditions."""

    variable: str
    type_name: str
    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Traversal:
    """Two variables are joined by edges, between `least` and `most` of them.

    Attributes:
        source: where the walk starts.
        target: where it ends.
        source_type: the node type at its start.
        target_type: the node type at its end.
        edge: the edge type.
        direction: which way its edges are followed.
        least: the fewest hops.
        most: the most hops.
        edge_variable: bound to the edge record, one row for each; else parallel edges count once.
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
    """Only rows for which it is true."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Negation:
    """Only rows for which the block has no solution."""

    block: "Block"


@dataclass(frozen=True, slots=True)
class Existence:
    """Only rows for which the block has a solution."""

    block: "Block"


@dataclass(frozen=True, slots=True)
class Mark:
    """Whether the block has a solution, as a hidden column that conditions refer to."""

    block: "Block"
    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """The block's solutions, and once the row alone, with nothing in `variables`, where it has none."""

    block: "Block"
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The solutions of all blocks together, each once; `variables` are those that every block binds for the outside."""

    blocks: "tuple[Block, ...]"
    variables: tuple[str, ...]


Clause = Binding | Traversal | Condition | Negation | Existence | Mark | Optional | Alternatives


@dataclass(frozen=True, slots=True)
class Block:
    """Clauses that must hold together, and every variable they mention, those of inner blocks included."""

    clauses: tuple[Clause, ...]
    mentions: frozenset[str]


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A value rows are sorted by; absent ones come first ascending, last descending.

    Attributes:
        value: what decides.
        descending: whether the greatest come first.
        ranks: whether it is a score that was itself written as the order, so that rows without one are not wanted.
    """

    value: Expression
    descending: bool = False
    ranks: bool = False


Count = Constant | Parameter


@dataclass(frozen=True, slots=True)
class Window:
    """How many rows to pass on, after how many skipped; None is all, and none."""

    count: Count | None = None
    skip: Count | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A whole read, typed.

    Attributes:
        block: what is matched.
        columns: what is returned.
        is_aggregate: whether rows are grouped by the columns that are no aggregates.
        distinct: whether equal rows are returned once.
        order: what rows are sorted by; of a distinct or aggregate read by columns of the result.
        window: how many rows, from where.
        entities: the named nodes and edges in scope; their ids decide between rows that sort alike.
    """

    block: Block
    columns: tuple[Column, ...]
    is_aggregate: bool
    distinct: bool
    order: tuple[OrderKey, ...]
    window: Window
    entities: tuple[Entity, ...]
