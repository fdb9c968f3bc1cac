"""Logical steps: how a query is answered, with nothing of who answers it.

A plan is a tuple of steps. Each takes the rows of the one before and passes rows on; the first takes one empty row.
Rows hold, for each variable, the id of a node or an edge record (or a path) and those of its properties that later
steps need, and hidden columns, whose names start with `#`. A step with steps of its own runs them for each row it
takes: they start from that row, which `Given` stands for; without it they do not depend on the row.
"""

from dataclasses import dataclass

from omnigraph.language.plan.expressions import Column, Expression, Score, ValueType
from omnigraph.language.plan.pattern import Direction, OrderKey, Window
from omnigraph.model.types import PropertyType

# --- rows from tables ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Given:
    """The row of the step around; the start of steps inside another step."""

    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """Every node of a type for which the condition is true.

    Attributes:
        variable: what the nodes are bound to.
        type_name: their type.
        condition: about this variable alone, and parameters.
        properties: those that later steps need; None is all of them.
        at_most: rows that are certainly enough; any so many will do.
    """

    variable: str
    type_name: str
    condition: Expression | None = None
    properties: tuple[str, ...] | None = None
    at_most: Window | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """Each row so far with each row of these steps, which do not depend on it."""

    steps: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class Expand:
    """From a bound variable along edges to a new one.

    With `least` and `most` 1, one row for each neighbour (with an edge variable: for each edge record). Otherwise one
    for each node at its shortest distance, if that lies within the bounds, breadth first from the source. A node with
    an edge to itself is also one hop further away than it is, which matters where it is one hop too near: so the source
    itself is reached by such an edge alone. Where the source is bound to nothing, no row.

    Attributes:
        source: the bound variable.
        target: the new one.
        source_type: the node type of the source.
        target_type: the node type of the target.
        edge: the edge type.
        direction: which way its edges are followed from the source.
        least: the fewest hops.
        most: the most hops.
        edge_variable: bound to the edge record; only for one hop.
        path: bound to one shortest path, of several the one whose node ids come first.
        from_target: whether the pattern leads from the target to the source: paths are read so, and only an edge from
            the source to itself makes a distance longer.
        target_condition: about the target alone, and parameters.
        edge_condition: about the edge variable alone, and parameters.
        target_properties: those that later steps need; None is all.
        edge_properties: likewise.
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
    from_target: bool = False
    target_condition: Expression | None = None
    edge_condition: Expression | None = None
    target_properties: tuple[str, ...] | None = None
    edge_properties: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Connect:
    """Rows whose two bound variables are joined by edges within the bounds; the attributes are those of `Expand`."""

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
    edge_condition: Expression | None = None
    edge_properties: tuple[str, ...] | None = None


# --- rows kept, dropped, joined -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Filter:
    """Rows for which the condition is true."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """Rows for which the steps yield something."""

    steps: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Rows for which the steps yield nothing."""

    steps: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class Mark:
    """Every row, with a hidden column that says whether the steps yield something."""

    steps: "tuple[Step, ...]"
    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """Each row with what the steps yield, or once with nothing in the new variables where they yield nothing."""

    steps: "tuple[Step, ...]"
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Each row with what any of the branches yields in the new variables; equal results of one row count once."""

    branches: "tuple[tuple[Step, ...], ...]"
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rank:
    """Every row, with the score of one variable's nodes in a hidden column.

    Attributes:
        score: what is computed; its population are the distinct nodes among the rows so far.
        name: the hidden column.
        required: whether rows without a score are dropped.
        depth: for a fusion, how many of each ranking take part; None is all.
    """

    score: Score
    name: str
    required: bool
    depth: Window | None = None


# --- counting without listing -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CountNodes:
    """One row: how many nodes of the type satisfy the condition, in a hidden column; no row where none does."""

    variable: str
    type_name: str
    condition: Expression | None
    name: str


@dataclass(frozen=True, slots=True)
class CountEdges:
    """Each row with how many rows `Expand` would make of it, in a hidden column; rows of none are dropped.

    The attributes are those of `Expand`. Without an edge variable neighbours are counted, with `each_record` edge
    records.
    """

    source: str
    source_type: str
    target_type: str
    edge: str
    direction: Direction
    least: int
    most: int
    each_record: bool
    name: str
    from_target: bool = False


# --- results ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row for each group: of all rows that agree in the columns that are no aggregates.

    Without such columns there is exactly one group, which may be empty. Groups come in the order they first appear.

    Attributes:
        columns: those of the result, in order.
        weights: hidden columns; a row stands for as many rows as their product.
    """

    columns: tuple[Column, ...]
    weights: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """The columns of the result."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """Equal rows once, the first of them."""


@dataclass(frozen=True, slots=True)
class Order:
    """Rows sorted by the keys, then by the ties ascending.

    Attributes:
        keys: the user's.
        ties: what decides between rows that the keys leave equal.
        at_most: rows that are certainly enough, counted from the first.
    """

    keys: tuple[OrderKey, ...]
    ties: tuple[Expression, ...]
    at_most: Window | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many rows, after so many skipped."""

    window: Window


# --- mutations ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign:
    """A property and its new value; in updates the value may depend on the node's own properties."""

    property: str
    type: PropertyType
    value: Expression


@dataclass(frozen=True, slots=True)
class InsertNode:
    """A new node; of a type with a key, put in the place of the one that has it. Properties left out are null."""

    type_name: str
    assignments: tuple[Assign, ...]
    keyed: bool


@dataclass(frozen=True, slots=True)
class InsertEdge:
    """A new edge between two nodes, given by their ids; of a type with a key, in the place of the one that has it."""

    type_name: str
    from_type: str
    to_type: str
    source: Expression
    target: Expression
    assignments: tuple[Assign, ...]
    keyed: bool = False


@dataclass(frozen=True, slots=True)
class UpdateNodes:
    """New values for every node that satisfies the condition; all are computed from the values before."""

    type_name: str
    assignments: tuple[Assign, ...]
    condition: Expression


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """Nodes that satisfy the condition, and every edge of these types that touches one of them."""

    type_name: str
    condition: Expression
    edges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteEdges:
    """Edges that satisfy the condition."""

    type_name: str
    condition: Expression


MutationStep = InsertNode | InsertEdge | UpdateNodes | DeleteNodes | DeleteEdges

Step = (
    Given
    | Scan
    | Product
    | Expand
    | Connect
    | Filter
    | SemiJoin
    | AntiJoin
    | Mark
    | Optional
    | Alternatives
    | Rank
    | CountNodes
    | CountEdges
    | Aggregate
    | Project
    | Distinct
    | Order
    | Limit
)


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of the result: its name, and the type of its values. A node is returned as its id."""

    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How a read is answered."""

    steps: tuple[Step, ...]
    columns: tuple[ResultColumn, ...]


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """What a mutation does, in order; each step sees what the ones before did."""

    steps: tuple[MutationStep, ...]


Plan = ReadPlan | MutationPlan
