"""What the caller of a merge says: whose rows to take, and what to do about single entities."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import pyarrow as pa

from omnigraph.errors import ConstraintError, InvalidRequestError
from omnigraph.ids import IdSource
from omnigraph.model.keys import list_key_columns
from omnigraph.model.schema import DST, ID, SRC, EntityType, NodeType, Schema
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.incoming import Frame, derived_ids, incoming_edges, incoming_nodes


class Side(StrEnum):
    """The branch brought in, or the branch changed."""

    SOURCE = "source"
    TARGET = "target"

    @property
    def other(self) -> "Side":
        """The other one."""
        return Side.TARGET if self is Side.SOURCE else Side.SOURCE


Row = Mapping[str, object]

PROPERTIES = "$properties"
UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Cells:
    """A decision for single properties of an entity; the others are put together as if nothing was decided.

    Attributes:
        sides: by property, whose value to take.
        values: by property, a value to have instead of either.
    """

    sides: Mapping[str, Side] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict)


# A side's state, a row to have instead of either, single properties, or None: the entity is to be deleted.
Resolution = Side | Row | Cells | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about one entity.

    Attributes:
        entity: its id; or its key, as values by property (`from` and `to` are the ends of an edge) or in their order.
        resolution: what to do.
    """

    entity: str | Mapping[str, object] | Sequence[object]
    resolution: Resolution


By = Literal["row", "property"]


@dataclass(frozen=True, slots=True)
class Choices:
    """How a merge decides.

    Attributes:
        by: `row`: a row that both sides changed is a conflict; `property`: only where both changed one property.
        prefer: the side that wins conflicts over rows; None where they are reported.
        resolutions: by type, what to do about entities, in conflict or not. Types are type keys, or names.
        base: the commit to compare both sides with; None for the last that they have in common.
    """

    by: By = "row"
    prefer: Side | None = None
    resolutions: Mapping[str, Sequence[Decision]] = field(default_factory=dict)
    base: str | None = None


def read_resolutions(given: object) -> dict[str, tuple[Decision, ...]]:
    """Read resolutions from a plain document.

    Args:
        given: as JSON has it: by type, an object of decisions by id, or a list of objects with `id` or `key` and
            `decision`; what else these have is passed over. A decision is `"source"`, `"target"`, a row, null to
            delete, `{"$properties": {name: "source", "target" or {"value": …}}}`, or `"undecided"`.

    Raises:
        InvalidRequestError: it is something else.
    """
    if not isinstance(given, Mapping):
        raise InvalidRequestError("resolutions are an object of types, each an object of ids")
    return {str(name): tuple(_decisions(name, decisions)) for name, decisions in given.items()}


def resolutions_document(resolutions: Mapping[str, Sequence[Decision]]) -> dict[str, list[dict[str, object]]]:
    """The document that `read_resolutions` reads."""
    return {
        name: [
            {
                "id" if isinstance(decision.entity, str) else "key": decision.entity,
                "decision": _document(decision.resolution),
            }
            for decision in decisions
        ]
        for name, decisions in resolutions.items()
    }


def _decisions(name: object, given: object) -> Iterator[Decision]:
    if isinstance(given, Mapping):
        named: Iterable[tuple[object, object]] = ((str(entity), given_value) for entity, given_value in given.items())
    elif isinstance(given, Sequence) and all(isinstance(item, Mapping) for item in given):
        named = (_named(name, item) for item in given)
    else:
        raise InvalidRequestError(
            f"resolutions for '{name}' must be an object of ids, or a list of objects with an id and a decision"
        )
    for entity, given_value in named:
        if given_value == UNDECIDED or not isinstance(entity, str | Mapping | Sequence):
            continue
        yield Decision(entity, _resolution(name, entity, given_value))


def _named(name: object, given: Mapping[str, object]) -> tuple[object, object]:
    """The entity and the decision of an item of a list."""
    entity = given.get("id", given.get("key"))
    is_named = isinstance(given.get("id"), str) or isinstance(given.get("key"), Mapping | list | tuple)
    if not is_named or "decision" not in given:
        raise InvalidRequestError(f"a resolution for '{name}' must have an 'id' or a 'key', and a 'decision'")
    return entity, given["decision"]


def _resolution(name: object, entity: object, given_value: object) -> Resolution:
    if given_value is None:
        return None
    if isinstance(given_value, Mapping):
        return _cells(name, entity, given_value[PROPERTIES]) if list(given_value) == [PROPERTIES] else _row(given_value)
    if isinstance(given_value, str) and given_value in tuple(Side):
        return Side(given_value)
    raise InvalidRequestError(
        f'the resolution for {name} \'{entity}\' must be "source", "target", a row or null, '
        f'or {{"{PROPERTIES}": …}} for some of its properties'
    )


def _row(given: Mapping[object, object]) -> Row:
    return {str(name): value for name, value in given.items()}


def _cells(name: object, entity: object, given: object) -> Cells:
    sides: dict[str, Side] = {}
    values: dict[str, object] = {}
    if not isinstance(given, Mapping):
        raise InvalidRequestError(f"'{PROPERTIES}' of {name} '{entity}' must be an object of properties")
    for prop, given_value in given.items():
        if isinstance(given_value, str) and given_value in tuple(Side):
            sides[str(prop)] = Side(given_value)
        elif isinstance(given_value, Mapping) and list(given_value) == ["value"]:
            values[str(prop)] = given_value["value"]
        elif given_value != UNDECIDED:
            raise InvalidRequestError(
                f'the resolution for {prop} of {name} \'{entity}\' must be "source", "target" or {{"value": …}}'
            )
    return Cells(sides, values)


