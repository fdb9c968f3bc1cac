"""The schema of a graph, resolved: every type and property with the number that stays when its name changes.

The numbers of a graph's first schema are counted from 1; later ones are derived from what they stand for
(`model/schema_identity.py`), so that equal changes on two branches have equal numbers.

Types and properties are sorted by name. Constraints name properties; an edge's may also name its endpoints `src` and
`dst`. A property-level `@key`, `@unique` or `@index` is present as the constraint over that one property.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from omnigraph.model.analyzer import ANNOTATION, DEFAULT_ANALYZER, Analyzer
from omnigraph.model.types import PropertyType


class TypeKind(StrEnum):
    """The three kinds of declaration; each has names of its own."""

    INTERFACE = "interface"
    NODE = "node"
    EDGE = "edge"


class PropertyConstraint(StrEnum):
    """What a property can declare beside itself, without parentheses."""

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
    """A type by number and name."""

    type_id: int
    type_name: str


@dataclass(frozen=True, slots=True)
class PropertyRef:
    """A property by the numbers and names of it and its owner."""

    owner_type_id: int
    owner_type_name: str
    property_id: int
    property_name: str


@dataclass(frozen=True, slots=True)
class Embed:
    """From which text a vector is made, and with which model."""

    source: PropertyRef
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """The tuple an entity's id is derived from. Implies uniqueness.

    An edge's begins with `src` and `dst`; the properties are in the order of their numbers.
    """

    kind: ClassVar[str] = "key"
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unique:
    """No two entities of the type share this tuple; one with an absent component shares nothing."""

    kind: ClassVar[str] = "unique"
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """The wish for an index; over one property of a node it becomes one when the graph is optimized."""

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
    """A pattern that must be found somewhere in a string."""

    kind: ClassVar[str] = "check"
    property: str
    pattern: str


Constraint = Key | Unique | Index | Range | Check


@dataclass(frozen=True, slots=True)
class Cardinality:
    """How many edges of a type may leave one node; `max` None is any number."""

    min: int = 0
    max: int | None = None


ANY_NUMBER = Cardinality()


@dataclass(frozen=True, slots=True)
class Property:
    """One property of a type.

    Attributes:
        name: its name.
        property_id: the number that stays when the name changes.
        type: its type.
        annotations: what has no field of its own: `@description` and annotations without meaning to us.
        constraints: those it declares itself, sorted.
        embed: for a vector with `@embed`, from what it is made.
        declared_directly: False where it came from an interface only.
        satisfies: the interface properties it stands for.
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
        """What its `@default` says: for entities that were there before it."""
        return next((note.value for note in self.annotations if note.name == "default"), None)

    @property
    def analyzer(self) -> Analyzer:
        """What its `@analyzer` says: which words searches find in its texts."""
        said = next((note.value for note in self.annotations if note.name == ANNOTATION), None)
        # A schema of an older release may have the annotation without a meaning.
        return Analyzer(said) if said in set(Analyzer) else DEFAULT_ANALYZER


@dataclass(frozen=True, slots=True)
class InterfaceType:
    """Properties that node types promise to have."""

    kind: ClassVar[TypeKind] = TypeKind.INTERFACE
    name: str
    type_id: int
    properties: tuple[Property, ...]
    _by_name: dict[str, Property] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {each.name: each for each in self.properties})

    @property
    def type_key(self) -> str:
        """`interface:Name`."""
        return f"{self.kind}:{self.name}"

    def property_named(self, name: str) -> Property | None:
        """The property of this name."""
        return self._by_name.get(name)


@dataclass(frozen=True, slots=True)
class NodeType:
    """One type of node.

    Attributes:
        name: its name.
        type_id: the number that stays when the name changes.
        table_id: the number of its table's lifetime; a type dropped and added again gets another.
        properties: sorted by name; those of its interfaces are among them.
        constraints: in the order of their spelling.
        annotations: of the declaration.
        implements: its interfaces, sorted by name.
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
        object.__setattr__(self, "_by_name", {each.name: each for each in self.properties})

    @property
    def type_key(self) -> str:
        """`node:Name`, as commits name the type's table."""
        return f"{self.kind}:{self.name}"

    def property_named(self, name: str) -> Property | None:
        """The property of this name."""
        return self._by_name.get(name)

    @property
    def key(self) -> tuple[Property, ...]:
        """The properties the id is derived from, in the order they enter it; empty where ids are free."""
        for constraint in self.constraints:
            if isinstance(constraint, Key):
                return tuple(self._by_name[name] for name in constraint.properties)
        return ()

    @property
    def is_keyed(self) -> bool:
        """Whether ids are derived from a key."""
        return any(isinstance(constraint, Key) for constraint in self.constraints)


