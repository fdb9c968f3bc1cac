"""Walks: a fast path for key lookups followed by hops, returning columns or counts.

Most queries of a busy graph are walks over few rows, for which operators cost more than the work itself. A plan of this
shape is also kept as a walk. Once everything it touches is in memory, the walk is bound to the arrays of these versions
and runs over them without batches, frames or expressions. What a walk cannot do (a value that is not a key, too many
rows for its share of memory) is left to the operators of the plan, which give the same rows in the same order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution.adjacency_cache import AdjacencyCache
from omnigraph.execution.arrays import Ordinals, Positions, Values, sorted_unique, take_fast
from omnigraph.execution.column import Column, RowLookup
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr
from omnigraph.execution.edge_list import expand_ranges
from omnigraph.execution.key_lookup import IdChooser, find_key_lookup
from omnigraph.execution.versions import Versions
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import AggregateFunction, Aggregation, Value
from omnigraph.language.plan.pattern import Direction
from omnigraph.model.commit import Record
from omnigraph.model.schema import ID, Schema


class Resident:
    """The part of a snapshot that is in memory, or differs little from what is. Used by one thread."""

    def __init__(self, record: Record, versions: Versions, adjacencies: AdjacencyCache) -> None:
        self._record = record
        self._versions = versions
        self._adjacencies = adjacencies

    def nodes(self, type_name: str) -> Columns | None:
        """Return the nodes of a type."""
        return self._at(f"node:{type_name}")

    def ids(self, nodes: Columns) -> RowLookup | None:
        """Return the index from ids to nodes."""
        return self._versions.cached_lookup(nodes, ID)

    def column(self, nodes: Columns, name: str) -> Column | None:
        """Return a column of some nodes."""
        return self._versions.cached_column(nodes, name)

    def csr(self, edge: str, from_type: str, to_type: str, direction: Direction) -> Csr | None:
        """Return the CSR for one direction."""
        edges, sources, targets = self._at(f"edge:{edge}"), self.nodes(from_type), self.nodes(to_type)
        if edges is None or sources is None or targets is None:
            return None
        return self._adjacencies.cached_csr(edges, sources, targets, direction)

    def _at(self, type_key: str) -> Columns | None:
        pin = self._record.tables.get(type_key)
        return None if pin is None else self._versions.resident(pin)


_INT64 = pa.int64()


@dataclass(frozen=True, slots=True)
class WalkHop:
    """One hop to every neighbour, without parallel edges.

    Attributes:
        edge: the edge type.
        from_type: node type at the source of its edges.
        to_type: node type at the target of its edges.
        direction: which way they are followed.
        target_type: node type it leads to.
    """

    edge: str
    from_type: str
    to_type: str
    direction: Direction
    target_type: str


@dataclass(frozen=True, slots=True)
class ListedColumn:
    """A column of the nodes after a number of hops."""

    hops: int
    name: str


@dataclass(frozen=True, slots=True)
class Counted:
    """Number of rows, or of distinct nodes after the last hop."""

    distinct: bool


@dataclass(frozen=True, slots=True)
class Walk:
    """A plan that is a walk.

    Attributes:
        start_type: type of the start nodes.
        ids: their ids, from the parameters; None where these are not valid keys.
        hops: in order.
        listed: the columns of the result; none where it counts.
        counted: the columns of a result that counts.
    """

    start_type: str
    ids: IdChooser
    hops: tuple[WalkHop, ...]
    listed: tuple[ListedColumn, ...]
    counted: tuple[Counted, ...]


def find_walk(plan: steps.ReadPlan, schema: Schema) -> Walk | None:
    """Return the walk that a plan is, with the same answers; None if it is not one."""
    first, *middle, last = plan.steps
    if not isinstance(first, steps.Scan) or first.at_most is not None:
        return None
    node = schema.node(first.type_name)
    lookup = None if node is None else find_key_lookup(node, first.variable, first.condition)
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
        found = tuple(column for column in listed if column is not None)
        return Walk(first.type_name, lookup.ids, tuple(hops), found, ()) if len(found) == len(listed) else None
    if isinstance(last, steps.Aggregate):
        counted = tuple(_counted(column.value, places, len(hops)) for column in last.columns)
        known = tuple(column for column in counted if column is not None)
        return Walk(first.type_name, lookup.ids, tuple(hops), (), known) if len(known) == len(counted) else None
    return None


def _hop(step: steps.Step, at: str, schema: Schema) -> WalkHop | None:
    if not isinstance(step, steps.Expand | steps.CountEdges) or step.source != at or (step.least, step.most) != (1, 1):
        return None
    if isinstance(step, steps.CountEdges):
        plain = not step.each_record
    else:
        nothing = (step.edge_variable, step.path, step.target_condition, step.edge_condition)
        plain = all(part is None for part in nothing)
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
    """A walk bound to arrays in memory. Holds no state of a run, so threads may share it."""

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
        self._hops = hops
        self._sources = sources
        self._bytes = sum(source.bytes for source in sources)
        self._wanted = frozenset(source.hops for source in sources)
        self._counted = walk.counted
        self._distinct_only = bool(walk.counted) and all(column.distinct for column in walk.counted)

    def answer(self, values: Mapping[str, Value], *, bytes_max: int) -> pa.RecordBatch | None:
        """Compute the result; None where the operators of the plan have to do it.

        Args:
            values: of the parameters.
            bytes_max: maximum size of the result.
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
        for number, csr in enumerate(self._hops, 1):
            if len(nodes) == 1:
                nodes = _neighbours(nodes, csr)
                if at:
                    at = {hops: np.repeat(ordinals, len(nodes)) for hops, ordinals in at.items()}
            else:
                firsts, counts = csr.ranges(nodes)
                if counts.sum() > limits.WALK_ROWS_MAX:
                    return None
                rows, places = expand_ranges(firsts, counts)
                nodes = csr.neighbours[places]
                if at:
                    at = {hops: ordinals[rows] for hops, ordinals in at.items()}
            if number in wanted:
                at[number] = nodes
        size = len(nodes)
        if size > limits.WALK_ROWS_MAX:
            return None
        arrays = [_values(source, at[source.hops]) for source in self._sources]
        # No row takes more than its whole column, so the exact size is rarely needed.
        if size * self._bytes > bytes_max and sum(array.nbytes for array in arrays) > bytes_max:
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=self._columns)

    def _count(self, nodes: Ordinals) -> pa.RecordBatch | None:
        hops = self._hops
        # Neighbours that are only counted need not be listed.
        last = len(hops) - 1 if hops and not any(column.distinct for column in self._counted) else len(hops)
        is_distinct = True
        for csr in hops[:last]:
            if len(nodes) == 1:
                nodes = _neighbours(nodes, csr)
                is_distinct = True
                continue
            if self._distinct_only and not is_distinct:
                nodes = sorted_unique(nodes)
            places = _expand_positions(*csr.ranges(nodes))
            if places is None:
                return None
            nodes = csr.neighbours[places]
            is_distinct = False
        rows = len(nodes) if last == len(hops) else int(hops[-1].ranges(nodes)[1].sum())
        different = rows if is_distinct else -1
        arrays: list[Values] = []
        for column in self._counted:
            if column.distinct and different < 0:
                different = _count_distinct(nodes)
            number = different if column.distinct else rows
            made: Any = pa.Array.from_buffers(_INT64, 1, [None, pa.py_buffer(number.to_bytes(8, "little"))])
            arrays.append(made)
        return pa.RecordBatch.from_arrays(arrays, schema=self._columns)


