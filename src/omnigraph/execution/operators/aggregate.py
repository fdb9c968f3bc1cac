"""Projection to groups: aggregates, one row for each group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph import limits
from omnigraph.execution.aggregates import AggregateState, NodeCount, make_aggregate
from omnigraph.execution.arrays import NONE, Mask, Positions, to_arrow, to_numpy
from omnigraph.execution.column import EncodedColumn
from omnigraph.execution.columns import Columns
from omnigraph.execution.demand import is_row_count
from omnigraph.execution.encoder import Encoder
from omnigraph.execution.expressions import Computation, to_array
from omnigraph.execution.frame import Binding, Frame
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.results import DictionaryColumn, LazyColumn, OutputColumn, Results
from omnigraph.execution.run import Run
from omnigraph.language.plan.expressions import Aggregation
from omnigraph.model.schema import ID

_HALF = 32


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A grouping column of the result.

    Attributes:
        value: computes it.
        variable: the node variable, if it is a node or a property of one.
        name: the property; the id for a node itself.
    """

    value: Computation
    variable: str | None = None
    name: str = ID


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    """An aggregate column of the result.

    Attributes:
        aggregation: the aggregate function and its argument.
        argument: computes the argument, row by row; None where only rows or nodes are counted.
        nodes: the variable whose distinct nodes are counted, if any.
    """

    aggregation: Aggregation
    argument: Computation | None
    nodes: str | None = None

    @property
    def is_row_count(self) -> bool:
        """Whether only rows are counted."""
        return is_row_count(self.aggregation)


class Aggregate(Operator[Results]):
    """Hash aggregation: one row for each group; without key columns exactly one."""

    def __init__(self, rows: Frames, columns: Sequence[KeyColumn | AggregateColumn]) -> None:
        self._rows = rows
        self._columns = columns

    def batches(self, run: Run, given: Frame | None) -> Iterator[Results]:
        """Yield all groups at once."""
        keys = [_Key(column) for column in self._columns if isinstance(column, KeyColumn)]
        states = [
            (column, make_aggregate(column.aggregation))
            for column in self._columns
            if isinstance(column, AggregateColumn)
        ]
        groups = _Groups(keys)
        seen: Mask = np.zeros(0, dtype=np.bool_)
        held = 0
        for frame in self._rows.batches(run, given):
            numbers = groups.groups_of(frame)
            if keys:
                seen = _mark_seen(seen, numbers, groups.size)
            for column, state in states:
                if isinstance(state, NodeCount):
                    assert column.nodes is not None
                    state.add_ordinals(numbers if keys else None, frame.binding(column.nodes).ordinals)
                    continue
                values = None if column.argument is None else to_array(column.argument(frame), frame.size)
                state.add(numbers, values, frame.weights, groups.size)
            now = groups.nbytes + seen.nbytes + sum(state.nbytes for _, state in states)
            run.budget.hold(now - held)
            held = now
        there = np.flatnonzero(seen) if keys else np.zeros(1, dtype=np.int64)
        if len(there):
            yield Results(run, len(there), self._outputs(keys, groups, [state for _, state in states], there))
        run.budget.release(held)

    def _outputs(
        self, keys: "Sequence[_Key]", groups: "_Groups", states: Sequence[AggregateState], there: Positions
    ) -> list[OutputColumn]:
        of_keys = iter(groups.key_codes(there))
        key_columns = iter(keys)
        state_columns = iter(states)
        outputs: list[OutputColumn] = []
        for column in self._columns:
            if isinstance(column, KeyColumn):
                outputs.append(next(key_columns).output(next(of_keys)))
            else:
                outputs.append(next(state_columns).result(there))
        return outputs


def _mark_seen(seen: Mask, numbers: Positions, size: int) -> Mask:
    """Mark groups as seen."""
    if len(numbers) * 4 > size:
        found: Mask = np.bincount(numbers, minlength=size) > 0  # faster than marking one by one
        found[: len(seen)] |= seen
        return found
    if len(seen) < size:
        seen = np.concatenate([seen, np.zeros(size - len(seen), dtype=np.bool_)])
    seen[numbers] = True
    return seen


