"""How many rows, and in which order: what is only known when a query runs, as functions of the run."""

from collections.abc import Sequence

from omnigraph.execution.expressions import prepare
from omnigraph.execution.operators.order import SortKey
from omnigraph.execution.operators.scan import Count
from omnigraph.execution.run import Run
from omnigraph.language.plan import pattern
from omnigraph.language.plan.expressions import Constant
from omnigraph.language.plan.pattern import OrderKey, Window


def counted(number: pattern.Count | None) -> Count | None:
    """A number of rows, which may be a parameter."""
    if number is None:
        return None
    if isinstance(number, Constant):
        constant = number.value
        assert isinstance(constant, int)
        return lambda _: constant
    name = number.name

    def of_run(run: Run) -> int:
        value = run.parameter(name)
        assert isinstance(value, int)
        return value

    return of_run


def at_most(window: Window | None) -> Count | None:
    """The number of rows that are certainly enough, counted from the first."""
    count = None if window is None else counted(window.count)
    skip = None if window is None else counted(window.skip)
    if count is None or skip is None:
        return count
    return lambda run: count(run) + skip(run)


def sort_keys(keys: Sequence[OrderKey]) -> list[SortKey]:
    """What rows are sorted by."""
    return [SortKey(prepare(key.value), key.descending) for key in keys]
