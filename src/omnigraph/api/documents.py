"""JSON documents that the command line and the server return."""

from typing import Any

from omnigraph.clock import readable_time
from omnigraph.model.commit import MAIN, Record
from omnigraph.model.conflict import MergeConflict
from omnigraph.model.schema import EdgeType, EntityType
from omnigraph.storage.records.commit_v1 import recovery_document
from omnigraph.version import INTERNAL_SCHEMA


def commit_document(record: Record) -> dict[str, Any]:
    """Describe a commit."""
    return {
        "graph_commit_id": record.commit,
        "graph_branch": None if record.branch == MAIN else record.branch,
        "graph_manifest_version": record.number,
        "parent_commit_id": record.parent,
        "merged_parent_commit_id": record.merged_parent,
        "actor_id": record.actor,
        "created_at": record.created_at_us,
    }


def full_commit_document(record: Record) -> dict[str, Any]:
    """Describe a commit: the contract's fields, then its readable time, kind, message, change counts and recovery."""
    changes = {
        key: {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
        for key, counts in record.changes.types.items()
    }
    more: dict[str, Any] = {
        "created": readable_time(record.created_at_us),
        "kind": record.kind.value,
        "message": record.message,
    }
    if record.recovery is not None:
        more["recovery"] = recovery_document(record.recovery)
    return {**commit_document(record), **more, "changes": changes}


def snapshot_document(record: Record) -> dict[str, Any]:
    """Describe the tables of a branch: edges first, each kind by name."""
    datasets = []
    for key, pin in sorted(record.tables.items()):
        kind, name = key.split(":", 1)
        datasets.append(
            {
                "entity_kind": kind,
                "type_name": name,
                "dataset_path": pin.table,
                "published_dataset_version": str(pin.version),  # 64 bits: more than JavaScript and jq keep of a number
                "native_dataset_branch": None,
                "entity_count": pin.rows,
            }
        )
    return {
        "graph_branch": record.branch,
        "graph_manifest_version": record.number,
        "internal_schema_version": INTERNAL_SCHEMA,
        "datasets": datasets,
    }


def type_document(entity: EntityType, count: int) -> dict[str, Any]:
    """Describe a type: its properties, and the number of its entities."""
    document: dict[str, Any] = {"kind": entity.kind.value, "name": entity.name, "count": count}
    if isinstance(entity, EdgeType):
        document |= {"from": entity.from_type.type_name, "to": entity.to_type.type_name}
    else:
        document["key"] = [key.name for key in entity.key]
    return document | {"properties": {item.name: str(item.type) for item in entity.properties}}


def merge_conflict_document(conflict: MergeConflict, *, values: bool = False) -> dict[str, Any]:
    """Describe a merge conflict, optionally with the values of each side."""
    kind, _, name = conflict.type_key.partition(":")
    document: dict[str, Any] = {
        "entity_kind": kind,
        "type_name": name or None,
        "entity_id": conflict.entity_id,
        "kind": conflict.kind.value,
        "message": conflict.message,
    }
    if values:
        sides = {"base": conflict.base, "source": conflict.source, "target": conflict.target}
        document |= {side: None if row is None else dict(row) for side, row in sides.items()}
        document["properties"] = list(conflict.properties)
    return document
