"""Syntax tree of schema texts.

Spans are ignored when trees are compared: two texts that differ in white space and comments have equal trees.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.language.text import NOWHERE, Source, Span
from omnigraph.model.types import PropertyType, Scalar, enum_of


class LiteralKind(StrEnum):
    """Lexical kind of an argument."""

    STRING = "string"
    INTEGER = "integer"
    FLOAT = "float"
    BOOL = "bool"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Literal:
    """An argument: a string's characters, or the characters of a number, `true`, `false` or a bare name."""

    kind: LiteralKind
    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Bounds:
    """`lo..hi`, `lo..` or `..hi`."""

    min: int | float | None
    max: int | float | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A type name used or declared."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class AnnotationSyntax:
    """`@name` or `@name(value, argument=literal, …)`."""

    name: str
    value: Literal | None = None
    kwargs: tuple[tuple[str, Literal], ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TypeSyntax:
    """A property's type; the values of an enum in the order written."""

    scalar: Scalar
    nullable: bool = False
    list: bool = False
    enum_values: tuple[str, ...] | None = None
    vector_dim: int | None = None
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def resolved(self) -> PropertyType:
        """Property type, with enum values sorted."""
        if self.enum_values is not None:
            return enum_of(self.enum_values, nullable=self.nullable)
        return PropertyType(self.scalar, nullable=self.nullable, list=self.list, vector_dim=self.vector_dim)


@dataclass(frozen=True, slots=True)
class PropertySyntax:
    """`name: Type @annotation …`."""

    name: str
    type: TypeSyntax
    annotations: tuple[AnnotationSyntax, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    name_span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ConstraintSyntax:
    """`@key(…)`, `@unique(…)`, `@index(…)`, `@range(…)` or `@check(…)` in a body."""

    name: str
    arguments: tuple[Literal | Bounds, ...]
    span: Span = field(default=NOWHERE, compare=False)


Member = PropertySyntax | ConstraintSyntax


@dataclass(frozen=True, slots=True)
class InterfaceSyntax:
    """`interface Name { … }`."""

    name: Name
    members: tuple[PropertySyntax, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    body: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NodeSyntax:
    """`node Name @annotation … implements Other, … { … }`."""

    name: Name
    annotations: tuple[AnnotationSyntax, ...] = ()
    implements: tuple[Name, ...] = ()
    members: tuple[Member, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    body: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CardinalitySyntax:
    """`@card(min..max)` or `@card(min..)`."""

    min: int
    max: int | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class EdgeSyntax:
    """`edge Name: From -> To @card(…) @annotation … { … }`."""

    name: Name
    from_type: Name
    to_type: Name
    cardinality: CardinalitySyntax | None = None
    annotations: tuple[AnnotationSyntax, ...] = ()
    members: tuple[Member, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    body: Span | None = field(default=None, compare=False)


Declaration = InterfaceSyntax | NodeSyntax | EdgeSyntax


@dataclass(frozen=True, slots=True)
class SchemaSyntax:
    """A complete schema text."""

    declarations: tuple[Declaration, ...]
    source: Source = field(compare=False, repr=False)
