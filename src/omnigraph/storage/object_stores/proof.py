"""Showing that a store refuses the second of two conditional puts, and what time it has."""

from omnigraph.ids import IdSource
from omnigraph.storage.object_store import ObjectExists, ObjectStore, StoreRefused

PROBE_FOLDER = "__probe/"
_STALE_US = 3_600_000_000


def prove_by_trying(store: ObjectStore, ids: IdSource) -> int:
    """Put one fresh path twice, and delete it again; returns the time the store has given it, in microseconds.

    Raises:
        StoreRefused: the second put was not refused, or what was put is not listed.
    """
    probe = f"{PROBE_FOLDER}{ids.new()}"
    store.put_if_absent(probe, b"first")
    try:
        store.put_if_absent(probe, b"second")
    except ObjectExists:
        probes = {listed.path: listed.modified_us for listed in store.list(PROBE_FOLDER)}
        if probe in probes:
            for path, modified_us in probes.items():
                if probes[probe] - modified_us > _STALE_US:
                    store.delete(path)  # of a process that died while it tried
            return probes[probe]
        raise StoreRefused(f"{store.uri} does not list what was just put there", path=probe) from None
    finally:
        store.delete(probe)
    raise StoreRefused(
        f"{store.uri} takes a conditional put of a path that exists, so it cannot tell which of two writers came "
        "first; use an external store",
        path=probe,
    )
