"""The documents of answers where they tell more than the contract asks for."""

from typing import Any

from omnigraph.api.documents import commit_document, snapshot_document
from omnigraph.model.commit import Record


def commit_told(record: Record) -> dict[str, Any]:
    """A commit: what the contract has, and why it was made and how much it changed."""
    changes = {
        key: {"inserted": each.inserted, "updated": each.updated, "deleted": each.deleted}
        for key, each in record.changes.types.items()
    }
    return {**commit_document(record), "kind": record.kind.value, "message": record.message, "changes": changes}


def snapshot_told(record: Record) -> dict[str, Any]:
    """What a state holds, type by type: what the contract has, how large it is, and the entry of the log itself."""
    document = snapshot_document(record)
    for each in document["datasets"]:
        each["bytes"] = record.tables[f"{each['entity_kind']}:{each['type_name']}"].bytes
    return {**document, "graph_commit_id": record.head_commit, "entry": commit_told(record)}
