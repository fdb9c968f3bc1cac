"""Which types and properties of one schema are which of another of the same graph.

Numbers decide. Where one branch's number is unknown to the other, because both added the same thing under numbers of
their own and a merge kept one of them, the name decides; a number that the other schema has dropped matches nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from omnigraph.model.schema import AnyType, EdgeType, EntityType, NodeType, Property, Schema, TypeRef
from omnigraph.model.schema_identity import is_gone


@dataclass(frozen=True, slots=True)
class Counterparts:
    """What became of the types and properties of a schema in another one.

    Attributes:
        types: by number, the type in the other schema; what is not there is missing.
        properties: by the numbers of the type and the property, likewise.
    """

    types: Mapping[int, AnyType]
    properties: Mapping[tuple[int, int], Property]

    def entity(self, of: EntityType) -> EntityType | None:
        """The other schema's type for a node or edge type."""
        found = self.types.get(of.type_id)
        return found if isinstance(found, EntityType) else None

    def columns(self, of: EntityType) -> dict[str, str]:
        """The properties of a type that both schemas have: the name in the other schema, to the name here."""
        kept = {part.name: self.properties.get((of.type_id, part.property_id)) for part in of.properties}
        return {found.name: name for name, found in kept.items() if found is not None}


def counterparts(before: Schema, after: Schema) -> Counterparts:
    """Pair the types and properties of two schemas of one graph."""
    known = frozenset(before.numbers)
    types: dict[int, AnyType] = {}
    properties: dict[tuple[int, int], Property] = {}
    kinds: tuple[tuple[Iterable[AnyType], Iterable[AnyType]], ...] = (
        (before.interfaces, after.interfaces),
        (before.nodes, after.nodes),
        (before.edges, after.edges),
    )
    for mine, others in kinds:
        by_number = {each.type_id: each for each in others}
        by_name = {each.name: each for each in others if each.type_id not in known}
        for each in mine:
            found = by_number.get(each.type_id)
            if found is None and not is_gone(after, each.type_id):
                found = by_name.get(each.name)
            if found is None:
                continue
            types[each.type_id] = found
            parts = {part.property_id: part for part in found.properties}
            named = {part.name: part for part in found.properties if part.property_id not in known}
            for part in each.properties:
                other = parts.get(part.property_id)
                if other is None and not is_gone(after, part.property_id):
                    other = named.get(part.name)
                if other is not None:
                    properties[each.type_id, part.property_id] = other
    return Counterparts(types, properties)


def renumbered(before: Schema, after: Schema) -> Schema:
    """A schema under the numbers that another one has for the same types and properties."""
    matches = counterparts(before, after)
    if all(number == found.type_id for number, found in matches.types.items()) and all(
        number == found.property_id for (_, number), found in matches.properties.items()
    ):
        return before

    def ref(of: TypeRef) -> TypeRef:
        return replace(of, type_id=matches.types[of.type_id].type_id) if of.type_id in matches.types else of

    def parts(of: AnyType) -> tuple[Property, ...]:
        places = [(part, matches.properties.get((of.type_id, part.property_id))) for part in of.properties]
        return tuple(part if found is None else replace(part, property_id=found.property_id) for part, found in places)

    def number(of: AnyType) -> int:
        return matches.types[of.type_id].type_id if of.type_id in matches.types else of.type_id

    def node(of: NodeType) -> NodeType:
        implements = tuple(map(ref, of.implements))
        return replace(of, type_id=number(of), properties=parts(of), implements=implements)

    def edge(of: EdgeType) -> EdgeType:
        ends = ref(of.from_type), ref(of.to_type)
        return replace(of, type_id=number(of), properties=parts(of), from_type=ends[0], to_type=ends[1])

    return replace(
        before,
        interfaces=tuple(replace(of, type_id=number(of), properties=parts(of)) for of in before.interfaces),
        nodes=tuple(map(node, before.nodes)),
        edges=tuple(map(edge, before.edges)),
    )
