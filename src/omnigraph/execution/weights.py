"""Row multiplicities: products and sums, checked for overflow."""

import numpy as np

from omnigraph.errors import LimitError
from omnigraph.execution.arrays import Numbers, Positions

_MOST = 2.0**63


def multiply(weights: Positions | None, more: Positions) -> Positions:
    """Multiply multiplicities.

    Raises:
        LimitError: a product exceeds 64 bits.
    """
    if weights is None:
        return more
    _refuse(float(np.max(weights, initial=0)) * float(np.max(more, initial=0)))
    return weights * more


def add(totals: Positions, places: Numbers, weights: Positions | None) -> None:
    """Add rows, or their multiplicities, to totals by position.

    Raises:
        LimitError: a total exceeds 64 bits.
    """
    if weights is not None:
        _refuse(float(np.max(totals, initial=0)) + float(weights.sum(dtype=np.float64)))
        np.add.at(totals, places, weights)
    elif len(places) * 4 > len(totals):
        totals += np.bincount(places, minlength=len(totals))
    else:
        np.add.at(totals, places, 1)


def total(weights: Positions | None, rows: int) -> int:
    """Return the number of rows, or the sum of their multiplicities.

    Raises:
        LimitError: the sum exceeds 64 bits.
    """
    if weights is None:
        return rows
    _refuse(float(weights.sum(dtype=np.float64)))
    return int(weights.sum())


def _refuse(count: float) -> None:
    if count >= _MOST:
        raise LimitError(
            f"about {count:.1e} rows are more than can be counted; connect the parts of the pattern or take fewer hops",
            code="too_many_to_count",
        )
