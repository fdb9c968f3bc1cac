"""From one schema to the next: a plan carried out as one commit.

No row is rewritten, unless what is dropped shall leave the store. A type keeps its table when it is renamed, a property
its column; a new type gets a table of its own, a new property a column in which everybody has nothing yet, or its
default. A property of a wider type gets a column anew, beside the others. Commits made before keep their own schema.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import ConstraintError
from omnigraph.model.commit import CommitKind, Pin
from omnigraph.model.schema import ID, SRC, Check, EdgeType, EntityType, Property, Range, Schema, Unique
from omnigraph.model.schema_change import (
    AddConstraint,
    ChangeCardinality,
    ChangePropertyType,
    FillProperty,
    SchemaPlan,
    Step,
)
from omnigraph.model.schema_change_document import dump_step
from omnigraph.storage.layout import arrow_type, table_schema
from omnigraph.storage.tables.declared import declared_indexes
from omnigraph.storage.tables.tables import ComputedColumn, Tables
from omnigraph.transaction.accepted import Accepted, refuse_other_schema
from omnigraph.transaction.constraint_rules.checks import broken_rows
from omnigraph.transaction.constraint_rules.rules import OneOf, value_rule
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import create_table
from omnigraph.transaction.write import Operation
from omnigraph.transaction.write_set import WriteSet
from omnigraph.transaction.write_set.pending import TableChange
from omnigraph.transaction.write_set.reshaped import default_value, repeated

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

EXAMPLES_MAX = 5

Mask = Any
"""Which rows, as kernels take it."""


@dataclass(frozen=True, slots=True)
class Breach:
    """The entities that stand in the way of a change."""

    count: int = 0
    ids: tuple[str, ...] = ()  # of some


def refuse_what_breaks(write_set: WriteSet, before: Schema, plan: SchemaPlan) -> None:
    """Stop a change of schema that the data does not allow."""
    was = {entity.type_id: entity for entity in before.entities}
    for now in plan.schema.entities:
        known = was.get(now.type_id)
        if known is None:
            continue
        for step in plan.steps:
            if getattr(step, "type_name", None) == now.name and getattr(step, "type_kind", None) == now.kind:
                found = breach_of(step, now, _Before(write_set, before, known, now))
                if found.count:
                    raise _refusal(step, now, found)


def _refusal(step: Step, now: EntityType, breach: Breach) -> ConstraintError:
    few = ", ".join(f"'{entity_id}'" for entity_id in breach.ids)
    more = "" if breach.count <= len(breach.ids) else ", …"
    nouns = "entity breaks" if breach.count == 1 else "entities break"
    return ConstraintError(
        f"cannot {step}: {breach.count} {nouns} it ({few}{more}); correct them first",
        code="schema_data_conflict",
        type_key=now.type_key,
        count=breach.count,
        ids=list(breach.ids),
    )


class RowsUnderChange(Protocol):
    """The rows that a change of schema concerns, as it leaves them."""

    def rows(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Ids, with some properties or ends by their names after the change."""

    def sources(self) -> "pa.ChunkedArray[Any]":
        """Of an edge type, the ids of the nodes that its edges may leave."""


def breach_of(step: Step, now: EntityType, looked_at: RowsUnderChange) -> Breach:
    """The entities that a step would leave wrong."""
    match step:
        case ChangePropertyType():
            wrong = _misfits(now, step)
            return Breach() if wrong is None else _judged(looked_at.rows([step.property_name]), wrong)
        case AddConstraint(constraint=Range() | Check() as added):
            rule = value_rule(now, added)
            return _judged(looked_at.rows([added.property]), lambda rows: broken_rows(rule, rows))
        case AddConstraint(constraint=Unique(properties=names)):
            return _sharing(looked_at.rows(names), names)
        case ChangeCardinality():
            return _of_wrong_degree(looked_at, step)
        case _:
            return Breach()


def _misfits(now: EntityType, step: ChangePropertyType) -> Callable[[pa.Table], Mask] | None:
    """Tells the rows whose value the new type does not have; None where it has all of them."""
    name, was, becomes = step.property_name, step.from_type, step.to_type
    values = becomes.enum_values
    fewer = values is not None and not (was.enum_values is not None and set(was.enum_values) <= set(values))
    required = was.nullable and not becomes.nullable
    if values is not None and fewer:
        listed = OneOf(now.name, name, values)
        if not required:
            return lambda rows: broken_rows(listed, rows)
        return lambda rows: pc.or_(broken_rows(listed, rows), pc.is_null(rows.column(name)))
    return (lambda rows: pc.is_null(rows.column(name))) if required else None


