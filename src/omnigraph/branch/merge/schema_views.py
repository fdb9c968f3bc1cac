"""The types of three schemas of one graph, paired and under common numbers: plain comparison tells what changed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from omnigraph.model.schema import (
    Annotation,
    AnyType,
    Cardinality,
    Check,
    Constraint,
    EdgeType,
    Index,
    Key,
    NodeType,
    Property,
    PropertyConstraint,
    Range,
    Schema,
    TypeKind,
    Unique,
)
from omnigraph.model.schema_identity import FIRST_DERIVED, derive_schema_id
from omnigraph.model.schema_match import match_schemas
from omnigraph.model.types import PropertyType

_T = TypeVar("_T")
_I = TypeVar("_I", AnyType, Property)
_Row = tuple[_I | None, _I | None, _I | None]


@dataclass(frozen=True, slots=True)
class Slot:
    """What a constraint is about; a type has at most one constraint for each.

    Attributes:
        kind: which sort.
        members: the properties by number, the ends of an edge by name.
        pattern: of a check.
    """

    kind: str
    members: frozenset[int | str]
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class Placed:
    """What a constraint says about its slot: its members in order, and the bounds of a range."""

    members: tuple[int | str, ...] = field(compare=False)
    min: int | float | None = None
    max: int | float | None = None


@dataclass(frozen=True, slots=True)
class PropertyView:
    """A property, with everything it refers to by common number."""

    name: str
    type: PropertyType
    annotations: frozenset[Annotation]
    constraints: frozenset[PropertyConstraint]
    embed: tuple[int, str | None] | None
    is_direct: bool
    satisfies: frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TypeView:
    """A type, with everything it refers to by common number; properties and constraints in mappings."""

    kind: TypeKind
    name: str
    annotations: frozenset[Annotation] = frozenset()
    implements: frozenset[int] = frozenset()
    ends: tuple[int, int] | None = None
    cardinality: Cardinality | None = None
    constraints: Mapping[Slot, Placed] = field(default_factory=dict)
    properties: Mapping[int, PropertyView] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """`node:Person`."""
        return f"{self.kind}:{self.name}"

    def needs(self, number: int) -> bool:
        """Whether a constraint or an embedding is about a property."""
        return any(number in slot.members for slot in self.constraints) or any(
            part.embed is not None and part.embed[0] == number for part in self.properties.values()
        )


@dataclass(frozen=True, slots=True)
class Triple:
    """One type at the base and on both sides; None where it is not there.

    Attributes:
        number: its common number.
        table: the common number of its table.
        aliases: numbers that a side has for the type, its table and its properties beside the common ones.
    """

    number: int
    table: int
    aliases: frozenset[int]
    base: TypeView | None
    source: TypeView | None
    target: TypeView | None


def three_way(base: _T, source: _T, target: _T) -> tuple[bool, _T]:
    """Whether a value can be decided, and the value: that of the side that changed it, else the target's."""
    if target in (source, base):
        return True, source
    return source == base, target


def paired_types(base: Schema, source: Schema, target: Schema) -> list[Triple]:
    """Pair the types of three schemas and give everything in them common numbers."""
    return _Pairing(base, source, target).triples()


