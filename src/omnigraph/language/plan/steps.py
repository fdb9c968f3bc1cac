"""Logical plan steps, independent of the engine that executes them.

A plan is a tuple of steps. Each consumes the rows of the previous one and produces rows; the first consumes one empty
row. A row holds, per variable, the id of a node or an edge record (or a path) and the properties that later steps
need, and hidden columns, whose names start with `#`. A step with nested steps runs them for each input row: they start
from that row, which `Given` stands for; without it they do not depend on the row.
"""

from dataclasses import dataclass

from omnigraph.language.plan.expressions import Column, Expression, Score, ValueType
from omnigraph.language.plan.pattern import Direction, OrderKey, Window
from omnigraph.model.types import PropertyType

# --- rows from tables ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Given:
    """The input row of the enclosing step: the start of nested steps."""

    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """Scan the nodes of a type for which the condition is true.

    Attributes:
        variable: variable bound to the nodes.
        type_name: node type.
        condition: filter over this variable and parameters only.
        properties: properties that later steps need; None is all of them.
        at_most: number of rows that is sufficient; any of them will do.
    """

    variable: str
    type_name: str
    condition: Expression | None = None
    properties: tuple[str, ...] | None = None
    at_most: Window | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """Cartesian product of the rows with those of independent steps."""

    steps: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class Expand:
    """Expand a bound variable along edges to a new variable.

    With `least` and `most` 1, one row per neighbour (with an edge variable: per edge record). Otherwise one row per
    node at its shortest distance, if that is within the bounds, breadth first from the source. A node with a loop is
    also at its distance plus one, which matters if it is one hop too near: the source itself is reached only by a
    self-loop. A null source yields no rows.

    Attributes:
        source: bound variable.
        target: new variable.
        source_type: node type of the source.
        target_type: node type of the target.
        edge: edge type.
        direction: direction in which edges are followed from the source.
        least: minimum number of hops.
        most: maximum number of hops.
        edge_variable: bound to the edge record; only for one hop.
        path: bound to one shortest path; of several, the one whose node ids sort first.
        from_target: True if the pattern is written from target to source: paths are read in that order, and only a
            self-loop of the source lengthens a distance.
        target_condition: filter over the target and parameters only.
        edge_condition: filter over the edge variable and parameters only.
        target_properties: properties that later steps need; None is all.
        edge_properties: likewise for the edge variable.
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
    """Keep rows whose two bound variables are connected within the bounds; the attributes are those of `Expand`."""

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
    """Keep rows for which the condition is true."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """Keep rows for which the nested steps yield rows."""

    steps: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Keep rows for which the nested steps yield no rows."""

    steps: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class Mark:
    """Add a hidden column that tells whether the nested steps yield rows."""

    steps: "tuple[Step, ...]"
    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """Left join with the nested steps: the new variables are null if they yield nothing."""

    steps: "tuple[Step, ...]"
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Join with the distinct union of all branches, which bind the new variables."""

    branches: "tuple[tuple[Step, ...], ...]"
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rank:
    """Add the score of one variable's nodes as a hidden column.

    Attributes:
        score: score over the distinct nodes among the rows.
        name: name of the hidden column.
        required: True if rows without a score are dropped.
        depth: for a fusion, how many of each ranking take part; None is all.
    """

    score: Score
    name: str
    required: bool
    depth: Window | None = None


# --- counting without listing -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CountNodes:
    """Produce one row with the number of matching nodes in a hidden column; no row if there are none."""

    variable: str
    type_name: str
    condition: Expression | None
    name: str


@dataclass(frozen=True, slots=True)
class CountEdges:
    """Add the number of rows that `Expand` would produce as a hidden column; rows with zero are dropped.

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
    """Produce one row per group: the rows with equal non-aggregate columns.

    Without such columns there is exactly one group, which may be empty. Groups are in order of first appearance.

    Attributes:
        columns: columns of the result, in order.
        weights: hidden columns; a row counts as many times as their product.
    """

    columns: tuple[Column, ...]
    weights: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """Compute the columns of the result."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """Remove duplicate rows, keeping the first."""


@dataclass(frozen=True, slots=True)
class Order:
    """Sort rows by the keys, then by the ties ascending.

    Attributes:
        keys: sort keys of the query.
        ties: tie-breakers for rows with equal keys.
        at_most: number of leading rows that is sufficient.
    """

    keys: tuple[OrderKey, ...]
    ties: tuple[Expression, ...]
    at_most: Window | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """Skip and limit rows."""

    window: Window


# --- mutations ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign:
    """Assignment of a value to a property; in updates it may depend on the node's own properties."""

    property: str
    type: PropertyType
    value: Expression


@dataclass(frozen=True, slots=True)
class InsertNode:
    """Insert a node; of a keyed type, replace the node with the same key.

    Omitted properties are null; with `keeps`, those of a node that exists keep their values.
    """

    type_name: str
    assignments: tuple[Assign, ...]
    keyed: bool
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class InsertEdge:
    """Insert an edge between two nodes given by id; otherwise like `InsertNode`."""

    type_name: str
    from_type: str
    to_type: str
    source: Expression
    target: Expression
    assignments: tuple[Assign, ...]
    keyed: bool = False
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class UpdateNodes:
    """Update every node that satisfies the condition; all values are computed from those before."""

    type_name: str
    assignments: tuple[Assign, ...]
    condition: Expression


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """Delete the nodes that satisfy the condition, and every edge of these types connected to one of them."""

    type_name: str
    condition: Expression
    edges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteEdges:
    """Delete the edges that satisfy the condition."""

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
    """Name and type of a result column. A node is returned as its id."""

    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Plan of a read."""

    steps: tuple[Step, ...]
    columns: tuple[ResultColumn, ...]


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """Plan of a mutation; each step sees the effects of the previous ones."""

    steps: tuple[MutationStep, ...]


Plan = ReadPlan | MutationPlan
