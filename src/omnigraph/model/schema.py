"""Resolved schema of a graph: every type and property with an id that survives renames.

The ids of a graph's first schema are counted from 1; later ones are derived from kind, owner and name
(`model/schema_identity.py`), so that equal changes on two branches get equal ids.

Types and properties are sorted by name. Constraints name properties; an edge's may also name its endpoints `src` and
`dst`. A property-level `@key`, `@unique` or `@index` is present as the constraint over that one property.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from omnigraph.model.analyzer import ANNOTATION, DEFAULT_ANALYZER, Analyzer
from omnigraph.model.types import PropertyType


class TypeKind(StrEnum):
    """The three kinds of declaration; each has its own namespace."""

    INTERFACE = "interface"
    NODE = "node"
    EDGE = "edge"


class PropertyConstraint(StrEnum):
    """Constraints that a property can declare inline, without parentheses."""

    KEY = "key"
    UNIQUE = "unique"
    INDEX = "index"


SRC = "src"
DST = "dst"
ID = "id"
ENDPOINTS = (SRC, DST)


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name`, `@name(value)` or `@name(value, argument="…")`; every value is kept as text."""

    name: str
    value: str | None = None
    kwargs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TypeRef:
    """Reference to a type by id and name."""

    type_id: int
    type_name: str


@dataclass(frozen=True, slots=True)
class PropertyRef:
    """Reference to a property by the ids and names of itself and its owner."""

    owner_type_id: int
    owner_type_name: str
    property_id: int
    property_name: str


@dataclass(frozen=True, slots=True)
class Embed:
    """Source text and model of an embedding vector."""

    source: PropertyRef
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """Properties that an entity's id is derived from. Implies uniqueness.

    An edge's begins with `src` and `dst`; the properties are in the order of their numbers.
    """

    kind: ClassVar[str] = "key"
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unique:
    """Uniqueness of a tuple over all entities of a type; tuples with an absent component are not compared."""

    kind: ClassVar[str] = "unique"
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """Declared index; over one property of a node it is built when the graph is optimized."""

    kind: ClassVar[str] = "index"
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive bounds of a number; None is open."""

    kind: ClassVar[str] = "range"
    property: str
    min: int | float | None
    max: int | float | None


@dataclass(frozen=True, slots=True)
class Check:
    """Regular expression that must match somewhere in a string."""

    kind: ClassVar[str] = "check"
    property: str
    pattern: str


Constraint = Key | Unique | Index | Range | Check


@dataclass(frozen=True, slots=True)
class Cardinality:
    """Allowed number of edges of a type per source node; `max` None is unbounded."""

    min: int = 0
    max: int | None = None


ANY_NUMBER = Cardinality()


@dataclass(frozen=True, slots=True)
class Property:
    """One property of a type.

    Attributes:
        property_id: id that survives renames.
        annotations: those without a field of their own: `@description` and unknown ones.
        constraints: inline constraints, sorted.
        embed: source of a vector with `@embed`.
        declared_directly: False if it comes from an interface only.
        satisfies: interface properties that it implements.
    """

    name: str
    property_id: int
    type: PropertyType
    annotations: tuple[Annotation, ...] = ()
    constraints: tuple[PropertyConstraint, ...] = ()
    embed: Embed | None = None
    declared_directly: bool = True
    satisfies: tuple[PropertyRef, ...] = ()

    @property
    def default(self) -> str | None:
        """Value of `@default`, for entities that existed before the property."""
        return next((note.value for note in self.annotations if note.name == "default"), None)

    @property
    def analyzer(self) -> Analyzer:
        """Value of `@analyzer`: how searches tokenize the property."""
        declared = next((note.value for note in self.annotations if note.name == ANNOTATION), None)
        # A schema of an older release may have the annotation without a meaning.
        return Analyzer(declared) if declared in set(Analyzer) else DEFAULT_ANALYZER


@dataclass(frozen=True, slots=True)
class InterfaceType:
    """Set of properties that implementing node types must have."""

    kind: ClassVar[TypeKind] = TypeKind.INTERFACE
    name: str
    type_id: int
    properties: tuple[Property, ...]
    _by_name: dict[str, Property] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {property_.name: property_ for property_ in self.properties})

    @property
    def type_key(self) -> str:
        """`interface:Name`."""
        return f"{self.kind}:{self.name}"

    def property_named(self, name: str) -> Property | None:
        """Return the property of this name."""
        return self._by_name.get(name)


@dataclass(frozen=True, slots=True)
class NodeType:
    """One node type.

    Attributes:
        type_id: id that survives renames.
        table_id: id of the table; a type dropped and added again gets another.
        properties: sorted by name, including those of interfaces.
        constraints: sorted by their text.
        annotations: those of the declaration.
        implements: interfaces, sorted by name.
    """

    kind: ClassVar[TypeKind] = TypeKind.NODE
    name: str
    type_id: int
    table_id: int
    properties: tuple[Property, ...]
    constraints: tuple[Constraint, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    implements: tuple[TypeRef, ...] = ()
    _by_name: dict[str, Property] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {property_.name: property_ for property_ in self.properties})

    @property
    def type_key(self) -> str:
        """`node:Name`, as commits name the type's table."""
        return f"{self.kind}:{self.name}"

    def property_named(self, name: str) -> Property | None:
        """Return the property of this name."""
        return self._by_name.get(name)

    @property
    def key(self) -> tuple[Property, ...]:
        """Properties the id is derived from, in id order; empty if ids are not derived."""
        for constraint in self.constraints:
            if isinstance(constraint, Key):
                return tuple(self._by_name[name] for name in constraint.properties)
        return ()

    @property
    def is_keyed(self) -> bool:
        """True if ids are derived from a key."""
        return any(isinstance(constraint, Key) for constraint in self.constraints)


