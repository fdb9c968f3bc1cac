"""Reading a graph."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from omnigraph.api import exporting
from omnigraph.api.blobs import Blob, blob_of
from omnigraph.api.branches import Branches
from omnigraph.api.changes import ChangeFeed
from omnigraph.api.commits import Commits
from omnigraph.api.graph_queries import GraphQueries
from omnigraph.api.near import Neighbourhood
from omnigraph.api.spark import GraphSpark
from omnigraph.api.tags import Tags
from omnigraph.branch.arguments import checked
from omnigraph.branch.point import Instant
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.pipeline.export.formats import Destination, Exported
from omnigraph.storage.tables.lend import LanceDataset


class GraphReads(GraphQueries):
    """What can be read of a graph. Every read sees one commit."""

    @property
    def branches(self) -> Branches:
        """Its branches."""
        return Branches(self._open())

    @property
    def commits(self) -> Commits:
        """The states it went through."""
        return Commits(self._open())

    @property
    def changes(self) -> ChangeFeed:
        """What happened on its branches, for whoever follows them."""
        self._open()
        return ChangeFeed(self._reading)

    @property
    def tags(self) -> Tags:
        """Its tags."""
        return Tags(self._open())

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
        snapshot = self.snapshot(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return snapshot.neighbourhood(type_name, entity_id, edges=edges, depth=depth, limit=limit)

    def export_arrow(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.RecordBatchReader:
        """All rows of a type, a batch at a time.

        Args:
            type_name (str): a node type, else an edge type; or a type key.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            number (int | None): the branch as its commit of this number left it.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.
            columns (Sequence[str] | None): which; all by default.

        Returns:
            pa.RecordBatchReader: the rows, in no promised order.

        Raises:
            NotFoundError: there is no such type, column or branch.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return snapshot.export_arrow(type_name, columns=columns)

    def lance_table(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> LanceDataset:
        """The table of a type at one commit, as Lance itself opens it.

        Read from it only: Lance's `cleanup_old_versions` on it would delete files that commits still need.

        Args:
            type_name (str): a node type, else an edge type; or a type key.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            number (int | None): the branch as its commit of this number left it.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            lance.LanceDataset: for reading.

        Raises:
            NotFoundError: there is no such type, branch, commit or tag.
        """
        return self.snapshot(branch=branch, commit=commit, number=number, tag=tag, at=at).lance_table(type_name)

    # -- blobs --------------------------------------------------------------------------------------------------------

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
        snapshot = self.snapshot(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return blob_of(self._parts, snapshot, entity=entity, type_name=type_name, id=id, property=property)

    # -- export -------------------------------------------------------------------------------------------------------

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
        snapshot = self.snapshot(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return exporting.export(self._open(), snapshot, to, format=format, types=types, files=files)

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
            Iterator[pa.Buffer]: bytes of whole lines.

        Raises:
            InvalidRequestError: an unknown type.
            NotFoundError: there is no such branch, commit or tag.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return exporting.lines(self._open(), snapshot, types=types)

    # -- Spark --------------------------------------------------------------------------------------------------------

    @property
    def spark(self) -> GraphSpark:
        """Types as frames of Spark's, frames into the graph, streams, and algorithms over all of it."""
        return GraphSpark(self._open(), self._schemas)