@dataclass(frozen=True, slots=True)
class EdgeType:
    """One type of edge.

    Attributes:
        name: its name.
        type_id: the number that stays when the name changes.
        table_id: the number of its table's lifetime.
        from_type: the node type edges leave.
        to_type: the node type edges reach.
        cardinality: how many may leave one node.
        properties: sorted by name.
        constraints: in the order of their spelling; they may name `src` and `dst`, and a `Key` names both.
        annotations: of the declaration.
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
        object.__setattr__(self, "_by_name", {each.name: each for each in self.properties})

    @property
    def type_key(self) -> str:
        """`edge:Name`, as commits name the type's table."""
        return f"{self.kind}:{self.name}"

    def property_named(self, name: str) -> Property | None:
        """The property of this name."""
        return self._by_name.get(name)

    @property
    def key_names(self) -> tuple[str, ...]:
        """What the id is derived from, `src` and `dst` before properties; empty where ids are free."""
        return next((each.properties for each in self.constraints if isinstance(each, Key)), ())

    @property
    def is_keyed(self) -> bool:
        """Whether ids are derived from a key: one edge for one fact, whoever writes it."""
        return bool(self.key_names)


EntityType = NodeType | EdgeType
AnyType = InterfaceType | NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class Schema:
    """All types of a graph, resolved.

    Attributes:
        identity_domain: ULID of the graph's first schema; numbers of different domains mean nothing to each other.
        next_id: one more than the greatest counted number; derived numbers are far above.
        interfaces: sorted by name.
        nodes: sorted by name.
        edges: sorted by name; no two are equal after lower-casing.
        retired: derived numbers of dropped types, properties and tables, sorted; no number is given twice.
    """

    identity_domain: str
    next_id: int
    interfaces: tuple[InterfaceType, ...] = ()
    nodes: tuple[NodeType, ...] = ()
    edges: tuple[EdgeType, ...] = ()
    retired: tuple[int, ...] = ()
    _interfaces: dict[str, InterfaceType] = field(init=False, repr=False, compare=False)
    _nodes: dict[str, NodeType] = field(init=False, repr=False, compare=False)
    _edges: dict[str, EdgeType] = field(init=False, repr=False, compare=False)
    _edges_folded: dict[str, EdgeType] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_interfaces", {each.name: each for each in self.interfaces})
        object.__setattr__(self, "_nodes", {each.name: each for each in self.nodes})
        object.__setattr__(self, "_edges", {each.name: each for each in self.edges})
        object.__setattr__(self, "_edges_folded", {each.name.lower(): each for each in self.edges})

    def interface(self, name: str) -> InterfaceType | None:
        """The interface of exactly this name."""
        return self._interfaces.get(name)

    def node(self, name: str) -> NodeType | None:
        """The node type of exactly this name."""
        return self._nodes.get(name)

    def edge(self, name: str) -> EdgeType | None:
        """The edge type of exactly this name, else of this name whatever its case."""
        return self._edges.get(name) or self._edges_folded.get(name.lower())

    def entity(self, type_key: str) -> EntityType | None:
        """The type of a key like `node:Person` or `edge:Knows`."""
        kind, _, name = type_key.partition(":")
        if kind == TypeKind.NODE:
            return self._nodes.get(name)
        return self._edges.get(name) if kind == TypeKind.EDGE else None

    @property
    def entities(self) -> Iterator[EntityType]:
        """Every type that has a table: nodes, then edges."""
        yield from self.nodes
        yield from self.edges

    @property
    def types(self) -> Iterator[AnyType]:
        """Every type: interfaces, nodes, edges."""
        yield from self.interfaces
        yield from self.nodes
        yield from self.edges

    @property
    def numbers(self) -> Iterator[int]:
        """Every number in use: of types, properties and tables."""
        for each in self.types:
            yield each.type_id
            yield from (part.property_id for part in each.properties)
        yield from (each.table_id for each in self.entities)

    def edges_of(self, node_name: str) -> tuple[EdgeType, ...]:
        """The edge types that leave or reach a node type."""
        return tuple(each for each in self.edges if node_name in (each.from_type.type_name, each.to_type.type_name))
