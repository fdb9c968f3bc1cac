"""Batches of intermediate rows: for each variable the ordinals it is bound to. Properties are fetched on demand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from omnigraph.errors import InternalError
from omnigraph.execution.arrays import (
    NONE,
    Mask,
    Numbers,
    Ordinals,
    Positions,
    Values,
    concat,
    make_lists,
    take,
    to_arrow,
)
from omnigraph.execution.columns import Columns
from omnigraph.execution.edge_list import expand_ranges
from omnigraph.execution.search.query_text import TextQuery
from omnigraph.language.plan.expressions import End, Value
from omnigraph.model.schema import DST, ID, SRC


class QueryContext(Protocol):
    """Values that are the same for all rows of a query."""

    @property
    def now_ms(self) -> int:
        """Start of the query, milliseconds since 1970."""
        ...

    def parameter(self, name: str) -> Value:
        """Return the value of a parameter."""
        ...

    def text_matches(self, columns: Columns, ordinals: Ordinals, name: str, query: TextQuery) -> Values:
        """Return whether rows of a table match a text query."""
        ...


@dataclass(frozen=True, slots=True)
class Binding:
    """Binding of a node or edge variable, row by row.

    Attributes:
        columns: the table of its nodes or edges.
        ordinals: its ordinals; `NONE` where it is absent.
        absent: whether it may be absent.
        first: where the ordinals are a run without gaps, the first of them.
    """

    columns: Columns
    ordinals: Ordinals
    absent: bool = False
    first: int | None = None

    def take(self, rows: Positions) -> "Binding":
        """Select rows."""
        return Binding(self.columns, self.ordinals[rows], self.absent)

    def values(self, name: str) -> Values:
        """Return a column of its table."""
        if self.first is not None:
            return self.columns.column(name).array.slice(self.first, len(self.ordinals))
        return self.columns.take(name, self.ordinals, absent=self.absent)


@dataclass(frozen=True, slots=True)
class PathBinding:
    """Binding of a path variable, row by row.

    Attributes:
        columns: the table of its nodes.
        starts: offsets of each row's nodes; one more than there are rows.
        nodes: of all rows, consecutive.
        absent: mask of rows without a path; None if all have one.
        head: the table of each path's first node, where that is of another type.
    """

    columns: Columns
    starts: Positions
    nodes: Ordinals
    absent: Mask | None = None
    head: Columns | None = None

    def take(self, rows: Positions) -> "PathBinding":
        """Select rows."""
        counts = np.diff(self.starts)[rows]
        _, places = expand_ranges(self.starts[rows], counts)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        absent = None if self.absent is None else self.absent[rows]
        return PathBinding(self.columns, starts, self.nodes[places], absent, self.head)

    def ids(self) -> Values:
        """Return the ids of all nodes."""
        if self.head is None:
            return self.columns.take(ID, self.nodes)
        heads = np.zeros(len(self.nodes), dtype=np.bool_)
        heads[self.starts[:-1][np.diff(self.starts) > 0]] = True
        ids = concat([self.head.take(ID, self.nodes[heads]), self.columns.take(ID, self.nodes[~heads])])
        places = np.empty(len(self.nodes), dtype=np.int64)
        places[heads] = np.arange(int(heads.sum()))
        places[~heads] = np.arange(int(heads.sum()), len(self.nodes))
        return take(ids, places)


Slot = Binding | PathBinding


class Frame:
    """Batch of intermediate rows.

    Attributes:
        size: number of rows.
        slots: bindings by variable.
        hidden: hidden columns by name, as plain arrays.
        weights: multiplicity of each row; None is one.
    """

    __slots__ = ("_context", "_values", "hidden", "size", "slots", "weights")

    def __init__(
        self,
        context: QueryContext,
        size: int,
        slots: Mapping[str, Slot],
        hidden: Mapping[str, Numbers] | None = None,
        weights: Positions | None = None,
    ) -> None:
        self._context = context
        self.size = size
        self.slots = slots
        self.hidden: Mapping[str, Numbers] = hidden if hidden is not None else {}
        self.weights = weights
        self._values: dict[tuple[str, str], Values] = {}

    # --- expressions ----------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """Start of the query, milliseconds since 1970."""
        return self._context.now_ms

    def parameter(self, name: str) -> Value:
        """Return the value of a parameter."""
        return self._context.parameter(name)

    def property_of(self, variable: str, name: str) -> Values:
        """Return a property of a variable; fetched once for the frame."""
        found = self._values.get((variable, name))
        if found is None:
            found = self._values[variable, name] = self.binding(variable).values(name)
        return found

    def id_of(self, variable: str) -> Values:
        """Return the ids of a variable."""
        return self.property_of(variable, ID)

    def endpoint_of(self, variable: str, end: End) -> Values:
        """Return the ids at one end of an edge variable."""
        return self.property_of(variable, SRC if end is End.FROM else DST)

    def is_absent(self, variable: str) -> Values:
        """Return whether a variable is unbound."""
        slot = self.slots[variable]
        if isinstance(slot, Binding):
            return to_arrow(slot.ordinals == NONE)
        return to_arrow(np.zeros(self.size, dtype=np.bool_) if slot.absent is None else slot.absent)

    def path_lengths(self, variable: str) -> Values:
        """Return the number of edges of paths."""
        paths = self.paths(variable)
        return to_arrow(np.diff(paths.starts) - 1, nulls=paths.absent)

    def path_nodes(self, variable: str) -> Values:
        """Return the node ids of paths."""
        paths = self.paths(variable)
        return make_lists(paths.starts, paths.ids(), nulls=paths.absent)

    def computed(self, name: str) -> Values:
        """Return a hidden column; NaN becomes null."""
        values = self.hidden[name]
        return to_arrow(values, nulls=np.isnan(values)) if values.dtype == np.float64 else to_arrow(values)

    def text_matches(self, variable: str, name: str, query: TextQuery) -> Values:
        """Return whether a text property of a variable matches."""
        bound = self.binding(variable)
        return self._context.text_matches(bound.columns, bound.ordinals, name, query)

    def output(self, position: int) -> Values:
        """Fail: intermediate rows have no result columns."""
        raise InternalError(f"result column {position} is not available in intermediate rows")

    # --- slots ----------------------------------------------------------------------------------------------------

    def binding(self, variable: str) -> Binding:
        """Return the binding of a node or edge variable."""
        slot = self.slots[variable]
        assert isinstance(slot, Binding)
        return slot

    def paths(self, variable: str) -> PathBinding:
        """Return the binding of a path variable."""
        slot = self.slots[variable]
        assert isinstance(slot, PathBinding)
        return slot

    @property
    def nbytes(self) -> int:
        """Size of the rows in bytes."""
        total = 0 if self.weights is None else self.weights.nbytes
        total += sum(values.nbytes for values in self.hidden.values())
        for slot in self.slots.values():
            total += slot.ordinals.nbytes if isinstance(slot, Binding) else slot.nodes.nbytes + slot.starts.nbytes
        return total

    # --- other frames -----------------------------------------------------------------------------------------------

    def take(self, rows: Positions, keep: frozenset[str] | None = None) -> "Frame":
        """Select rows by position, with the variables in `keep`; by default with all."""
        return Frame(
            self._context,
            len(rows),
            {name: slot.take(rows) for name, slot in self.slots.items() if keep is None or name in keep},
            {name: values[rows] for name, values in self.hidden.items() if keep is None or name in keep},
            None if self.weights is None else self.weights[rows],
        )

    def where(self, mask: Mask) -> "Frame":
        """Select rows by a mask."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def with_slots(self, slots: Mapping[str, Slot]) -> "Frame":
        """Return the rows with more variables."""
        return Frame(self._context, self.size, {**self.slots, **slots}, self.hidden, self.weights)

    def with_hidden(self, name: str, values: Numbers) -> "Frame":
        """Return the rows with one more hidden column."""
        return Frame(self._context, self.size, self.slots, {**self.hidden, name: values}, self.weights)

    def with_weights(self, weights: Positions | None) -> "Frame":
        """Return the rows with other multiplicities."""
        return Frame(self._context, self.size, self.slots, self.hidden, weights)

    def only(self, keep: frozenset[str]) -> "Frame":
        """Keep only these variables and hidden columns."""
        return Frame(
            self._context,
            self.size,
            {name: slot for name, slot in self.slots.items() if name in keep},
            {name: values for name, values in self.hidden.items() if name in keep},
            self.weights,
        )

    def like(self, size: int, slots: Mapping[str, Slot], weights: Positions | None = None) -> "Frame":
        """Make other rows of the same query."""
        return Frame(self._context, size, slots, None, weights)


