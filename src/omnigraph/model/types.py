"""Property types, their names, and which of them are comparable."""

from dataclasses import dataclass, replace
from enum import StrEnum


class Scalar(StrEnum):
    """Scalar types; the member's value is its name in both languages."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATETIME = "DateTime"
    DATE = "Date"
    VECTOR = "Vector"


# What may stand alone or inside `[…]`; a vector needs its dimension and is never inside a list.
BASE_SCALARS = tuple(scalar for scalar in Scalar if scalar is not Scalar.VECTOR)

INTEGER_SCALARS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
FLOAT_SCALARS = frozenset({Scalar.F32, Scalar.F64})
NUMERIC_SCALARS = INTEGER_SCALARS | FLOAT_SCALARS

INTEGER_BOUNDS: dict[Scalar, tuple[int, int]] = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class PropertyType:
    """Type of a property, a parameter or an expression.

    Attributes:
        scalar: type of a single value, or of a list's elements. An enum is a `String`.
        nullable: True if the value may be absent.
        list: True for a list of `scalar`.
        enum_values: allowed values of an enum, sorted; else None.
        vector_dim: dimension of a vector; else None.
    """

    scalar: Scalar
    nullable: bool = False
    list: bool = False
    enum_values: tuple[str, ...] | None = None
    vector_dim: int | None = None

    def __str__(self) -> str:
        """Format the type as the schema language writes it: `enum(a, b)`, `[I32]?`, `Vector(4)`."""
        if self.enum_values is not None:
            name = f"enum({', '.join(self.enum_values)})"
        elif self.scalar is Scalar.VECTOR:
            name = f"Vector({self.vector_dim})"
        else:
            name = self.scalar.value
        if self.list:
            name = f"[{name}]"
        return f"{name}?" if self.nullable else name

    @property
    def is_numeric(self) -> bool:
        """True for a single number; not for a list of numbers."""
        return self.scalar in NUMERIC_SCALARS and not self.list

    @property
    def is_string(self) -> bool:
        """True for a single string, including an enum; not for a list."""
        return self.scalar is Scalar.STRING and not self.list

    @property
    def is_vector(self) -> bool:
        """True for a vector."""
        return self.scalar is Scalar.VECTOR

    @property
    def is_blob(self) -> bool:
        """True for a blob."""
        return self.scalar is Scalar.BLOB

    @property
    def is_enum(self) -> bool:
        """True if only listed values are allowed."""
        return self.enum_values is not None

    @property
    def element(self) -> "PropertyType":
        """Element type of a list; the type itself otherwise."""
        return replace(self, list=False, nullable=False) if self.list else self

    def as_nullable(self) -> "PropertyType":
        """Return the nullable variant of the type."""
        return self if self.nullable else replace(self, nullable=True)

    def as_required(self) -> "PropertyType":
        """Return the non-nullable variant of the type."""
        return replace(self, nullable=False) if self.nullable else self


def enum_of(values: "tuple[str, ...] | frozenset[str]", *, nullable: bool = False) -> PropertyType:
    """Return the enum type of these values, in any order."""
    return PropertyType(Scalar.STRING, nullable=nullable, enum_values=tuple(sorted(set(values))))


def vector_of(dimension: int, *, nullable: bool = False) -> PropertyType:
    """Return the vector type of this dimension."""
    return PropertyType(Scalar.VECTOR, nullable=nullable, vector_dim=dimension)


def is_compatible(left: PropertyType, right: PropertyType) -> bool:
    """True if values of the two types can be compared or assigned.

    Both are lists or neither is, and the scalars are the same or both numbers. Nullability does not matter, an enum
    is a string, and vectors must agree in dimension.
    """
    if left.list != right.list:
        return False
    if left.scalar in NUMERIC_SCALARS and right.scalar in NUMERIC_SCALARS:
        return True
    return left.scalar is right.scalar and left.vector_dim == right.vector_dim