class _Pairing:
    """The common numbers of three schemas."""

    def __init__(self, base: Schema, source: Schema, target: Schema) -> None:
        self._schemas = (base, source, target)
        self._sides = (match_schemas(base, source), match_schemas(base, target))
        self._taken = {number for schema in self._schemas for number in (*schema.numbers, *schema.retired)}
        # For each schema, its numbers to common ones: of types, and of properties beside that of their type.
        self._types: tuple[dict[int, int], ...] = ({}, {}, {})
        self._properties: tuple[dict[tuple[int, int], int], ...] = ({}, {}, {})

    def triples(self) -> list[Triple]:
        base, source, target = self._schemas
        at_source, at_target = self._sides
        rows = [
            row
            for kind in TypeKind
            for row in _paired(
                [(of, at_source.types.get(of.type_id), at_target.types.get(of.type_id)) for of in _of_kind(base, kind)],
                _of_kind(source, kind),
                _of_kind(target, kind),
                lambda of: of.type_id,
                self._is_common,
            )
        ]
        found = []
        for row in rows:
            kind, name = next((of.kind, of.name) for of in reversed(row) if of is not None)
            number = self._number([None if of is None else of.type_id for of in row], "type", kind, name)
            tables = [of.table_id if isinstance(of, NodeType | EdgeType) else None for of in row]
            table = 0 if kind is TypeKind.INTERFACE else self._number(tables, "table", number)
            for common, of in zip(self._types, row, strict=True):
                if of is not None:
                    common[of.type_id] = number
            aliases = {of.type_id for of in row if of is not None} | set(filter(None, tables))
            aliases |= self._pair_properties(number, row)
            found.append((number, table, frozenset(aliases - {number, table}), row))
        return [
            Triple(number, table, aliases, *(None if of is None else self._view(at, of) for at, of in enumerate(row)))
            for number, table, aliases, row in found
        ]

    def _pair_properties(self, owner: int, row: _Row[AnyType]) -> set[int]:
        """Give the properties of a type common numbers; returns what they are called elsewhere."""
        aliases: set[int] = set()
        base, source, target = (() if of is None else of.properties for of in row)
        at_source, at_target = self._sides
        places = [(part, (0 if row[0] is None else row[0].type_id, part.property_id)) for part in base]
        known: list[_Row[Property]] = [
            (part, at_source.properties.get(place), at_target.properties.get(place)) for part, place in places
        ]
        for parts in _paired(known, source, target, lambda part: part.property_id, self._is_common):
            name = next(part.name for part in reversed(parts) if part is not None)
            numbers = [None if part is None else part.property_id for part in parts]
            number = self._number(numbers, "property", owner, name)
            for common, of, part in zip(self._properties, row, parts, strict=True):
                if of is not None and part is not None:
                    common[of.type_id, part.property_id] = number
            aliases |= {known for known in numbers if known is not None and known != number}
        return aliases

    def _number(self, numbers: Sequence[int | None], *path: str | int) -> int:
        """The common number of one thing: what it had at the base, else the least of what the sides derived for it."""
        base, *sides = numbers
        there = [number for number in sides if number is not None]
        if base is not None:
            is_decided, number = three_way(base, *(base if side is None else side for side in sides))
            return number if is_decided else min(there)
        common = [number for number in there if self._is_common(number)]
        if common:
            return min(common)
        found = derive_schema_id(self._schemas[0].identity_domain, path, self._taken)
        self._taken.add(found)
        return found

    def _is_common(self, number: int) -> bool:
        """Whether a number means the same on all branches.

        A branch of an older release counted on from the base, as any other branch may have done for something else.
        """
        return number >= FIRST_DERIVED or number < self._schemas[0].next_id

    def _view(self, at: int, of: AnyType) -> TypeView:
        numbers = self._types[at]
        common = {part.name: self._properties[at][of.type_id, part.property_id] for part in of.properties}
        properties = {common[part.name]: self._property_view(at, part, common) for part in of.properties}
        view = TypeView(of.kind, of.name, properties=properties)
        if isinstance(of, NodeType):
            view = replace(view, implements=frozenset(numbers[ref.type_id] for ref in of.implements))
        elif isinstance(of, EdgeType):
            ends = numbers[of.from_type.type_id], numbers[of.to_type.type_id]
            view = replace(view, ends=ends, cardinality=of.cardinality)
        if isinstance(of, NodeType | EdgeType):
            constraints = dict(_slot(constraint, common) for constraint in of.constraints)
            view = replace(view, annotations=frozenset(of.annotations), constraints=constraints)
        return view

    def _property_view(self, at: int, part: Property, common: Mapping[str, int]) -> PropertyView:
        return PropertyView(
            part.name,
            part.type,
            frozenset(part.annotations),
            frozenset(part.constraints),
            None if part.embed is None else (common[part.embed.source.property_name], part.embed.model),
            part.declared_directly,
            frozenset(
                (self._types[at][link.owner_type_id], self._properties[at][link.owner_type_id, link.property_id])
                for link in part.satisfies
            ),
        )


def _of_kind(schema: Schema, kind: TypeKind) -> tuple[AnyType, ...]:
    match kind:
        case TypeKind.INTERFACE:
            return schema.interfaces
        case TypeKind.NODE:
            return schema.nodes
        case TypeKind.EDGE:
            return schema.edges


def _paired(
    known: Sequence[_Row[_I]],
    source: Sequence[_I],
    target: Sequence[_I],
    number: Callable[[_I], int],
    is_common: Callable[[int], bool],
) -> list[_Row[_I]]:
    """What the base has, with its counterparts; then what the sides added, paired by number, else by name."""
    on_source, on_target = ({number(of) for row in known if (of := row[at]) is not None} for at in (1, 2))
    left: dict[int, _I] = {number(of): of for of in target if number(of) not in on_target}
    rows: list[_Row[_I]] = list(known)
    for of in source:
        if number(of) in on_source:
            continue
        other = left.get(number(of)) if is_common(number(of)) else None
        if other is None:
            other = next((prop for prop in left.values() if prop.name == of.name), None)
        if other is not None:
            del left[number(other)]
        rows.append((None, of, other))
    rows += [(None, None, of) for of in left.values()]
    return rows


def _slot(constraint: Constraint, common: Mapping[str, int]) -> tuple[Slot, Placed]:
    match constraint:
        case Range(name, least, most):
            return Slot("range", frozenset({common[name]})), Placed((common[name],), least, most)
        case Check(name, pattern):
            return Slot("check", frozenset({common[name]}), pattern), Placed((common[name],))
        case Key(names) | Unique(names) | Index(names):
            members = tuple(common.get(name, name) for name in names)
            return Slot(constraint.kind, frozenset(members)), Placed(members)