@dataclass(frozen=True, slots=True)
class EdgeType:
    """One edge type.

    Attributes:
        type_id: id that survives renames.
        table_id: id of the table; a type dropped and added again gets another.
        from_type: source node type.
        to_type: target node type.
        cardinality: allowed number of edges per source node.
        properties: sorted by name.
        constraints: sorted by their text; they may name `src` and `dst`, and a `Key` names both.
        annotations: those of the declaration.
    """

    kind: ClassVar[TypeKind] = TypeKind.EDGE
    name: str
    type_id: int
    table_id: int
    from_type: TypeRef
    to_type: TypeRef
    cardinality: Cardinality = ANY_NUMBER
    properties: tuple[Property, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    _by_name: dict[str, Property] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {property_.name: property_ for property_ in self.properties})

    @property
    def type_key(self) -> str:
        """`edge:Name`, as commits name the type's table."""
        return f"{self.kind}:{self.name}"

    def property_named(self, name: str) -> Property | None:
        """Return the property of this name."""
        return self._by_name.get(name)

    @property
    def key_names(self) -> tuple[str, ...]:
        """Names the id is derived from, `src` and `dst` before properties; empty if ids are not derived."""
        return next((constraint.properties for constraint in self.constraints if isinstance(constraint, Key)), ())

    @property
    def is_keyed(self) -> bool:
        """True if ids are derived from a key: writing the same edge twice yields one edge."""
        return bool(self.key_names)


EntityType = NodeType | EdgeType
AnyType = InterfaceType | NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class Schema:
    """All types of a graph, resolved.

    Attributes:
        identity_domain: ULID of the graph's first schema; ids of different domains are unrelated.
        next_id: one more than the greatest counted id; derived ids are far above.
        interfaces: sorted by name.
        nodes: sorted by name.
        edges: sorted by name; unique after lower-casing.
        retired: derived ids of dropped types, properties and tables, sorted; no id is reused.
        property_order: reads the names of properties by type key, as the schema text declares them.
    """

    identity_domain: str
    next_id: int
    interfaces: tuple[InterfaceType, ...] = ()
    nodes: tuple[NodeType, ...] = ()
    edges: tuple[EdgeType, ...] = ()
    retired: tuple[int, ...] = ()
    property_order: Callable[[], Mapping[str, Sequence[str]]] = field(default=dict, repr=False, compare=False)
    _interfaces: dict[str, InterfaceType] = field(init=False, repr=False, compare=False)
    _nodes: dict[str, NodeType] = field(init=False, repr=False, compare=False)
    _edges: dict[str, EdgeType] = field(init=False, repr=False, compare=False)
    _edges_folded: dict[str, EdgeType] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_interfaces", {interface.name: interface for interface in self.interfaces})
        object.__setattr__(self, "_nodes", {node.name: node for node in self.nodes})
        object.__setattr__(self, "_edges", {edge.name: edge for edge in self.edges})
        object.__setattr__(self, "_edges_folded", {edge.name.lower(): edge for edge in self.edges})

    def interface(self, name: str) -> InterfaceType | None:
        """Return the interface of exactly this name."""
        return self._interfaces.get(name)

    def node(self, name: str) -> NodeType | None:
        """Return the node type of exactly this name."""
        return self._nodes.get(name)

    def edge(self, name: str) -> EdgeType | None:
        """Return the edge type of exactly this name, else of this name in any case."""
        return self._edges.get(name) or self._edges_folded.get(name.lower())

    def entity(self, type_key: str) -> EntityType | None:
        """Return the type of a key like `node:Person` or `edge:Knows`."""
        kind, _, name = type_key.partition(":")
        if kind == TypeKind.NODE:
            return self._nodes.get(name)
        return self._edges.get(name) if kind == TypeKind.EDGE else None

    def declared_properties(self, entity: EntityType) -> list[Property]:
        """Return the properties of a type in declared order; those that no text names last, by name."""
        places = {name: place for place, name in enumerate(self.property_order().get(entity.type_key, ()))}
        return sorted(entity.properties, key=lambda property_: places.get(property_.name, len(places)))

    @property
    def entities(self) -> Iterator[EntityType]:
        """Types with a table: nodes, then edges."""
        yield from self.nodes
        yield from self.edges

    @property
    def types(self) -> Iterator[AnyType]:
        """All types: interfaces, nodes, edges."""
        yield from self.interfaces
        yield from self.nodes
        yield from self.edges

    @property
    def numbers(self) -> Iterator[int]:
        """All ids in use: of types, properties and tables."""
        for type_ in self.types:
            yield type_.type_id
            yield from (property_.property_id for property_ in type_.properties)
        yield from (entity.table_id for entity in self.entities)

    def edges_of(self, node_name: str) -> tuple[EdgeType, ...]:
        """Return the edge types that start or end at a node type."""
        return tuple(edge for edge in self.edges if node_name in (edge.from_type.type_name, edge.to_type.type_name))
