"""Conditional put with a lost answer: create an object that others may create too, and learn whose it is."""

from collections.abc import Callable
from typing import TypeVar

from omnigraph import limits
from omnigraph.clock import Clock, backoff_s
from omnigraph.storage.object_store import (
    ObjectExists,
    ObjectNotFound,
    ObjectStore,
    OutcomeUnknown,
    StoreError,
    StoreRefused,
    StoreTransient,
)

Found = TypeVar("Found")


def create(put: Callable[[], None], look: Callable[[], Found], *, clock: Clock) -> Found | None:
    """Create something once: None if the store confirmed it, otherwise what `look` found in its place.

    A lost answer is not guessed at: what is there tells, and where nothing is, it is put again. What is found may be
    ours, from a try whose answer was lost; its name is then perhaps not yet durable.

    Raises:
        OutcomeUnknown: it may have been created, and the store did not answer afterwards.
        StoreError: it was certainly not created.
    """
    failed: StoreError | None = None
    lost: StoreError | None = None
    for attempt in range(1, limits.STORE_RETRY_ATTEMPTS_MAX + 1):
        exists = False
        try:
            put()
        except ObjectExists:
            exists = True
        except OutcomeUnknown as fault:
            lost = fault
        except StoreTransient as fault:
            failed = fault
        except StoreRefused:
            if lost is None:
                raise
        else:
            return None
        try:
            found = look()
        except StoreError as fault:
            failed = fault
            if exists and lost is None:  # it may be our own, from a request that a library sent again
                lost = OutcomeUnknown(f"what is in its place cannot be read: {fault}", path=fault.path)
        else:
            if found is not None:
                return found
        clock.sleep(backoff_s(attempt))
    raise lost or failed or StoreTransient("it is deleted as often as it is created")


def put_or_read(store: ObjectStore, path: str, body: bytes, *, clock: Clock) -> bytes:
    """Return what is at `path`, durable, after trying to create it: `body`, or what was there first; see `create`."""

    def look() -> bytes | None:
        try:
            return store.get(path)
        except ObjectNotFound:
            return None

    found = create(lambda: store.put_if_absent(path, body), look, clock=clock)
    if found == body:
        store.make_durable([path])
    return body if found is None else found
