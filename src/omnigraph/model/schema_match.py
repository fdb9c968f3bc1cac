"""Match the types and properties of two schemas of one graph.

Ids decide. If an id of one branch is unknown to the other, because both added the same thing under different ids and
a merge kept one of them, the name decides; an id that the other schema has dropped matches nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from omnigraph.model.schema import AnyType, EdgeType, EntityType, NodeType, Property, Schema, TypeRef
from omnigraph.model.schema_identity import is_gone


@dataclass(frozen=True, slots=True)
class Counterparts:
    """Types and properties of one schema, matched to those of another.

    Attributes:
        types: type in the other schema by type id; unmatched ones are missing.
        properties: property in the other schema by type id and property id, likewise.
    """

    types: Mapping[int, AnyType]
    properties: Mapping[tuple[int, int], Property]

    def entity(self, type_: EntityType) -> EntityType | None:
        """Return the other schema's type for a node or edge type."""
        found = self.types.get(type_.type_id)
        return found if isinstance(found, EntityType) else None

    def columns(self, type_: EntityType) -> dict[str, str]:
        """Map property names in the other schema to names here, for properties that both have."""
        kept = {
            property_.name: self.properties.get((type_.type_id, property_.property_id))
            for property_ in type_.properties
        }
        return {found.name: name for name, found in kept.items() if found is not None}


def match_schemas(before: Schema, after: Schema) -> Counterparts:
    """Match the types and properties of two schemas of one graph."""
    known = frozenset(before.numbers)
    types: dict[int, AnyType] = {}
    properties: dict[tuple[int, int], Property] = {}
    kinds: tuple[tuple[Iterable[AnyType], Iterable[AnyType]], ...] = (
        (before.interfaces, after.interfaces),
        (before.nodes, after.nodes),
        (before.edges, after.edges),
    )
    for ours, theirs in kinds:
        by_number = {type_.type_id: type_ for type_ in theirs}
        by_name = {type_.name: type_ for type_ in theirs if type_.type_id not in known}
        for type_ in ours:
            found = by_number.get(type_.type_id)
            if found is None and not is_gone(after, type_.type_id):
                found = by_name.get(type_.name)
            if found is None:
                continue
            types[type_.type_id] = found
            by_id = {property_.property_id: property_ for property_ in found.properties}
            by_property_name = {
                property_.name: property_ for property_ in found.properties if property_.property_id not in known
            }
            for property_ in type_.properties:
                other = by_id.get(property_.property_id)
                if other is None and not is_gone(after, property_.property_id):
                    other = by_property_name.get(property_.name)
                if other is not None:
                    properties[type_.type_id, property_.property_id] = other
    return Counterparts(types, properties)


def renumbered(before: Schema, after: Schema) -> Schema:
    """Return `before` with the ids that `after` has for the same types and properties."""
    matches = match_schemas(before, after)
    if all(number == found.type_id for number, found in matches.types.items()) and all(
        number == found.property_id for (_, number), found in matches.properties.items()
    ):
        return before

    def ref(reference: TypeRef) -> TypeRef:
        return (
            replace(reference, type_id=matches.types[reference.type_id].type_id)
            if reference.type_id in matches.types
            else reference
        )

    def parts(type_: AnyType) -> tuple[Property, ...]:
        places = [
            (property_, matches.properties.get((type_.type_id, property_.property_id)))
            for property_ in type_.properties
        ]
        return tuple(
            property_ if found is None else replace(property_, property_id=found.property_id)
            for property_, found in places
        )

    def number(type_: AnyType) -> int:
        return matches.types[type_.type_id].type_id if type_.type_id in matches.types else type_.type_id

    def node(node_type: NodeType) -> NodeType:
        implements = tuple(map(ref, node_type.implements))
        return replace(node_type, type_id=number(node_type), properties=parts(node_type), implements=implements)

    def edge(edge_type: EdgeType) -> EdgeType:
        ends = ref(edge_type.from_type), ref(edge_type.to_type)
        return replace(
            edge_type, type_id=number(edge_type), properties=parts(edge_type), from_type=ends[0], to_type=ends[1]
        )

    return replace(
        before,
        interfaces=tuple(
            replace(interface, type_id=number(interface), properties=parts(interface))
            for interface in before.interfaces
        ),
        nodes=tuple(map(node, before.nodes)),
        edges=tuple(map(edge, before.edges)),
    )
