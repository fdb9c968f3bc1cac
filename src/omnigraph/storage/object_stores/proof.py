"""Showing that a store refuses the second of two conditional puts, and what time it has."""

from omnigraph.ids import IdSource
from omnigraph.storage.object_store import ObjectExists, ObjectStore, StoreRefused

PROBE_FOLDER = "__probe/"


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
        for listed in store.list(PROBE_FOLDER):
            if listed.path == probe:
                return listed.modified_us
        raise StoreRefused(f"{store.uri} does not list what was just put there", path=probe) from None
    finally:
        store.delete(probe)
    raise StoreRefused(
        f"{store.uri} takes a conditional put of a path that exists, so it cannot tell which of two writers came "
        "first; use an external store",
        path=probe,
    )
