"""What can be fetched from a graph, wherever it is: what surrounds a node, blobs, and exports.

What it is called, takes and means is here; how it is done, in `graph_reads.py` and in `client`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import pyarrow as pa

from omnigraph.api.blob import Blob, BlobName
from omnigraph.api.near import Neighbourhood
from omnigraph.branch.arguments import checked
from omnigraph.branch.point import Instant, Point
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.pipeline.export.formats import Destination, Exported


class Fetching(ABC):
    """What can be fetched from a graph. All of it is of one commit."""

    @checked
    def neighbourhood(
        self,
        type_name: str,
        entity_id: str,
        *,
        edges: Iterable[str] = (),
        depth: int = 1,
        limit: int = NEIGHBOURHOOD_NODES,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> Neighbourhood:
        """What surrounds a node: the edges at it, the nodes they lead to, and so on for a few steps.

        Args:
            type_name (str): its type.
            entity_id (str): its id.
            edges (Iterable[str]): only edges of these types, in either direction; all by default.
            depth (int): how many steps outwards.
            limit (int): nodes at most, the one in the middle included. Edge types take turns, so that one with very
                many edges does not hide the others.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            number (int | None): the branch as its commit of this number left it.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            Neighbourhood: nodes with their properties, and the edges between them.

        Raises:
            NotFoundError: there is no such type, node or branch.
            InvalidRequestError: it is an edge type, or a bound is out of range.
        """
        point = Point(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return self._neighbourhood(point, type_name, entity_id, edges=edges, depth=depth, limit=limit)

    def blob(
        self,
        entity: str,
        type_name: str,
        id: str,
        property: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> Blob:
        """A blob of one entity. Its bytes are read when they are asked for, and no more of them than that.

        Args:
            entity (str): `node` or `edge`.
            type_name (str): of which type.
            id (str): which entity.
            property (str): which of its properties.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            number (int | None): the branch as its commit of this number left it.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            Blob: its size and tag, and what reads it.

        Raises:
            InvalidRequestError: there is no such type or property, or it holds no blobs.
            NotFoundError: there is no such branch, commit or entity, or it has no value there.
        """
        point = Point(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return self._blob(point, BlobName(entity, type_name, id, property))

    @checked
    def export(
        self,
        to: Destination,
        *,
        format: str = "jsonl",
        types: Iterable[str] | None = None,
        files: int | None = None,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> Exported:
        """Write entities of one commit to a file, a folder or a stream, each type in the order of its ids.

        A server exports JSON lines, as one file; other formats, and several files, are made at the graph's storage.

        Args:
            to (str | Path | IO[bytes]): a path or a stream of bytes. JSON lines and GraphML are one file, which appears
                when it is whole; Parquet and CSV hold one type in a file and make a folder of several.
            format (str): `jsonl` (which `load` takes back), `parquet`, `csv` or `graphml`.
            types (Iterable[str] | None): names of types; a name means the node type and the edge type that have it.
                All by default.
            files (int | None): up to how many files each type has, in a folder, written at once on Spark; JSON lines of
                all of them, one after the other, are those of one file. None for one file in this process.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            number (int | None): the branch as its commit of this number left it.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            Exported: how many entities of which types, in which files, at which commit.

        Raises:
            InvalidRequestError: an unknown format or type, or a place that cannot be written.
            AlreadyExistsError: the folder is there already.
            NotFoundError: there is no such branch, commit or tag.
        """
        point = Point(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return self._export(point, to, format=format, types=types, files=files)

    @checked
    def export_lines(
        self,
        *,
        types: Iterable[str] | None = None,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> Iterator[pa.Buffer]:
        """Entities of one commit as JSON lines, some at a time, for whoever sends them on.

        Args:
            types (Iterable[str] | None): names of types; all by default.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            number (int | None): the branch as its commit of this number left it.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            Iterator[pa.Buffer]: bytes of whole lines; from a server cut anywhere, and an error at the end where some
                are missing.

        Raises:
            InvalidRequestError: an unknown type.
            NotFoundError: there is no such branch, commit or tag.
        """
        point = Point(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return self._export_lines(point, types)

    # -- how it is done -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _neighbourhood(
        self, point: Point, type_name: str, entity_id: str, *, edges: Iterable[str], depth: int, limit: int
    ) -> Neighbourhood: ...

    @abstractmethod
    def _blob(self, point: Point, name: BlobName) -> Blob: ...

    @abstractmethod
    def _export(
        self, point: Point, to: Destination, *, format: str, types: Iterable[str] | None, files: int | None
    ) -> Exported: ...

    @abstractmethod
    def _export_lines(self, point: Point, types: Iterable[str] | None) -> Iterator[pa.Buffer]: ...
