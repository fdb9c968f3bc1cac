"""Each row with what steps yield for it, or alone."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution.arrays import NONE
from omnigraph.execution.frame import Bound, Frame, Paths, Slot
from omnigraph.execution.operators.exists import numbered
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run


class Optional(Operator[Frame]):
    """Each row with each of its inner rows, or once with nothing in the new variables."""

    def __init__(
        self,
        rows: Frames,
        inner: Frames,
        *,
        row: str,
        inner_keep: frozenset[str],
        types: dict[str, str],
        keep: frozenset[str],
    ) -> None:
        self._rows = rows
        self._inner = inner
        self._row = row
        self._inner_keep = inner_keep
        self._types = types
        self._keep = keep

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """First the rows with something, then those without."""
        for frame in self._rows.batches(run, given):
            outer = frame.only(self._keep)
            found = np.zeros(frame.size, dtype=np.bool_)
            for solution in self._inner.batches(run, numbered(frame, self._row, self._inner_keep)):
                rows = solution.hidden[self._row]
                found[rows] = True
                yield outer.take(rows).with_slots(self._brought(solution))
            alone = outer.where(~found)
            if alone.size:
                yield alone.with_slots(
                    {name: nothing(run, kind, alone.size) for name, kind in self._types.items() if name in self._keep}
                )

    def _brought(self, solution: Frame) -> dict[str, Slot]:
        brought: dict[str, Slot] = {}
        for name in self._types:
            if name in self._keep:
                slot = solution.slots[name]
                brought[name] = Bound(slot.columns, slot.ordinals, absent=True) if isinstance(slot, Bound) else slot
        return brought


def nothing(run: Run, kind: str, size: int) -> Slot:
    """A variable that is bound to nothing in any row.

    Args:
        run (Run): the execution.
        kind (str): `node:Person`, `edge:Knows`, or `path:Person` for a path over such nodes.
        size (int): how many rows.
    """
    what, _, type_name = kind.partition(":")
    if what == "path":
        starts = np.zeros(size + 1, dtype=np.int64)
        everywhere = np.ones(size, dtype=np.bool_)
        return Paths(run.nodes(type_name), starts, np.empty(0, dtype=np.int32), everywhere)
    columns = run.nodes(type_name) if what == "node" else run.edges(type_name)
    return Bound(columns, np.full(size, NONE, dtype=np.int32), absent=True)
