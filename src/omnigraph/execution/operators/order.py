"""Sorting, and top-k where a limit follows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.execution.arrays import Numbers, Positions, Values, null_mask, pc, to_numpy
from omnigraph.execution.expressions import Computation, prepare, to_array
from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.operator import Batch, Operator, Rows
from omnigraph.execution.operators.scan import Count
from omnigraph.execution.run import Run
from omnigraph.language.plan.pattern import OrderKey


@dataclass(frozen=True, slots=True)
class SortKey:
    """Sort key; null is less than every value."""

    value: Computation
    descending: bool = False


class Order(Operator[Batch]):
    """Sorts all rows by keys, then by ties; keeps only as many as a limit needs."""

    def __init__(
        self,
        rows: Operator[Batch],
        join: Callable[[Sequence[Batch]], Batch],
        *,
        keys: Sequence[SortKey],
        ties: Sequence[Computation],
        at_most: Count | None,
    ) -> None:
        self._rows: Operator[Batch] = rows
        self._join: Callable[[Sequence[Batch]], Batch] = join
        self._keys = keys
        self._ties = [SortKey(tie) for tie in ties]
        self._at_most = at_most

    def batches(self, run: Run, given: Frame | None) -> Iterator[Batch]:
        """Yield the sorted rows."""
        at_most = None if self._at_most is None else self._at_most(run)
        if at_most == 0:
            return
        waiting: list[Batch] = []
        held = size = 0
        for batch in self._rows.batches(run, given):
            waiting.append(batch)
            run.budget.hold(batch.nbytes)
            held += batch.nbytes
            size += batch.size
            if at_most is not None and len(waiting) > 1 and size > max(2 * at_most, run.batch_rows):
                waiting = [self._sorted(self._join(waiting), at_most)]
                run.budget.release(held - waiting[0].nbytes)
                held, size = waiting[0].nbytes, waiting[0].size
        if waiting:
            whole = self._sorted(self._join(waiting), at_most)
            for start in range(0, whole.size, run.batch_rows):
                part = np.arange(start, min(start + run.batch_rows, whole.size))
                yield whole if len(part) == whole.size else whole.take(part)
        run.budget.release(held)

    def _sorted(self, rows: Batch, at_most: int | None) -> Batch:
        if at_most is not None and rows.size > 4 * at_most:
            rows = self._prefilter(rows, at_most)
        order = self._order(rows)
        return rows.take(order if at_most is None else order[:at_most])

    def _prefilter(self, rows: Batch, at_most: int) -> Batch:
        """Keep the rows that the first key alone does not rule out."""
        first = _rank_arrays(self._keys[0], rows)
        if len(first) > 1:
            return rows
        bound = np.partition(first[0], at_most - 1)[at_most - 1]
        return rows.take(np.flatnonzero(first[0] <= bound))

    def _order(self, rows: Batch) -> Positions:
        ranks: list[Numbers] = [rank for key in self._keys for rank in _rank_arrays(key, rows)]
        # np.lexsort sorts by the last key first.
        order = np.lexsort(ranks[::-1])
        if not self._ties or not _has_ties(ranks, order):
            return order
        ties: list[Numbers] = [rank for tie in self._ties for rank in _rank_arrays(tie, rows)]
        return np.lexsort([*ties[::-1], *ranks[::-1]])


def prepare_sort_keys(keys: Sequence[OrderKey]) -> list[SortKey]:
    """Compile sort keys."""
    return [SortKey(prepare(key.value), key.descending) for key in keys]


def _has_ties(ranks: Sequence[Numbers], order: Positions) -> bool:
    """Return whether two consecutive rows are equal by all keys."""
    equal = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for rank in ranks:
        sorted_rank = rank[order]
        equal &= sorted_rank[1:] == sorted_rank[:-1]
    return bool(equal.any())


def _rank_arrays(key: SortKey, rows: Rows) -> list[Numbers]:
    """Return arrays whose lexicographic order is that of the key."""
    values = to_array(key.value(rows), rows.size)
    if pa.types.is_floating(values.type) or pa.types.is_integer(values.type):
        return _rank_numbers(values, descending=key.descending)
    ranks = to_numpy(pc.rank(values, sort_keys=[("", "ascending", "at_start")], tiebreaker="dense")).astype(np.int64)
    return [-ranks if key.descending else ranks]


def _rank_numbers(values: Values, *, descending: bool) -> list[Numbers]:
    nulls = null_mask(values)
    numbers = to_numpy(values.fill_null(0) if nulls is not None else values)
    if numbers.dtype == np.uint64:
        # The same order as signed numbers, so that it can be reversed.
        numbers = (numbers ^ np.uint64(1 << 63)).view(np.int64)
    if descending:
        numbers = ~numbers if np.issubdtype(numbers.dtype, np.integer) else -numbers
    if nulls is None:
        return [numbers]
    # Null is less than everything: first ascending, last descending.
    return [nulls if descending else ~nulls, numbers]
