"""Whether the data there is allows a change of schema: looked at before anything is written, column by column.

What is judged row by row is read a batch at a time, so that memory does not follow the size of a type.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import ConstraintError
from omnigraph.model.schema import ID, SRC, Check, EdgeType, EntityType, Property, Range, Schema, Unique
from omnigraph.model.schema_change import AddConstraint, ChangeCardinality, ChangePropertyType, SchemaPlan, Step
from omnigraph.storage.layout import arrow_type
from omnigraph.transaction.constraint_rules.rules import OneOf, value_rule
from omnigraph.transaction.constraint_rules.values import broken_rows
from omnigraph.transaction.defaults import default_value, repeated
from omnigraph.transaction.write_set import WriteSet

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

EXAMPLES_MAX = 5

Mask = Any
"""Which rows, as kernels take it."""


@dataclass(frozen=True, slots=True)
class Breach:
    """The entities that stand in the way of a change.

    Attributes:
        count: how many.
        ids: of some.
    """

    count: int = 0
    ids: tuple[str, ...] = ()


def refuse_what_breaks(write_set: WriteSet, before: Schema, plan: SchemaPlan) -> None:
    """Stop a change of schema that the data does not allow.

    Args:
        write_set: the write, before it has changed anything.
        before: the schema the data keeps to.
        plan: the changes.

    Raises:
        ConstraintError: the first that it does not allow, with how many entities break it and some of their ids.
    """
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
    """The entities that a step would leave wrong.

    `step`: what changes.
    `now`: the type after it.
    `looked_at`: its rows.
    """
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
