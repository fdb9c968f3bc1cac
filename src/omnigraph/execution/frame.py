"""Rows under way: for each variable the ordinals it is bound to. Properties are fetched when somebody asks for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from omnigraph.errors import InternalError
from omnigraph.execution.arrays import NONE, Mask, Numbers, Ordinals, Positions, Values, arrow, joined, lists, take
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import repeated_places
from omnigraph.execution.search.asked import TextQuery
from omnigraph.language.plan.expressions import End, Value
from omnigraph.model.schema import DST, ID, SRC


class Setting(Protocol):
    """What is the same for all rows of a query."""

    @property
    def now_ms(self) -> int:
        """When the query began."""
        ...

    def parameter(self, name: str) -> Value:
        """The value of a parameter."""
        ...

    def text_matches(self, columns: Columns, ordinals: Ordinals, name: str, query: TextQuery) -> Values:
        """Whether rows of a table match."""
        ...


@dataclass(frozen=True, slots=True)
class Bound:
    """What a variable is bound to, row by row.

    Attributes:
        columns: the table of its nodes or edges.
        ordinals: which of them; `NONE` where it is absent.
        absent: whether it may be absent.
        first: where the ordinals are a run without gaps, the first of them.
    """

    columns: Columns
    ordinals: Ordinals
    absent: bool = False
    first: int | None = None

    def take(self, rows: Positions) -> "Bound":
        """Of some rows."""
        return Bound(self.columns, self.ordinals[rows], self.absent)

    def values(self, name: str) -> Values:
        """A column of its table."""
        if self.first is not None:
            return self.columns.column(name).array.slice(self.first, len(self.ordinals))
        return self.columns.take(name, self.ordinals, absent=self.absent)


@dataclass(frozen=True, slots=True)
class Paths:
    """What a path variable is bound to, row by row.

    Attributes:
        columns: the table of its nodes.
        starts: where each row's nodes start; one more than there are rows.
        nodes: of all rows.
        absent: where there is no path; None if there is one everywhere.
        head: the table of each path's first node, where that is of another type.
    """

    columns: Columns
    starts: Positions
    nodes: Ordinals
    absent: Mask | None = None
    head: Columns | None = None

    def take(self, rows: Positions) -> "Paths":
        """Of some rows."""
        counts = np.diff(self.starts)[rows]
        _, places = repeated_places(self.starts[rows], counts)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        absent = None if self.absent is None else self.absent[rows]
        return Paths(self.columns, starts, self.nodes[places], absent, self.head)

    def ids(self) -> Values:
        """The ids of all nodes."""
        if self.head is None:
            return self.columns.take(ID, self.nodes)
        heads = np.zeros(len(self.nodes), dtype=np.bool_)
        heads[self.starts[:-1][np.diff(self.starts) > 0]] = True
        ids = joined([self.head.take(ID, self.nodes[heads]), self.columns.take(ID, self.nodes[~heads])])
        places = np.empty(len(self.nodes), dtype=np.int64)
        places[heads] = np.arange(int(heads.sum()))
        places[~heads] = np.arange(int(heads.sum()), len(self.nodes))
        return take(ids, places)


Slot = Bound | Paths


class Frame:
    """A batch of rows.

    Attributes:
        size: how many.
        slots: by variable.
        hidden: hidden columns by name, as plain arrays.
        weights: how many rows each stands for; None is one.
    """

    __slots__ = ("_setting", "_values", "hidden", "size", "slots", "weights")

    def __init__(
        self,
        setting: Setting,
        size: int,
        slots: Mapping[str, Slot],
        hidden: Mapping[str, Numbers] | None = None,
        weights: Positions | None = None,
    ) -> None:
        self._setting = setting
        self.size = size
        self.slots = slots
        self.hidden: Mapping[str, Numbers] = hidden if hidden is not None else {}
        self.weights = weights
        self._values: dict[tuple[str, str], Values] = {}

    # --- expressions ----------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """When the query began."""
        return self._setting.now_ms

    def parameter(self, name: str) -> Value:
        """The value of a parameter."""
        return self._setting.parameter(name)

    def property_of(self, variable: str, name: str) -> Values:
        """A property of what a variable is bound to; fetched once for the frame."""
        found = self._values.get((variable, name))
        if found is None:
            found = self._values[variable, name] = self.bound(variable).values(name)
        return found

    def id_of(self, variable: str) -> Values:
        """The id of what a variable is bound to."""
        return self.property_of(variable, ID)

    def endpoint_of(self, variable: str, end: End) -> Values:
        """The id at one end of an edge."""
        return self.property_of(variable, SRC if end is End.FROM else DST)

    def is_absent(self, variable: str) -> Values:
        """Whether nothing is bound to a variable."""
        slot = self.slots[variable]
        if isinstance(slot, Bound):
            return arrow(slot.ordinals == NONE)
        return arrow(np.zeros(self.size, dtype=np.bool_) if slot.absent is None else slot.absent)

    def path_lengths(self, variable: str) -> Values:
        """How many edges paths have."""
        paths = self.paths(variable)
        return arrow(np.diff(paths.starts) - 1, nulls=paths.absent)

    def path_nodes(self, variable: str) -> Values:
        """The ids of paths' nodes."""
        paths = self.paths(variable)
        return lists(paths.starts, paths.ids(), nulls=paths.absent)

    def computed(self, name: str) -> Values:
        """A hidden column; a score that is not a number is none."""
        values = self.hidden[name]
        return arrow(values, nulls=np.isnan(values)) if values.dtype == np.float64 else arrow(values)

    def text_matches(self, variable: str, name: str, query: TextQuery) -> Values:
        """Whether a text property of what a variable is bound to matches."""
        bound = self.bound(variable)
        return self._setting.text_matches(bound.columns, bound.ordinals, name, query)

    def output(self, position: int) -> Values:
        """Nothing: rows under way have no columns of a result."""
        raise InternalError(f"column {position} of the result was asked for before there is one")

    # --- slots ----------------------------------------------------------------------------------------------------

    def bound(self, variable: str) -> Bound:
        """What a node or edge variable is bound to."""
        slot = self.slots[variable]
        assert isinstance(slot, Bound)
        return slot

    def paths(self, variable: str) -> Paths:
        """What a path variable is bound to."""
        slot = self.slots[variable]
        assert isinstance(slot, Paths)
        return slot

    @property
    def nbytes(self) -> int:
        """How many bytes its rows take."""
        total = 0 if self.weights is None else self.weights.nbytes
        total += sum(each.nbytes for each in self.hidden.values())
        for slot in self.slots.values():
            total += slot.ordinals.nbytes if isinstance(slot, Bound) else slot.nodes.nbytes + slot.starts.nbytes
        return total

    # --- other frames -----------------------------------------------------------------------------------------------

    def take(self, rows: Positions, keep: frozenset[str] | None = None) -> "Frame":
        """Some of its rows, in any order, with the variables in `keep`; with all by default."""
        return Frame(
            self._setting,
            len(rows),
            {name: slot.take(rows) for name, slot in self.slots.items() if keep is None or name in keep},
            {name: each[rows] for name, each in self.hidden.items() if keep is None or name in keep},
            None if self.weights is None else self.weights[rows],
        )

    def where(self, mask: Mask) -> "Frame":
        """The rows where the mask is true."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def with_slots(self, slots: Mapping[str, Slot]) -> "Frame":
        """With more variables."""
        return Frame(self._setting, self.size, {**self.slots, **slots}, self.hidden, self.weights)

    def with_hidden(self, name: str, values: Numbers) -> "Frame":
        """With one more hidden column."""
        return Frame(self._setting, self.size, self.slots, {**self.hidden, name: values}, self.weights)

    def with_weights(self, weights: Positions | None) -> "Frame":
        """With each row standing for so many."""
        return Frame(self._setting, self.size, self.slots, self.hidden, weights)

    def only(self, keep: frozenset[str]) -> "Frame":
        """With these variables and hidden columns only."""
        return Frame(
            self._setting,
            self.size,
            {name: slot for name, slot in self.slots.items() if name in keep},
            {name: each for name, each in self.hidden.items() if name in keep},
            self.weights,
        )

    def like(self, size: int, slots: Mapping[str, Slot], weights: Positions | None = None) -> "Frame":
        """Other rows of the same query."""
        return Frame(self._setting, size, slots, None, weights)


def together(frames: Sequence[Frame]) -> Frame:
    """The rows of several frames with the same variables, one after the other; at least one frame."""
    first = frames[0]
    if len(frames) == 1:
        return first
    weights = None
    if any(frame.weights is not None for frame in frames):
        weights = np.concatenate(
            [np.ones(frame.size, dtype=np.int64) if frame.weights is None else frame.weights for frame in frames]
        )
    return Frame(
        first._setting,
        sum(frame.size for frame in frames),
        {name: _joined_slots([frame.slots[name] for frame in frames]) for name in first.slots},
        {name: np.concatenate([frame.hidden[name] for frame in frames]) for name in first.hidden},
        weights,
    )


def _joined_slots(slots: Sequence[Slot]) -> Slot:
    first = slots[0]
    if isinstance(first, Bound):
        bound = [slot for slot in slots if isinstance(slot, Bound)]
        ordinals = np.concatenate([slot.ordinals for slot in bound])
        return Bound(first.columns, ordinals, any(slot.absent for slot in bound))
    paths = [slot for slot in slots if isinstance(slot, Paths)]
    counts = np.concatenate([np.diff(slot.starts) for slot in paths])
    absent = None
    if any(slot.absent is not None for slot in paths):
        absent = np.concatenate([_absence(slot) for slot in paths])
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    return Paths(first.columns, starts, np.concatenate([slot.nodes for slot in paths]), absent, first.head)


def _absence(paths: Paths) -> Mask:
    return np.zeros(len(paths.starts) - 1, dtype=np.bool_) if paths.absent is None else paths.absent
