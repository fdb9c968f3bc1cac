"""What the caller of a merge says about entities: take one side's state, or this row, or delete it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from omnigraph.branch.merge.sides import Side
from omnigraph.errors import InvalidRequestError
from omnigraph.ids import IdSource
from omnigraph.model.schema import DST, ID, SRC, EdgeType, NodeType, Schema
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.incoming import Frame, incoming_edges, incoming_nodes

Row = Mapping[str, object]
# A side's state, a row to have instead of either, or None: the entity is to be deleted.
Resolution = Side | Row | None
By = Literal["row", "property"]


@dataclass(frozen=True, slots=True)
class Choices:
    """How a merge decides.

    Attributes:
        by: `row`: a row that both sides changed is a conflict; `property`: only where both changed one property.
        prefer: the side that wins conflicts over rows; None where they are reported.
        resolutions: by type and id, what to do whether or not it conflicts. Types are type keys, or names.
    """

    by: By = "row"
    prefer: Side | None = None
    resolutions: Mapping[str, Mapping[str, Resolution]] = field(default_factory=dict)


def read_resolutions(given: object) -> dict[str, dict[str, Resolution]]:
    """Resolutions from a plain document: by type, by id, `"source"`, `"target"`, a row, or null to delete.

    Args:
        given: as JSON has it.

    Returns:
        The same, as values.

    Raises:
        InvalidRequestError: it is something else.
    """
    if not isinstance(given, Mapping):
        raise InvalidRequestError("resolutions are an object of types, each an object of ids")
    found: dict[str, dict[str, Resolution]] = {}
    for type_name, by_id in given.items():
        if not isinstance(by_id, Mapping):
            raise InvalidRequestError(f"resolutions for '{type_name}' must be an object of ids")
        found[str(type_name)] = {str(each): _resolution(type_name, each, said) for each, said in by_id.items()}
    return found


def _resolution(type_name: object, entity_id: object, said: object) -> Resolution:
    if said is None:
        return None
    if isinstance(said, Mapping):
        return {str(name): value for name, value in said.items()}
    if isinstance(said, str) and said in tuple(Side):
        return Side(said)
    raise InvalidRequestError(
        f'the resolution for {type_name} \'{entity_id}\' must be "source", "target", a row or null'
    )


def by_type_key(
    resolutions: Mapping[str, Mapping[str, Resolution]], schema: Schema
) -> dict[str, dict[str, Resolution]]:
    """Resolutions under the keys of their types.

    Raises:
        InvalidRequestError: there is no such type.
    """
    found: dict[str, dict[str, Resolution]] = {}
    for name, by_id in resolutions.items():
        entity = schema.entity(name) if ":" in name else schema.node(name) or schema.edge(name)
        if entity is None:
            raise InvalidRequestError(f"a resolution names the type '{name}', which there is not")
        found.setdefault(entity.type_key, {}).update(by_id)
    return found


def given_row(
    accepted: Accepted, type_key: str, entity_id: str, row: Row, *, ids: IdSource, blobs: BlobIngress
) -> pa.Table:
    """A row of a resolution in the columns of its type.

    Raises:
        InvalidRequestError: a value does not fit, or the row has another id than the resolution is for.
    """
    entity = accepted.schema.entity(type_key)
    frame = Frame([{ID: entity_id} | dict(row)], type_key, blobs)
    if isinstance(entity, NodeType):
        rows = incoming_nodes(entity, accepted.rules.types[type_key], frame, ids).rows
    elif isinstance(entity, EdgeType):
        rows = incoming_edges(entity, frame, ids).rows
    else:
        raise InvalidRequestError(f"a resolution names the type '{type_key}', which there is not")
    if rows.column(ID).to_pylist() != [entity_id]:
        raise InvalidRequestError(f"the resolution for {type_key} '{entity_id}' has a row with another id")
    return rows


def names_ends(row: Row) -> bool:
    """Whether the row of an edge says what it joins."""
    return bool({SRC, "from"} & row.keys()) and bool({DST, "to"} & row.keys())
