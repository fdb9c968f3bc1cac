"""What the caller of a merge says about entities: take one side's state, or this row, or delete it."""

from collections.abc import Mapping

import pyarrow as pa

from omnigraph.branch.merge.choices import Resolution, Row
from omnigraph.errors import InvalidRequestError
from omnigraph.ids import IdSource
from omnigraph.model.schema import DST, ID, SRC, EdgeType, NodeType, Schema
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.incoming import Frame, incoming_edges, incoming_nodes


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
