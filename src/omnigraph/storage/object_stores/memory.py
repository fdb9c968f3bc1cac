"""A store that lives and dies with its process, for tests and for trying things out."""

from obstore.store import MemoryStore as ForeignMemoryStore

from omnigraph.storage.object_stores.obstore_backed import ObstoreStore


class MemoryStore(ObstoreStore):
    """Objects in memory."""

    def __init__(self, name: str = "") -> None:
        super().__init__(ForeignMemoryStore(), uri=f"memory://{name}")
