"""From an address to a store."""

import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from obstore.store import from_url

from omnigraph.errors import InvalidRequestError
from omnigraph.storage.external_store import ExternalStore
from omnigraph.storage.external_stores import open_external_store
from omnigraph.storage.object_store import ObjectStore, StoreRefused
from omnigraph.storage.object_stores.externally_fenced import ExternallyFencedStore
from omnigraph.storage.object_stores.forwarding import ReadOnlyStore, RetryingStore
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.object_stores.obstore_backed import FOREIGN_ERRORS, MemoryStore, ObstoreStore, reason
from omnigraph.storage.object_stores.s3 import S3Options, S3Store, table_time_limits, time_limits

_memories: dict[str, MemoryStore] = {}
_memories_lock = threading.Lock()


def open_store(
    uri: str,
    *,
    read_only: bool = False,
    durability: Durability | str = Durability.POWER,
    s3: S3Options | None = None,
    external: ExternalStore | str | None = None,
) -> ObjectStore:
    """Open the store whose root is at `uri`, lazily: nothing is created or requested yet.

    Args:
        uri: a path or `file://` address on local disk; `s3://bucket/prefix`; `gs://…` or `az://…` with the credentials
            the environment holds; or `memory://name`, which is the same store for everybody in this process who says
            the same name, while `memory://` alone is a fresh one.
        durability: on local disk, what an answered put survives: "power" or "process".
        s3: how to reach a bucket; by default what the AWS_* variables say.
        external: for a store without conditional puts, what decides races instead, or its address. Everybody who writes
            must name the same one. Readers finish what a dead writer left half done there, also those that may not
            write anything of their own.

    Raises:
        StoreRefused: there is no such kind of store, or the address makes no sense.
        InvalidRequestError: there is no such durability.
    """
    if "\0" in uri:
        raise StoreRefused(f"an address holds no NUL character: {uri!r}", path=uri)
    if durability not in tuple(Durability):
        known = " or ".join(repr(level.value) for level in Durability)
        raise InvalidRequestError(f"unknown durability {durability!r}; it is {known}")
    # What an external store has decided is durable there: the bytes that it names must be, too.
    store = _open(uri, Durability.POWER if external is not None else Durability(durability), s3)
    if external is not None:
        decides = open_external_store(external) if isinstance(external, str) else external
        store = ExternallyFencedStore(store, decides)
    store = RetryingStore(store)
    return ReadOnlyStore(store) if read_only else store


def open_store_of_tables(uri: str, options: Mapping[str, str]) -> ObjectStore:
    """The store in which tables lie, by what the table library opens them with; for listing and reading."""
    return open_store(uri, read_only=True, s3=S3Options.from_storage_options(options) if options else None)


def table_options(store: ObjectStore) -> dict[str, str]:
    """The storage options with which the table library opens the place the store stands on."""
    return dict(store.table_options)


def _open(uri: str, durability: Durability, s3: S3Options | None) -> ObjectStore:
    scheme, separator, place = uri.partition("://")
    match scheme if separator else "":
        case "":
            return LocalStore(Path(uri).expanduser(), durability=durability)
        case "file":
            return LocalStore(unquote(place.removeprefix("localhost")), durability=durability)
        case "memory":
            return _memory(place)
        case "s3":
            bucket, _, prefix = place.partition("/")
            return S3Store(bucket, prefix, options=s3)
        case "gs" | "az":
            return _foreign(uri)
        case other:
            raise StoreRefused(f"no store is known for {other}:// addresses", path=uri)


def _foreign(uri: str) -> ObstoreStore:
    try:
        inner = from_url(uri, client_options=time_limits(), retry_config={"max_retries": 0})
    except FOREIGN_ERRORS as error:
        raise StoreRefused(f"cannot use {uri}: {reason(error)}", path=uri) from error
    return ObstoreStore(inner, uri=uri.rstrip("/"), table_options=table_time_limits())


def _memory(name: str) -> MemoryStore:
    if not name:
        return MemoryStore()
    with _memories_lock:
        return _memories.setdefault(name, MemoryStore(name))
