"""The external stores behind the port. PostgreSQL's is not imported here: its driver is an extra."""

from omnigraph.storage.external_stores.open import open_external_store
from omnigraph.storage.external_stores.sqlite import SqliteExternalStore

__all__ = ["SqliteExternalStore", "open_external_store"]
