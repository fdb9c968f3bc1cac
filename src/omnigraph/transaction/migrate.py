"""Bringing an older graph up to date, one format at a time, on the first read-write open.

A step is decided by one put-if-absent: of several processes that open the graph at once, one's choice holds and all
carry it out. Carrying a step out twice changes nothing, so a crash in the middle is finished by the next open. Old
bytes are never destroyed: every record version ever written stays readable.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from omnigraph.ids import IdSource
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectExists, ObjectStore
from omnigraph.storage.records.read import FORMAT, Stamp, stamp_bytes

# From the format it starts with: makes the new stamp. The choice it needs is settled on the store.
_Step = Callable[[ObjectStore, Stamp, IdSource], Stamp]


def migrate(store: ObjectStore, stamp: Stamp, *, ids: IdSource) -> Stamp:
    """Carry out every step from the graph's format to today's; returns the stamp it then has."""
    while stamp.format < FORMAT:
        stamp = STEPS[stamp.format](store, stamp, ids)
        store.put(paths.STAMP, stamp_bytes(stamp))
    return stamp


def _name_the_graph(store: ObjectStore, stamp: Stamp, ids: IdSource) -> Stamp:
    """0 to 1: a graph gets an id of its own, which change cursors and caches are bound to."""
    return replace(stamp, format=1, graph=_settled(store, 1, {"graph": ids.new()})["graph"])


def _settled(store: ObjectStore, to_format: int, choice: dict[str, str]) -> dict[str, str]:
    """The choice that holds for a step: ours, or that of whoever was first."""
    path = f"{paths.MIGRATIONS}{to_format}.json"
    try:
        store.put_if_absent(path, json.dumps(choice).encode())
    except ObjectExists:
        found: dict[str, str] = json.loads(store.get(path))
        return found
    return choice


STEPS: Mapping[int, _Step] = {0: _name_the_graph}
