"""Showing that a store refuses the second of two conditional puts."""

from omnigraph.ids import IdSource
from omnigraph.storage.object_store import ObjectExists, ObjectStore, StoreRefused

PROBE_FOLDER = "__probe/"


def prove_by_trying(store: ObjectStore, ids: IdSource) -> None:
    """Put one fresh path twice, and delete it again.

    Args:
        store (ObjectStore): to be proven.
        ids (IdSource): for a name nobody else uses.

    Raises:
        StoreRefused: the second put was not refused.
    """
    probe = f"{PROBE_FOLDER}{ids.new()}"
    store.put_if_absent(probe, b"first")
    try:
        store.put_if_absent(probe, b"second")
    except ObjectExists:
        return
    finally:
        store.delete(probe)
    raise StoreRefused(
        f"{store.uri} takes a conditional put of a path that exists, so it cannot tell which of two writers came "
        "first; use an external store",
        path=probe,
    )
