"""Small documents beside the ledger: one JSON file each, with a version, and nothing else than they should have."""

import json
from collections.abc import Mapping
from typing import Any


class RecordFaultError(Exception):
    """A document is not what it should be."""


def to_bytes(document: Mapping[str, Any]) -> bytes:
    """As it is stored: members that are None are left out."""
    kept = {key: value for key, value in document.items() if value is not None}
    return f"{json.dumps(kept, indent=2, ensure_ascii=False)}\n".encode()


def read(body: bytes, *, required: Mapping[str, type], optional: Mapping[str, type]) -> dict[str, Any]:
    """A document as it was stored; what is optional and not there is None.

    Raises:
        RecordFaultError: it is not what it should be.
    """
    try:
        found = json.loads(body)
    except ValueError as fault:
        raise RecordFaultError(f"it is not JSON: {fault}") from None
    if not isinstance(found, dict):
        raise RecordFaultError("it is no mapping")
    for key, kind in {**required, **optional}.items():
        value = found.get(key)
        if value is None and key in optional:
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            raise RecordFaultError(f"'{key}' is missing, or not what it should be")
    return {key: found.get(key) for key in (*required, *optional)}
