"""Apply the resolutions of a merge to the types of its schema: ids from keys, rows from values."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.branch.merge.choices import Decision, Resolution, Row
from omnigraph.errors import ConstraintError, InvalidRequestError
from omnigraph.ids import IdSource
from omnigraph.model.keys import list_key_columns
from omnigraph.model.schema import DST, ID, SRC, EntityType, NodeType, Schema
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.incoming import Frame, derived_ids, incoming_edges, incoming_nodes

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
