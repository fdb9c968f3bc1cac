"""The stores behind the port."""

from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.object_stores.memory import MemoryStore
from omnigraph.storage.object_stores.open import open_store
from omnigraph.storage.object_stores.read_only import ReadOnlyStore

__all__ = ["Durability", "LocalStore", "MemoryStore", "ReadOnlyStore", "open_store"]
