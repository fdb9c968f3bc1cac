"""The stores behind the port."""

from omnigraph.storage.object_stores.externally_fenced import ExternallyFencedStore
from omnigraph.storage.object_stores.forwarding import ReadOnlyStore, RequestKind, RetryingStore
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.storage.object_stores.open import open_store, table_options
from omnigraph.storage.object_stores.s3 import S3Options, S3Store

__all__ = [
    "Durability",
    "ExternallyFencedStore",
    "LocalStore",
    "MemoryStore",
    "ReadOnlyStore",
    "RequestKind",
    "RetryingStore",
    "S3Options",
    "S3Store",
    "open_store",
    "table_options",
]