def _document(resolution: Resolution) -> object:
    if isinstance(resolution, Cells):
        values = {name: {"value": value} for name, value in resolution.values.items()}
        return {PROPERTIES: {**{name: side.value for name, side in resolution.sides.items()}, **values}}
    return resolution.value if isinstance(resolution, Side) else resolution


_ENDS = {"from": SRC, "to": DST}
_END = PropertyType(Scalar.STRING)


def by_type_key(resolutions: Mapping[str, Sequence[Decision]], schema: Schema) -> dict[str, dict[str, Resolution]]:
    """Resolutions by type key and id.

    Raises:
        InvalidRequestError: there is no such type, a key does not fit it, or an entity is named twice.
    """
    found: dict[str, dict[str, Resolution]] = {}
    for name, decisions in resolutions.items():
        entity = schema.entity(name) if ":" in name else schema.node(name) or schema.edge(name)
        if entity is None:
            raise InvalidRequestError(f"a resolution names the type '{name}', which there is not")
        by_id = found.setdefault(entity.type_key, {})
        for entity_id, decision in zip(_ids(entity, decisions), decisions, strict=True):
            if entity_id in by_id:
                raise InvalidRequestError(f"two resolutions are for {entity.type_key} '{entity_id}'")
            by_id[entity_id] = decision.resolution
    return found


def given_rows(
    accepted: Accepted, type_key: str, rows: Mapping[str, Row], *, ids: IdSource, blobs: BlobIngress
) -> pa.Table:
    """Rows of resolutions in the columns of their type, in the order of the ids they are for.

    Raises:
        InvalidRequestError: a value does not fit, or a row has another id than its resolution is for.
    """
    try:
        return _incoming(accepted, type_key, rows, ids, blobs)
    except (InvalidRequestError, ConstraintError):
        for entity_id, row in rows.items():
            try:
                _incoming(accepted, type_key, {entity_id: row}, ids, blobs)
            except (InvalidRequestError, ConstraintError) as fault:
                raise InvalidRequestError(f"the resolution for {type_key} '{entity_id}': {fault.message}") from fault
        raise


def given_values(entity: EntityType, name: str, values: Sequence[object], blobs: BlobIngress) -> "pa.Array[Any]":
    """Values of resolutions in the column of their property, or of an end.

    Raises:
        InvalidRequestError: a value does not fit, or there is no such property.
    """
    of = _type_of(entity, name)
    return Frame([{name: value} for value in values], entity.type_key, blobs).column(name, of)


def column_named(entity: EntityType, name: str) -> str:
    """The column that a resolution means by a name; the ends of an edge have two.

    Raises:
        InvalidRequestError: it names no property, or one that the id is derived from.
    """
    column = name if entity.property_named(name) is not None else _ENDS.get(name, name)
    _type_of(entity, column)
    if column in dict(list_key_columns(entity)):
        raise InvalidRequestError(f"a resolution names '{name}', which is part of the key of {entity.type_key}")
    return column


def with_columns_named(entity: EntityType, row: Row) -> dict[str, object]:
    """A row of a resolution, its ends called as the columns are."""
    if isinstance(entity, NodeType):
        return dict(row)
    return {name if entity.property_named(name) is not None else _ENDS.get(name, name): row[name] for name in row}


def columns_kept(entity: EntityType) -> tuple[str, ...]:
    """The columns that a row given for an entity may leave out, and that stay as they are then: key and ends."""
    ends = () if isinstance(entity, NodeType) else (SRC, DST)
    return tuple(dict.fromkeys((*ends, *(name for name, _ in list_key_columns(entity)))))


def _incoming(
    accepted: Accepted, type_key: str, rows: Mapping[str, Row], ids: IdSource, blobs: BlobIngress
) -> pa.Table:
    entity = accepted.schema.entity(type_key)
    if entity is None:
        raise InvalidRequestError(f"a resolution names the type '{type_key}', which there is not")
    frame = Frame([{ID: entity_id} | dict(row) for entity_id, row in rows.items()], type_key, blobs)
    if isinstance(entity, NodeType):
        found = incoming_nodes(entity, accepted.rules.types[type_key], frame, ids).rows
    else:
        found = incoming_edges(entity, frame, ids).rows
    if found.column(ID).to_pylist() != list(rows):
        raise InvalidRequestError("the row has another id")
    return found


def _ids(entity: EntityType, decisions: Sequence[Decision]) -> list[str]:
    """The ids that decisions are for; those of keys are derived a column at a time."""
    parts = list_key_columns(entity)
    keys = [
        _key(entity, [name for name, _ in parts], decision.entity)
        for decision in decisions
        if not isinstance(decision.entity, str)
    ]
    if not keys:
        return [str(decision.entity) for decision in decisions]
    frame = Frame(keys, entity.type_key)
    derived = iter(derived_ids(entity, {name: frame.column(name, of) for name, of in parts}).to_pylist())
    return [decision.entity if isinstance(decision.entity, str) else str(next(derived)) for decision in decisions]


def _key(entity: EntityType, names: list[str], given: Mapping[str, object] | Sequence[object]) -> dict[str, object]:
    found = with_columns_named(entity, given if isinstance(given, Mapping) else dict(zip(names, given, strict=False)))
    if not names or set(found) != set(names) or len(given) != len(names):
        expected = f"its key is {', '.join(names)}" if names else "it has none; give an id"
        raise InvalidRequestError(f"a resolution for {entity.type_key} has another key: {expected}")
    return found


def _type_of(entity: EntityType, column: str) -> PropertyType:
    found = entity.property_named(column)
    if found is not None:
        return found.type
    if not isinstance(entity, NodeType) and column in (SRC, DST):
        return _END
    raise InvalidRequestError(f"a resolution names the property '{column}', which {entity.type_key} does not have")