class _Key:
    """Codes for the values of one key column: ordinals, column codes, or an incremental encoding."""

    def __init__(self, column: KeyColumn) -> None:
        self._column = column
        self._table: Columns | None = None
        self._encoded: EncodedColumn | None = None
        self._encoder: Encoder | None = None

    @property
    def size(self) -> int:
        """One more than the greatest code."""
        if self._encoder is not None:
            return self._encoder.size
        if self._encoded is not None:
            return len(self._encoded.values) + 1
        return 1 if self._table is None else self._table.numbering.size + 1

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return 0 if self._encoder is None else self._encoder.nbytes

    def encode(self, frame: Frame) -> Positions:
        """Return the codes of a frame's values; 0 is null."""
        if self._encoder is None and self._table is None:
            self._choose(frame)
        if self._encoder is not None:
            return self._encoder.encode(to_array(self._column.value(frame), frame.size))
        assert self._column.variable is not None
        ordinals = frame.binding(self._column.variable).ordinals
        if self._encoded is None:
            return ordinals.astype(np.int64) + 1
        codes = self._encoded.codes[ordinals].astype(np.int64) + 1
        if frame.binding(self._column.variable).absent:
            codes[ordinals == NONE] = 0
        return codes

    def output(self, codes: Positions) -> OutputColumn:
        """Return the values of codes."""
        if self._encoder is not None:
            return self._encoder.decode(codes)
        if self._encoded is not None:
            return DictionaryColumn(self._encoded.values, codes - 1)
        assert self._table is not None
        return LazyColumn(Binding(self._table, (codes - 1).astype(np.int32), absent=True), ID)

    def _choose(self, frame: Frame) -> None:
        variable = self._column.variable
        slot = None if variable is None else frame.slots[variable]
        if isinstance(slot, Binding) and slot.columns.numbering.size <= limits.GROUPS_IN_PLACE_MAX:
            if self._column.name == ID:
                self._table = slot.columns
                return
            if slot.columns.numbering.size <= max(frame.size * 8, 1_000) and slot.columns.can_be_encoded(
                self._column.name
            ):
                self._table = slot.columns
                self._encoded = slot.columns.encoded(self._column.name)
                return
        self._encoder = Encoder()


class _Groups:
    """Group numbers: of one key its codes, of several an encoding of their combination."""

    def __init__(self, keys: Sequence[_Key]) -> None:
        self._keys = keys
        self._pairs = [Encoder() for _ in keys[1:]]

    @property
    def size(self) -> int:
        """One more than the greatest group number."""
        if self._pairs:
            return self._pairs[-1].size
        return self._keys[0].size if self._keys else 1

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return sum(key.nbytes for key in self._keys) + sum(encoder.nbytes for encoder in self._pairs)

    def groups_of(self, frame: Frame) -> Positions:
        """Return the groups of a frame's rows."""
        if not self._keys:
            return np.zeros(frame.size, dtype=np.int64)
        result = self._keys[0].encode(frame)
        for key, pairs in zip(self._keys[1:], self._pairs, strict=True):
            result = pairs.encode(to_arrow(result << _HALF | key.encode(frame)))
        return result

    def key_codes(self, groups: Positions) -> list[Positions]:
        """Return the codes of each key for some groups."""
        codes: list[Positions] = []
        for pairs in reversed(self._pairs):
            pair: Positions = to_numpy(pairs.decode(groups))
            codes.append(pair & (2**_HALF - 1))
            groups = pair >> _HALF
        return [groups, *reversed(codes)] if self._keys else []


class OnePerGroup(Operator[Results]):
    """Aggregation where every row is a group of its own: counts are the rows' multiplicities."""

    def __init__(self, rows: Frames, columns: Sequence[KeyColumn | AggregateColumn]) -> None:
        self._rows = rows
        self._columns = columns

    def batches(self, run: Run, given: Frame | None) -> Iterator[Results]:
        """Yield the groups, in the order of their rows."""
        for frame in self._rows.batches(run, given):
            yield Results(run, frame.size, [self._output(frame, column) for column in self._columns])

    def _output(self, frame: Frame, column: KeyColumn | AggregateColumn) -> OutputColumn:
        if isinstance(column, KeyColumn):
            assert column.variable is not None
            return LazyColumn(frame.binding(column.variable), column.name)
        return to_arrow(np.ones(frame.size, dtype=np.int64) if frame.weights is None else frame.weights)


def has_groups_of_one(
    rows: Frames, columns: Sequence[KeyColumn | AggregateColumn], identifying: frozenset[str]
) -> bool:
    """Return whether every row is a group of its own, and only row counts are aggregated.

    Args:
        rows: the input.
        columns: of the result.
        identifying: node columns that each identify one node.
    """
    keys = [column for column in columns if isinstance(column, KeyColumn)]
    counts = [column for column in columns if isinstance(column, AggregateColumn)]
    return (
        rows.unique_variable is not None
        and all(key.variable == rows.unique_variable for key in keys)
        and any(key.name in identifying for key in keys)
        and all(column.is_row_count for column in counts)
    )
