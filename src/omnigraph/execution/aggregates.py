"""Aggregate states: what is accumulated per group while rows stream by, one class for each kind of aggregate.

Groups are small numbers given by the operator; a state grows with them. Null values are ignored.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.execution import weights as weighing
from omnigraph.execution.arrays import (
    NO_POSITIONS,
    NONE,
    Mask,
    Numbers,
    Ordinals,
    Positions,
    Values,
    concat,
    make_lists,
    make_nulls,
    null_mask,
    pc,
    select,
    sorted_unique,
    take,
    to_arrow,
    to_numpy,
)
from omnigraph.execution.encoder import Encoder
from omnigraph.execution.expressions import result_type
from omnigraph.language.plan.expressions import AggregateFunction, Aggregation, Entity, NodeValue
from omnigraph.model.types import PropertyType

_HALF = 32


class AggregateState(ABC):
    """State of one aggregate for all groups."""

    @abstractmethod
    def result(self, groups: Positions) -> Values:
        """Return the aggregate of these groups."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Size in bytes."""


class ValueAggregate(AggregateState):
    """Aggregate of values, or of rows."""

    @abstractmethod
    def add(self, groups: Positions, values: "Values | None", weights: Positions | None, count: int) -> None:
        """Accumulate rows.

        Args:
            groups: the group of each row.
            values: the aggregate's argument for each row; None where rows themselves are counted.
            weights: multiplicity of each row; None is one.
            count: one more than the greatest group so far.
        """


class NodeCount(AggregateState):
    """Count of distinct nodes or edges, by ordinals instead of ids."""

    def __init__(self) -> None:
        self._pairs: list[Positions] = []
        self._held = 0

    def add_ordinals(self, groups: Positions | None, ordinals: Ordinals) -> None:
        """Accumulate rows.

        Args:
            groups: the group of each row; None where there is only one.
            ordinals: of its node; `NONE` where it is absent.
        """
        pairs = ordinals.astype(np.int64) if groups is None else groups << _HALF | ordinals
        absent = ordinals == NONE
        if absent.any():
            pairs = pairs[~absent]
        self._pairs.append(sorted_unique(pairs))
        self._held += len(self._pairs[-1])
        if len(self._pairs) > 1 and self._held > 2 * len(self._pairs[0]):
            self._pairs = [sorted_unique(np.concatenate(self._pairs))]
            self._held = len(self._pairs[0])

    def result(self, groups: Positions) -> Values:
        """Return the counts of these groups."""
        if len(self._pairs) > 1:
            self._pairs = [sorted_unique(np.concatenate(self._pairs))]
        pairs = self._pairs[0] if self._pairs else NO_POSITIONS
        return to_arrow(np.bincount(pairs >> _HALF, minlength=_size(groups))[groups])

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return 8 * self._held


def is_node_count(aggregation: Aggregation) -> bool:
    """Return whether an aggregate counts distinct nodes or edges."""
    return (
        aggregation.function is AggregateFunction.COUNT
        and aggregation.distinct
        and isinstance(aggregation.argument, Entity)
    )


def make_aggregate(aggregation: Aggregation) -> ValueAggregate | NodeCount:
    """Create the state of an aggregate."""
    match aggregation.function:
        case AggregateFunction.COUNT:
            if is_node_count(aggregation):
                return NodeCount()
            return _Distinct(aggregation) if aggregation.distinct else _Count()
        case AggregateFunction.SUM | AggregateFunction.AVG:
            return _Distinct(aggregation) if aggregation.distinct else _Sum(aggregation.function)
        case AggregateFunction.MIN | AggregateFunction.MAX:
            of = aggregation.argument.type if aggregation.argument is not None else aggregation.type
            if isinstance(of, PropertyType) and of.is_numeric:
                return _MinMax(aggregation)
            return _Distinct(aggregation)
        case AggregateFunction.COLLECT:
            return _Distinct(aggregation) if aggregation.distinct else _Collect(aggregation)


