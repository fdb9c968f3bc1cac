"""A graph: everything under one root, all its branches.

graph_base      what it is, and how it ends
graph_queries   queries and snapshots
graph_reads     branches, tags, commits and changes, exports, blobs, Spark
graph_writes    mutations, rows, loads, schemas
graph_lines     diff, merge, revert, blame
graph_upkeep    optimize, verify, prune, sweep, maintain
"""

from dataclasses import replace

from omnigraph import limits
from omnigraph.api.graph_lines import GraphLines
from omnigraph.api.graph_upkeep import GraphUpkeep
from omnigraph.api.graph_writes import GraphWrites
from omnigraph.api.schemas import Schemas
from omnigraph.api.tail_compaction import TailCompaction
from omnigraph.transaction.parts import Parts


class Graph(GraphWrites, GraphLines, GraphUpkeep):
    """An open graph. Safe to share between threads; made by `omnigraph.open` and `omnigraph.init`.

    Every read sees one commit. Every write becomes visible whole, as one commit, or leaves no trace.
    """

    def __init__(self, parts: Parts, schemas: Schemas, *, cache_bytes: int = limits.QUERY_CACHE_BYTES_MAX) -> None:
        self._tails: TailCompaction | None = None
        if parts.settings.auto_compact and not parts.read_only:
            self._tails = TailCompaction(parts, lambda digest: schemas.of(digest).schema)
            parts = replace(parts, published=self._tails.noticed)
        super().__init__(parts, schemas, cache_bytes=cache_bytes)

    def close(self) -> None:
        """Refuse further calls. Everything acknowledged is on the store already; a compaction under way is ended."""
        super().close()
        if self._tails is not None:
            self._tails.close()
