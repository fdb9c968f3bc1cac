"""Two schemas that were made from one, put together: pure.

Compatible changes merge by themselves: what one side added, dropped, renamed, widened, described or constrained, and
what both changed alike. A type or property that both sides changed in ways that cannot both stand is a conflict over a
*schema item*, named `node:Person` or `node:Person.age`, and a choice of `source` or `target` for that item settles it.

A result is rendered as text and read again: the rules for schema texts judge it, and interfaces bring their properties.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.schema_views import Placed, PropertyView, Slot, Triple, TypeView, paired_types, three_way
from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.language.schema.check import check
from omnigraph.language.schema.parse import parse
from omnigraph.language.schema.plan_validated import can_hold
from omnigraph.language.schema.render import render
from omnigraph.language.schema.resolve import assign_next_ids
from omnigraph.model.conflict import MergeConflict, MergeConflictKind
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
from omnigraph.model.types import PropertyType, enum_of

SCHEMA = "schema"
"""What resolutions and conflicts call the schema, in the place of a type."""
WHOLE = "*"
"""The schema item that stands for all of them."""

_T = TypeVar("_T")
# Whether the rows of a type, or the values of one of its properties, changed on a side since the base; by base names.
RowsChanged = Callable[[Side, str, str | None], bool]


@dataclass(frozen=True, slots=True)
class MergedSchema:
    """What two schemas come to.

    Attributes:
        schema: the schema of the result; not to be used where there are conflicts.
        conflicts: items that cannot be decided.
        resolved: items that the caller decided, and for which side.
        left_out: properties of a side, by type key and name there, whose values do not fit the result's.
        left_out_types: types of a side, by type key there, whose rows do not fit the result's.
    """

    schema: Schema
    conflicts: tuple[MergeConflict, ...] = ()
    resolved: tuple[tuple[str, Side], ...] = ()
    left_out: frozenset[tuple[Side, str, str]] = frozenset()
    left_out_types: frozenset[tuple[Side, str]] = frozenset()


def merge_schemas(
    base: Schema,
    source: Schema,
    target: Schema,
    *,
    prefer: Side | None = None,
    chosen: Mapping[str, Side] | None = None,
    rows_changed: RowsChanged = lambda _side, _type, _name: False,
) -> MergedSchema:
    """Put together what two branches made of one schema.

    Args:
        base: the schema of the common ancestor.
        source: the schema of the branch brought in.
        target: the schema of the branch changed.
        prefer: the side that wins conflicts; None where they are reported.
        chosen: by schema item, the side whose state to take, whether or not it conflicts.
        rows_changed: tells whether data changed that the other side's schema has dropped.

    Raises:
        InvalidRequestError: a choice names an item that neither side changed.
    """
    wanted = dict(chosen or {})
    if WHOLE in wanted:
        side = wanted.pop(WHOLE)
        if wanted:
            raise InvalidRequestError(
                f'resolutions for the schema name "{WHOLE}" and single items; name one or the other'
            )
        return MergedSchema(source if side is Side.SOURCE else target, resolved=((WHOLE, side),))
    merging = _Merging(base, source, target, prefer=prefer, chosen=wanted, rows_changed=rows_changed)
    return merging.merge()


@dataclass(slots=True)
class _Draft:
    """One type of the result."""

    triple: Triple
    view: TypeView
    key: str
    properties: dict[int, PropertyView] = field(default_factory=dict)


class _Merging:
    """One merge of schemas while it is worked out."""

    def __init__(
        self,
        base: Schema,
        source: Schema,
        target: Schema,
        *,
        prefer: Side | None,
        chosen: dict[str, Side],
        rows_changed: RowsChanged,
    ) -> None:
        self._base, self._source, self._target = base, source, target
        self._prefer = prefer
        self._chosen = chosen
        self._used: set[str] = set()
        # What was chosen for items by their keys, and which of them could not have been decided without.
        self._settled: dict[str, Side] = {}
        self._disputed: set[str] = set()
        self._rows_changed = rows_changed
        self._conflicts: dict[str, MergeConflict] = {}
        self._resolved: dict[str, Side] = {}
        self._left_out: set[tuple[Side, str, str]] = set()
        self._left_out_types: set[tuple[Side, str]] = set()
        self._triples = paired_types(base, source, target)
        self._edges = {
            side: [view for triple in self._triples if (view := _of(triple, side)) and view.kind is TypeKind.EDGE]
            for side in Side
        }

    def merge(self) -> MergedSchema:
        drafts = [draft for triple in self._triples if (draft := self._type(triple)) is not None]
        drafts = self._with_ends(self._with_own_names(drafts))
        unknown = sorted(self._chosen.keys() - self._used)
        if unknown:
            raise InvalidRequestError(
                f"a resolution names the schema item '{unknown[0]}', which neither branch has changed since they parted"
            )
        merged = _built(drafts, self._base, (self._source, self._target))
        if not self._conflicts:
            merged = self._read_again(merged)
        return MergedSchema(
            merged,
            tuple(self._conflicts.values()),
            tuple(self._resolved.items()),
            frozenset(self._left_out),
            frozenset(self._left_out_types),
        )

    def _read_again(self, merged: Schema) -> Schema:
        """The schema as its text says it: with what interfaces bring to types that the other side added."""
        try:
            return assign_next_ids(merged, check(parse(render(merged), "merged.pg"))).schema
        except GraphError as fault:
            side = self._prefer
            if side is not None:
                self._resolved[WHOLE] = side
                return self._source if side is Side.SOURCE else self._target
            message = f"the schemas of both branches do not go together: {fault.message.splitlines()[0]}"
            self._conflict(WHOLE, message, None, None, None)
            return merged

    # -- choices ------------------------------------------------------------------------------------------------------

    def _choice(self, key: str, names: Iterable[str], *, is_changed: bool) -> Side | None:
        """What the caller chose for an item, under any of its names."""
        for name in names:
            side = self._chosen.get(name)
            if side is not None and is_changed:
                self._used.add(name)
                self._resolved[name] = self._settled[key] = side
                return side
        return None

    def _decide(self, key: str, message: str, *images: Mapping[str, object] | None) -> Side:
        """The side that an undecided item is taken from; a conflict if no choice decides."""
        owner = key.partition(".")[0]
        self._disputed |= {key, owner}
        side = self._settled.get(key) or self._chosen.get(key) or self._settled.get(owner) or self._prefer
        if side is None:
            self._conflict(key, message, *images)
            return Side.TARGET
        self._used.add(key)
        if key not in self._settled and owner not in self._settled:
            self._resolved[key] = side
        return side

    def _conflict(self, key: str, message: str, *images: Mapping[str, object] | None) -> None:
        base, source, target = images
        self._conflicts.setdefault(
            key, MergeConflict(MergeConflictKind.DIVERGENT_SCHEMA, SCHEMA, key, message, base, source, target)
        )

    # -- types --------------------------------------------------------------------------------------------------------

    def _type(self, triple: Triple) -> _Draft | None:
        views = triple.base, triple.source, triple.target
        key = next(view.key for view in views if view is not None)
        is_changed = triple.source != triple.base or triple.target != triple.base
        side = self._choice(key, _names(views), is_changed=is_changed)
        left_out = set(self._left_out)
        draft = self._merged(triple, key)
        if side is None or key in self._disputed:
            return draft
        # Nothing is in dispute: the caller wants the type as one side has it.
        self._left_out = left_out
        view = _of(triple, side)
        if view is None:
            return None
        self._leave_out_misfits(triple, view, side)
        return _Draft(triple, view, key, self._properties(triple, key, side))

    def _merged(self, triple: Triple, key: str) -> _Draft | None:
        views = triple.base, triple.source, triple.target
        if triple.source is None or triple.target is None:
            kept = self._kept(triple, key)
            return None if kept is None else _Draft(triple, kept, key, dict(kept.properties))
        if triple.base is None and _rules_of_ids(triple.source) != _rules_of_ids(triple.target):
            message = f"{key} was added on both branches with other ends or another key"
            side = self._decide(key, message, *map(_shown, views))
            view = triple.source if side is Side.SOURCE else triple.target
            self._leave_out_misfits(triple, view, side)
            return _Draft(triple, view, key, dict(view.properties))
        return _Draft(triple, self._merged_type(triple, key), key, self._properties(triple, key, None))

    def _leave_out_misfits(self, triple: Triple, view: TypeView, side: Side) -> None:
        other = _of(triple, side.other)
        if other is not None and _rules_of_ids(other) != _rules_of_ids(view):
            self._left_out_types.add((side.other, other.key))

    def _kept(self, triple: Triple, key: str) -> TypeView | None:
        """A type that one side has: added there, or dropped on the other."""
        side = Side.TARGET if triple.source is None else Side.SOURCE
        view = _of(triple, side)
        if triple.base is None or view is None:
            return view
        joined = [
            edge.key for edge in self._edges[side] if triple.number in (edge.ends or ()) and self._is_new(edge, side)
        ]
        if view == triple.base and not joined and not self._rows_changed(side, triple.base.key, None):
            return None
        what = f"joined by {joined[0]}" if joined else "changed"
        message = f"{key} was dropped on the {side.other} and {what} on the {side}"
        images = (_shown(triple.base), _shown(triple.source), _shown(triple.target))
        return view if self._decide(key, message, *images) is side else None

    def _is_new(self, edge: TypeView, side: Side) -> bool:
        """Whether an edge type is not at the base."""
        return any(triple.base is None and _of(triple, side) is edge for triple in self._triples)

    def _merged_type(self, triple: Triple, key: str) -> TypeView:
        base, source, target = triple.base, triple.source, triple.target
        assert source is not None and target is not None, "both sides have it"

        def attribute(what: str, read: Callable[[TypeView], _T]) -> _T:
            was = source if base is None else base
            known = (read(was), read(source), read(target))
            is_decided, value = three_way(*known) if base is not None else (known[1] == known[2], known[2])
            if is_decided:
                return value
            message = f"{key} has another {what} on each branch"
            images = ({what: _plain(value)} for value in known)
            side = self._decide(key, message, *images)
            return known[1] if side is Side.SOURCE else known[2]

        return TypeView(
            source.kind,
            attribute("name", lambda view: view.name),
            self._annotations(key, *(None if view is None else view.annotations for view in (base, source, target))),
            _merged_sets(*(frozenset() if view is None else view.implements for view in (base, source, target))),
            attribute("ends", lambda view: view.ends),
            attribute("cardinality", lambda view: view.cardinality),
            self._constraints(triple, key),
        )

    def _annotations(
        self,
        key: str,
        base: frozenset[Annotation] | None,
        source: frozenset[Annotation] | None,
        target: frozenset[Annotation] | None,
    ) -> frozenset[Annotation]:
        """All annotations, by name: those of one name are one thing."""
        sides = [_by_name(annotations or frozenset()) for annotations in (base, source, target)]
        found: set[Annotation] = set()
        for name in sorted({name for side in sides for name in side}):
            was, ours, theirs = (side.get(name, frozenset()) for side in sides)
            is_decided, value = three_way(was, ours, theirs)
            if not is_decided:
                message = f"@{name} of {key} has another value on each branch"
                images = (
                    {f"@{name}": ", ".join(sorted(annotation.value or "" for annotation in some))}
                    for some in (was, ours, theirs)
                )
                value = ours if self._decide(key, message, *images) is Side.SOURCE else theirs
            found |= value
        return frozenset(found)

    def _constraints(self, triple: Triple, key: str) -> dict[Slot, Placed]:
        sides = [{} if view is None else view.constraints for view in (triple.base, triple.source, triple.target)]
        found: dict[Slot, Placed] = {}
        for slot in dict.fromkeys(slot for side in sides for slot in side):
            was, ours, theirs = (side.get(slot) for side in sides)
            is_decided, value = three_way(was, ours, theirs)
            if not is_decided:
                item = self._item(triple, key, next(iter(slot.members)))
                message = f"the @{slot.kind} of {item} has other bounds on each branch"
                images = (
                    None if cardinality is None else {"min": cardinality.min, "max": cardinality.max}
                    for cardinality in (was, ours, theirs)
                )
                value = ours if self._decide(item, message, *images) is Side.SOURCE else theirs
            if value is not None:
                # The order of members is only seen, but of a key it is part of every id.
                found[slot] = was if was is not None and was == value else value
        return found

    @staticmethod
    def _item(triple: Triple, key: str, member: int | str) -> str:
        for view in (triple.base, triple.source, triple.target):
            if view is not None and isinstance(member, int) and member in view.properties:
                return f"{key}.{view.properties[member].name}"
        return key

    # -- properties ---------------------------------------------------------------------------------------------------

    def _properties(self, triple: Triple, key: str, whole: Side | None) -> dict[int, PropertyView]:
        """The properties of the result; with `whole`, those of one side but where the caller chose otherwise."""
        found: dict[int, PropertyView] = {}
        views = triple.base, triple.source, triple.target
        for number in dict.fromkeys(number for view in views if view is not None for number in view.properties):
            parts = [None if view is None else view.properties.get(number) for view in views]
            names = [f"{owner}.{part.name}" for owner in _names(views) for part in parts if part is not None]
            is_changed = parts[1] != parts[0] or parts[2] != parts[0]
            item = self._item(triple, key, number)
            side = self._choice(item, names, is_changed=is_changed) or whole
            part = self._property(triple, number, item) if whole is None else None
            if side is not None and item not in self._disputed:
                part = parts[1] if side is Side.SOURCE else parts[2]
            if part is not None:
                found[number] = part
                self._leave_out(triple, number, part)
        return found

    def _leave_out(self, triple: Triple, number: int, part: PropertyView) -> None:
        """Note a side whose values of a property that both added do not fit the type that it has in the result."""
        if triple.base is not None and number in triple.base.properties:
            return
        for side in Side:
            view = _of(triple, side)
            own = None if view is None else view.properties.get(number)
            if view is not None and own is not None and not can_hold(own.type, part.type):
                self._left_out.add((side, view.key, own.name))

    def _property(self, triple: Triple, number: int, item: str) -> PropertyView | None:
        base, source, target = (
            None if view is None else view.properties.get(number)
            for view in (triple.base, triple.source, triple.target)
        )
        if source is None or target is None:
            return self._kept_property(triple, number, item, (base, source, target))

        def attribute(what: str, read: Callable[[PropertyView], _T]) -> _T:
            known = (None if base is None else read(base), read(source), read(target))
            is_decided = known[1] == known[2]
            value = known[2]
            if base is not None and not is_decided:
                is_decided, value = three_way(read(base), read(source), read(target))
            if is_decided:
                return value
            message = f"{item} has another {what} on each branch"
            images = (None if value is None else {what: _plain(value)} for value in known)
            return known[1] if self._decide(item, message, *images) is Side.SOURCE else known[2]

        merged = None if base is None else _merged_type(base.type, source.type, target.type)
        return PropertyView(
            attribute("name", lambda part: part.name),
            attribute("type", lambda part: part.type) if merged is None else merged,
            self._annotations(item, *(None if part is None else part.annotations for part in (base, source, target))),
            _merged_sets(*(frozenset() if part is None else part.constraints for part in (base, source, target))),
            attribute("embedding", lambda part: part.embed),
            attribute("declaration", lambda part: part.is_direct),
            _merged_sets(*(frozenset() if part is None else part.satisfies for part in (base, source, target))),
        )

    def _kept_property(
        self, triple: Triple, number: int, item: str, parts: tuple[PropertyView | None, ...]
    ) -> PropertyView | None:
        """A property that one side has: added there, or dropped on the other."""
        base, source, target = parts
        side = Side.TARGET if source is None else Side.SOURCE
        part, view = (target, triple.target) if source is None else (source, triple.source)
        if base is None or part is None or view is None or triple.base is None:
            return part
        is_needed = view.needs(number) and not triple.base.needs(number)
        if part == base and not is_needed and not self._rows_changed(side, triple.base.key, base.name):
            return None
        message = f"{item} was dropped on the {side.other} and changed on the {side}"
        return part if self._decide(item, message, *map(_shown_property, parts)) is side else None

    # -- what the parts make of the whole -----------------------------------------------------------------------------

    def _with_own_names(self, drafts: list[_Draft]) -> list[_Draft]:
        """Types and properties, no two of one name: a name that both sides gave is a conflict."""
        for draft in drafts:
            named: dict[str, int] = {}
            for number, part in list(draft.properties.items()):
                first = named.setdefault(part.name, number)
                if first != number:
                    self._rename_apart(draft, first, number)
        found: dict[tuple[TypeKind, str], _Draft] = {}
        for draft in drafts:
            name = draft.view.name.lower() if draft.view.kind is TypeKind.EDGE else draft.view.name
            other = found.get((draft.view.kind, name))
            if other is None:
                found[draft.view.kind, name] = draft
                continue
            message = f"the branches have two types called {draft.view.key}"
            side = self._decide(
                draft.view.key, message, None, *(_shown(_of_name(side_, draft, other)) for side_ in Side)
            )
            winner, loser = (draft, other) if _gave_name(draft.triple, draft.view.name, side) else (other, draft)
            found[draft.view.kind, name] = winner
            if loser.triple.base is not None:
                loser.view = replace(loser.view, name=loser.triple.base.name)
                if found.setdefault((draft.view.kind, loser.view.name), loser) is not loser:
                    self._conflict(WHOLE, f"{loser.view.key} has no name that is free", None, None, None)
        return list(found.values())

    def _rename_apart(self, draft: _Draft, one: int, other: int) -> None:
        name = draft.properties[one].name
        item = f"{draft.key}.{name}"
        images = [
            next(
                (_shown_property(view.properties.get(number)) for number in (one, other) if number in view.properties),
                None,
            )
            if view is not None
            else None
            for view in (draft.triple.source, draft.triple.target)
        ]
        side = self._decide(item, f"the branches have two properties called {item}", None, *images)
        view = _of(draft.triple, side)
        gave = view is not None and one in view.properties and view.properties[one].name == name
        loser = other if gave else one
        at_base = None if draft.triple.base is None else draft.triple.base.properties.get(loser)
        if at_base is None:
            del draft.properties[loser]
            return
        if any(part.name == at_base.name for part in draft.properties.values()):
            self._conflict(WHOLE, f"{draft.key}.{at_base.name} has no name that is free", None, None, None)
        draft.properties[loser] = replace(draft.properties[loser], name=at_base.name)

    def _with_ends(self, drafts: list[_Draft]) -> list[_Draft]:
        """All types but edges that lost one of their node types."""
        there = {draft.triple.number for draft in drafts}
        return [draft for draft in drafts if draft.view.ends is None or there.issuperset(draft.view.ends)]


def _of(triple: Triple, side: Side) -> TypeView | None:
    return triple.source if side is Side.SOURCE else triple.target


def _of_name(side: Side, one: _Draft, other: _Draft) -> TypeView | None:
    """The one of two types that has its name from a side."""
    return next(
        (_of(draft.triple, side) for draft in (one, other) if _gave_name(draft.triple, draft.view.name, side)), None
    )


def _gave_name(triple: Triple, name: str, side: Side) -> bool:
    view = _of(triple, side)
    return view is not None and view.name == name


def _names(views: Iterable[TypeView | None]) -> list[str]:
    return list(dict.fromkeys(view.key for view in views if view is not None))


def _rules_of_ids(view: TypeView) -> tuple[object, ...]:
    """What decides which rows of two types are the same: the ends, and the key."""
    return view.ends, frozenset(slot for slot in view.constraints if slot.kind == Key.kind)


def _by_name(annotations: frozenset[Annotation]) -> dict[str, frozenset[Annotation]]:
    names = {annotation.name for annotation in annotations}
    return {name: frozenset(annotation for annotation in annotations if annotation.name == name) for name in names}


def _merged_sets(base: frozenset[_T], source: frozenset[_T], target: frozenset[_T]) -> frozenset[_T]:
    return (base & source & target) | (source - base) | (target - base)


def _merged_type(base: PropertyType, source: PropertyType, target: PropertyType) -> PropertyType | None:
    """The type that has what both sides did to it; None where both cannot be."""
    if base.enum_values is not None and source.enum_values is not None and target.enum_values is not None:
        values = _merged_sets(*(frozenset(prop_type.enum_values or ()) for prop_type in (base, source, target)))
        _, nullable = three_way(base.nullable, source.nullable, target.nullable)
        return enum_of(values, nullable=nullable) if values else None
    if None in (source.enum_values, target.enum_values) and base.enum_values is not None:
        # Any text holds every value that the other side has.
        base, source, target = (replace(prop_type, enum_values=None) for prop_type in (base, source, target))
    parts = {}
    for name in ("scalar", "nullable", "list", "enum_values", "vector_dim"):
        is_decided, value = three_way(*(getattr(prop_type, name) for prop_type in (base, source, target)))
        if not is_decided:
            return None
        parts[name] = value
    return PropertyType(**parts)


def _plain(value: object) -> str:
    return str(value)


def _shown(view: TypeView | None) -> dict[str, object] | None:
    if view is None:
        return None
    return {"name": view.name, "properties": {part.name: str(part.type) for part in view.properties.values()}}


def _shown_property(part: PropertyView | None) -> dict[str, object] | None:
    return None if part is None else {"name": part.name, "type": str(part.type)}


def _built(drafts: list[_Draft], base: Schema, sides: tuple[Schema, Schema]) -> Schema:
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
    draft: _Draft, names: Mapping[int, str], properties: Mapping[tuple[int, int], str]
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


def _built_constraints(draft: _Draft) -> Iterator[Constraint]:
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
