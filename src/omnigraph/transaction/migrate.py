"""Bringing an older graph up to date, one format at a time, on the first read-write open.

A step is decided by one put-if-absent: of several processes that open the graph at once, one's choice holds and all
carry it out. Carrying a step out twice changes nothing, so a crash in the middle is finished by the next open. Old
bytes are never destroyed: every record version ever written stays readable.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from omnigraph.clock import Clock
from omnigraph.errors import FormatError
from omnigraph.ids import IdSource
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.records.read import FORMAT, Stamp, stamp_bytes
from omnigraph.transaction.conditional_put import put_or_read
from omnigraph.transaction.parts import Parts

# From the format it starts with: makes the new stamp. The choice it needs is settled on the store.
_Step = Callable[[ObjectStore, Stamp, IdSource, Clock], Stamp]


def migrate(parts: Parts, stamp: Stamp) -> Stamp:
    """Carry out every step from the graph's format to today's; returns the stamp it then has.

    What a stamp says of all writers since format 2 are the settings of the first one.

    Raises:
        FormatError: what another process settled on cannot be read.
    """
    while stamp.format < FORMAT:
        stamp = STEPS[stamp.format](parts.store, stamp, parts.ids, parts.clock)
        if stamp.format == FORMAT:
            stamp = replace(stamp, durability=parts.settings.durability, log_cut_s=parts.log_cut_s)
        parts.store.put(paths.STAMP, stamp_bytes(stamp))
    return stamp


def _name_the_graph(store: ObjectStore, stamp: Stamp, ids: IdSource, clock: Clock) -> Stamp:
    """0 to 1: a graph gets an id of its own, which change cursors and caches are bound to."""
    path = f"{paths.MIGRATIONS}1.json"
    choice = put_or_read(store, path, json.dumps({"graph": ids.new()}).encode(), clock=clock)
    try:
        graph = json.loads(choice)["graph"]
    except (ValueError, KeyError, TypeError) as fault:
        where = paths.absolute(store, path)
        raise FormatError(f"the note of the migration {where} is damaged: {fault}", path=where) from fault
    return replace(stamp, format=1, graph=graph)


def _chain_the_log(store: ObjectStore, stamp: Stamp, _ids: IdSource, _clock: Clock) -> Stamp:
    """1 to 2: entries name their graph and the entry before them, and the stamp names the fence of its writers."""
    return replace(stamp, format=2, fence_id=store.fence_id() or "")


STEPS: Mapping[int, _Step] = {0: _name_the_graph, 1: _chain_the_log}
