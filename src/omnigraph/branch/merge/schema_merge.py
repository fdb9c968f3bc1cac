"""Two schemas that were made from one, put together: pure.

Compatible changes merge by themselves: what one side added, dropped, renamed, widened, described or constrained, and
what both changed alike. A type or property that both sides changed in ways that cannot both stand is a conflict over a
*schema item*, named `node:Person` or `node:Person.age`, and a choice of `source` or `target` for that item settles it.

A result is rendered as text and read again: the rules for schema texts judge it, and interfaces bring their properties.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.schema_drafts import Draft, build, side_view, with_ends, with_unique_names
from omnigraph.branch.merge.schema_items import WHOLE, SchemaItems, describe_property, describe_type
from omnigraph.branch.merge.schema_views import Placed, PropertyView, Slot, Triple, TypeView, paired_types, three_way
from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.language.schema.check import check
from omnigraph.language.schema.parse import parse
from omnigraph.language.schema.plan_validated import can_hold
from omnigraph.language.schema.render import render
from omnigraph.language.schema.resolve import assign_next_ids
from omnigraph.model.conflict import MergeConflict
from omnigraph.model.schema import Key, Schema, TypeKind
from omnigraph.model.types import PropertyType, enum_of

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
        self._items = SchemaItems(chosen, prefer)
        self._rows_changed = rows_changed
        self._left_out: set[tuple[Side, str, str]] = set()
        self._left_out_types: set[tuple[Side, str]] = set()
        self._triples = paired_types(base, source, target)
        self._edges = {
            side: [view for triple in self._triples if (view := side_view(triple, side)) and view.kind is TypeKind.EDGE]
            for side in Side
        }

    def merge(self) -> MergedSchema:
        drafts = [draft for triple in self._triples if (draft := self._type(triple)) is not None]
        drafts = with_ends(with_unique_names(self._items, drafts))
        for item in self._items.unknown:
            raise InvalidRequestError(
                f"a resolution names the schema item '{item}', which neither branch has changed since they parted"
            )
        merged = build(drafts, self._base, (self._source, self._target))
        if not self._items.conflicts:
            merged = self._read_again(merged)
        return MergedSchema(
            merged,
            tuple(self._items.conflicts.values()),
            tuple(self._items.resolved.items()),
            frozenset(self._left_out),
            frozenset(self._left_out_types),
        )

    def _read_again(self, merged: Schema) -> Schema:
        """The schema as its text says it: with what interfaces bring to types that the other side added."""
        try:
            return assign_next_ids(merged, check(parse(render(merged), "merged.pg"))).schema
        except GraphError as fault:
            side = self._items.prefer
            if side is not None:
                self._items.resolved[WHOLE] = side
                return self._source if side is Side.SOURCE else self._target
            message = f"the schemas of both branches do not go together: {fault.message.splitlines()[0]}"
            self._items.conflict(WHOLE, message, None, None, None)
            return merged

    # -- types --------------------------------------------------------------------------------------------------------

    def _type(self, triple: Triple) -> Draft | None:
        views = triple.base, triple.source, triple.target
        key = next(view.key for view in views if view is not None)
        is_changed = triple.source != triple.base or triple.target != triple.base
        side = self._items.choice(key, _names(views), is_changed=is_changed)
        left_out = set(self._left_out)
        draft = self._merged(triple, key)
        if side is None or key in self._items.disputed:
            return draft
        # Nothing is in dispute: the caller wants the type as one side has it.
        self._left_out = left_out
        view = side_view(triple, side)
        if view is None:
            return None
        self._leave_out_misfits(triple, view, side)
        return Draft(triple, view, key, self._properties(triple, key, side))

    def _merged(self, triple: Triple, key: str) -> Draft | None:
        views = triple.base, triple.source, triple.target
        if triple.source is None or triple.target is None:
            kept = self._kept(triple, key)
            return None if kept is None else Draft(triple, kept, key, dict(kept.properties))
        if triple.base is None and _rules_of_ids(triple.source) != _rules_of_ids(triple.target):
            message = f"{key} was added on both branches with other ends or another key"
            side = self._items.decide(key, message, *map(describe_type, views))
            view = triple.source if side is Side.SOURCE else triple.target
            self._leave_out_misfits(triple, view, side)
            return Draft(triple, view, key, dict(view.properties))
        return Draft(triple, self._merged_type(triple, key), key, self._properties(triple, key, None))

    def _leave_out_misfits(self, triple: Triple, view: TypeView, side: Side) -> None:
        other = side_view(triple, side.other)
        if other is not None and _rules_of_ids(other) != _rules_of_ids(view):
            self._left_out_types.add((side.other, other.key))

    def _kept(self, triple: Triple, key: str) -> TypeView | None:
        """A type that one side has: added there, or dropped on the other."""
        side = Side.TARGET if triple.source is None else Side.SOURCE
        view = side_view(triple, side)
        if triple.base is None or view is None:
            return view
        joined = [
            edge.key for edge in self._edges[side] if triple.number in (edge.ends or ()) and self._is_new(edge, side)
        ]
        if view == triple.base and not joined and not self._rows_changed(side, triple.base.key, None):
            return None
        what = f"joined by {joined[0]}" if joined else "changed"
        message = f"{key} was dropped on the {side.other} and {what} on the {side}"
        images = (describe_type(triple.base), describe_type(triple.source), describe_type(triple.target))
        return view if self._items.decide(key, message, *images) is side else None

    def _is_new(self, edge: TypeView, side: Side) -> bool:
        """Whether an edge type is not at the base."""
        return any(triple.base is None and side_view(triple, side) is edge for triple in self._triples)

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
            images = ({what: str(value)} for value in known)
            side = self._items.decide(key, message, *images)
            return known[1] if side is Side.SOURCE else known[2]

        views = (base, source, target)
        annotations = self._items.annotations(key, *(None if view is None else view.annotations for view in views))
        return TypeView(
            source.kind,
            attribute("name", lambda view: view.name),
            annotations,
            _merged_sets(*(frozenset() if view is None else view.implements for view in (base, source, target))),
            attribute("ends", lambda view: view.ends),
            attribute("cardinality", lambda view: view.cardinality),
            self._constraints(triple, key),
        )

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
                value = ours if self._items.decide(item, message, *images) is Side.SOURCE else theirs
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
            side = self._items.choice(item, names, is_changed=is_changed) or whole
            part = self._property(triple, number, item) if whole is None else None
            if side is not None and item not in self._items.disputed:
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
            view = side_view(triple, side)
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
            images = (None if value is None else {what: str(value)} for value in known)
            return known[1] if self._items.decide(item, message, *images) is Side.SOURCE else known[2]

        merged = None if base is None else _merged_type(base.type, source.type, target.type)
        parts = (base, source, target)
        annotations = self._items.annotations(item, *(None if part is None else part.annotations for part in parts))
        return PropertyView(
            attribute("name", lambda part: part.name),
            attribute("type", lambda part: part.type) if merged is None else merged,
            annotations,
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
        return part if self._items.decide(item, message, *map(describe_property, parts)) is side else None


def _names(views: Iterable[TypeView | None]) -> list[str]:
    return list(dict.fromkeys(view.key for view in views if view is not None))


def _rules_of_ids(view: TypeView) -> tuple[object, ...]:
    """What decides which rows of two types are the same: the ends, and the key."""
    return view.ends, frozenset(slot for slot in view.constraints if slot.kind == Key.kind)


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
