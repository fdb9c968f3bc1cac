"""Which table of one branch is which of the other, and which schema holds after a merge.

Numbers of types are counted by each branch for itself, so they mean nothing across branches. A table is known by where
it lies: a type that was renamed keeps its table, one that was dropped and added again has another.

One side is the *ground*: the result is its tables with what the other side, the *delta*, did since the base. The ground
is the target, unless only the source has changed the schema: then it is the source, whose tables have the columns.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.branch.merge.choices import Side
from omnigraph.model.commit import Pin, Record
from omnigraph.model.conflict import MergeConflict, MergeConflictKind
from omnigraph.model.schema import EntityType
from omnigraph.storage.layout import system_columns
from omnigraph.transaction.defaults import default_value, repeated


@dataclass(frozen=True, slots=True)
class Lineage:
    """One type of the result and where it comes from.

    Attributes:
        key: its type key in the result.
        base_key: its type key at the base; None where it was not there.
        base: its version at the base.
        ground: its version on the side whose schema holds.
        delta: its version on the other side; None where it is not there.
    """

    key: str
    base_key: str | None
    base: Pin | None
    ground: Pin
    delta: Pin | None

    @property
    def ground_changed(self) -> bool:
        """Whether the ground has another version than the base."""
        return not _same(self.ground, self.base)

    @property
    def delta_changed(self) -> bool:
        """Whether the other side has another version than the base."""
        return self.delta is not None and not _same(self.delta, self.base)

    @property
    def is_same(self) -> bool:
        """Whether both sides have the same version."""
        return _same(self.ground, self.delta)


@dataclass(frozen=True, slots=True)
class Sides:
    """How two states go together.

    Attributes:
        ground: the side whose tables the result is made of.
        schema: digest of the schema that holds afterwards.
        types: every type of the result.
        dropped: type keys of the target that are not in the result.
        conflicts: why they do not go together.
    """

    ground: Side
    schema: str
    types: tuple[Lineage, ...] = ()
    dropped: tuple[str, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()


def sides_of(base: Record, source: Record, target: Record) -> Sides:
    """How what two branches have goes together.

    Args:
        base: the common ancestor's state.
        source: the entry brought in.
        target: the head it is brought into.

    Returns:
        The types of the result, or why the schemas cannot both stand.
    """
    if source.schema in (target.schema, base.schema):
        ground = Side.TARGET
    elif target.schema == base.schema:
        ground = Side.SOURCE
    else:
        return Sides(Side.TARGET, target.schema, conflicts=(_both_changed(base, source, target),))
    on, other = (target, source) if ground is Side.TARGET else (source, target)
    types = tuple(_lineage(key, base, on, other) for key in sorted(on.tables))
    used = {each.delta.table for each in types if each.delta is not None}
    at_base = {pin.table: pin for pin in base.tables.values()}
    conflicts = [
        _dropped_and_changed(key, dropped_by=ground)
        for key, pin in sorted(other.tables.items())
        if pin.table not in used and not _same(pin, at_base.get(pin.table))
    ]
    dropped = tuple(key for key in sorted(target.tables) if key not in on.tables)
    return Sides(ground, on.schema, types, dropped, tuple(conflicts))


def columns_from(before: EntityType, after: EntityType) -> dict[str, str]:
    """The columns of a type, new name to old, where one schema was made from the other on one line."""
    names = {each.property_id: each.name for each in before.properties}
    kept = {each.name: names[each.property_id] for each in after.properties if each.property_id in names}
    return {name: name for name in system_columns(after)} | kept


def relaxed(layout: pa.Schema) -> pa.Schema:
    """The columns of a type, each of which may be null: rows on their way from one schema to another may lack some."""
    return pa.schema([field.with_nullable(nullable=True) for field in layout])


def fitted(
    rows: pa.Table, names: Mapping[str, str], layout: pa.Schema, defaults: Mapping[str, object] | None = None
) -> pa.Table:
    """Rows in the columns of a type.

    Args:
        rows: in the columns they were written in.
        names: of each column, what it is called there; columns that were not there are not among them.
        layout: the columns they are to have; any may be null.
        defaults: of columns that were not there, the value of the rows there are; null by default.

    Returns:
        The same rows.
    """
    columns = []
    for field in layout:
        old = names.get(field.name)
        if old in rows.column_names:
            columns.append(rows.column(old).cast(field.type))
        else:
            value = (defaults or {}).get(field.name)
            columns.append(pa.chunked_array([repeated(value, field.type, rows.num_rows)]))
    return pa.Table.from_arrays(columns, schema=layout)


def defaults_of(entity: EntityType, there: Container[str]) -> dict[str, object]:
    """What entities written before a required property was there have for it; `there` are the properties they had."""
    found: dict[str, object] = {}
    for each in entity.properties:
        if each.default is not None and not each.type.nullable and each.name not in there:
            found[each.name] = default_value(each, each.default)
    return found


def _lineage(key: str, base: Record, on: Record, other: Record) -> Lineage:
    ground = on.tables[key]
    base_key = _key_of(base, ground.table)
    delta_key = _key_of(other, ground.table)
    if delta_key is None and base_key is None and key in other.tables:
        # Made on both sides for themselves: one type, two tables, nothing in common.
        made = other.tables[key].table
        delta_key = key if _key_of(base, made) is None and _key_of(on, made) is None else None
    return Lineage(
        key,
        base_key,
        None if base_key is None else base.tables[base_key],
        ground,
        None if delta_key is None else other.tables[delta_key],
    )


def _key_of(record: Record, table: str) -> str | None:
    return next((key for key, pin in record.tables.items() if pin.table == table), None)


def _same(one: Pin | None, other: Pin | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.table, one.version) == (other.table, other.version)


def _both_changed(base: Record, source: Record, target: Record) -> MergeConflict:
    return MergeConflict(
        MergeConflictKind.DIVERGENT_SCHEMA,
        "schema",
        None,
        "both branches changed the schema; apply one branch's change on the other first, then merge",
        base={"schema": base.schema},
        source={"schema": source.schema},
        target={"schema": target.schema},
    )


def _dropped_and_changed(key: str, *, dropped_by: Side) -> MergeConflict:
    message = f"{key} was dropped on the {dropped_by} and changed on the {dropped_by.other}"
    return MergeConflict(MergeConflictKind.DIVERGENT_SCHEMA, key, None, message)