def concat_frames(frames: Sequence[Frame]) -> Frame:
    """Concatenate frames (at least one) with the same variables."""
    first = frames[0]
    if len(frames) == 1:
        return first
    weights = None
    if any(frame.weights is not None for frame in frames):
        weights = np.concatenate(
            [np.ones(frame.size, dtype=np.int64) if frame.weights is None else frame.weights for frame in frames]
        )
    return Frame(
        first._context,
        sum(frame.size for frame in frames),
        {name: _concat_slots([frame.slots[name] for frame in frames]) for name in first.slots},
        {name: np.concatenate([frame.hidden[name] for frame in frames]) for name in first.hidden},
        weights,
    )


def _concat_slots(slots: Sequence[Slot]) -> Slot:
    first = slots[0]
    if isinstance(first, Binding):
        bound = [slot for slot in slots if isinstance(slot, Binding)]
        ordinals = np.concatenate([slot.ordinals for slot in bound])
        return Binding(first.columns, ordinals, any(slot.absent for slot in bound))
    paths = [slot for slot in slots if isinstance(slot, PathBinding)]
    counts = np.concatenate([np.diff(slot.starts) for slot in paths])
    absent = None
    if any(slot.absent is not None for slot in paths):
        absent = np.concatenate([_absent_mask(slot) for slot in paths])
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    return PathBinding(first.columns, starts, np.concatenate([slot.nodes for slot in paths]), absent, first.head)


def _absent_mask(paths: PathBinding) -> Mask:
    return np.zeros(len(paths.starts) - 1, dtype=np.bool_) if paths.absent is None else paths.absent
