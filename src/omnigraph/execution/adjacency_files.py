"""Adjacency beside the graph, so that a process that has just started need not read all edges.

    head.json       what the files are made for: versions, fragments in the order of their ordinals, the chunks
    out-0, in-0, …  rows of some consecutive nodes: where each starts, neighbours, records

The head is put last: without it, or where a file has not the size and digest that the head says, there is nothing.
Whatever goes wrong here, adjacency is made from the edges instead.
"""

import contextlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnigraph import limits
from omnigraph.execution.adjacency import Adjacency, from_triples
from omnigraph.execution.arrays import NONE, Ordinals, Positions
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr, Triples
from omnigraph.execution.numbering import Numbering
from omnigraph.storage.derived import ADJACENCY, adjacency_folder, adjacency_of, is_of_another_release, sealed, unsealed
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore, StoreError
from omnigraph.storage.tables.effect import FragmentKey

_FORMAT = 2
_HEAD = "head.json"
_HEADS_TRIED_MAX = 2
_START, _ORDINAL = np.dtype("<i8"), np.dtype("<i4")


@dataclass(frozen=True, slots=True)
class Made:
    """A table as it was when the files were made.

    Attributes:
        table: its folder.
        version: its version.
        fragments: their keys and numbers of rows, in the order of their ordinals.
    """

    table: str
    version: int
    fragments: tuple[tuple[FragmentKey, int], ...]

    def fits(self, numbering: Numbering) -> bool:
        """Whether ordinals of then are ordinals of this numbering."""
        runs = numbering.runs[: len(self.fragments)]
        return self.fragments == tuple((run.fragment.key, run.fragment.rows) for run in runs)

    def translation(self, numbering: Numbering) -> Ordinals:
        """For each ordinal of then the one in this numbering; `NONE` where the fragment is gone."""
        firsts = {run.fragment.key: run.first for run in numbering.runs if run.is_there}
        pieces = [np.empty(0, dtype=np.int32)]
        for key, rows in self.fragments:
            first = firsts.get(key)
            gone = np.full(rows, NONE, dtype=np.int32)
            pieces.append(gone if first is None else np.arange(first, first + rows, dtype=np.int32))
        return np.concatenate(pieces)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One file.

    Attributes:
        name: its name in the folder.
        first: the first node it has a row for.
        nodes: how many nodes.
        edges: how many edges.
        digest: of its bytes.
    """

    name: str
    first: int
    nodes: int
    edges: int
    digest: str

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return (self.nodes + 1) * _START.itemsize + 2 * self.edges * _ORDINAL.itemsize


@dataclass(frozen=True, slots=True)
class Head:
    """What the files of one version are.

    Attributes:
        folder: where they are.
        edges: the edge table.
        sources: the table of nodes that edges leave.
        targets: the table of nodes they reach.
        dangling: how many edges were left out because an endpoint is missing.
        outgoing: the files by source.
        incoming: the files by target.
    """

    folder: str
    edges: Made
    sources: Made
    targets: Made
    dangling: int
    outgoing: tuple[Chunk, ...]
    incoming: tuple[Chunk, ...]

    @property
    def count(self) -> int:
        """How many edges there are."""
        return sum(chunk.edges for chunk in self.outgoing)


class AdjacencyFiles:
    """The adjacency files of one graph."""

    def __init__(self, store: ObjectStore, *, read_only: bool) -> None:
        self._store = store
        self._read_only = read_only
        self._written: dict[str, int] = {}

    def head(self, edges: Columns) -> Head | None:
        """The files of this very version."""
        return self._head(adjacency_folder(edges.pin.table, edges.pin.version))

    def heads_nearby(self, edges: Columns) -> Iterator[Head]:
        """The files of other versions, the last written first; few."""
        try:
            listed = list(self._store.list(adjacency_of(edges.pin.table)))
        except StoreError:
            return
        found = sorted((each.modified_us, each.path) for each in listed if each.path.endswith(f"/{_HEAD}"))
        for _, path in found[::-1][:_HEADS_TRIED_MAX]:
            head = self._head(path.removesuffix(_HEAD))
            if head is not None:
                yield head

    def rows(self, head: Head, chunk: Chunk) -> Csr | None:
        """The rows of one file, its first node as 0; None if the file is not what it should be."""
        try:
            body = self._store.get(f"{head.folder}{chunk.name}")
        except StoreError:
            return None
        if len(body) != chunk.size or _digest(body) != chunk.digest:
            return None
        starts = np.frombuffer(body, _START, chunk.nodes + 1)
        neighbours = np.frombuffer(body, _ORDINAL, chunk.edges, starts.nbytes)
        records = np.frombuffer(body, _ORDINAL, chunk.edges, starts.nbytes + neighbours.nbytes)
        # On machines of the usual byte order these are views, and nothing is copied.
        return Csr(
            starts.astype(np.int64, copy=False),
            neighbours.astype(np.int32, copy=False),
            records.astype(np.int32, copy=False),
        )

    def whole(self, head: Head, edges: Columns, sources: Columns, targets: Columns) -> Adjacency | None:
        """The adjacency that files hold, for the versions they were made for.

        Args:
            head (Head): what they are.
            edges (Columns): the edge table of then.
            sources (Columns): the nodes edges left then.
            targets (Columns): the nodes they reached then.

        Returns:
            Adjacency | None: None if a file is missing or damaged.
        """
        outgoing = self._joined(head, head.outgoing)
        incoming = self._joined(head, head.incoming)
        if outgoing is None or incoming is None:
            return None
        tables = ((head.edges, edges), (head.sources, sources), (head.targets, targets))
        if not all(then.fits(now.numbering) for then, now in tables):
            records, froms, tos = (then.translation(now.numbering) for then, now in tables)
            old = outgoing.triples()
            new = Triples(froms[old.sources], tos[old.targets], records[old.records])
            known = (new.sources != NONE) & (new.targets != NONE) & (new.records != NONE)
            return from_triples(edges, sources, targets, new.where(known), head.dangling)
        return Adjacency(
            edges,
            sources,
            targets,
            outgoing.resized(sources.numbering.size),
            incoming.resized(targets.numbering.size),
            head.dangling,
        )

    def keep(self, adjacency: Adjacency) -> bool:
        """Write adjacency for other processes, if it is large and differs enough from what was written last.

        Returns:
            bool: whether it was written; that it could not be is no error.
        """
        table, count = adjacency.edges.pin.table, len(adjacency.outgoing.neighbours)
        last = self._written.get(table, 0)
        if self._read_only or count < limits.ADJACENCY_FILE_EDGES_MIN:
            return False
        if abs(count - last) <= last * limits.ADJACENCY_STALE_SHARE:
            return False
        folder = adjacency_folder(table, adjacency.edges.pin.version)
        try:
            outgoing = self._put_rows(folder, "out", adjacency.outgoing)
            incoming = self._put_rows(folder, "in", adjacency.incoming)
            self._store.put(f"{folder}{_HEAD}", _head_bytes(adjacency, outgoing, incoming))
        except StoreError:
            return False
        self._written[table] = count
        return True

    def loaded(self, head: Head) -> None:
        """Note that these files are there, so that they are not written again soon."""
        self._written[head.edges.table] = head.count

    def damaged(self, *, deep: bool) -> Iterator[str]:
        """The files that are not what was written; nobody believes them.

        Args:
            deep (bool): compare their digests, too.

        Yields:
            str: the path of each, and of the head that names it: without a head, nothing is there.
        """
        sizes = {listed.path: listed.size for listed in self._store.list(ADJACENCY)}
        for path in sizes:
            if not path.endswith(f"/{_HEAD}"):
                continue
            head = self._head(path.removesuffix(_HEAD))
            if head is None:
                with contextlib.suppress(ObjectNotFound):  # a sweep took it away meanwhile
                    if not is_of_another_release(self._store.get(path), _FORMAT):
                        yield path
                continue
            for chunk in (*head.outgoing, *head.incoming):
                file = f"{head.folder}{chunk.name}"
                if sizes.get(file) != chunk.size or (deep and self.rows(head, chunk) is None):
                    yield path
                    if file in sizes:
                        yield file

    def _head(self, folder: str) -> Head | None:
        try:
            return _read_head(folder, unsealed(self._store.get(f"{folder}{_HEAD}")))
        except (StoreError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            return None

    def _joined(self, head: Head, chunks: Sequence[Chunk]) -> Csr | None:
        starts: list[Positions] = [np.zeros(1, dtype=np.int64)]
        neighbours: list[Ordinals] = [np.empty(0, dtype=np.int32)]
        records: list[Ordinals] = [np.empty(0, dtype=np.int32)]
        before = 0
        for chunk in chunks:
            rows = self.rows(head, chunk)
            if rows is None:
                return None
            starts.append(rows.starts[1:] + before)
            neighbours.append(rows.neighbours)
            records.append(rows.records)
            before += chunk.edges
        return Csr(np.concatenate(starts), np.concatenate(neighbours), np.concatenate(records))

    def _put_rows(self, folder: str, way: str, rows: Csr) -> list[Chunk]:
        chunks: list[Chunk] = []
        first = 0
        while first < rows.nodes:
            # As many nodes as have about so many edges, and at least one.
            wanted = rows.starts[first] + limits.ADJACENCY_CHUNK_EDGES
            last = max(int(np.searchsorted(rows.starts, wanted, side="right")) - 1, first + 1)
            places = slice(int(rows.starts[first]), int(rows.starts[last]))
            body = b"".join(
                (
                    (rows.starts[first : last + 1] - rows.starts[first]).astype(_START).tobytes(),
                    rows.neighbours[places].astype(_ORDINAL).tobytes(),
                    rows.records[places].astype(_ORDINAL).tobytes(),
                )
            )
            chunk = Chunk(f"{way}-{len(chunks)}", first, last - first, places.stop - places.start, _digest(body))
            self._store.put(f"{folder}{chunk.name}", body)
            chunks.append(chunk)
            first = last
        return chunks


def _digest(body: bytes) -> str:
    """Against damage, not against malice: whoever can write here can write tables too."""
    return f"{zlib.crc32(body):08x}"


def _head_bytes(adjacency: Adjacency, outgoing: Sequence[Chunk], incoming: Sequence[Chunk]) -> bytes:
    def made(columns: Columns) -> dict[str, Any]:
        return {
            "table": columns.pin.table,
            "version": str(columns.pin.version),
            "fragments": [[list(run.fragment.key), run.fragment.rows] for run in columns.numbering.runs],
        }

    def files(chunks: Sequence[Chunk]) -> list[list[object]]:
        return [[chunk.name, chunk.first, chunk.nodes, chunk.edges, chunk.digest] for chunk in chunks]

    document = {
        "format": _FORMAT,
        "edges": made(adjacency.edges),
        "sources": made(adjacency.sources),
        "targets": made(adjacency.targets),
        "dangling": adjacency.dangling,
        "outgoing": files(outgoing),
        "incoming": files(incoming),
    }
    return sealed(document)


def _read_head(folder: str, document: Any) -> Head | None:  # noqa: ANN401  (whatever the file holds)
    if document["format"] != _FORMAT:
        return None

    def made(of: Mapping[str, Any]) -> Made:
        fragments = tuple((tuple(str(file) for file in key), int(rows)) for key, rows in of["fragments"])
        return Made(str(of["table"]), int(of["version"]), fragments)

    def files(of: Sequence[Sequence[Any]]) -> tuple[Chunk, ...]:
        return tuple(
            Chunk(str(name), int(first), int(nodes), int(edges), str(digest))
            for name, first, nodes, edges, digest in of
        )

    return Head(
        folder,
        made(document["edges"]),
        made(document["sources"]),
        made(document["targets"]),
        int(document["dangling"]),
        files(document["outgoing"]),
        files(document["incoming"]),
    )