def _grown(array: Numbers, size: int, fill: float = 0) -> Numbers:
    """Extend an array to at least `size`."""
    if len(array) >= size:
        return array
    longer = np.full(max(size, len(array) * 2), fill, dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def _drop_nulls(
    groups: Positions, values: Values, weights: Positions | None
) -> tuple[Positions, Values, Positions | None]:
    """Drop the rows without a value."""
    nulls = null_mask(values)
    if nulls is None:
        return groups, values, weights
    there = ~nulls
    return groups[there], select(values, there), None if weights is None else weights[there]


class _Count(ValueAggregate):
    def __init__(self) -> None:
        self._counts: Positions = np.zeros(0, dtype=np.int64)

    def add(self, groups: Positions, values: "Values | None", weights: Positions | None, count: int) -> None:
        self._counts = _grown(self._counts, count)
        if values is not None:
            groups, _, weights = _drop_nulls(groups, values, weights)
        weighing.add(self._counts, groups, weights)

    def result(self, groups: Positions) -> Values:
        return to_arrow(_grown(self._counts, _size(groups))[groups])

    @property
    def nbytes(self) -> int:
        return self._counts.nbytes


class _Sum(ValueAggregate):
    def __init__(self, function: AggregateFunction) -> None:
        self._averages = function is AggregateFunction.AVG
        self._counts: Positions = np.zeros(0, dtype=np.int64)
        self._sums: Numbers = np.zeros(0, dtype=np.float64)

    def add(self, groups: Positions, values: "Values | None", weights: Positions | None, count: int) -> None:
        assert values is not None
        self._counts, self._sums = _grown(self._counts, count), _grown(self._sums, count)
        groups, values, weights = _drop_nulls(groups, values, weights)
        numbers = to_numpy(values).astype(np.float64, copy=False)
        if weights is not None:
            numbers = numbers * weights
        weighing.add(self._counts, groups, weights)
        added = np.bincount(groups, weights=numbers, minlength=len(self._sums))
        self._sums[: len(added)] += added

    def result(self, groups: Positions) -> Values:
        counts, sums = (_grown(array, _size(groups))[groups] for array in (self._counts, self._sums))
        with np.errstate(all="ignore"):
            values = sums / counts if self._averages else sums
        return to_arrow(values, nulls=counts == 0)

    @property
    def nbytes(self) -> int:
        return self._counts.nbytes + self._sums.nbytes


class _MinMax(ValueAggregate):
    """Minimum or maximum of numbers."""

    def __init__(self, aggregation: Aggregation) -> None:
        self._least = aggregation.function is AggregateFunction.MIN
        self._type = result_type(aggregation.type)
        self._values: Numbers | None = None
        self._there: Mask = np.zeros(0, dtype=np.bool_)

    def add(self, groups: Positions, values: "Values | None", weights: Positions | None, count: int) -> None:  # noqa: ARG002  (part of the interface)
        assert values is not None
        groups, values, _ = _drop_nulls(groups, values, None)
        numbers = to_numpy(values)
        worst = _worst(numbers.dtype, least=self._least)
        if self._values is None:
            self._values = np.full(count, worst, dtype=numbers.dtype)
        self._values = _grown(self._values, count, worst)
        self._there = _grown(self._there, count, fill=False)
        (np.minimum if self._least else np.maximum).at(self._values, groups, numbers)
        self._there[groups] = True

    def result(self, groups: Positions) -> Values:
        if self._values is None:
            return make_nulls(len(groups), self._type)
        there = _grown(self._there, _size(groups), fill=False)[groups]
        values = _grown(self._values, _size(groups))[groups]
        return to_arrow(values, nulls=~there).cast(self._type)

    @property
    def nbytes(self) -> int:
        return self._there.nbytes + (0 if self._values is None else self._values.nbytes)


def _worst(dtype: np.dtype[Any], *, least: bool) -> float:
    if np.issubdtype(dtype, np.floating):
        return np.inf if least else -np.inf
    bounds = np.iinfo(dtype)
    return bounds.max if least else bounds.min


class _Distinct(ValueAggregate):
    """Distinct values of each group: for `distinct`, and for the minimum and maximum of strings."""

    def __init__(self, aggregation: Aggregation) -> None:
        self._aggregation = aggregation
        self._encoder = Encoder()
        self._pairs: list[Positions] = []
        self._held = 0

    def add(self, groups: Positions, values: "Values | None", weights: Positions | None, count: int) -> None:  # noqa: ARG002  (part of the interface)
        assert values is not None
        groups, values, _ = _drop_nulls(groups, values, None)
        repeated: Positions = groups << _HALF | self._encoder.encode(values)
        pairs = sorted_unique(repeated)
        self._pairs.append(pairs)
        self._held += len(pairs)
        if len(self._pairs) > 1 and self._held > 2 * len(self._pairs[0]):
            # Pairs that batches have in common are kept once.
            self._pairs = [sorted_unique(np.concatenate(self._pairs))]
            self._held = len(self._pairs[0])

    def _all_pairs(self) -> Positions:
        if len(self._pairs) == 1:
            return self._pairs[0]
        return sorted_unique(np.concatenate(self._pairs)) if self._pairs else np.empty(0, dtype=np.int64)

    def result(self, groups: Positions) -> Values:
        pairs = self._all_pairs()
        of_group, codes = pairs >> _HALF, pairs & (2**_HALF - 1)
        if self._aggregation.function is AggregateFunction.COUNT:
            return to_arrow(np.bincount(of_group, minlength=_size(groups))[groups])
        inner = self._inner()
        if len(pairs):
            inner.add(of_group, self._encoder.decode(codes), None, _size(of_group))
        return inner.result(groups)

    def _inner(self) -> ValueAggregate:
        match self._aggregation.function:
            case AggregateFunction.SUM | AggregateFunction.AVG:
                return _Sum(self._aggregation.function)
            case AggregateFunction.COLLECT:
                return _Collect(self._aggregation)
            case _:
                return _MinMaxText(self._aggregation)

    @property
    def nbytes(self) -> int:
        return self._encoder.nbytes + 8 * self._held


class _MinMaxText(ValueAggregate):
    """Minimum or maximum of strings, of values that are added all at once."""

    def __init__(self, aggregation: Aggregation) -> None:
        self._least = aggregation.function is AggregateFunction.MIN
        self._type = result_type(aggregation.type)
        self._groups: Positions = np.empty(0, dtype=np.int64)
        self._values: Values = make_nulls(0, self._type)

    def add(self, groups: Positions, values: "Values | None", weights: Positions | None, count: int) -> None:  # noqa: ARG002  (part of the interface)
        assert values is not None
        self._groups, self._values = groups, values

    def result(self, groups: Positions) -> Values:
        ranks: Positions = to_numpy(pc.rank(self._values, tiebreaker="dense")).astype(np.int64)
        order = np.lexsort((ranks if self._least else -ranks, self._groups))
        found, first = np.unique(self._groups[order], return_index=True)
        places = np.full(max(_size(groups), _size(found)), -1, dtype=np.int64)
        places[found] = order[first]
        return take(self._values, places[groups], absent=True).cast(self._type)

    @property
    def nbytes(self) -> int:
        return self._groups.nbytes + self._values.nbytes


class _Collect(ValueAggregate):
    """All values, as lists in order of arrival."""

    def __init__(self, aggregation: Aggregation) -> None:
        self._type = result_type(aggregation.type)
        argument = aggregation.argument
        assert argument is not None
        self._item = pa.string() if isinstance(argument.type, NodeValue) else result_type(argument.type)
        self._groups: list[Positions] = []
        self._values: list[Values] = []

    def add(self, groups: Positions, values: "Values | None", weights: Positions | None, count: int) -> None:  # noqa: ARG002  (part of the interface)
        assert values is not None
        groups, values, weights = _drop_nulls(groups, values, weights)
        if weights is not None:
            rows = np.repeat(np.arange(len(groups)), weights)
            groups, values = groups[rows], take(values, rows)
        self._groups.append(groups)
        self._values.append(values)

    def result(self, groups: Positions) -> Values:
        everything = np.concatenate(self._groups) if self._groups else np.empty(0, dtype=np.int64)
        values: Values = concat(self._values) if self._values else make_nulls(0, self._item)
        order = np.argsort(everything, kind="stable")
        size = max(_size(groups), _size(everything))
        starts = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(np.bincount(everything, minlength=size), out=starts[1:])
        counts = np.diff(starts)[groups]
        ends = np.cumsum(counts)
        places = np.repeat(starts[groups] - ends + counts, counts) + np.arange(int(ends[-1]) if len(ends) else 0)
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), ends])
        return make_lists(offsets, take(values, order[places])).cast(self._type)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._groups) + sum(array.nbytes for array in self._values)


def _size(groups: Positions) -> int:
    return int(groups.max()) + 1 if len(groups) else 0
