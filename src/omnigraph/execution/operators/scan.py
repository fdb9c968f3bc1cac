"""Sources of rows: node scans, key lookups, and the start of a pipeline."""

from collections.abc import Callable, Iterator

import numpy as np

from omnigraph.execution.arrays import Ordinals
from omnigraph.execution.columns import Columns
from omnigraph.execution.expressions import Computation, evaluate_condition
from omnigraph.execution.frame import Binding, Frame
from omnigraph.execution.index_filter import IndexFilter, propose_candidates
from omnigraph.execution.key_lookup import IdChooser
from omnigraph.execution.operators.operator import Operator
from omnigraph.execution.run import Run

Count = Callable[[Run], int]


class Start(Operator[Frame]):
    """Source of one row without variables."""

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:  # noqa: ARG002  (a start takes nothing)
        """Yield the one row."""
        yield Frame(run, 1, {})


class Given(Operator[Frame]):
    """Source of the rows of the outer operator."""

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:  # noqa: ARG002  (part of the interface)
        """Yield the outer rows."""
        assert given is not None
        if given.size:
            yield given


class Scan(Operator[Frame]):
    """Scan of the nodes of a type for which a condition is true.

    Nodes that the condition names by their key are looked up, and the rest of the condition is evaluated on them alone.
    """

    def __init__(
        self,
        variable: str,
        type_name: str,
        *,
        condition: Computation | None = None,
        lookup: IdChooser | None = None,
        left: Computation | None = None,
        filters: tuple[IndexFilter, ...] = (),
        at_most: Count | None = None,
    ) -> None:
        self._variable = variable
        self._type_name = type_name
        self._condition = condition
        self._lookup = lookup
        self._left = left
        self._filters = filters
        self._at_most = at_most

    @property
    def unique_variable(self) -> str | None:
        """Its own variable."""
        return self._variable

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:  # noqa: ARG002  (a scan takes nothing)
        """Yield the nodes, in ordinal order."""
        nodes = run.nodes(self._type_name)
        frames = self._look_up(run, nodes)
        if frames is None:
            found = propose_candidates(self._filters, nodes, run.params)
            frames = self._all(run, nodes) if found is None else self._filtered(run, nodes, found)
        if self._at_most is None:
            yield from frames
            return
        left = self._at_most(run)
        for frame in frames:
            if frame.size >= left:
                if left:
                    yield frame.take(np.arange(left))
                return
            left -= frame.size
            yield frame

    def _look_up(self, run: Run, nodes: Columns) -> Iterator[Frame] | None:
        ids = None if self._lookup is None else self._lookup(run.params)
        if ids is None:
            return None
        found = nodes.find(ids)
        frame = Frame(run, len(found), {self._variable: Binding(nodes, found)})
        if len(found) and self._left is not None:
            frame = frame.where(evaluate_condition(self._left, frame))
        return iter([frame] if frame.size else [])

    def _filtered(self, run: Run, nodes: Columns, found: Ordinals) -> Iterator[Frame]:
        assert self._condition is not None
        frame = Frame(run, len(found), {self._variable: Binding(nodes, found)})
        kept = frame.where(evaluate_condition(self._condition, frame)) if len(found) else frame
        if kept.size:
            yield kept

    def _all(self, run: Run, nodes: Columns) -> Iterator[Frame]:
        dead = nodes.numbering.dead
        if self._condition is None and dead is not None:
            live = nodes.numbering.live
            for start in range(0, len(live), run.batch_rows):
                some = live[start : start + run.batch_rows]
                yield Frame(run, len(some), {self._variable: Binding(nodes, some)})
            return
        for start in range(0, nodes.numbering.size, run.batch_rows):
            stop = min(start + run.batch_rows, nodes.numbering.size)
            ordinals = np.arange(start, stop, dtype=np.int32)
            frame = Frame(run, stop - start, {self._variable: Binding(nodes, ordinals, first=start)})
            if self._condition is not None:
                # Deleted rows have values too: the condition is evaluated on whole runs.
                mask = evaluate_condition(self._condition, frame)
                if dead is not None:
                    mask = mask & ~dead[start:stop]
                frame = frame.where(mask)
            if frame.size:
                yield frame
