"""Who still reads a graph, as far as leases tell."""

from omnigraph.api.graph import Graph
from omnigraph.transaction.leases import leases


def held_commits(graph: Graph) -> list[str]:
    """The commits that somebody holds for reading; see `Graph.lease`.

    Args:
        graph (Graph): open for writing: what time it is, the graph's store is asked.

    Returns:
        list[str]: their ids, in order; nobody's lease that has run out is among them.

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
    return sorted({each.lease.commit for each in found if each.is_good(now_us)})
