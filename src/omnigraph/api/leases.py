"""Leases of a graph: commits that readers protect."""

from omnigraph.api.graph import Graph
from omnigraph.transaction.leases import leases


def held_commits(graph: Graph) -> list[str]:
    """List the commits that leases protect, by the clock of the store; expired leases do not count.

    Raises:
        FormatError: a lease cannot be read.
        PermissionDeniedError: the graph was opened read-only.
    """
    parts = graph._open()
    parts.refuse_read_only()
    found = leases(parts)
    if not found:
        return []
    now_us = parts.intents.store_now_us()
    return sorted({held.lease.commit for held in found if held.is_good(now_us)})
