"""Log entries, on-disk version 1: one JSON document, table versions as strings because they exceed 63 bits."""

import base64
import struct
from collections.abc import Callable
from typing import Any

from omnigraph.model.change import NO_CHANGES, Changes, TypeChange
from omnigraph.model.commit import CommitKind, Pin, Record, Recovery, RecoveryKind, TableOutcome
from omnigraph.model.footprint import Footprint, TypeFootprint
from omnigraph.model.retention import NOTHING_PRUNED, Pruned

VERSION = 1

WholeMap = Callable[[int], dict[str, Pin]]


def document(record: Record, *, since: tuple[int, dict[str, Pin]] | None = None) -> dict[str, Any]:
    """The JSON document of a record; members that say nothing are left out.

    With `since`, an entry number and the map it holds, only what changed from there is written.
    """
    full = {
        "format": VERSION,
        "commit": record.commit,
        "branch": record.branch,
        "number": record.number,
        "kind": record.kind.value,
        "parent": record.parent,
        "merged_parent": record.merged_parent,
        "actor": record.actor,
        "message": record.message,
        "created_at": record.created_at_us,
        "intent": record.intent,
        "idempotency_key": record.idempotency_key,
        "schema": record.schema,
        "tables": pins_document(record.tables) if since is None else None,
        "tables_since": None if since is None else _since_document(record.tables, *since),
        "changes": changes_document(record.changes),
        "footprint": footprint_document(record.footprint),
        "aborted": list(record.aborted),
        "recovery": None if record.recovery is None else recovery_document(record.recovery),
        "fork_of": record.fork_of,
        "fork_number": record.fork_number,
        "notes": record.notes,
        "born": record.born,
        "pruned": _pruned_document(record.pruned),
        "digests": record.digests,
        "erased": record.erased or None,
    }
    return {name: value for name, value in full.items() if value not in (None, [], {})}


def _since_document(tables: dict[str, Pin], number: int, known: dict[str, Pin]) -> dict[str, Any]:
    return {
        "number": number,
        "changed": pins_document({key: pin for key, pin in tables.items() if known.get(key) != pin}),
        "removed": sorted(known.keys() - tables.keys()),
    }


def read(found: dict[str, Any], whole_map: WholeMap) -> Record:
    """The record in a document of this version; `whole_map` gives the map of the entry that one counts from."""
    recovery = found.get("recovery")
    tables = read_pins(found.get("tables", {}))
    since = found.get("tables_since")
    if since is not None:
        if not 1 <= int(since["number"]) < int(found["number"]):
            raise ValueError(f"its table map counts from entry {since['number']}, which does not come before it")
        known = whole_map(int(since["number"]))
        tables = {key: pin for key, pin in known.items() if key not in since["removed"]} | read_pins(since["changed"])
    return Record(
        commit=found["commit"],
        branch=found["branch"],
        number=int(found["number"]),
        kind=CommitKind(found["kind"]),
        parent=found.get("parent"),
        merged_parent=found.get("merged_parent"),
        actor=found.get("actor"),
        message=found.get("message"),
        created_at_us=int(found["created_at"]),
        intent=found.get("intent"),
        idempotency_key=found.get("idempotency_key"),
        schema=found.get("schema", ""),
        tables=tables,
        changes=read_changes(found.get("changes", {})),
        footprint=read_footprint(found.get("footprint", {})),
        aborted=tuple(found.get("aborted", ())),
        recovery=None if recovery is None else read_recovery(recovery),
        fork_of=found.get("fork_of"),
        fork_number=found.get("fork_number"),
        notes=found.get("notes", {}),
        born=found.get("born"),
        pruned=_read_pruned(found.get("pruned")),
        digests=dict(found.get("digests", {})),
        erased=bool(found.get("erased", False)),
    )


def pins_document(tables: dict[str, Pin]) -> dict[str, Any]:
    """The table map."""
    return {
        key: {"table": pin.table, "version": str(pin.version), "rows": pin.rows, "bytes": pin.bytes}
        for key, pin in tables.items()
    }


def read_pins(found: dict[str, Any]) -> dict[str, Pin]:
    """The table map in a document."""
    return {
        key: Pin(pin["table"], int(pin["version"]), int(pin["rows"]), int(pin["bytes"])) for key, pin in found.items()
    }


def changes_document(changes: Changes) -> dict[str, Any]:
    """The change set: counts, and the ids where they are inline."""
    types = {key: _type_change_document(change) for key, change in changes.types.items()}
    whole: dict[str, Any] = {"types": types} if types else {}
    if changes.file is not None:
        whole["file"] = changes.file
    return whole


