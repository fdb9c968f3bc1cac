"""Log entries, on-disk version 0, of the first trials: pins without sizes, no footprint, times in milliseconds.

Read only. A write on such a graph migrates the stamp first and then writes version 1.
"""

from typing import Any

from omnigraph.model.commit import UNKNOWN, CommitKind, Pin, Record
from omnigraph.model.footprint import Footprint, TypeFootprint

VERSION = 0


def read(found: dict[str, Any], _whole_map: object = None) -> Record:
    """The record in a document of this version.

    Its footprint was never written down, so every type it names counts as changed whole.
    """
    tables = {
        key: Pin(pin["path"], int(pin["version"]), rows=UNKNOWN, bytes=UNKNOWN) for key, pin in found["tables"].items()
    }
    return Record(
        commit=found["commit"],
        branch=found["branch"],
        number=int(found["number"]),
        kind=CommitKind(found["kind"]),
        parent=found.get("parent"),
        actor=found.get("actor"),
        created_at_us=int(found["created_at_ms"]) * 1_000,
        schema=found.get("schema", ""),
        tables=tables,
        footprint=Footprint({key: TypeFootprint(writes_whole=True) for key in tables}),
    )
