"""Columns of one value, made without asking Arrow to look into it: the same as Arrow would have made."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.execution.mutate_values import plain_column, text_column
from omnigraph.model.types import INTEGER_BOUNDS, PropertyType, Scalar
from omnigraph.storage.layout import arrow_type

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(
    st.tuples(st.just(Scalar.STRING), TEXTS),
    st.tuples(st.just(Scalar.BOOL), st.booleans()),
    st.tuples(st.just(Scalar.F64), st.floats(allow_nan=False, allow_infinity=False)),
    *(
        st.tuples(st.just(scalar), st.integers(*INTEGER_BOUNDS[scalar]))
        for scalar in (Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64)
    ),
)


@given(VALUES)
def test_a_plain_value_is_the_column_arrow_makes_of_it(value: tuple[Scalar, Any]) -> None:
    scalar, plain = value
    of = PropertyType(scalar)
    made: Any = plain_column(plain, of)
    expected: Any = pa.array([plain], arrow_type(of))
    made.validate(full=True)
    assert made.equals(expected)
    assert made.type == expected.type
    # Also where a kernel goes through it with others.
    together: Any = pa.concat_arrays([expected, made, expected])
    assert together.to_pylist() == [plain] * 3


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (Scalar.I32, 2**31),
        (Scalar.U32, -1),
        (Scalar.I64, True),
        (Scalar.F64, 1),
        (Scalar.F64, float("nan")),
        (Scalar.F32, 1.5),
        (Scalar.STRING, 1),
        (Scalar.BOOL, 1),
        (Scalar.DATE, "2024-01-31"),
    ],
)
def test_what_is_not_plainly_of_its_type_is_left_to_others(scalar: Scalar, value: Any) -> None:  # noqa: ANN401  (any value)
    assert plain_column(value, PropertyType(scalar)) is None


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises((ValueError, pa.ArrowInvalid)):
        text_column("\ud800")
