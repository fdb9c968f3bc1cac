"""Rules about single rows, over whole columns; an absent value breaks none."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import ConstraintError, InvalidRequestError
from omnigraph.model.schema import ID
from omnigraph.transaction.constraint_rules.rules import Matches, OneOf, ValueRule, Within

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


def value_breaches(rule: ValueRule, rows: pa.Table) -> Iterator[ConstraintError]:
    """The rows that break a rule, in their order.

    Args:
        rule: what must hold.
        rows: the rows a write touches, as they will be.

    Yields:
        What to say of each.

    Raises:
        InvalidRequestError: the rule itself cannot be applied.
    """
    broken = broken_rows(rule, rows)
    if pc.any(broken).as_py():
        wrong_rows = rows.filter(broken)
        for entity, value in zip(wrong_rows.column(ID), wrong_rows.column(rule.column), strict=True):
            shown = value.as_py()
            yield ConstraintError(
                rule.breach(shown), type=rule.type_name, property=rule.column, value=shown, entity=entity.as_py()
            )


def broken_rows(rule: ValueRule, rows: pa.Table) -> Any:  # noqa: ANN401  (whatever kernels take)
    """Which rows break a rule.

    Args:
        rule: what must hold.
        rows: with the column that it is about.

    Returns:
        A mask, without nulls.

    Raises:
        InvalidRequestError: the rule itself cannot be applied.
    """
    column: Any = rows.column(rule.column)
    match rule:
        case OneOf(values=values):
            wrong = pc.invert(pc.is_in(column, value_set=pa.array(values, pa.string())))
        case Within(least=least, most=most):
            wrong = _outside(column, least, most)
        case Matches():
            wrong = pc.invert(_found(rule, column))
    return pc.and_kleene(wrong, pc.is_valid(column))


def _outside(column: Any, least: float | None, most: float | None) -> Any:  # noqa: ANN401  (whatever kernels take)
    numbers = column.cast(pa.float64(), safe=False)
    outside = pc.is_nan(numbers)
    if least is not None:
        outside = pc.or_(outside, pc.less(numbers, float(least)))
    if most is not None:
        outside = pc.or_(outside, pc.greater(numbers, float(most)))
    return outside


def _found(rule: Matches, column: Any) -> Any:  # noqa: ANN401  (whatever kernels take)
    if rule.fault is not None:
        raise InvalidRequestError(rule.unusable)
    try:
        return pc.match_substring_regex(column, rule.pattern)
    except pa.ArrowInvalid as fault:
        raise InvalidRequestError(f"{rule.unusable}: {fault}") from fault