def _judged(rows: Iterable[pa.Table], wrong: Callable[[pa.Table], Mask]) -> Breach:
    count, shown = 0, list[str]()
    for some in rows:
        found = some.column(ID).filter(wrong(some))
        count += len(found)
        shown += map(str, found.slice(0, EXAMPLES_MAX - len(shown)).to_pylist())
    return Breach(count, tuple(shown))


@dataclass(frozen=True, slots=True)
class _Before:
    """The rows of a type before a change, as it will leave them: a new property has its default or nothing."""

    write_set: WriteSet
    schema: Schema
    was: EntityType
    now: EntityType

    def rows(self, names: Sequence[str]) -> Iterator[pa.Table]:
        old = {prop.property_id: prop.name for prop in self.was.properties}
        # The ends of an edge are no properties, and always called the same.
        declared = {name: self.now.property_named(name) for name in names}
        there = {name: name if prop is None else old.get(prop.property_id) for name, prop in declared.items()}
        wanted = [ID, *dict.fromkeys(column for column in there.values() if column is not None)]
        self.write_set.read_whole(self.was.type_key)
        for batch in self.write_set.snapshot.table(self.was.type_key).batches(columns=wanted):
            rows = pa.Table.from_batches([batch])
            columns: dict[str, Any] = {ID: rows.column(ID)}
            for name, prop in declared.items():
                column = there[name]
                if column is not None:
                    columns[name] = rows.column(column)
                elif prop is not None:
                    columns[name] = _fresh(prop, rows.num_rows)
            yield pa.table(columns)

    def sources(self) -> "pa.ChunkedArray[Any]":
        assert isinstance(self.was, EdgeType)
        leaves = self.was.from_type.type_id
        source = next(node for node in self.schema.nodes if node.type_id == leaves)
        return self.write_set.scan(source.type_key, columns=[ID]).column(ID)


def _fresh(each: Property, rows: int) -> "pa.Array[Any]":
    text = None if each.type.nullable else each.default
    return repeated(None if text is None else default_value(each, text), arrow_type(each.type), rows)


def _sharing(rows: Iterable[pa.Table], columns: Sequence[str]) -> Breach:
    """The entities whose tuple another one has; only tuples without an absent value count."""
    there = []
    for some in rows:
        has_all = some
        for column in columns:
            has_all = has_all.filter(pc.is_valid(has_all.column(column)))
        there.append(has_all)
    if not there:
        return Breach()
    everyone = pa.concat_tables(there)
    groups = everyone.group_by(list(columns)).aggregate([([], "count_all")])
    shared = groups.filter(pc.greater(groups.column("count_all"), 1)).select(list(columns))
    if not shared.num_rows:
        return Breach()
    found: Any = everyone.join(shared, keys=list(columns), join_type="left semi").column(ID)
    least = found.take(pc.select_k_unstable(found, EXAMPLES_MAX, [("", "ascending")]))
    return Breach(len(found), tuple(least.to_pylist()))


def _of_wrong_degree(looked_at: RowsUnderChange, step: ChangeCardinality) -> Breach:
    """The nodes that have too many or too few edges."""
    chunks = [chunk for rows in looked_at.rows([SRC]) for chunk in rows.column(SRC).chunks]
    counted = pc.value_counts(pa.chunked_array(chunks, pa.string()))
    nodes, counts = counted.field(0), counted.field(1)
    wrong = pc.less(counts, step.min)
    if step.max is not None:
        wrong = pc.or_(wrong, pc.greater(counts, step.max))
    found = [nodes.filter(wrong)]
    if step.min > 0:
        everyone = looked_at.sources()
        found.append(everyone.filter(pc.invert(pc.is_in(everyone, value_set=nodes))).combine_chunks())
    ids = pa.concat_arrays(found)
    return Breach(len(ids), tuple(ids.slice(0, EXAMPLES_MAX).to_pylist()))


# What a column is called while the one in whose place it comes is still there.
_PASSING = "__becoming "


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """How the columns of one type's table change."""

    was: EntityType
    now: EntityType
    dropped: tuple[str, ...] = ()  # columns that go
    renamed: tuple[tuple[str, str], ...] = ()  # columns under another name, old to new
    relaxed: tuple[str, ...] = ()  # columns that shall allow nulls
    tightened: tuple[str, ...] = ()  # columns that shall not
    computed: tuple[ComputedColumn, ...] = ()  # columns that come with values, under the names that `renamed` gives up
    added: tuple["pa.Field[pa.DataType]", ...] = ()  # columns that come, with nothing in them

    @property
    def is_empty(self) -> bool:
        """Whether the table stays as it is."""
        return not (self.dropped or self.renamed or self.relaxed or self.tightened or self.added or self.computed)

    def rework(self, tables: Tables, *, erases: bool = False) -> TableChange:
        """What makes a version with the new columns; with `erases`, no file of it holds values of dropped ones."""
        return partial(
            tables.stage_columns,
            erases_but=declared_indexes(self.now) if erases and self.dropped else None,
            computed=self.computed,
            dropped=self.dropped,
            renamed=dict(self.renamed),
            relaxed=self.relaxed,
            tightened=self.tightened,
            added=self.added,
        )


