"""A graph: everything under one root, all its branches.

graph_base      what it is, and how it ends
graph_reads     queries, snapshots, exports, Spark
graph_writes    mutations, rows, loads, schemas
graph_lines     diff, merge, revert, blame
graph_upkeep    optimize, verify, prune, sweep, maintain
"""

from omnigraph.api.graph_lines import GraphLines
from omnigraph.api.graph_upkeep import GraphUpkeep
from omnigraph.api.graph_writes import GraphWrites


class Graph(GraphWrites, GraphLines, GraphUpkeep):
    """An open graph. Safe to share between threads; made by `omnigraph.open` and `omnigraph.init`.

    Every read sees one commit. Every write becomes visible whole, as one commit, or leaves no trace.
    """
