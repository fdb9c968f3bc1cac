"""Creating an object that others may create at the same moment, and learning for certain whose it is."""

from omnigraph import limits
from omnigraph.clock import Clock, backoff_s
from omnigraph.storage.object_store import (
    ObjectExists,
    ObjectNotFound,
    ObjectStore,
    OutcomeUnknown,
    StoreError,
    StoreTransient,
)


def put_or_read(store: ObjectStore, path: str, body: bytes, *, clock: Clock) -> bytes:
    """What lies at `path` after trying to create it: `body`, or what was there first.

    An answer that got lost is not guessed at: what is there tells, and where nothing is, it is put again.

    Raises:
        OutcomeUnknown: the store never said, and does not answer when asked.
        StoreTransient: the store does not answer, and nothing was done.
    """
    lost: StoreError | None = None
    for attempt in range(1, limits.STORE_RETRY_ATTEMPTS_MAX + 1):
        try:
            store.put_if_absent(path, body)
        except ObjectExists:
            pass  # perhaps our own, from a try whose answer was lost
        except StoreTransient as fault:
            lost = lost or fault
        except OutcomeUnknown as fault:
            lost = fault
        else:
            return body
        try:
            found = store.get(path)
        except ObjectNotFound:
            pass
        except StoreTransient as fault:
            lost = lost or fault
        else:
            if found == body:
                # There, but perhaps not yet safe: what failed may have been the sync of its name.
                store.make_durable([path])
            return found
        clock.sleep(backoff_s(attempt))
    raise lost or StoreTransient(f"{path} comes and goes", path=path)
