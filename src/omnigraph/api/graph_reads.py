"""Reading a graph."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from omnigraph.api import exporting
from omnigraph.api.blob import Blob, BlobName
from omnigraph.api.blobs import blob_of
from omnigraph.api.branches import Branches
from omnigraph.api.changes import ChangeFeed
from omnigraph.api.commits import Commits
from omnigraph.api.fetching import Fetching
from omnigraph.api.graph_queries import GraphQueries
from omnigraph.api.near import Neighbourhood
from omnigraph.api.spark import GraphSpark
from omnigraph.api.tags import Tags
from omnigraph.branch.point import Instant, Point
from omnigraph.pipeline.export.formats import Destination, Exported
from omnigraph.storage.tables.lend import LanceDataset


class GraphReads(GraphQueries, Fetching):
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

    # -- Spark --------------------------------------------------------------------------------------------------------

    @property
    def spark(self) -> GraphSpark:
        """Types as frames of Spark's, frames into the graph, streams, and algorithms over all of it."""
        return GraphSpark(self._open(), self._schemas)

    # -- how it is done -----------------------------------------------------------------------------------------------

    def _neighbourhood(
        self, point: Point, type_name: str, entity_id: str, *, edges: Iterable[str], depth: int, limit: int
    ) -> Neighbourhood:
        return self._at(point).neighbourhood(type_name, entity_id, edges=edges, depth=depth, limit=limit)

    def _blob(self, point: Point, name: BlobName) -> Blob:
        return blob_of(self._parts, self._at(point), name)

    def _export(
        self, point: Point, to: Destination, *, format: str, types: Iterable[str] | None, files: int | None
    ) -> Exported:
        return exporting.export(self._open(), self._at(point), to, format=format, types=types, files=files)

    def _export_lines(self, point: Point, types: Iterable[str] | None) -> Iterator[pa.Buffer]:
        return exporting.lines(self._open(), self._at(point), types=types)
