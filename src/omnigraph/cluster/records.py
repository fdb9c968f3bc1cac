"""Small versioned JSON records beside the ledger: lock, heartbeats, approvals and sidecars."""

import json
from collections.abc import Mapping
from typing import Any


class RecordFaultError(Exception):
    """Record has an invalid form."""


def to_bytes(document: Mapping[str, Any]) -> bytes:
    """Serialize a record without its None members."""
    kept = {key: value for key, value in document.items() if value is not None}
    return f"{json.dumps(kept, indent=2, ensure_ascii=False)}\n".encode()


def read(body: bytes, *, required: Mapping[str, type], optional: Mapping[str, type]) -> dict[str, Any]:
    """Parse a record; missing optional members are None."""
    try:
        found = json.loads(body)
    except ValueError as fault:
        raise RecordFaultError(f"it is not JSON: {fault}") from None
    if not isinstance(found, dict):
        raise RecordFaultError("it is not a mapping")
    for key, kind in {**required, **optional}.items():
        value = found.get(key)
        if value is None and key in optional:
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            raise RecordFaultError(f"'{key}' is missing or has the wrong type")
    return {key: found.get(key) for key in (*required, *optional)}
