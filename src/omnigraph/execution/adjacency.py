"""Adjacency of one edge type in both directions (CSR), over the ordinals of its nodes.

Built once from the endpoints of all edges and then updated incrementally: a newer version adds the edges of its new
fragments and drops deleted ones, and edges follow a rewritten node to its new ordinal. Edges with a missing endpoint
are left out and counted as dangling.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution.arrays import NO_ORDINALS, NONE, Ordinals, Values, positions_in, sorted_unique, take
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr, build_csr
from omnigraph.execution.edge_list import EdgeList, concat_edges
from omnigraph.execution.numbering import FragmentRun
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.storage.tables.fragments import fragment_rows

Ids: TypeAlias = "Values | pa.ChunkedArray[Any]"

# Endpoints translated at once: every batch builds a hash table of all node ids.
_EDGES_AT_ONCE = 4_000_000


@dataclass(eq=False)
class Adjacency:
    """Adjacency of one version of an edge table, over one version of each node table.

    Attributes:
        edges: the edge table.
        sources: node table at the source end.
        targets: node table at the target end.
        outgoing: CSR from source to target.
        incoming: CSR from target to source.
        dangling: number of edges left out because an endpoint is missing.
        known_undirected: CSR of both directions; None until it is needed.
    """

    edges: Columns
    sources: Columns
    targets: Columns
    outgoing: Csr
    incoming: Csr
    dangling: int = 0
    known_undirected: Csr | None = None

    @property
    def csrs(self) -> tuple[Csr, ...]:
        """The CSRs that were built."""
        undirected = self.known_undirected
        return (self.outgoing, self.incoming) if undirected is None else (self.outgoing, self.incoming, undirected)

    def undirected(self) -> Csr:
        """Return the CSR of both directions, building it if needed; a self-loop appears once."""
        found = self.known_undirected
        if found is None:
            forward = self.outgoing.edge_list()
            both = concat_edges(forward, _without_loops(forward.reversed))
            found = self.known_undirected = build_csr(both, max(self.outgoing.nodes, self.incoming.nodes))
        return found


def _without_loops(edges: EdgeList) -> EdgeList:
    return edges.where(edges.sources != edges.targets)


def build_adjacency(edges: Columns, sources: Columns, targets: Columns) -> Adjacency:
    """Build the adjacency of a version by reading the endpoints of all edges."""
    found, dangling = _read_edges(edges, sources, targets, edges.numbering.live)
    return _build_both(edges, sources, targets, found, dangling)


def adjacency_from_edges(
    edges: Columns, sources: Columns, targets: Columns, edge_list: EdgeList, dangling: int
) -> Adjacency:
    """Build the adjacency of edges whose ordinals are already known."""
    return _build_both(edges, sources, targets, edge_list, dangling)


def extend_adjacency(before: Adjacency, edges: Columns, sources: Columns, targets: Columns) -> Adjacency | None:
    """Build the adjacency of a version from that of another one.

    Returns:
        The adjacency, after reading new edges only; None where too little is shared.
    """
    pairs = ((edges, before.edges), (sources, before.sources), (targets, before.targets))
    if not all(now.numbering.is_compatible(then.numbering) for now, then in pairs):
        return None
    if before.dangling and any(len(now.numbering.added_since(then.numbering)) for now, then in pairs[1:]):
        # A new node may be the missing endpoint of a dangling edge.
        return None
    gone = _removed_edges(before, edges)
    added, dangling = _read_edges(edges, sources, targets, edges.numbering.added_since(before.edges.numbering))
    moved = _moved_edges(before, sources, targets)
    if moved is not None:
        is_left = ~np.isin(moved.after.records, gone.records)
        kept = (moved.after.sources != NONE) & (moved.after.targets != NONE) & is_left
        dangling += int((is_left & ~kept).sum())
        gone, added = concat_edges(gone, moved.before), concat_edges(added, moved.after.where(kept))
    made = Adjacency(
        edges,
        sources,
        targets,
        before.outgoing.resized(sources.numbering.size).updated(gone.records, gone.sources, added),
        before.incoming.resized(targets.numbering.size).updated(gone.records, gone.targets, added.reversed),
        before.dangling + dangling,
    )
    undirected = before.known_undirected
    if undirected is not None:
        ends = (gone.sources, gone.targets, added.sources, added.targets)
        touched = sorted_unique(np.concatenate(ends))
        here = touched[touched < made.outgoing.nodes], touched[touched < made.incoming.nodes]
        rows = concat_edges(made.outgoing.edges_of(here[0]), _without_loops(made.incoming.edges_of(here[1])))
        size = max(made.outgoing.nodes, made.incoming.nodes)
        made.known_undirected = undirected.resized(size).replaced(touched, rows)
    return made


@dataclass(frozen=True, slots=True)
class _Moved:
    """Edges whose endpoints were rewritten or removed, before and after; `NONE` for a removed endpoint."""

    before: EdgeList
    after: EdgeList


def _build_both(edges: Columns, sources: Columns, targets: Columns, found: EdgeList, dangling: int) -> Adjacency:
    outgoing = build_csr(found, sources.numbering.size)
    incoming = build_csr(found.reversed, targets.numbering.size)
    return Adjacency(edges, sources, targets, outgoing, incoming, dangling)


def _read_edges(edges: Columns, sources: Columns, targets: Columns, wanted: Ordinals) -> tuple[EdgeList, int]:
    """Read edges as ordinals; also return the number of edges with a missing endpoint."""
    parts = [EdgeList(NO_ORDINALS, NO_ORDINALS, NO_ORDINALS)]
    dangling = 0
    for records, ends in _read_ends(edges, wanted):
        found = EdgeList(sources.locate(ends[0]), targets.locate(ends[1]), records)
        known = (found.sources != NONE) & (found.targets != NONE)
        if not known.all():
            dangling += int(len(known) - known.sum())
            found = found.where(known)
        parts.append(found)
    return concat_edges(*parts), dangling


def _read_ends(edges: Columns, wanted: Ordinals) -> "Iterator[tuple[Ordinals, tuple[Ids, Ids]]]":
    """Yield the ids at both ends of some edges, some edges at a time; few edges are not worth reading all others."""
    if not len(wanted):
        return
    for run in edges.numbering.runs:
        first, last = np.searchsorted(wanted, (run.first, run.end)).tolist()
        if first == last:
            continue
        records = wanted[first:last]
        if len(records) <= limits.REMEMBERED_FRAGMENT_ROWS_MAX:
            small = edges.small_columns(run, (SRC, DST))
            if small is not None:
                places = records - np.int32(run.first)
                yield records, (take(small[0], places), take(small[1], places))
                continue
            if len(records) * 16 < run.fragment.rows:
                yield records, (edges.take(SRC, records), edges.take(DST, records))
                continue
        before = run.first
        for rows in _read_slabs(edges, run):
            low, high = np.searchsorted(wanted, (before, before + rows.num_rows))
            some = wanted[low:high]
            ends = rows if len(some) == rows.num_rows else rows.take(some - np.int32(before))
            before += rows.num_rows
            yield some, (ends.column(0), ends.column(1))


def _read_slabs(edges: Columns, run: FragmentRun) -> list[pa.Table]:
    """Return the endpoints of a run in pieces large enough to be worth a hash table of all ids."""
    slabs: list[pa.Table] = []
    batches: list[pa.RecordBatch] = []
    rows = 0
    for batch in fragment_rows(edges.table, [run.fragment], [SRC, DST]):
        batches.append(batch)
        rows += batch.num_rows
        if rows >= _EDGES_AT_ONCE:
            slabs.append(pa.Table.from_batches(batches))
            batches, rows = [], 0
    if batches:
        slabs.append(pa.Table.from_batches(batches))
    return slabs


def _removed_edges(before: Adjacency, edges: Columns) -> EdgeList:
    """Return the edges that were removed since, without dangling ones."""
    died = edges.numbering.removed_since(before.edges.numbering)
    if not len(died):
        return EdgeList(NO_ORDINALS, NO_ORDINALS, NO_ORDINALS)
    if len(died) * 16 > before.outgoing.count:
        lost = np.zeros(before.edges.numbering.size, dtype=np.bool_)
        lost[died] = True
        everything = before.outgoing.edge_list()
        return everything.where(lost[everything.records])
    found, _ = _read_edges(before.edges, before.sources, before.targets, died)
    return found


def _moved_edges(before: Adjacency, sources: Columns, targets: Columns) -> _Moved | None:
    """Return the edges at nodes whose ordinals are no longer live."""
    left, now_from = _rewritten_ordinals(before.sources, sources)
    if before.sources.pin.table == before.targets.pin.table:
        right, now_to = left, now_from
    else:
        right, now_to = _rewritten_ordinals(before.targets, targets)
    if not len(left) and not len(right):
        return None
    leaving = before.outgoing.edges_of(left)
    reaching = before.incoming.edges_of(right).reversed
    # An edge between two such nodes is found from both ends.
    both = concat_edges(leaving, reaching)
    _, first = np.unique(both.records, return_index=True)
    old = EdgeList(both.sources[first], both.targets[first], both.records[first])
    new = EdgeList(_translated(old.sources, left, now_from), _translated(old.targets, right, now_to), old.records)
    return _Moved(old, new)


def _rewritten_ordinals(before: Columns, now: Columns) -> tuple[Ordinals, Ordinals]:
    """Return the ordinals that are no longer live, and the current ordinals of the same ids, `NONE` for removed ids."""
    died = now.numbering.removed_since(before.numbering)
    if not len(died):
        return NO_ORDINALS, NO_ORDINALS
    born = now.numbering.added_since(before.numbering)
    if not len(born):
        return died, np.full(len(died), NONE, dtype=np.int32)
    places = positions_in(before.take(ID, died), now.take(ID, born))
    return died, np.where(places == NONE, np.int32(NONE), born[places])


def _translated(ordinals: Ordinals, old: Ordinals, new: Ordinals) -> Ordinals:
    """Replace the ordinals that are in `old`, which is ascending, with those in `new`."""
    if not len(old):
        return ordinals
    places = np.minimum(np.searchsorted(old, ordinals), len(old) - 1)
    return np.where(old[places] == ordinals, new[places], ordinals)
