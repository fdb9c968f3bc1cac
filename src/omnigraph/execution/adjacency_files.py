"""Adjacency files beside the graph, so that a new process need not read all edges.

    head.json       manifest: table versions, fragments in ordinal order, and the chunks
    out-0, in-0, …  CSR of consecutive nodes: offsets, neighbours, edge records

The manifest is written last. A missing manifest, or a chunk whose size or checksum differs from the manifest, means
there is no file: on any problem adjacency is built from the edges instead.
"""

import contextlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnigraph import limits
from omnigraph.execution.adjacency import Adjacency, adjacency_from_edges
from omnigraph.execution.arrays import NONE, Ordinals, Positions
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr
from omnigraph.execution.edge_list import EdgeList
from omnigraph.execution.numbering import Numbering
from omnigraph.storage.derived import ADJACENCY, adjacency_folder, adjacency_of, is_of_another_release, sealed, unsealed
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore, StoreError
from omnigraph.storage.tables.addresses import FragmentKey

_FORMAT = 2
_MANIFEST_NAME = "head.json"
_MANIFESTS_TRIED_MAX = 2
_START, _ORDINAL = np.dtype("<i8"), np.dtype("<i4")


@dataclass(frozen=True, slots=True)
class TableState:
    """State of a table when the files were written.

    Attributes:
        table: folder of the table.
        version: version of the table.
        fragments: keys and row counts, in ordinal order; an empty key stands for ordinals of other versions.
    """

    table: str
    version: int
    fragments: tuple[tuple[FragmentKey, int], ...]

    def matches(self, numbering: Numbering) -> bool:
        """Return whether the ordinals of the files are those of this numbering."""
        return self.fragments == fragments_of(numbering)

    def ordinal_map(self, numbering: Numbering) -> Ordinals:
        """Map each ordinal of the files to the one in this numbering; `NONE` where the fragment is gone."""
        firsts = {run.fragment.key: run.first for run in numbering.runs}
        pieces = [np.empty(0, dtype=np.int32)]
        for key, rows in self.fragments:
            first = firsts.get(key)
            gone = np.full(rows, NONE, dtype=np.int32)
            pieces.append(gone if first is None else np.arange(first, first + rows, dtype=np.int32))
        return np.concatenate(pieces)


