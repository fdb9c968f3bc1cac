"""Which table of one branch is which of the other, and which schema holds after a merge.

A type is known by its number, whatever it is called and wherever its table lies: two branches that added the same type
have a table each for it.

Of a type that both sides have, one side is the *ground*: the result is its table with what the other side, the *delta*,
did since the base. The ground is the target, unless only the source's table has the columns of the result.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.branch.merge.base import Ancestors, Base
from omnigraph.branch.merge.choices import Choices, Side
from omnigraph.branch.merge.schema_items import SCHEMA, WHOLE
from omnigraph.branch.merge.schema_merge import MergedSchema, RowsChanged, merge_schemas
from omnigraph.errors import InvalidRequestError
from omnigraph.model.commit import Pin, Record
from omnigraph.model.conflict import MergeConflict, MergeConflictKind
from omnigraph.model.schema import EntityType, Schema
from omnigraph.model.schema_document import digest
from omnigraph.model.schema_match import Counterparts, match_schemas
from omnigraph.storage.layout import system_columns
from omnigraph.transaction.accepted import Accepted, accepted_schema
from omnigraph.transaction.evolve import ColumnChange, column_change
from omnigraph.transaction.write_set.reshaped import Reshape, default_value

SchemaOf = Callable[[str], Accepted]
# A state that a merge looks at: a side, a common ancestor by its place, or None for the one that a type's rows are
# compared with.
State = Side | int | None


@dataclass(frozen=True, slots=True)
class Lineage:
    """One type of the result and where it comes from.

    Attributes:
        key: its type key in the result.
        side: which side the ground is.
        keys: its type key in each state that has it.
        pins: its version in each of them.
        base_at: the place of the common ancestor that its rows are compared with.
        is_virtual: whether that is one of several, and the base has other rows than any of them.
    """

    key: str
    side: Side
    keys: Mapping[State, str]
    pins: Mapping[State, Pin]
    base_at: int = 0
    is_virtual: bool = False

    @property
    def base_key(self) -> str | None:
        """Its type key at the base; None where it was not there."""
        return self.keys.get(None)

    @property
    def base(self) -> Pin | None:
        """Its version at the base."""
        return self.pins.get(None)

    @property
    def ground(self) -> Pin:
        """Its version on the side that the result is made from."""
        return self.pins[self.side]

    @property
    def delta(self) -> Pin | None:
        """Its version on the other side; None where it is not there."""
        return self.pins.get(self.side.other)

    def differs(self, side: Side) -> bool:
        """Whether a side has another version than the base, as far as is known without reading rows."""
        pin = self.pins.get(side)
        return pin is not None and (self.is_virtual or not _same(pin, self.base))

    @property
    def is_same(self) -> bool:
        """Whether both sides have the same version."""
        return _same(self.ground, self.delta)


@dataclass(frozen=True, slots=True)
class Sides:
    """How two states go together.

    Attributes:
        accepted: the schema that holds afterwards.
        types: every type of the result.
        dropped: type keys of the target under which the result has no table, or another one.
        conflicts: why they do not go together.
        resolved: schema items that the caller decided.
        is_new: whether no commit has the schema yet, so that it has to be stored.
        replaced: properties of the target, and with None types, whose data gives way to that of the source.
    """

    accepted: Accepted
    types: tuple[Lineage, ...] = ()
    dropped: tuple[str, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    resolved: tuple[tuple[str, Side], ...] = ()
    is_new: bool = False
    replaced: frozenset[tuple[str, str | None]] = frozenset()
    _best: int = 1
    _schemas: Mapping[State, Schema] = field(default_factory=dict)
    _matches: Mapping[State, Counterparts] = field(default_factory=dict)
    _left_out: frozenset[tuple[Side, str, str]] = frozenset()

    @property
    def is_mixed(self) -> bool:
        """Whether the ground is the source for some types and the target for others."""
        return len({lineage.side for lineage in self.types}) > 1

    def reshape(self, lineage: Lineage, state: State) -> Reshape:
        """How rows of a state look in the columns of the result; any of these may be null."""
        entity = self.entity(lineage)
        names = {name: name for name in system_columns(entity)}
        at = lineage.base_at if state is None else state
        was = self._schemas[at].entity(lineage.keys.get(at, ""))
        if was is not None:
            left_out = {name for side, key, name in self._left_out if (side, key) == (at, was.type_key)}
            columns = self._matches[at].columns(was)
            names |= {new: old for new, old in columns.items() if old not in left_out}
        return Reshape(relaxed(self.accepted.columns[lineage.key]), names, defaults_of(entity, names))

    def restored(self, lineage: Lineage, side: Side) -> tuple[str, ...]:
        """Columns of the result that a side has dropped and the base has: rows of the side have what the base has."""
        if lineage.pins.get(side) is None:
            return ()
        bases: Iterable[State] = range(self._best) if lineage.is_virtual else (None,)
        at_base = {name: None for at in bases if at in lineage.pins for name in self.reshape(lineage, at).columns}
        there = self.reshape(lineage, side).columns
        return tuple(name for name in at_base if name not in there)

    def entity_on(self, lineage: Lineage, side: Side) -> EntityType:
        """A type as a side has it, under the numbers of the result."""
        entity = self.entity(lineage)
        was = self._schemas[side].entity(lineage.keys[side])
        assert was is not None, "a side has the type of its own key"
        columns = self.reshape(lineage, side).columns
        numbers = {columns[part.name]: part.property_id for part in entity.properties if part.name in columns}
        # What has no counterpart has a number that nothing in the result has.
        own = tuple(replace(part, property_id=numbers.get(part.name, -at)) for at, part in enumerate(was.properties, 1))
        return replace(was, type_id=entity.type_id, properties=own)

    def columns_change(self, lineage: Lineage, side: Side) -> ColumnChange:
        """What a side's table of a type lacks of the columns of the result.

        Columns that the result requires may be null in the table: rows that lack a value are conflicts.
        """
        entity = self.entity(lineage)
        values = self.reshape(lineage, side).values
        texts = {part.name: part.default for part in entity.properties if part.default and part.name in values}
        change = column_change(self.entity_on(lineage, side), entity, texts)
        return replace(change, tightened=(), added=tuple(field.with_nullable(nullable=True) for field in change.added))

    def entity(self, lineage: Lineage) -> EntityType:
        """A type as the result has it."""
        found = self.accepted.schema.entity(lineage.key)
        assert found is not None, "the result has its types"
        return found


def sides_of(
    base: Base,
    base_schema: Accepted | None,
    source: Record,
    target: Record,
    *,
    schema_of: SchemaOf,
    choices: Choices,
    rows_changed: RowsChanged,
) -> Sides:
    """How what two branches have goes together.

    Args:
        base: what they are compared with.
        base_schema: its schema; None where several common ancestors do not agree about it.
        source: the entry brought in.
        target: the head it is brought into.
        schema_of: the accepted schema of a digest.
        choices: how to decide.
        rows_changed: tells whether data changed that the other side's schema has dropped.

    Returns:
        The types of the result, or why the schemas cannot both stand.

    Raises:
        InvalidRequestError: a resolution for the schema does not fit.
    """
    records: dict[State, Record] = {**dict(enumerate(base.states)), Side.SOURCE: source, Side.TARGET: target}
    schemas = {state: schema_of(record.schema).schema for state, record in records.items()}
    merged = _merged(base_schema, records, schemas, choices, rows_changed)
    name = digest(merged.schema)
    known = next((record.schema for record in (target, source) if record.schema == name), None)
    accepted = accepted_schema(name, merged.schema) if known is None else schema_of(known)
    if merged.conflicts:
        return Sides(accepted, conflicts=merged.conflicts)
    sides = Sides(
        accepted,
        resolved=merged.resolved,
        is_new=known is None,
        replaced=frozenset(
            [
                *((key, name) for side, key, name in merged.left_out if side is Side.TARGET),
                *((key, None) for side, key in merged.left_out_types if side is Side.TARGET),
            ]
        ),
        _best=len(base.best),
        _schemas=schemas,
        _matches={state: match_schemas(schema, accepted.schema) for state, schema in schemas.items()},
        _left_out=merged.left_out,
    )
    types = tuple(_lineages(sides, base.ancestors, records, merged))
    own = {lineage.keys[Side.TARGET] for lineage in types if lineage.keys.get(Side.TARGET) == lineage.key}
    return replace(sides, types=types, dropped=tuple(key for key in sorted(target.tables) if key not in own))


def _merged(
    base: Accepted | None,
    records: Mapping[State, Record],
    schemas: Mapping[State, Schema],
    choices: Choices,
    rows_changed: RowsChanged,
) -> MergedSchema:
    chosen = schema_choices(choices)
    source, target = (records[side].schema for side in Side)
    if source == target:
        if chosen:
            raise InvalidRequestError("a resolution names the schema, which is the same on both branches")
        return MergedSchema(schemas[Side.TARGET])
    if base is None and WHOLE not in chosen:
        return _undecided(schemas, choices.prefer)
    merged = merge_schemas(
        schemas[0] if base is None else base.schema,
        schemas[Side.SOURCE],
        schemas[Side.TARGET],
        prefer=choices.prefer,
        chosen=chosen,
        rows_changed=rows_changed,
    )
    if base is not None and not merged.resolved and not merged.conflicts and base.digest in (source, target):
        # What one side made of the base, under the numbers that it has.
        return replace(merged, schema=schemas[Side.SOURCE if target == base.digest else Side.TARGET])
    return merged


def _undecided(schemas: Mapping[State, Schema], prefer: Side | None) -> MergedSchema:
    """Two schemas without a base: nothing tells which side changed what."""
    if prefer is not None:
        return MergedSchema(schemas[prefer], resolved=((WHOLE, prefer),))
    message = (
        "the branches have several common ancestors, which disagree about the schema; "
        f'take one side\'s schema as a whole ("{WHOLE}"), or name the commit to compare both sides with'
    )
    conflict = MergeConflict(MergeConflictKind.DIVERGENT_SCHEMA, SCHEMA, WHOLE, message)
    return MergedSchema(schemas[Side.TARGET], (conflict,))


def schema_choices(choices: Choices) -> dict[str, Side]:
    """What the caller decided about schema items.

    Raises:
        InvalidRequestError: it is not a side, or one item is named twice.
    """
    found: dict[str, Side] = {}
    for decision in choices.resolutions.get(SCHEMA, ()):
        item = decision.entity
        if not isinstance(item, str) or not isinstance(decision.resolution, Side):
            raise InvalidRequestError(f'the resolution for the schema item {item!r} must be "source" or "target"')
        if item in found:
            raise InvalidRequestError(f"two resolutions are for the schema item '{item}'")
        found[item] = decision.resolution
    return found


def relaxed(layout: pa.Schema) -> pa.Schema:
    """The columns of a type, each of which may be null: rows on their way from one schema to another may lack some."""
    return pa.schema([field.with_nullable(nullable=True) for field in layout])


def defaults_of(entity: EntityType, there: Container[str]) -> dict[str, object]:
    """What entities written before a required property was there have for it; `there` are the properties they had."""
    found: dict[str, object] = {}
    for prop in entity.properties:
        if prop.default is not None and not prop.type.nullable and prop.name not in there:
            found[prop.name] = default_value(prop, prop.default)
    return found


def _lineages(
    sides: Sides, ancestors: Ancestors, records: Mapping[State, Record], merged: MergedSchema
) -> list[Lineage]:
    keys: dict[State, dict[int, str]] = {}
    for state, schema in sides._schemas.items():
        found = {}
        for entity in schema.entities:
            after = sides._matches[state].entity(entity)
            if after is not None and (state, entity.type_key) not in merged.left_out_types:
                found[after.type_id] = entity.type_key
        keys[state] = found
    lineages = []
    for entity in sorted(sides.accepted.schema.entities, key=lambda entity: entity.type_key):
        own = {state: known[entity.type_id] for state, known in keys.items() if entity.type_id in known}
        pins = {state: records[state].tables[key] for state, key in own.items()}
        versions = [_version(pins.get(at)) for at in range(len(records) - len(Side))]
        latest = ancestors.latest(versions)
        at = latest[0] if latest else 0
        if at in pins:
            own[None], pins[None] = own[at], pins[at]
        side = Side.TARGET if Side.TARGET in pins else Side.SOURCE
        lineages.append(Lineage(entity.type_key, side, own, pins, at, len(latest) != 1))
    fitting = [
        {side for side in Side if side in lineage.pins and sides.columns_change(lineage, side).is_empty}
        for lineage in lineages
    ]
    for side in (Side.TARGET, Side.SOURCE):
        if all(side in fits for fits in fitting):
            return [replace(lineage, side=side) for lineage in lineages]
    return [
        replace(lineage, side=_ground(sides, lineage) if len(fits) != 1 else next(iter(fits)))
        for lineage, fits in zip(lineages, fitting, strict=True)
    ]


def _ground(sides: Sides, lineage: Lineage) -> Side:
    """Of a type that no side, or both, have in the columns of the result, the side that the result is made from."""
    if Side.SOURCE not in lineage.pins or Side.TARGET not in lineage.pins:
        return lineage.side
    lacking = {side: sides.restored(lineage, side) for side in Side}
    if all(lacking.values()):
        raise InvalidRequestError(
            f"{lineage.key} cannot keep {', '.join(lacking[Side.SOURCE])}, which the source dropped, and "
            f"{', '.join(lacking[Side.TARGET])}, which the target dropped; keep one of them, and merge again"
        )
    return Side.SOURCE if lacking[Side.TARGET] else Side.TARGET


def _same(one: Pin | None, other: Pin | None) -> bool:
    return _version(one) == _version(other)


def _version(pin: Pin | None) -> tuple[str, int] | None:
    return None if pin is None else (pin.table, pin.version)
