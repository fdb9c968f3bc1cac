"""Whole nodes and edges, looked up by id."""

from collections.abc import Iterable, Sequence
from typing import Any

from omnigraph import limits
from omnigraph.branch.arguments import texts
from omnigraph.model.schema import DST, ID, SRC, EntityType, NodeType, Schema
from omnigraph.storage.json_values import to_json
from omnigraph.transaction.snapshot import Snapshot
from omnigraph.transaction.write_set.committed import identifier, literal


def read_entities(
    snapshot: Snapshot, schema: Schema, entity: EntityType, ids: Iterable[str]
) -> list[dict[str, Any] | None]:
    """Read entities with all properties but blobs, in declared order; None for each id that does not exist."""
    columns = {ID: ID} if isinstance(entity, NodeType) else {ID: ID, SRC: "from", DST: "to"}
    columns |= {prop.name: prop.name for prop in schema.declared_properties(entity) if not prop.type.is_blob}
    found: dict[str, dict[str, Any]] = {}
    named = texts(ids, "ids")
    wanted = list(dict.fromkeys(named))
    for start in range(0, len(wanted), limits.ID_FILTER_IDS_MAX):
        some = wanted[start : start + limits.ID_FILTER_IDS_MAX]
        rows = snapshot.scan(entity.type_key, columns=list(columns), filter=id_filter(ID, some))
        values = [to_json(rows.column(name)) for name in columns]
        found |= {row[0]: dict(zip(columns.values(), row, strict=True)) for row in zip(*values, strict=True)}
    return [found.get(id) for id in named]


def id_filter(column: str, ids: Sequence[str]) -> str:
    """Return a filter for rows with one of these ids in a column."""
    return f"{identifier(column)} IN ({', '.join(str(literal(id)) for id in ids)})"
