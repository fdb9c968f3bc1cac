"""Each row with what any of several pipelines yields for it."""

from collections.abc import Iterator, Sequence

import numpy as np

from omnigraph.execution.arrays import Positions, Values, arrow
from omnigraph.execution.encoder import RowEncoder
from omnigraph.execution.frame import Bound, Frame, Slot, together
from omnigraph.execution.operators.exists import numbered
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run

_ROW = "#row"


class Alternatives(Operator[Frame]):
    """Each row with the new variables of any branch; equal results of one row count once."""

    def __init__(
        self,
        rows: Frames,
        branches: Sequence[tuple[Frames, str, frozenset[str]]],
        *,
        variables: frozenset[str],
        keep: frozenset[str],
    ) -> None:
        self._rows = rows
        # Each with the column in which it says which row it belongs to, and what it needs of that row.
        self._branches = branches
        self._variables = variables
        self._keep = keep

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """The rows, in the order of those they come from."""
        for frame in self._rows.batches(run, given):
            found: list[Frame] = []
            held = 0
            for branch, row, needed in self._branches:
                for solution in branch.batches(run, numbered(frame, row, needed)):
                    narrow = solution.only(self._variables).with_weights(None)
                    narrow = narrow.with_hidden(_ROW, solution.hidden[row])
                    run.budget.hold(narrow.nbytes)
                    held += narrow.nbytes
                    found.append(narrow)
            if found:
                yield self._once(frame, together(found))
            run.budget.release(held)

    def _once(self, frame: Frame, solutions: Frame) -> Frame:
        rows = solutions.hidden[_ROW]
        columns = [arrow(rows)]
        for name in sorted(self._variables):
            columns += _identity(solutions, name)
        codes = RowEncoder(len(columns)).codes(columns, solutions.size)
        _, first = np.unique(codes, return_index=True)
        first = first[np.argsort(rows[first], kind="stable")]
        kept: Frame = solutions.take(first)
        brought: dict[str, Slot] = {name: slot for name, slot in kept.slots.items() if name in self._keep}
        numbers: Positions = kept.hidden[_ROW].astype(np.int64)
        return frame.only(self._keep).take(numbers).with_slots(brought)


def _identity(frame: Frame, name: str) -> list[Values]:
    """Columns that are equal exactly where a variable is bound to the same."""
    slot = frame.slots[name]
    if isinstance(slot, Bound):
        return [arrow(slot.ordinals)]
    return [frame.path_nodes(name)]
