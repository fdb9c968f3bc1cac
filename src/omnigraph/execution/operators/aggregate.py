"""One row for each group of rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph import limits
from omnigraph.execution.arrays import NONE, Mask, Positions, arrow, numpy
from omnigraph.execution.column import Coded
from omnigraph.execution.columns import Columns
from omnigraph.execution.demand import counts_rows
from omnigraph.execution.encoder import Encoder
from omnigraph.execution.expressions import Computation, values_of
from omnigraph.execution.frame import Bound, Frame
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.results import Late, OutputColumn, Picked, Results
from omnigraph.execution.run import Run
from omnigraph.execution.tallies import Kept, NodeTally, tally_for
from omnigraph.language.plan.expressions import Aggregation
from omnigraph.model.schema import ID

_HALF = 32


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the result that groups are told apart by.

    Attributes:
        value: computes it.
        variable: if it is a node or a property of one, whose.
        name: and which; the id for a node itself.
    """

    value: Computation
    variable: str | None = None
    name: str = ID


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    """A column of the result that is computed over groups.

    Attributes:
        aggregation: what.
        argument: computes what it is of, row by row; None where only rows or nodes are counted.
        nodes: the variable whose different nodes are counted, where they are.
    """

    aggregation: Aggregation
    argument: Computation | None
    nodes: str | None = None

    @property
    def counts_rows(self) -> bool:
        """Whether only rows are counted, whatever is in them."""
        return counts_rows(self.aggregation)


class Aggregate(Operator[Results]):
    """One row for each group; without key columns exactly one, which may be empty."""

    def __init__(self, rows: Frames, columns: Sequence[KeyColumn | AggregateColumn]) -> None:
        self._rows = rows
        self._columns = columns

    def batches(self, run: Run, given: Frame | None) -> Iterator[Results]:
        """All groups at once."""
        keys = [_Key(column) for column in self._columns if isinstance(column, KeyColumn)]
        tallies = [
            (column, tally_for(column.aggregation)) for column in self._columns if isinstance(column, AggregateColumn)
        ]
        groups = _Groups(keys)
        seen: Mask = np.zeros(0, dtype=np.bool_)
        held = 0
        for frame in self._rows.batches(run, given):
            numbers = groups.of(frame)
            if keys:
                seen = _marked(seen, numbers, groups.size)
            for column, tally in tallies:
                if isinstance(tally, NodeTally):
                    assert column.nodes is not None
                    tally.add_ordinals(numbers if keys else None, frame.bound(column.nodes).ordinals)
                    continue
                values = None if column.argument is None else values_of(column.argument(frame), frame.size)
                tally.add(numbers, values, frame.weights, groups.size)
            now = groups.nbytes + seen.nbytes + sum(tally.nbytes for _, tally in tallies)
            run.budget.hold(now - held)
            held = now
        there = np.flatnonzero(seen) if keys else np.zeros(1, dtype=np.int64)
        if len(there):
            yield Results(run, len(there), self._outputs(keys, groups, [tally for _, tally in tallies], there))
        run.budget.release(held)

    def _outputs(
        self, keys: "Sequence[_Key]", groups: "_Groups", tallies: Sequence[Kept], there: Positions
    ) -> list[OutputColumn]:
        of_keys = iter(groups.key_codes(there))
        key_columns = iter(keys)
        tally_columns = iter(tallies)
        outputs: list[OutputColumn] = []
        for column in self._columns:
            if isinstance(column, KeyColumn):
                outputs.append(next(key_columns).output(next(of_keys)))
            else:
                outputs.append(next(tally_columns).result(there))
        return outputs


def _marked(seen: Mask, numbers: Positions, size: int) -> Mask:
    """Which of so many groups were seen, with these."""
    if len(numbers) * 4 > size:
        found: Mask = np.bincount(numbers, minlength=size) > 0  # faster than marking one by one
        found[: len(seen)] |= seen
        return found
    if len(seen) < size:
        seen = np.concatenate([seen, np.zeros(size - len(seen), dtype=np.bool_)])
    seen[numbers] = True
    return seen


class _Key:
    """Numbers for the values of one key column: what tables know already, or numbers given as values come."""

    def __init__(self, column: KeyColumn) -> None:
        self._column = column
        self._table: Columns | None = None
        self._coded: Coded | None = None
        self._encoder: Encoder | None = None

    @property
    def size(self) -> int:
        """One more than the greatest number."""
        if self._encoder is not None:
            return self._encoder.size
        if self._coded is not None:
            return len(self._coded.values) + 1
        return 1 if self._table is None else self._table.numbering.size + 1

    @property
    def nbytes(self) -> int:
        """How many bytes its numbers take."""
        return 0 if self._encoder is None else self._encoder.nbytes

    def codes(self, frame: Frame) -> Positions:
        """The numbers of a frame's values; 0 is null."""
        if self._encoder is None and self._table is None:
            self._choose(frame)
        if self._encoder is not None:
            return self._encoder.codes(values_of(self._column.value(frame), frame.size))
        assert self._column.variable is not None
        ordinals = frame.bound(self._column.variable).ordinals
        if self._coded is None:
            return ordinals.astype(np.int64) + 1
        codes = self._coded.codes[ordinals].astype(np.int64) + 1
        if frame.bound(self._column.variable).absent:
            codes[ordinals == NONE] = 0
        return codes

    def output(self, codes: Positions) -> OutputColumn:
        """The values of some numbers."""
        if self._encoder is not None:
            return self._encoder.values(codes)
        if self._coded is not None:
            return Picked(self._coded.values, codes - 1)
        assert self._table is not None
        return Late(Bound(self._table, (codes - 1).astype(np.int32), absent=True), ID)

    def _choose(self, frame: Frame) -> None:
        variable = self._column.variable
        slot = None if variable is None else frame.slots[variable]
        if isinstance(slot, Bound) and slot.columns.numbering.size <= limits.GROUPS_IN_PLACE_MAX:
            if self._column.name == ID:
                self._table = slot.columns
                return
            if slot.columns.numbering.size <= max(frame.size * 8, 1_000) and slot.columns.can_be_coded(
                self._column.name
            ):
                self._table = slot.columns
                self._coded = slot.columns.coded(self._column.name)
                return
        self._encoder = Encoder()


class _Groups:
    """Numbers for groups: of one key its own, of several given as they come."""

    def __init__(self, keys: Sequence[_Key]) -> None:
        self._keys = keys
        self._pairs = [Encoder() for _ in keys[1:]]

    @property
    def size(self) -> int:
        """One more than the greatest number."""
        if self._pairs:
            return self._pairs[-1].size
        return self._keys[0].size if self._keys else 1

    @property
    def nbytes(self) -> int:
        """How many bytes the numbers take."""
        return sum(key.nbytes for key in self._keys) + sum(each.nbytes for each in self._pairs)

    def of(self, frame: Frame) -> Positions:
        """The groups of a frame's rows."""
        if not self._keys:
            return np.zeros(frame.size, dtype=np.int64)
        result = self._keys[0].codes(frame)
        for key, pairs in zip(self._keys[1:], self._pairs, strict=True):
            result = pairs.codes(arrow(result << _HALF | key.codes(frame)))
        return result

    def key_codes(self, groups: Positions) -> list[Positions]:
        """The numbers of each key for some groups."""
        codes: list[Positions] = []
        for pairs in reversed(self._pairs):
            pair: Positions = numpy(pairs.values(groups))
            codes.append(pair & (2**_HALF - 1))
            groups = pair >> _HALF
        return [groups, *reversed(codes)] if self._keys else []