def fragments_of(numbering: Numbering) -> tuple[tuple[FragmentKey, int], ...]:
    """Return the keys and row counts of a numbering's fragments, with an empty key for ordinals of others."""
    found: list[tuple[FragmentKey, int]] = []
    end = 0
    for run in numbering.runs:
        if run.first > end:
            found.append(((), run.first - end))
        found.append((run.fragment.key, run.fragment.rows))
        end = run.end
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk file.

    Attributes:
        name: file name in the folder.
        first: ordinal of the first node.
        nodes: number of nodes.
        edges: number of edges.
        digest: checksum of the contents.
    """

    name: str
    first: int
    nodes: int
    edges: int
    digest: str

    @property
    def size(self) -> int:
        """Size in bytes."""
        return (self.nodes + 1) * _START.itemsize + 2 * self.edges * _ORDINAL.itemsize


@dataclass(frozen=True, slots=True)
class Manifest:
    """Manifest of the files of one version.

    Attributes:
        folder: where the files are.
        edges: the edge table when the files were written.
        sources: node table at the source end.
        targets: node table at the target end.
        dangling: number of edges left out because an endpoint is missing.
        outgoing: chunks by source.
        incoming: chunks by target.
    """

    folder: str
    edges: TableState
    sources: TableState
    targets: TableState
    dangling: int
    outgoing: tuple[Chunk, ...]
    incoming: tuple[Chunk, ...]

    @property
    def count(self) -> int:
        """Number of edges."""
        return sum(chunk.edges for chunk in self.outgoing)


class AdjacencyFiles:
    """Adjacency files of one graph."""

    def __init__(self, store: ObjectStore, *, read_only: bool) -> None:
        self._store = store
        self._read_only = read_only
        self._written: dict[str, int] = {}

    def read_manifest(self, edges: Columns) -> Manifest | None:
        """Read the manifest of this very version."""
        return self._read_manifest(adjacency_folder(edges.pin.table, edges.pin.version))

    def nearby_manifests(self, edges: Columns) -> Iterator[Manifest]:
        """Yield manifests of a few other versions, most recently written first."""
        try:
            listed = list(self._store.list(adjacency_of(edges.pin.table)))
        except StoreError:
            return
        found = sorted((file.modified_us, file.path) for file in listed if file.path.endswith(f"/{_MANIFEST_NAME}"))
        for _, path in found[::-1][:_MANIFESTS_TRIED_MAX]:
            manifest = self._read_manifest(path.removesuffix(_MANIFEST_NAME))
            if manifest is not None:
                yield manifest

    def read_chunk(self, manifest: Manifest, chunk: Chunk) -> Csr | None:
        """Read the CSR of one chunk, with its first node as 0; None if the file is missing or damaged."""
        try:
            body = self._store.get(f"{manifest.folder}{chunk.name}")
        except StoreError:
            return None
        if len(body) != chunk.size or _checksum(body) != chunk.digest:
            return None
        starts = np.frombuffer(body, _START, chunk.nodes + 1)
        neighbours = np.frombuffer(body, _ORDINAL, chunk.edges, starts.nbytes)
        records = np.frombuffer(body, _ORDINAL, chunk.edges, starts.nbytes + neighbours.nbytes)
        # On little-endian machines these are views without a copy.
        return Csr(
            starts.astype(np.int64, copy=False),
            neighbours.astype(np.int32, copy=False),
            records.astype(np.int32, copy=False),
        )

    def read_all(self, manifest: Manifest, edges: Columns, sources: Columns, targets: Columns) -> Adjacency | None:
        """Read the whole adjacency, for the versions it was written for; None if a file is missing or damaged."""
        outgoing = self._read_csr(manifest, manifest.outgoing)
        incoming = self._read_csr(manifest, manifest.incoming)
        if outgoing is None or incoming is None:
            return None
        tables = ((manifest.edges, edges), (manifest.sources, sources), (manifest.targets, targets))
        if not all(then.matches(now.numbering) for then, now in tables):
            records, source_map, target_map = (then.ordinal_map(now.numbering) for then, now in tables)
            old = outgoing.edge_list()
            new = EdgeList(source_map[old.sources], target_map[old.targets], records[old.records])
            known = (new.sources != NONE) & (new.targets != NONE) & (new.records != NONE)
            return adjacency_from_edges(edges, sources, targets, new.where(known), manifest.dangling)
        return Adjacency(
            edges,
            sources,
            targets,
            outgoing.resized(sources.numbering.size),
            incoming.resized(targets.numbering.size),
            manifest.dangling,
        )

    def write_if_due(self, adjacency: Adjacency) -> bool:
        """Write adjacency for other processes if it is large and differs enough from the last one written.

        Returns:
            Whether it was written; a failed write is not an error.
        """
        table, count = adjacency.edges.pin.table, adjacency.outgoing.count
        last = self._written.get(table, 0)
        if self._read_only or count < limits.ADJACENCY_FILE_EDGES_MIN:
            return False
        if abs(count - last) <= last * limits.ADJACENCY_STALE_SHARE:
            return False
        folder = adjacency_folder(table, adjacency.edges.pin.version)
        try:
            outgoing = self._write_csr(folder, "out", adjacency.outgoing.flattened())
            incoming = self._write_csr(folder, "in", adjacency.incoming.flattened())
            self._store.put(f"{folder}{_MANIFEST_NAME}", _serialize_manifest(adjacency, outgoing, incoming))
        except StoreError:
            return False
        self._written[table] = count
        return True

    def mark_written(self, manifest: Manifest) -> None:
        """Record that these files exist, so that they are not rewritten soon."""
        self._written[manifest.edges.table] = manifest.count

    def find_damaged(self, *, deep: bool) -> Iterator[str]:
        """Yield the paths of damaged files and of the manifests that name them; readers ignore both.

        Args:
            deep: also compare checksums.
        """
        sizes = {listed.path: listed.size for listed in self._store.list(ADJACENCY)}
        for path in sizes:
            if not path.endswith(f"/{_MANIFEST_NAME}"):
                continue
            manifest = self._read_manifest(path.removesuffix(_MANIFEST_NAME))
            if manifest is None:
                with contextlib.suppress(ObjectNotFound):  # swept concurrently
                    if not is_of_another_release(self._store.get(path), _FORMAT):
                        yield path
                continue
            for chunk in (*manifest.outgoing, *manifest.incoming):
                file = f"{manifest.folder}{chunk.name}"
                if sizes.get(file) != chunk.size or (deep and self.read_chunk(manifest, chunk) is None):
                    yield path
                    if file in sizes:
                        yield file

    def _read_manifest(self, folder: str) -> Manifest | None:
        try:
            return _parse_manifest(folder, unsealed(self._store.get(f"{folder}{_MANIFEST_NAME}")))
        except (StoreError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            return None

    def _read_csr(self, manifest: Manifest, chunks: Sequence[Chunk]) -> Csr | None:
        starts: list[Positions] = [np.zeros(1, dtype=np.int64)]
        neighbours: list[Ordinals] = [np.empty(0, dtype=np.int32)]
        records: list[Ordinals] = [np.empty(0, dtype=np.int32)]
        before = 0
        for chunk in chunks:
            rows = self.read_chunk(manifest, chunk)
            if rows is None:
                return None
            starts.append(rows.starts[1:] + before)
            neighbours.append(rows.neighbours)
            records.append(rows.records)
            before += chunk.edges
        return Csr(np.concatenate(starts), np.concatenate(neighbours), np.concatenate(records))

    def _write_csr(self, folder: str, direction: str, rows: Csr) -> list[Chunk]:
        chunks: list[Chunk] = []
        first = 0
        while first < rows.nodes:
            # As many nodes as have about this many edges, and at least one.
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
            chunk = Chunk(
                f"{direction}-{len(chunks)}", first, last - first, places.stop - places.start, _checksum(body)
            )
            self._store.put(f"{folder}{chunk.name}", body)
            chunks.append(chunk)
            first = last
        return chunks


def _checksum(body: bytes) -> str:
    """Return a checksum against damage, not tampering: a process that can write here can write tables too."""
    return f"{zlib.crc32(body):08x}"


def _serialize_manifest(adjacency: Adjacency, outgoing: Sequence[Chunk], incoming: Sequence[Chunk]) -> bytes:
    def made(columns: Columns) -> dict[str, Any]:
        return {
            "table": columns.pin.table,
            "version": str(columns.pin.version),
            "fragments": [[list(key), rows] for key, rows in fragments_of(columns.numbering)],
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


def _parse_manifest(folder: str, document: Any) -> Manifest | None:  # noqa: ANN401  (any JSON document)
    if document["format"] != _FORMAT:
        return None

    def table_state(of: Mapping[str, Any]) -> TableState:
        fragments = tuple((tuple(str(file) for file in key), int(rows)) for key, rows in of["fragments"])
        return TableState(str(of["table"]), int(of["version"]), fragments)

    def files(of: Sequence[Sequence[Any]]) -> tuple[Chunk, ...]:
        return tuple(
            Chunk(str(name), int(first), int(nodes), int(edges), str(digest))
            for name, first, nodes, edges, digest in of
        )

    return Manifest(
        folder,
        table_state(document["edges"]),
        table_state(document["sources"]),
        table_state(document["targets"]),
        int(document["dangling"]),
        files(document["outgoing"]),
        files(document["incoming"]),
    )
