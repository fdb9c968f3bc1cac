"""Adjacency: the edges of one type as rows of neighbours, both ways, over the ordinals of their nodes.

Made from the edges' endpoints once, and from then on changed: a newer version adds the edges of its new fragments and
loses those that were deleted, and a node that was rewritten takes its edges along to its new ordinal. Edges whose
endpoint does not exist have no place here.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.execution.arrays import NO_ORDINALS, NONE, Mask, Ordinals, places_in
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr, Triples, build, together
from omnigraph.execution.numbering import Run
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.storage.tables.fragments import fragment_rows

# Endpoints translated at once: each time, the ids of all nodes are put into a hash table.
_EDGES_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Adjacency:
    """The edges of one version, over the nodes of one version each.

    Attributes:
        edges: the edge table.
        sources: the table of the nodes that edges leave.
        targets: the table of those they reach.
        outgoing: from source to target.
        incoming: from target to source.
        dangling: how many edges were left out because an endpoint is missing.
    """

    edges: Columns
    sources: Columns
    targets: Columns
    outgoing: Csr
    incoming: Csr
    dangling: int = 0

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.outgoing.nbytes + self.incoming.nbytes

    def undirected(self) -> Csr:
        """Its edges both ways; an edge from a node to itself is there once. Made anew each time."""
        forward = self.outgoing.triples()
        loops: Mask = forward.sources == forward.targets
        return build(together(forward, forward.reversed.where(~loops)), max(self.outgoing.nodes, self.incoming.nodes))


def make(edges: Columns, sources: Columns, targets: Columns) -> Adjacency:
    """The adjacency of a version, from its edges' endpoints.

    Args:
        edges (Columns): the edge table.
        sources (Columns): the nodes edges leave.
        targets (Columns): the nodes they reach.

    Returns:
        Adjacency: reads the endpoints of all edges.
    """
    found, dangling = _read(edges, sources, targets, edges.numbering.live)
    return _both_ways(edges, sources, targets, found, dangling)


def from_triples(edges: Columns, sources: Columns, targets: Columns, triples: Triples, dangling: int) -> Adjacency:
    """The adjacency of edges that are known already by their ordinals."""
    return _both_ways(edges, sources, targets, triples, dangling)


def extend(before: Adjacency, edges: Columns, sources: Columns, targets: Columns) -> Adjacency | None:
    """The adjacency of a version, from that of another one.

    Args:
        before (Adjacency): of the same edge type.
        edges (Columns): the edge table.
        sources (Columns): the nodes edges leave.
        targets (Columns): the nodes they reach.

    Returns:
        Adjacency | None: reads new edges only; None where too little is shared.
    """
    pairs = ((edges, before.edges), (sources, before.sources), (targets, before.targets))
    if not all(now.numbering.agrees(then.numbering) for now, then in pairs):
        return None
    if before.dangling and any(len(now.numbering.born_since(then.numbering)) for now, then in pairs[1:]):
        # One of them may be what an edge was waiting for.
        return None
    outgoing = before.outgoing.resized(sources.numbering.size)
    incoming = before.incoming.resized(targets.numbering.size)
    dropped = np.zeros(max(edges.numbering.size, before.edges.numbering.size), dtype=np.bool_)
    moved = _moved(before, sources, targets)
    gone = _lost(before, edges)
    dropped[gone.records] = True
    if moved is not None:
        dropped[moved.before.records] = True
        gone = together(gone, moved.before)
    added, dangling = _read(edges, sources, targets, edges.numbering.born_since(before.edges.numbering))
    if moved is not None:
        still = edges.numbering.lives(len(dropped))[moved.after.records]
        kept = (moved.after.sources != NONE) & (moved.after.targets != NONE) & still
        dangling += int((still & ~kept).sum())
        added = together(added, moved.after.where(kept))
    return Adjacency(
        edges,
        sources,
        targets,
        outgoing.changed(dropped, gone.sources, added),
        incoming.changed(dropped, gone.targets, added.reversed),
        before.dangling + dangling,
    )


@dataclass(frozen=True, slots=True)
class _Moved:
    """Edges whose endpoints were rewritten or removed: as they were, and as they are; `NONE` for a removed end."""

    before: Triples
    after: Triples


def _both_ways(edges: Columns, sources: Columns, targets: Columns, found: Triples, dangling: int) -> Adjacency:
    outgoing = build(found, sources.numbering.size)
    incoming = build(found.reversed, targets.numbering.size)
    return Adjacency(edges, sources, targets, outgoing, incoming, dangling)


def _read(edges: Columns, sources: Columns, targets: Columns, wanted: Ordinals) -> tuple[Triples, int]:
    """These edges by the ordinals of their ends, and how many more have an end that is missing."""
    parts = [Triples(NO_ORDINALS, NO_ORDINALS, NO_ORDINALS)]
    dangling = 0
    for run in edges.numbering.runs:
        first, last = np.searchsorted(wanted, (run.first, run.first + run.fragment.rows))
        if first == last:
            continue
        before = run.first
        for rows in _slabs(edges, run):
            low, high = np.searchsorted(wanted, (before, before + rows.num_rows))
            records = wanted[low:high]
            ends = rows if len(records) == rows.num_rows else rows.take(records - np.int32(before))
            before += rows.num_rows
            found = Triples(sources.locate(ends.column(0)), targets.locate(ends.column(1)), records)
            known = (found.sources != NONE) & (found.targets != NONE)
            if not known.all():
                dangling += int(len(known) - known.sum())
                found = found.where(known)
            parts.append(found)
    return together(*parts), dangling


def _slabs(edges: Columns, run: Run) -> list[pa.Table]:
    """The endpoints of a run, in pieces large enough to be worth a hash table of all ids."""
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


def _lost(before: Adjacency, edges: Columns) -> Triples:
    """The edges that were there before and are not any more."""
    died = edges.numbering.died_since(before.edges.numbering)
    if not len(died):
        return Triples(NO_ORDINALS, NO_ORDINALS, NO_ORDINALS)
    lost = np.zeros(before.edges.numbering.size, dtype=np.bool_)
    lost[died] = True
    rows = before.outgoing
    places = np.flatnonzero(lost[rows.records])
    sources = (np.searchsorted(rows.starts, places, side="right") - 1).astype(np.int32)
    return Triples(sources, rows.neighbours[places], rows.records[places])


def _moved(before: Adjacency, sources: Columns, targets: Columns) -> _Moved | None:
    """The edges at nodes whose ordinals are not alive any more."""
    left, now_from = _rewritten(before.sources, sources)
    if before.sources.pin.table == before.targets.pin.table:
        right, now_to = left, now_from
    else:
        right, now_to = _rewritten(before.targets, targets)
    if not len(left) and not len(right):
        return None
    leaving = before.outgoing.triples_of(left)
    reaching = before.incoming.triples_of(right).reversed
    # An edge between two such nodes is found from both ends.
    both = together(leaving, reaching)
    _, first = np.unique(both.records, return_index=True)
    old = Triples(both.sources[first], both.targets[first], both.records[first])
    new = Triples(_translated(old.sources, left, now_from), _translated(old.targets, right, now_to), old.records)
    return _Moved(old, new)


def _rewritten(before: Columns, now: Columns) -> tuple[Ordinals, Ordinals]:
    """The ordinals that died, and those of the same ids now, `NONE` for ids that are gone."""
    died = now.numbering.died_since(before.numbering)
    if not len(died):
        return NO_ORDINALS, NO_ORDINALS
    born = now.numbering.born_since(before.numbering)
    if not len(born):
        return died, np.full(len(died), NONE, dtype=np.int32)
    places = places_in(before.take(ID, died), now.take(ID, born))
    return died, np.where(places == NONE, np.int32(NONE), born[places])


def _translated(ordinals: Ordinals, old: Ordinals, new: Ordinals) -> Ordinals:
    """Ordinals with those in `old`, which is ascending, replaced by those in `new`."""
    if not len(old):
        return ordinals
    places = np.minimum(np.searchsorted(old, ordinals), len(old) - 1)
    return np.where(old[places] == ordinals, new[places], ordinals)
