"""What a checked schema text says: interfaces expanded, annotations understood, nothing numbered yet."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from omnigraph.language.text import NOWHERE, Source, Span
from omnigraph.model.schema import ANY_NUMBER, Annotation, Cardinality, Constraint, PropertyConstraint, TypeKind
from omnigraph.model.types import PropertyType


@dataclass(frozen=True, slots=True)
class EmbedShape:
    """From which property of the same type a vector is made, and with which model."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class PropertyShape:
    """One property of a type.

    Attributes:
        name: its name.
        type: its type.
        annotations: those without a field of their own.
        constraints: those it declares itself, sorted.
        embed: from what it is made.
        rename_from: what `@rename_from` says it was called.
        declared_directly: False where it came from an interface only.
        satisfies: the interface properties it stands for, as (interface, property), sorted.
        span: where it is declared.
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
        kind: which of the three.
        name: its name.
        properties: sorted by name.
        constraints: sorted, each once.
        annotations: those without a field of their own.
        rename_from: what `@rename_from` says it was called.
        implements: of a node, its interfaces, sorted.
        ends: of an edge, the node types it leaves and reaches.
        cardinality: of an edge.
        span: where its name is declared.
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
    """A whole checked schema text; types of each kind sorted by name."""

    interfaces: tuple[TypeShape, ...]
    nodes: tuple[TypeShape, ...]
    edges: tuple[TypeShape, ...]
    source: Source = field(compare=False, repr=False)

    @property
    def types(self) -> Iterator[TypeShape]:
        """Every type: interfaces, nodes, edges."""
        yield from self.interfaces
        yield from self.nodes
        yield from self.edges
