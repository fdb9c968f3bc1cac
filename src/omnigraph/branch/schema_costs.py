"""The steps from one schema to another, with the data they lose: what a preview of a merge shows about the schema."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TypeVar

from omnigraph.language.schema import plan_steps
from omnigraph.model.commit import UNKNOWN, Record
from omnigraph.model.schema import EdgeType, NodeType, Schema, TypeKind
from omnigraph.model.schema_change import DropProperty, DropType, RenameType, Step
from omnigraph.model.schema_cost import CostedStep
from omnigraph.model.schema_match import renumbered
from omnigraph.storage.tables.tables import Tables

# A type key and the name of a property; None for the type as a whole.
Replaced = tuple[str, str | None]
_Entity = TypeVar("_Entity", NodeType, EdgeType)


def costed_steps(
    tables: Tables, before: Schema, state: Record, after: Schema, *, replaced: Collection[Replaced] = ()
) -> tuple[CostedStep, ...]:
    """List the steps from the schema of a state to another one, with the rows and values they lose there.

    Args:
        tables: of the graph.
        before: the schema of the state.
        state: the entry whose rows are counted, for a merge the target's head.
        after: the schema that is to hold; for a merge, that of its result.
        replaced: what of the state gives way to another thing of the same name.

    Returns:
        The steps in order. Only tables with a dropped property are read, and of these one column.
    """
    steps = plan_steps(_set_apart(renumbered(before, after), replaced), after, validated=True)
    was_called = {(step.type_kind, step.to_name): step.from_name for step in steps if isinstance(step, RenameType)}
    return tuple(_costed(tables, state, steps, was_called))


def _set_apart(schema: Schema, replaced: Collection[Replaced]) -> Schema:
    """A schema in which what is replaced has numbers of its own: it is dropped, and the other is added."""
    if not replaced:
        return schema

    def apart(of: _Entity) -> _Entity:
        parts = tuple(
            replace(part, property_id=-place) if (of.type_key, part.name) in replaced else part
            for place, part in enumerate(of.properties, 1)
        )
        type_id = -of.type_id if (of.type_key, None) in replaced else of.type_id
        return replace(of, type_id=type_id, properties=parts)

    return replace(schema, nodes=tuple(map(apart, schema.nodes)), edges=tuple(map(apart, schema.edges)))


def _costed(
    tables: Tables, state: Record, steps: tuple[Step, ...], was_called: dict[tuple[TypeKind, str], str]
) -> Iterator[CostedStep]:
    for step in steps:
        match step:
            case DropType(kind, name):
                pin = state.tables[f"{kind}:{name}"]
                rows = tables.open(pin).count() if pin.rows == UNKNOWN else pin.rows
                yield CostedStep(step, rows_lost=rows)
            case DropProperty(kind, type_name, name):
                old_name = was_called.get((kind, type_name), type_name)
                table = state.tables.get(f"{kind}:{old_name}")
                # A property of an interface has no column; the types that implement it have steps of their own.
                values = 0 if table is None else tables.open(table).count(f"`{name}` IS NOT NULL")
                yield CostedStep(step, values_lost=values)
            case _:
                yield CostedStep(step)