def _type_change_document(change: TypeChange) -> dict[str, Any]:
    written: dict[str, Any] = {"inserted": change.inserted, "updated": change.updated, "deleted": change.deleted}
    for name, ids in (
        ("inserted_ids", change.inserted_ids),
        ("updated_ids", change.updated_ids),
        ("deleted_ids", change.deleted_ids),
    ):
        if ids:
            written[name] = list(ids)
    return written


def read_changes(found: dict[str, Any]) -> Changes:
    """The change set in a document."""
    if not found:
        return NO_CHANGES
    inline = "file" not in found
    types = {}
    for key, change in found.get("types", {}).items():
        ids = {
            name: tuple(change.get(name, ())) if inline else None
            for name in ("inserted_ids", "updated_ids", "deleted_ids")
        }
        types[key] = TypeChange(change["inserted"], change["updated"], change["deleted"], **ids)
    return Changes(types, found.get("file"))


def footprint_document(footprint: Footprint) -> dict[str, Any]:
    """The footprint, each token set packed; or where it lies."""
    if footprint.file is not None:
        return {"file": footprint.file}
    written = {}
    for key, part in footprint.types.items():
        one: dict[str, Any] = {}
        if part.reads:
            one["reads"] = _packed(part.reads)
        if part.writes:
            one["writes"] = _packed(part.writes)
        flags = {
            "reads_whole": part.reads_whole,
            "writes_whole": part.writes_whole,
            "lays_out": part.changes_layout_only,
        }
        one |= {name: True for name, is_set in flags.items() if is_set}
        if one:
            written[key] = one
    return written


def read_footprint(found: dict[str, Any]) -> Footprint:
    """The footprint in a document."""
    if isinstance(found.get("file"), str):  # of a type of that name there would be more to say
        return Footprint(file=found["file"])
    return Footprint(
        {
            key: TypeFootprint(
                reads=_unpacked(part.get("reads", "")),
                writes=_unpacked(part.get("writes", "")),
                reads_whole=part.get("reads_whole", False),
                writes_whole=part.get("writes_whole", False),
                changes_layout_only=part.get("lays_out", False),
            )
            for key, part in found.items()
        }
    )


def _packed(tokens: frozenset[int]) -> str:
    return base64.b64encode(struct.pack(f">{len(tokens)}Q", *sorted(tokens))).decode()


def _unpacked(text: str) -> frozenset[int]:
    raw = base64.b64decode(text, validate=True)
    return frozenset(struct.unpack(f">{len(raw) // 8}Q", raw))


def recovery_document(recovery: Recovery) -> dict[str, Any]:
    """The audit of a recovery; versions are texts, as they have 64 bits."""
    return {
        "recovery_kind": recovery.kind.value,
        "operation_id": recovery.intent,
        "operation": recovery.operation.value,
        "recovery_for_actor": recovery.for_actor,
        "tables": [
            {"table_key": table.type_key, "from_version": str(table.from_version), "to_version": str(table.to_version)}
            for table in recovery.tables
        ],
    }


def read_recovery(found: dict[str, Any]) -> Recovery:
    """The recovery in a document of `recovery_document`."""
    return Recovery(
        kind=RecoveryKind(found["recovery_kind"]),
        intent=found["operation_id"],
        operation=CommitKind(found["operation"]),
        for_actor=found.get("recovery_for_actor"),
        tables=tuple(
            TableOutcome(table["table_key"], int(table["from_version"]), int(table["to_version"]))
            for table in found["tables"]
        ),
    )


def _pruned_document(pruned: Pruned) -> dict[str, Any]:
    if pruned == NOTHING_PRUNED:
        return {}
    return {
        "floor": pruned.floor,
        "through": pruned.through,
        "single": list(pruned.single),
        **({"gone": list(pruned.gone)} if pruned.gone else {}),
        "ages": [list(age) for age in pruned.ages],
        "unswept": pruned.unswept,
    }


def _read_pruned(found: dict[str, Any] | None) -> Pruned:
    if not found:
        return NOTHING_PRUNED
    return Pruned(
        floor=int(found["floor"]),
        through=int(found["through"]),
        single=tuple(int(number) for number in found["single"]),
        gone=tuple(int(number) for number in found.get("gone", ())),
        ages=tuple((int(number), int(at_us)) for number, at_us in found["ages"]),
        unswept=int(found["unswept"]),
    )
