"""Whether the data there is allows a change of schema: looked at column by column, before anything is written."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import ConstraintError
from omnigraph.model.schema import ID, SRC, Check, EdgeType, EntityType, Property, Range, Schema, Unique
from omnigraph.model.schema_change import AddConstraint, ChangeCardinality, ChangePropertyType, SchemaPlan, Step
from omnigraph.storage.layout import arrow_type
from omnigraph.transaction.constraint_rules.rules import value_rule
from omnigraph.transaction.constraint_rules.values import broken_rows
from omnigraph.transaction.defaults import default_value, repeated
from omnigraph.transaction.staging import Staging

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

EXAMPLES_MAX = 5


def refuse_what_breaks(staging: Staging, before: Schema, plan: SchemaPlan) -> None:
    """Stop a change of schema that the data does not allow.

    Args:
        staging: the write, before it has changed anything.
        before: the schema the data keeps to.
        plan: the changes.

    Raises:
        ConstraintError: the first that it does not allow, with how many entities break it and some of their ids.
    """
    was = {each.type_id: each for each in before.entities}
    for now in plan.schema.entities:
        known = was.get(now.type_id)
        if known is None:
            continue
        for step in plan.steps:
            if getattr(step, "type_name", None) == now.name and getattr(step, "type_kind", None) == now.kind:
                ids = _breaking(staging, before, known, now, step)
                if len(ids):
                    raise _refusal(step, now, ids)


def _refusal(step: Step, now: EntityType, ids: "pa.Array[Any]") -> ConstraintError:
    shown = [str(each) for each in ids.slice(0, EXAMPLES_MAX).to_pylist()]
    few = ", ".join(f"'{each}'" for each in shown)
    more = "" if len(ids) <= len(shown) else ", …"
    nouns = "entity breaks" if len(ids) == 1 else "entities break"
    return ConstraintError(
        f"cannot {step}: {len(ids)} {nouns} it ({few}{more}); correct them first",
        code="schema_data_conflict",
        type_key=now.type_key,
        count=len(ids),
        ids=shown,
    )


def _breaking(staging: Staging, before: Schema, was: EntityType, now: EntityType, step: Step) -> "pa.Array[Any]":
    """The ids of the entities that a step would leave wrong."""
    match step:
        case ChangePropertyType() if step.from_type.nullable and not step.to_type.nullable:
            rows = _rows(staging, was, now, [step.property_name])
            return _ids(rows, pc.is_null(rows.column(step.property_name)))
        case AddConstraint(constraint=Range() | Check() as added):
            rows = _rows(staging, was, now, [added.property])
            return _ids(rows, broken_rows(value_rule(now, added), rows))
        case AddConstraint(constraint=Unique(properties=names)):
            return _sharing(_rows(staging, was, now, names), names)
        case ChangeCardinality():
            return _of_wrong_degree(staging, before, was, step)
        case _:
            return pa.array([], pa.string())


def _rows(staging: Staging, was: EntityType, now: EntityType, names: Sequence[str]) -> pa.Table:
    """The ids there are, with properties as the change leaves them: a new one has its default or nothing."""
    old = {each.property_id: each.name for each in was.properties}
    # The ends of an edge are no properties, and always called the same.
    declared = {name: now.property_named(name) for name in names}
    there = {name: name if each is None else old.get(each.property_id) for name, each in declared.items()}
    rows = staging.scan(was.type_key, columns=[ID, *(column for column in there.values() if column is not None)])
    columns: dict[str, Any] = {ID: rows.column(ID)}
    for name, each in declared.items():
        column = there[name]
        if column is not None:
            columns[name] = rows.column(column)
        elif each is not None:
            columns[name] = _fresh(each, rows.num_rows)
    return pa.table(columns)


def _fresh(each: Property, rows: int) -> "pa.Array[Any]":
    text = None if each.type.nullable else each.default
    return repeated(None if text is None else default_value(each, text), arrow_type(each.type), rows)


def _ids(rows: pa.Table, wrong: "pa.ChunkedArray[Any]") -> "pa.Array[Any]":
    """The ids of the rows for which a mask is true."""
    return rows.column(ID).filter(wrong).combine_chunks()


def _sharing(rows: pa.Table, columns: Sequence[str]) -> "pa.Array[Any]":
    """The ids of the entities whose tuple another one has."""
    for column in columns:
        rows = rows.filter(pc.is_valid(rows.column(column)))
    groups = rows.group_by(list(columns)).aggregate([(ID, "count"), (ID, "list")])
    shared = groups.filter(pc.greater(groups.column(f"{ID}_count"), 1))
    found = pc.list_flatten(shared.column(f"{ID}_list").combine_chunks())
    ordered: pa.Array[Any] = found.take(pc.sort_indices(found))
    return ordered


def _of_wrong_degree(staging: Staging, before: Schema, was: EntityType, step: ChangeCardinality) -> "pa.Array[Any]":
    """The ids of the nodes that have too many or too few edges."""
    assert isinstance(was, EdgeType)
    edges = staging.scan(was.type_key, columns=[SRC])
    counted = pc.value_counts(edges.column(SRC))
    nodes, counts = counted.field(0), counted.field(1)
    wrong = pc.less(counts, step.min)
    if step.max is not None:
        wrong = pc.or_(wrong, pc.greater(counts, step.max))
    found = [nodes.filter(wrong)]
    if step.min > 0:
        source = next(each for each in before.nodes if each.type_id == was.from_type.type_id)
        everyone = staging.scan(source.type_key, columns=[ID]).column(ID)
        found.append(everyone.filter(pc.invert(pc.is_in(everyone, value_set=nodes))).combine_chunks())
    return pa.concat_arrays(found)
