"""Where the tables of a graph are, in plain values: enough to open them in another process."""

from dataclasses import dataclass
from functools import lru_cache

from omnigraph import limits
from omnigraph.storage.tables.tables import Tables


@dataclass(frozen=True, slots=True)
class TablesPlace:
    """Where tables are.

    Attributes:
        uri: the root.
        storage_options: how to reach it, as pairs; not to be shown, keys may be among them.
    """

    uri: str
    storage_options: tuple[tuple[str, str], ...] = ()


def place_of(tables: Tables) -> TablesPlace:
    """Where these tables are.

    Args:
        tables (Tables): open tables.

    Returns:
        TablesPlace: can be sent to any process that reaches the same store.
    """
    handles = tables._handles
    return TablesPlace(handles._uri, tuple(sorted((handles.storage_options or {}).items())))


def reopened(tables: Tables) -> Tables:
    """The same tables on handles of their own, for work that needs a handle alone."""
    return _opened(place_of(tables))


def _opened(place: TablesPlace) -> Tables:
    return Tables(place.uri, storage_options=dict(place.storage_options) or None)


@lru_cache(maxsize=limits.PLACES_OPEN_MAX)
def tables_at(place: TablesPlace) -> Tables:
    """The tables at a place, opened once in each process that works on them.

    Args:
        place (TablesPlace): where.

    Returns:
        Tables: the same for the same place.
    """
    return _opened(place)
