"""Walks: from nodes named by their key, hop by hop along edges, to values of where they lead, or to how many.

Most queries of a busy graph are walks over few rows, for which operators cost more than the work itself. A plan of this
shape is also kept as a walk. As soon as all it touches is in memory, the walk is bound to the arrays of these versions,
and runs over them without batches, frames or expressions. Whatever a walk cannot do (a value that is no key, too many
rows for its share of memory) it leaves to the operators of the plan, which give the same rows in the same order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution.arrays import Ordinals, Positions, Values, once, taken
from omnigraph.execution.column import RowLookup
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr, repeated_places
from omnigraph.execution.keys import Choosing, lookup_for
from omnigraph.execution.resident import Resident
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import AggregateFunction, Aggregation, Value
from omnigraph.language.plan.pattern import Direction
from omnigraph.model.schema import ID, Schema

_INT64 = pa.int64()


@dataclass(frozen=True, slots=True)
class WalkHop:
    """One hop to every neighbour, parallel edges once.

    Attributes:
        edge: the edge type.
        from_type: the node type its edges leave.
        to_type: the node type its edges reach.
        direction: which way they are followed.
        target_type: the node type it leads to.
    """

    edge: str
    from_type: str
    to_type: str
    direction: Direction
    target_type: str


@dataclass(frozen=True, slots=True)
class ListedColumn:
    """A column of the nodes after so many hops."""

    hops: int
    name: str


@dataclass(frozen=True, slots=True)
class Counted:
    """How many rows there are, or how many different nodes after the last hop."""

    distinct: bool


@dataclass(frozen=True, slots=True)
class Walk:
    """A plan that is a walk.

    Attributes:
        start_type: the type of the nodes it starts from.
        ids: their ids, among the values of a run; None where these are no keys.
        hops: in order.
        listed: the columns of the result; none where it counts.
        counted: the columns of a result that counts.
    """

    start_type: str
    ids: Choosing
    hops: tuple[WalkHop, ...]
    listed: tuple[ListedColumn, ...]
    counted: tuple[Counted, ...]


def walk_of(plan: steps.ReadPlan, schema: Schema) -> Walk | None:
    """The walk that a plan is, if it is one.

    Args:
        plan (steps.ReadPlan): of a read.
        schema (Schema): what it was made for.

    Returns:
        Walk | None: with the same answers.
    """
    first, *middle, last = plan.steps
    if not isinstance(first, steps.Scan) or first.at_most is not None:
        return None
    node = schema.node(first.type_name)
    lookup = None if node is None else lookup_for(node, first.variable, first.condition)
    if lookup is None or lookup.left is not None:
        return None
    hops: list[WalkHop] = []
    places = {first.variable: 0}
    at = first.variable
    for number, step in enumerate(middle, 1):
        hop = _hop(step, at, schema)
        if hop is None:
            return None
        hops.append(hop)
        if isinstance(step, steps.Expand):
            places[step.target] = number
            at = step.target
        elif number < len(middle) or isinstance(last, steps.Project):
            return None
    if isinstance(last, steps.Project):
        listed = tuple(_listed(column.value, places) for column in last.columns)
        found = tuple(each for each in listed if each is not None)
        return Walk(first.type_name, lookup.ids, tuple(hops), found, ()) if len(found) == len(listed) else None
    if isinstance(last, steps.Aggregate):
        counted = tuple(_counted(column.value, places, len(hops)) for column in last.columns)
        known = tuple(each for each in counted if each is not None)
        return Walk(first.type_name, lookup.ids, tuple(hops), (), known) if len(known) == len(counted) else None
    return None


def _hop(step: steps.Step, at: str, schema: Schema) -> WalkHop | None:
    if not isinstance(step, steps.Expand | steps.CountEdges) or step.source != at or (step.least, step.most) != (1, 1):
        return None
    if isinstance(step, steps.CountEdges):
        plain = not step.each_record
    else:
        nothing = (step.edge_variable, step.path, step.target_condition, step.edge_condition)
        plain = all(each is None for each in nothing)
    edge = schema.edge(step.edge)
    if not plain or edge is None:
        return None
    ends = (step.source_type, step.target_type)
    from_type, to_type = ends if step.direction is not Direction.IN else ends[::-1]
    return WalkHop(step.edge, from_type, to_type, step.direction, step.target_type)


def _listed(value: ex.Expression | Aggregation, places: Mapping[str, int]) -> ListedColumn | None:
    match value:
        case ex.Property(variable=variable, name=name) if variable in places:
            return ListedColumn(places[variable], name)
        case ex.Entity(variable=variable) if variable in places:
            return ListedColumn(places[variable], ID)
        case _:
            return None


def _counted(value: ex.Expression | Aggregation, places: Mapping[str, int], hops: int) -> Counted | None:
    if not isinstance(value, Aggregation) or value.function is not AggregateFunction.COUNT:
        return None
    argument = value.argument
    if not value.distinct:
        # Every row has a node for every variable; a property may be null.
        return Counted(distinct=False) if argument is None or isinstance(argument, ex.Entity) else None
    if isinstance(argument, ex.Entity) and places.get(argument.variable) == hops:
        return Counted(distinct=True)
    return None


# --- bound to arrays --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """A column of the result and the array its values come from."""

    hops: int
    array: Values
    type: pa.DataType
    bytes: int


class BoundWalk:
    """A walk over arrays in memory. Keeps nothing of a run, so any number of threads may use it at once."""

    __slots__ = ("_bytes", "_columns", "_counted", "_distinct_only", "_hops", "_ids", "_sources", "_start", "_wanted")

    def __init__(
        self,
        walk: Walk,
        columns: pa.Schema,
        start: RowLookup,
        hops: Sequence[Csr],
        sources: Sequence[_Source],
    ) -> None:
        self._ids = walk.ids
        self._columns = columns
        self._start = start
        self._hops = [(each.starts, each.degrees, each.neighbours) for each in hops]
        self._sources = sources
        self._bytes = sum(source.bytes for source in sources)
        self._wanted = frozenset(source.hops for source in sources)
        self._counted = walk.counted
        self._distinct_only = bool(walk.counted) and all(each.distinct for each in walk.counted)

    def answer(self, values: Mapping[str, Value], *, bytes_max: int) -> pa.RecordBatch | None:
        """The rows of the result.

        Args:
            values (Mapping[str, Value]): of the parameters.
            bytes_max (int): how much the result may take.

        Returns:
            pa.RecordBatch | None: None where the operators of the plan have to do it.
        """
        ids = self._ids(values)
        if ids is None or len(ids) > limits.LOOKUP_ROWS_MAX:
            return None
        nodes = self._start.find(ids)
        if self._counted:
            return self._count(nodes)
        return self._list(nodes, bytes_max)

    def _list(self, nodes: Ordinals, bytes_max: int) -> pa.RecordBatch | None:
        wanted = self._wanted
        at = {0: nodes} if 0 in wanted else {}
        for number, (starts, degrees, neighbours) in enumerate(self._hops, 1):
            if len(nodes) == 1:
                nodes = _neighbours(nodes, starts, neighbours)
                if at:
                    at = {hops: np.repeat(each, len(nodes)) for hops, each in at.items()}
            else:
                counts = degrees[nodes]
                if counts.sum() > limits.WALK_ROWS_MAX:
                    return None
                rows, places = repeated_places(starts[nodes], counts)
                nodes = neighbours[places]
                if at:
                    at = {hops: each[rows] for hops, each in at.items()}
            if number in wanted:
                at[number] = nodes
        size = len(nodes)
        if size > limits.WALK_ROWS_MAX:
            return None
        arrays = [_values(source, at[source.hops]) for source in self._sources]
        # No row takes more than its whole column, so mostly nothing need be added up.
        if size * self._bytes > bytes_max and sum(each.nbytes for each in arrays) > bytes_max:
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=self._columns)

    def _count(self, nodes: Ordinals) -> pa.RecordBatch | None:
        hops = self._hops
        # Neighbours that are only counted need not be listed.
        last = len(hops) - 1 if hops and not any(each.distinct for each in self._counted) else len(hops)
        is_once = True
        for starts, degrees, neighbours in hops[:last]:
            if len(nodes) == 1:
                nodes = _neighbours(nodes, starts, neighbours)
                is_once = True
                continue
            if self._distinct_only and not is_once:
                nodes = once(nodes)
            places = _places(starts.take(nodes), degrees.take(nodes))
            if places is None:
                return None
            nodes = neighbours[places]
            is_once = False
        rows = len(nodes) if last == len(hops) else int(hops[-1][1][nodes].sum())
        different = rows if is_once else -1
        arrays: list[Values] = []
        for each in self._counted:
            if each.distinct and different < 0:
                different = _different(nodes)
            number = different if each.distinct else rows
            made: Any = pa.Array.from_buffers(_INT64, 1, [None, pa.py_buffer(number.to_bytes(8, "little"))])
            arrays.append(made)
        return pa.RecordBatch.from_arrays(arrays, schema=self._columns)


def _neighbours(node: Ordinals, starts: Positions, neighbours: Ordinals) -> Ordinals:
    """Those of one node."""
    place = node.item()
    return neighbours[starts.item(place) : starts.item(place + 1)]


def _places(firsts: Positions, counts: Positions) -> Positions | None:
    """The places of stretches of so many each, one after the other; None where they are too many for a walk.

    Takes `firsts` for itself.
    """
    ends = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    if total > limits.WALK_ROWS_MAX:
        return None
    firsts -= ends
    firsts += counts
    places = firsts.repeat(counts)
    places += np.arange(total)
    return places


def _different(nodes: Ordinals) -> int:
    """How many different ones there are."""
    ordered = np.sort(nodes)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + (len(ordered) > 0)


def _values(source: _Source, nodes: Ordinals) -> Values:
    one = len(nodes) == 1
    values: Any = source.array.slice(nodes.item(), 1) if one else taken(source.array, nodes)
    return values if values.type == source.type else values.cast(source.type)  # type: ignore[no-any-return]  # Arrow's kernels have no types


def bind_walk(walk: Walk, columns: pa.Schema, resident: Resident) -> BoundWalk | None:
    """A walk over the arrays of one snapshot.

    Args:
        walk (Walk): the walk.
        columns (pa.Schema): of its result.
        resident (Resident): what of the snapshot is in memory.

    Returns:
        BoundWalk | None: None where something it needs is not in memory.
    """
    nodes: list[Columns] = []
    for type_name in (walk.start_type, *(hop.target_type for hop in walk.hops)):
        found = resident.nodes(type_name)
        if found is None:
            return None
        nodes.append(found)
    start = resident.ids(nodes[0])
    if start is None:
        return None
    rows: list[Csr] = []
    for hop in walk.hops:
        way = resident.rows(hop.edge, hop.from_type, hop.to_type, hop.direction)
        if way is None:
            return None
        rows.append(way.simple)
    sources: list[_Source] = []
    for listed, field in zip(walk.listed, columns, strict=False):
        column = resident.column(nodes[listed.hops], listed.name)
        if column is None:
            return None
        sources.append(_Source(listed.hops, column.array, field.type, column.nbytes))
    return BoundWalk(walk, columns, start, rows, sources)
