"""From an address to an external store."""

from importlib import import_module
from urllib.parse import unquote

from omnigraph.storage.external_store import ExternalStore
from omnigraph.storage.external_stores.sqlite import SqliteExternalStore
from omnigraph.storage.object_store import StoreRefused


def open_external_store(uri: str) -> ExternalStore:
    """Open the external store at `uri`, lazily: the first request connects.

    Args:
        uri: `sqlite:///absolute/path` or `sqlite:relative/path` for one machine, `postgresql://…` for many.

    Raises:
        StoreRefused: there is no such kind of store, or what it needs is not installed.
    """
    scheme, _, place = uri.partition(":")
    match scheme:
        case "sqlite":
            return SqliteExternalStore(unquote(place.removeprefix("//")))
        case "postgresql" | "postgres":
            return _postgres(uri)
        case other:
            raise StoreRefused(f"no external store is known for {other}: addresses", path=uri)


def _postgres(uri: str) -> ExternalStore:
    # Imported late because its driver is an extra that most never need.
    try:
        module = import_module("omnigraph.storage.external_stores.postgres")
    except ImportError as error:
        raise StoreRefused("PostgreSQL needs the extra omnigraph[postgres]", path=uri) from error
    store: ExternalStore = module.PostgresExternalStore(uri)
    return store
