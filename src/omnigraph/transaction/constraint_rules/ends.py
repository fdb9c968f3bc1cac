"""Edges have both their nodes: those a write touches, and those it leaves behind when nodes go."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import ConstraintError
from omnigraph.model.footprint import TokenKind
from omnigraph.model.schema import ID, SRC
from omnigraph.transaction.constraint_rules.rules import EndsAt
from omnigraph.transaction.finding import FoundEdge
from omnigraph.transaction.write_set import WriteSet

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_LEAVING = {SRC: TokenKind.FROM}


def end_breaches(write_set: WriteSet, ends: Iterable[EndsAt]) -> Iterator[ConstraintError]:
    """Touched edges with an end that is no node, judged on what the write leaves.

    `ends`: those of every edge type it has rows of.

    Yields:
        What to say of each.
    """
    ends = list(ends)
    named: dict[str, list[str]] = {}
    for end in ends:
        if not write_set.pending[end.type_key].has_rows:
            continue
        named.setdefault(end.node_key, []).extend(_ids(write_set.pending[end.type_key].rows, end.column))
    # One look per node type, whatever the number of edge types.
    missing = {key: set(write_set.missing(key, ids)) for key, ids in named.items() if ids}
    for end in ends:
        gone = missing.get(end.node_key)
        if gone:
            edges = write_set.pending[end.type_key].rows
            yield from _breaches(end, edges.filter(pc.is_in(edges.column(end.column), value_set=_set(gone))))


def retained_breaches(
    write_set: WriteSet, removed: Mapping[str, "pa.Array[Any]"], arrivals: Iterable[EndsAt]
) -> Iterator[ConstraintError]:
    """Edges that are left behind while their node goes.

    `removed`: by node type key, the ids that go.
    `arrivals`: the ends of edges that lie at these types.

    Yields:
        What to say of each.
    """
    for end in arrivals:
        ids = removed.get(end.node_key)
        if ids is None or not len(ids):
            continue
        yield from _breaches(end, edges_at(write_set, end, ids, columns=()))


def edges_at(write_set: WriteSet, end: EndsAt, node_ids: "pa.Array[Any]", *, columns: Iterable[str]) -> pa.Table:
    """The edges with one end at these nodes; that there are no others enters the footprint.

    `end`: the edge type and which end.
    `columns`: which columns besides the id and the end.

    Returns:
        The edges, committed or pending.
    """
    kind = _LEAVING.get(end.column, TokenKind.TO)
    write_set.read_tokens(end.type_key, kind, (str(node_id) for node_id in node_ids.to_pylist()))
    return write_set.rows_where(end.type_key, end.column, node_ids, columns=[ID, end.column, *columns])


def edge_ids_at(write_set: WriteSet, end: EndsAt, node_ids: Sequence[str]) -> list[str]:
    """The ids of the edges with one end at these nodes; that there are no others enters the footprint.

    `end`: the edge type and which end.
    `node_ids`: the nodes, each once.

    Returns:
        Of edges committed or pending.
    """
    write_set.read_tokens(end.type_key, _LEAVING.get(end.column, TokenKind.TO), node_ids)
    return write_set.edges_at(end.type_key, end.column, node_ids)


def note_ends(write_set: WriteSet, end: EndsAt, rows: pa.Table) -> None:
    """Note that the edges of the nodes at one end of these rows change."""
    if rows.num_rows:
        write_set.write_tokens(end.type_key, _LEAVING.get(end.column, TokenKind.TO), _ids(rows, end.column))


def note_ends_of(write_set: WriteSet, end: EndsAt, edges: Sequence[FoundEdge]) -> None:
    """The same of edges that were found and not read."""
    nodes = {edge.src if end.column == SRC else edge.dst for edge in edges}
    if nodes:
        write_set.write_tokens(end.type_key, _LEAVING.get(end.column, TokenKind.TO), nodes)


def _ids(rows: pa.Table, column: str) -> list[str]:
    return [str(node_id) for node_id in pc.unique(rows.column(column)).to_pylist()]


def _set(ids: set[str]) -> "pa.Array[Any]":
    return pa.array(sorted(ids), pa.string())


def _breaches(end: EndsAt, edges: pa.Table) -> Iterator[ConstraintError]:
    for entity, node in zip(edges.column(ID).to_pylist(), edges.column(end.column).to_pylist(), strict=True):
        message = end.breach(str(node))
        yield ConstraintError(message, type_key=end.type_key, end=end.column, id=str(node), entity=str(entity))
