"""Intents and their completion, on-disk version 1."""

from dataclasses import asdict
from typing import Any

from omnigraph.model.commit import CommitKind
from omnigraph.model.intent import Completed, Intent, Writer
from omnigraph.storage.records import commit_v1

VERSION = 1
_VERSIONS = "expected_table_versions"  # as texts: they have 64 bits
# The other fields of a completion are the options of the write.
_OWN_FIELDS = frozenset(
    ("schema_version", "intent", "schema", "tables", "removed", "footprint", "changes", "merged_parent", "notes", "sum")
)


def intent_document(intent: Intent) -> dict[str, Any]:
    """The note a write leaves before its first effect."""
    return {
        "schema_version": VERSION,
        "intent": intent.id,
        "kind": intent.kind.value,
        "branch": intent.branch,
        "base_number": intent.base_number,
        "base_commit": intent.base_commit,
        "actor": intent.actor,
        "writer": asdict(intent.writer),
        "tables": commit_v1.pins_document(intent.tables),
        "created_at": intent.created_at_us,
        "adopts": list(intent.adopts),
        "asks_s": intent.pause_s,
        "since": intent.since_us,
    }


def read_intent(found: dict[str, Any]) -> Intent:
    """The intent in a document of this version."""
    writer = found["writer"]
    return Intent(
        id=found["intent"],
        kind=CommitKind(found["kind"]),
        branch=found["branch"],
        base_number=int(found["base_number"]),
        base_commit=found["base_commit"],
        actor=found.get("actor"),
        writer=Writer(
            writer["host"],
            int(writer["pid"]),
            writer["started"],
            *(str(writer.get(name, "")) for name in ("boot", "namespace", "token")),
        ),
        tables=commit_v1.read_pins(found["tables"]),
        created_at_us=int(found["created_at"]),
        adopts=tuple(found.get("adopts", ())),
        pause_s=float(found.get("asks_s", 0.0)),
        since_us=int(found.get("since", 0)),
    )


def completed_document(completed: Completed) -> dict[str, Any]:
    """The second document: all that is needed to publish."""
    return {
        "schema_version": VERSION,
        "intent": completed.intent,
        "schema": completed.schema,
        "tables": commit_v1.pins_document(completed.tables),
        "removed": list(completed.removed),
        "footprint": commit_v1.footprint_document(completed.footprint),
        "changes": commit_v1.changes_document(completed.changes),
        "merged_parent": completed.merged_parent,
        "notes": completed.notes,
        **completed.options,
        _VERSIONS: {key: str(version) for key, version in completed.options.get(_VERSIONS, {}).items()},
    }


def read_completed(found: dict[str, Any]) -> Completed:
    """The completion in a document of this version."""
    return Completed(
        intent=found["intent"],
        schema=found["schema"],
        tables=commit_v1.read_pins(found["tables"]),
        removed=tuple(found.get("removed", ())),
        footprint=commit_v1.read_footprint(found["footprint"]),
        changes=commit_v1.read_changes(found["changes"]),
        merged_parent=found.get("merged_parent"),
        notes=found.get("notes", {}),
        options={name: value for name, value in found.items() if name not in _OWN_FIELDS}
        | {_VERSIONS: {key: int(version) for key, version in found.get(_VERSIONS, {}).items()}},
    )
