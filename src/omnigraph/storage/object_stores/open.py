"""From an address to a store."""

import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

from omnigraph.storage.object_store import ObjectStore, StoreRefused
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.object_stores.memory import MemoryStore
from omnigraph.storage.object_stores.read_only import ReadOnlyStore

_memories: dict[str, MemoryStore] = {}
_memories_lock = threading.Lock()


def open_store(uri: str, *, read_only: bool = False, durability: Durability | str = Durability.POWER) -> ObjectStore:
    """The store whose root is at `uri`. Nothing is created or asked before the first request.

    Args:
        uri (str): a path or `file://` address on local disk, or `memory://name`, which is the same store for
            everybody in this process who says the same name; `memory://` alone is a fresh one.
        read_only (bool): refuse every write.
        durability (Durability | str): on local disk, what an answered put survives: "power" or "process".

    Returns:
        ObjectStore: ready for requests.

    Raises:
        StoreRefused: there is no such kind of store.
    """
    store = _open(uri, Durability(durability))
    return ReadOnlyStore(store) if read_only else store


def _open(uri: str, durability: Durability) -> ObjectStore:
    parts = urlsplit(uri)
    match parts.scheme if "://" in uri else "":
        case "":
            return LocalStore(Path(uri).expanduser(), durability=durability)
        case "file":
            return LocalStore(unquote(parts.path), durability=durability)
        case "memory":
            return _memory(parts.netloc + parts.path)
        case other:
            raise StoreRefused(f"no store is known for {other}:// addresses", path=uri)


def _memory(name: str) -> MemoryStore:
    if not name:
        return MemoryStore()
    with _memories_lock:
        return _memories.setdefault(name, MemoryStore(name))