def evolution(context: GraphContext, before: Accepted, plan: SchemaPlan, digest: str) -> Operation:
    """The write that carries out a plan."""
    was = {entity.type_id: entity for entity in before.schema.entities}
    now = {entity.type_id: entity for entity in plan.schema.entities}
    changes = list(_changes(before.schema, plan))
    created: dict[str, Pin] = {}  # a second run uses the tables of the first

    def run(write_set: WriteSet) -> None:
        refuse_other_schema(before, write_set)
        refuse_what_breaks(write_set, before.schema, plan)
        write_set.accept_schema(digest)
        write_set.notes["steps"] = [dump_step(step) for step in plan.steps]
        # Old names are given up before new ones are taken, so that the order of types does not matter.
        moved = [change for change in changes if change.was.type_key != change.now.type_key]
        pins = {change.now.type_key: write_set.base_pin(change.was.type_key) for change in moved}
        for gone in [entity for number, entity in was.items() if number not in now]:
            write_set.remove_table(gone.type_key)
        for change in moved:
            write_set.remove_table(change.was.type_key)
        for key, pin in pins.items():
            write_set.add_table(key, pin)
        for fresh in [entity for number, entity in now.items() if number not in was]:
            if fresh.type_key not in created:
                created[fresh.type_key] = create_table(context, fresh.type_key, table_schema(fresh))
            write_set.add_table(fresh.type_key, created[fresh.type_key])
        for change in changes:
            if not change.is_empty:
                change_columns = change.rework(context.tables, erases=plan.drops_hard)
                write_set.change_table(change.now.type_key, change_columns, keeps_content=False)

    touched = {entity.type_key for entity in (*before.schema.entities, *plan.schema.entities)}
    return Operation(CommitKind.SCHEMA, frozenset(touched), run, redoable=True)


def _changes(before: Schema, plan: SchemaPlan) -> Iterator[ColumnChange]:
    """The types that stay, with what happens to their columns."""
    was = {entity.type_id: entity for entity in before.entities}
    defaults = {
        (step.type_kind, step.type_name, step.property_name): step.value
        for step in plan.steps
        if isinstance(step, FillProperty)
    }
    for now in plan.schema.entities:
        known = was.get(now.type_id)
        if known is not None:
            filled = {
                name: value
                for (kind, type_name, name), value in defaults.items()
                if (kind, type_name) == (now.kind, now.name)
            }
            yield column_change(known, now, filled)


def column_change(was: EntityType, now: EntityType, defaults: Mapping[str, str]) -> ColumnChange:
    """How the columns of a type change."""
    old = {prop.property_id: prop for prop in was.properties}
    new = {prop.property_id: prop for prop in now.properties}
    columns = table_schema(now)
    kept = [(prop, new[number]) for number, prop in old.items() if number in new]
    widened = [(before, after) for before, after in kept if arrow_type(before.type) != arrow_type(after.type)]
    same = [pair for pair in kept if pair not in widened]
    fresh = [prop for number, prop in new.items() if number not in old]
    computed = [_widened(before.name, columns.field(after.name)) for before, after in widened]
    computed += [
        _filled(prop, columns.field(prop.name), defaults[prop.name]) for prop in fresh if prop.name in defaults
    ]
    return ColumnChange(
        was,
        now,
        dropped=(
            *(prop.name for number, prop in old.items() if number not in new),
            *(before.name for before, _ in widened),
        ),
        renamed=(
            *((before.name, after.name) for before, after in same if before.name != after.name),
            *((column.field.name, column.field.name.removeprefix(_PASSING)) for column in computed),
        ),
        relaxed=tuple(before.name for before, after in same if after.type.nullable and not before.type.nullable),
        tightened=tuple(before.name for before, after in same if before.type.nullable and not after.type.nullable),
        computed=tuple(computed),
        added=tuple(columns.field(prop.name) for prop in fresh if prop.name not in defaults),
    )


def _widened(source: str, field: "pa.Field[pa.DataType]") -> ComputedColumn:
    def values(before: "pa.Array[Any]") -> "pa.Array[Any]":
        return before.cast(field.type)

    return ComputedColumn(field.with_name(_PASSING + field.name), source, values)


def _filled(each: Property, field: "pa.Field[pa.DataType]", default: str) -> ComputedColumn:
    value = default_value(each, default)

    def values(ids: "pa.Array[Any]") -> "pa.Array[Any]":
        return repeated(value, field.type, len(ids))

    return ComputedColumn(field.with_name(_PASSING + field.name), ID, values)
