"""Types of a merged schema before it is built: unique names, ends, and the schema they make."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.schema_items import WHOLE, SchemaItems, describe_property, describe_type
from omnigraph.branch.merge.schema_views import PropertyView, Triple, TypeView
from omnigraph.model.schema import (
    ANY_NUMBER,
    Annotation,
    Check,
    Constraint,
    EdgeType,
    Embed,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Property,
    PropertyRef,
    Range,
    Schema,
    TypeKind,
    TypeRef,
    Unique,
)
from omnigraph.model.schema_identity import FIRST_DERIVED


@dataclass(slots=True)
class Draft:
    """One type of the result."""

    triple: Triple
    view: TypeView
    key: str
    properties: dict[int, PropertyView] = field(default_factory=dict)


def side_view(triple: Triple, side: Side) -> TypeView | None:
    """Return the type as a side has it."""
    return triple.source if side is Side.SOURCE else triple.target


def with_unique_names(items: SchemaItems, drafts: list[Draft]) -> list[Draft]:
    """Types and properties, no two of one name: a name that both sides gave is a conflict."""
    for draft in drafts:
        named: dict[str, int] = {}
        for number, part in list(draft.properties.items()):
            first = named.setdefault(part.name, number)
            if first != number:
                _rename_apart(items, draft, first, number)
    found: dict[tuple[TypeKind, str], Draft] = {}
    for draft in drafts:
        name = draft.view.name.lower() if draft.view.kind is TypeKind.EDGE else draft.view.name
        other = found.get((draft.view.kind, name))
        if other is None:
            found[draft.view.kind, name] = draft
            continue
        message = f"the branches have two types called {draft.view.key}"
        side = items.decide(
            draft.view.key, message, None, *(describe_type(_of_name(side, draft, other)) for side in Side)
        )
        winner, loser = (draft, other) if _gave_name(draft.triple, draft.view.name, side) else (other, draft)
        found[draft.view.kind, name] = winner
        if loser.triple.base is not None:
            loser.view = replace(loser.view, name=loser.triple.base.name)
            if found.setdefault((draft.view.kind, loser.view.name), loser) is not loser:
                items.conflict(WHOLE, f"{loser.view.key} has no name that is free", None, None, None)
    return list(found.values())


def _rename_apart(items: SchemaItems, draft: Draft, one: int, other: int) -> None:
    name = draft.properties[one].name
    item = f"{draft.key}.{name}"
    images = [
        next(
            (describe_property(view.properties.get(number)) for number in (one, other) if number in view.properties),
            None,
        )
        if view is not None
        else None
        for view in (draft.triple.source, draft.triple.target)
    ]
    side = items.decide(item, f"the branches have two properties called {item}", None, *images)
    view = side_view(draft.triple, side)
    gave = view is not None and one in view.properties and view.properties[one].name == name
    loser = other if gave else one
    at_base = None if draft.triple.base is None else draft.triple.base.properties.get(loser)
    if at_base is None:
        del draft.properties[loser]
        return
    if any(part.name == at_base.name for part in draft.properties.values()):
        items.conflict(WHOLE, f"{draft.key}.{at_base.name} has no name that is free", None, None, None)
    draft.properties[loser] = replace(draft.properties[loser], name=at_base.name)


def with_ends(drafts: list[Draft]) -> list[Draft]:
    """All types but edges that lost one of their node types."""
    there = {draft.triple.number for draft in drafts}
    return [draft for draft in drafts if draft.view.ends is None or there.issuperset(draft.view.ends)]


def _of_name(side: Side, one: Draft, other: Draft) -> TypeView | None:
    """The one of two types that has its name from a side."""
    return next(
        (side_view(draft.triple, side) for draft in (one, other) if _gave_name(draft.triple, draft.view.name, side)),
        None,
    )


def _gave_name(triple: Triple, name: str, side: Side) -> bool:
    view = side_view(triple, side)
    return view is not None and view.name == name


def build(drafts: list[Draft], base: Schema, sides: tuple[Schema, Schema]) -> Schema:
    """The schema of the drafts; names in the place of common numbers."""
    names = {draft.triple.number: draft.view.name for draft in drafts}
    properties = {
        (draft.triple.number, number): part.name for draft in drafts for number, part in draft.properties.items()
    }
    interfaces, nodes, edges = [], [], []
    for draft in sorted(drafts, key=lambda draft: draft.view.name):
        number, table, view = draft.triple.number, draft.triple.table, draft.view
        parts = tuple(sorted(_built_properties(draft, names, properties), key=lambda part: part.name))
        annotations = _sorted(view.annotations)
        constraints = tuple(_built_constraints(draft))
        match view.kind:
            case TypeKind.INTERFACE:
                interfaces.append(InterfaceType(view.name, number, parts))
            case TypeKind.NODE:
                implements = sorted(
                    (TypeRef(type_id, names[type_id]) for type_id in view.implements), key=lambda ref: ref.type_name
                )
                nodes.append(NodeType(view.name, number, table, parts, constraints, annotations, tuple(implements)))
            case TypeKind.EDGE:
                leaves, reaches = (TypeRef(end, names[end]) for end in view.ends or ())
                card = view.cardinality or ANY_NUMBER
                edges.append(EdgeType(view.name, number, table, leaves, reaches, card, parts, constraints, annotations))
    schema = Schema(base.identity_domain, base.next_id, tuple(interfaces), tuple(nodes), tuple(edges))
    # Of what both sides added under numbers of their own only one number is in use; the other is nothing dropped.
    dropped = {number for schema in (base, *sides) for number in schema.retired}
    dropped |= {number for number in base.numbers if number >= FIRST_DERIVED}
    aliases = {number for draft in drafts for number in draft.triple.aliases}
    return replace(schema, retired=tuple(sorted(dropped.difference(schema.numbers, aliases))))


def _built_properties(
    draft: Draft, names: Mapping[int, str], properties: Mapping[tuple[int, int], str]
) -> Iterator[Property]:
    owner, view = draft.triple.number, draft.view
    for number, part in draft.properties.items():
        embed = None
        if part.embed is not None and part.embed[0] in draft.properties:
            source = PropertyRef(owner, view.name, part.embed[0], draft.properties[part.embed[0]].name)
            embed = Embed(source, part.embed[1])
        links = [
            PropertyRef(interface, names[interface], property_id, properties[interface, property_id])
            for interface, property_id in part.satisfies
            if (interface, property_id) in properties
        ]
        yield Property(
            part.name,
            number,
            part.type,
            _sorted(part.annotations),
            tuple(sorted(part.constraints)),
            embed,
            part.is_direct,
            tuple(sorted(links, key=lambda link: (link.owner_type_name, link.property_name))),
        )


def _built_constraints(draft: Draft) -> Iterator[Constraint]:
    for slot, placed in draft.view.constraints.items():
        if any(isinstance(member, int) and member not in draft.properties for member in placed.members):
            continue  # it is about a property that is not there any more
        names = tuple(draft.properties[member].name if isinstance(member, int) else member for member in placed.members)
        match slot.kind:
            case Range.kind:
                yield Range(names[0], placed.min, placed.max)
            case Check.kind:
                yield Check(names[0], slot.pattern)
            case Key.kind:
                yield Key(names)
            case Unique.kind:
                yield Unique(names)
            case _:
                yield Index(names)


def _sorted(annotations: frozenset[Annotation]) -> tuple[Annotation, ...]:
    return tuple(
        sorted(
            annotations,
            key=lambda annotation: (
                annotation.name,
                annotation.value is not None,
                annotation.value or "",
                annotation.kwargs,
            ),
        )
    )