def _neighbours(node: Ordinals, csr: Csr) -> Ordinals:
    """Return the neighbours of one node."""
    first, stop = csr.range_of(node.item())
    return csr.neighbours[first:stop]


def _expand_positions(firsts: Positions, counts: Positions) -> Positions | None:
    """Expand ranges of `counts` positions each; None where they are too many for a walk. Overwrites `firsts`."""
    ends = counts.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    if total > limits.WALK_ROWS_MAX:
        return None
    firsts -= ends
    firsts += counts
    places = firsts.repeat(counts)
    places += np.arange(total)
    return places


def _count_distinct(nodes: Ordinals) -> int:
    """Count distinct nodes."""
    ordered = np.sort(nodes)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + (len(ordered) > 0)


def _values(source: _Source, nodes: Ordinals) -> Values:
    one = len(nodes) == 1
    values: Any = source.array.slice(nodes.item(), 1) if one else take_fast(source.array, nodes)
    return values if values.type == source.type else values.cast(source.type)  # type: ignore[no-any-return]  # Arrow's kernels have no types


def bind_walk(walk: Walk, columns: pa.Schema, resident: Resident) -> BoundWalk | None:
    """Bind a walk to the arrays of one snapshot; None where something it needs is not in memory."""
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
        csr = resident.csr(hop.edge, hop.from_type, hop.to_type, hop.direction)
        if csr is None:
            return None
        rows.append(csr.simple)
    sources: list[_Source] = []
    for listed, field in zip(walk.listed, columns, strict=False):
        column = resident.column(nodes[listed.hops], listed.name)
        if column is None:
            return None
        sources.append(_Source(listed.hops, column.array, field.type, column.nbytes))
    return BoundWalk(walk, columns, start, rows, sources)
