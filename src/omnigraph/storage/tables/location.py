"""Location of a graph's tables in plain values: enough to open them in another process."""

from dataclasses import dataclass
from functools import lru_cache

from omnigraph import limits
from omnigraph.storage.tables.tables import Tables


@dataclass(frozen=True, slots=True)
class TablesLocation:
    """Where tables are.

    Attributes:
        uri: the root.
        storage_options: how to reach it, as pairs; not to be shown, keys may be among them.
    """

    uri: str
    storage_options: tuple[tuple[str, str], ...] = ()


def location_of(tables: Tables) -> TablesLocation:
    """Where these tables are.

    Returns:
        Can be sent to any process that reaches the same store.
    """
    handles = tables._handles
    return TablesLocation(handles._uri, tuple(sorted((handles.storage_options or {}).items())))


def reopened(tables: Tables) -> Tables:
    """The same tables on handles of their own, for work that needs a handle alone."""
    return _opened(location_of(tables))


def _opened(place: TablesLocation) -> Tables:
    return Tables(place.uri, storage_options=dict(place.storage_options) or None)


@lru_cache(maxsize=limits.LOCATIONS_OPEN_MAX)
def tables_at(place: TablesLocation) -> Tables:
    """The tables at a place, opened once in each process that works on them."""
    return _opened(place)
