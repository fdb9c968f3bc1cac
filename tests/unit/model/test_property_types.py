"""Types of properties: their names, and which of them can be compared."""

import pytest

from omnigraph.model.types import PropertyType, Scalar, enum_of, is_compatible, vector_of

I32 = PropertyType(Scalar.I32)
STRING = PropertyType(Scalar.STRING)


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (STRING, "String"),
        (PropertyType(Scalar.DATETIME, nullable=True), "DateTime?"),
        (PropertyType(Scalar.I32, list=True), "[I32]"),
        (PropertyType(Scalar.I32, list=True, nullable=True), "[I32]?"),
        (enum_of(("b", "a")), "enum(a, b)"),
        (enum_of(("a",), nullable=True), "enum(a)?"),
        (vector_of(4), "Vector(4)"),
        (vector_of(4, nullable=True), "Vector(4)?"),
    ],
)
def test_a_type_is_called_what_the_language_calls_it(of: PropertyType, name: str) -> None:
    assert str(of) == name


@pytest.mark.parametrize(
    ("left", "right", "fits"),
    [
        (I32, PropertyType(Scalar.F64), True),
        (I32, PropertyType(Scalar.U64, nullable=True), True),
        (PropertyType(Scalar.I32, list=True), PropertyType(Scalar.F32, list=True), True),
        (I32, PropertyType(Scalar.I32, list=True), False),
        (I32, STRING, False),
        (STRING, enum_of(("a",)), True),
        (enum_of(("a",)), enum_of(("b",)), True),
        (PropertyType(Scalar.DATE), PropertyType(Scalar.DATETIME), False),
        (PropertyType(Scalar.BLOB), STRING, False),
        (vector_of(3), vector_of(3, nullable=True), True),
        (vector_of(3), vector_of(4), False),
        (PropertyType(Scalar.BOOL), I32, False),
    ],
)
def test_types_fit_when_both_are_numbers_or_the_same_scalar(
    left: PropertyType, right: PropertyType, fits: bool
) -> None:
    assert is_compatible(left, right) is fits
    assert is_compatible(right, left) is fits


def test_enum_values_are_sorted_and_kept_once() -> None:
    assert enum_of(("b", "a", "b")).enum_values == ("a", "b")


def test_a_list_of_numbers_is_no_number_but_its_element_is() -> None:
    numbers = PropertyType(Scalar.I32, list=True, nullable=True)

    assert not numbers.is_numeric
    assert numbers.element == I32
    assert numbers.element.is_numeric


def test_an_enum_is_a_string_and_a_list_of_strings_is_not() -> None:
    assert enum_of(("a",)).is_string
    assert enum_of(("a",)).is_enum
    assert not PropertyType(Scalar.STRING, list=True).is_string


def test_nullability_can_be_added_and_taken_away() -> None:
    assert I32.as_nullable().nullable
    assert I32.as_nullable().as_required() == I32
    assert I32.as_required() is I32
