"""Checked schema text: interfaces expanded, annotations interpreted, no ids yet."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from omnigraph.language.text import NOWHERE, Source, Span
from omnigraph.model.schema import ANY_NUMBER, Annotation, Cardinality, Constraint, PropertyConstraint, TypeKind
from omnigraph.model.types import PropertyType


@dataclass(frozen=True, slots=True)
class EmbedShape:
    """Source property and model of an embedding vector."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class PropertyShape:
    """One property of a type.

    Attributes:
        annotations: those without a field of their own.
        constraints: inline constraints, sorted.
        embed: source of an embedding vector.
        rename_from: former name, from `@rename_from`.
        declared_directly: False if it comes from an interface only.
        satisfies: implemented interface properties, as (interface, property), sorted.
        span: span of the declaration.
    """

    name: str
    type: PropertyType
    annotations: tuple[Annotation, ...] = ()
    constraints: tuple[PropertyConstraint, ...] = ()
    embed: EmbedShape | None = None
    rename_from: str | None = None
    declared_directly: bool = True
    satisfies: tuple[tuple[str, str], ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TypeShape:
    """One interface, node or edge type.

    Attributes:
        properties: sorted by name.
        constraints: sorted, without duplicates.
        annotations: those without a field of their own.
        rename_from: former name, from `@rename_from`.
        implements: interfaces of a node, sorted.
        ends: source and target node type of an edge.
        cardinality: allowed number of edges per source node.
        span: span of the name.
    """

    kind: TypeKind
    name: str
    properties: tuple[PropertyShape, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    rename_from: str | None = None
    implements: tuple[str, ...] = ()
    ends: tuple[str, str] | None = None
    cardinality: Cardinality = ANY_NUMBER
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def type_key(self) -> str:
        """`node:Person`, `edge:Knows` or `interface:Named`."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class SchemaShape:
    """A complete checked schema text; types of each kind sorted by name."""

    interfaces: tuple[TypeShape, ...]
    nodes: tuple[TypeShape, ...]
    edges: tuple[TypeShape, ...]
    source: Source = field(compare=False, repr=False)

    @property
    def types(self) -> Iterator[TypeShape]:
        """All types: interfaces, nodes, edges."""
        yield from self.interfaces
        yield from self.nodes
        yield from self.edges
