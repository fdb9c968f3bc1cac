"""Reading a graph."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.api import exporting
from omnigraph.api.blobs import Blob, blob_of
from omnigraph.api.graph_base import OpenGraph
from omnigraph.api.neighbourhood import Neighbourhood
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.prepared import PreparedQuery
from omnigraph.api.result import Result, ResultStream
from omnigraph.api.snapshot import Snapshot
from omnigraph.api.spark import GraphSpark
from omnigraph.branch.points import Instant, Point, entry_at
from omnigraph.errors import ReclaimedError
from omnigraph.execution.engine import DEFAULT_LIMITS, EngineStats, QueryLimits
from omnigraph.language.query import compile
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.model.schema import Schema
from omnigraph.pipeline.export.run import Destination, Exported

# How often a read of the newest state starts again because a prune and a sweep were faster.
_NEWEST_LOOKS_MAX = 8


class GraphReads(OpenGraph):
    """What can be read of a graph. Every read sees one commit."""

    def schema(self, *, branch: str = MAIN_BRANCH) -> Schema:
        """The types there are at the head of a branch.

        Args:
            branch (str): which branch.

        Returns:
            Schema: resolved.

        Raises:
            NotFoundError: there is no such branch.
        """
        return self.snapshot(branch=branch).schema

    def schema_text(self, *, branch: str = MAIN_BRANCH) -> str:
        """The schema text accepted at the head of a branch, as it was written.

        Args:
            branch (str): which branch.

        Returns:
            str: the text.

        Raises:
            NotFoundError: there is no such branch.
        """
        return self._schemas.text(self.snapshot(branch=branch).record.schema)

    def snapshot(
        self,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> Snapshot:
        """The graph at one commit. Queries on it are checked against the schema of that commit.

        Args:
            branch (str | None): its head, or with `number` or `at` an earlier state of it; `main` by default.
            commit (str | None): a commit by its id, whatever its branch.
            number (int | None): a place in the branch's log.
            tag (str | None): the commit a tag names.
            at (datetime | str | None): the branch as it was at this time; without a zone it is UTC.

        Returns:
            Snapshot: for reading; it never changes.

        Raises:
            NotFoundError: there is no such branch, commit, number or tag, or nothing was there at that time.
            InvalidRequestError: two of them are named of which one would do.
        """
        point = Point(branch=branch, commit=commit, number=number, tag=tag, at=at)
        entry = entry_at(self._open(), point)
        return Snapshot(self._reading, entry, head_of=entry.branch if point.is_head else None)

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> Result:
        """Answer a query. It sees one commit for its whole life, whatever is written meanwhile.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.
            limits (QueryLimits): what it may use.

        Returns:
            Result: the rows.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            NotFoundError: there is no such branch or commit.
            LimitError: it needs more memory than it may use.
        """
        if commit is None and tag is None and at is None:
            for _ in range(_NEWEST_LOOKS_MAX):
                try:
                    return self._at_head(branch).query(query, params, name=name, limits=limits)
                except ReclaimedError:
                    continue  # pruned and swept between the look at the head and the reading of rows
        return self.snapshot(branch=branch, commit=commit, tag=tag, at=at).query(
            query, params, name=name, limits=limits
        )

    def stream(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> ResultStream:
        """Answer a query a batch at a time, so that memory does not follow the size of the result.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.
            limits (QueryLimits): what it may use; rows that were handed over do not count.

        Returns:
            ResultStream: the rows, found while they are asked for; all of one commit, whatever is written meanwhile.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            NotFoundError: there is no such branch or commit.
            LimitError: it needs more memory than it may use; also later, when rows are asked for.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag, at=at)
        return snapshot.stream(query, params, name=name, limits=limits)

    def stats(self) -> EngineStats:
        """What reads keep in memory, bounded in bytes, and where it came from.

        Returns:
            EngineStats: the cache of columns, indexes and adjacency; where adjacency came from; plans ready to run.
        """
        self._open()
        return self._reading.engine.stats()

    def prepare(self, query: str, *, name: str | None = None, branch: str = MAIN_BRANCH) -> PreparedQuery:
        """Check a query or mutation now, to run it any number of times later.

        Args:
            query (str): a text in the query language.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str): against whose schema it is checked.

        Returns:
            PreparedQuery: for `query`, `mutate` and `explain`.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: there is no such query.
        """
        compiled = compile(query, self.schema(branch=branch), name=name)
        return PreparedQuery(query, compiled.name, compiled.is_mutation, compiled.parameters)

    def explain(
        self,
        query: str | PreparedQuery,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> str:
        """How a query or mutation would be carried out, as text for people.

        Args:
            query (str | PreparedQuery): a text in the query language, or a prepared one.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str | None): against whose schema; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            str: the plan, one step per line.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: there is no such query.
        """
        return self.snapshot(branch=branch, commit=commit, tag=tag, at=at).explain(query, name=name)

    def count(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> int:
        """How many nodes or edges of a type there are.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            int: the number.

        Raises:
            NotFoundError: there is no such type or branch.
        """
        return self.snapshot(branch=branch, commit=commit, tag=tag, at=at).count(type_name)

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
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            Neighbourhood: nodes with their properties, and the edges between them.

        Raises:
            NotFoundError: there is no such type, node or branch.
            InvalidRequestError: it is an edge type, or a bound is out of range.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag, at=at)
        return snapshot.neighbourhood(type_name, entity_id, edges=edges, depth=depth, limit=limit)

    def export_arrow(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.RecordBatchReader:
        """All rows of a type, a batch at a time.

        Args:
            type_name (str): a node type, else an edge type; or a type key.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.
            columns (Sequence[str] | None): which; all by default.

        Returns:
            pa.RecordBatchReader: the rows, in no promised order.

        Raises:
            NotFoundError: there is no such type, column or branch.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag, at=at)
        return snapshot.export_arrow(type_name, columns=columns)

    def lance_table(self, type_name: str, *, branch: str = MAIN_BRANCH) -> Any:  # noqa: ANN401  (see Snapshot)
        """The table of a type at the head of a branch, as Lance itself opens it.

        Read from it only: Lance's `cleanup_old_versions` on it would delete files that commits still need.

        Args:
            type_name (str): a node type, else an edge type; or a type key.
            branch (str): at whose head.

        Returns:
            lance.LanceDataset: for reading.

        Raises:
            NotFoundError: there is no such type or branch.
        """
        return self.snapshot(branch=branch).lance_table(type_name)

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
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            Blob: its size and tag, and what reads it.

        Raises:
            InvalidRequestError: there is no such type or property, or it holds no blobs.
            NotFoundError: there is no such branch, commit or entity, or it has no value there.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag, at=at)
        return blob_of(self._parts, snapshot, entity=entity, type_name=type_name, id=id, property=property)

    # -- export -------------------------------------------------------------------------------------------------------

    def export(
        self,
        to: Destination,
        *,
        format: str = "jsonl",
        types: Iterable[str] | None = None,
        files: int | None = None,
        branch: str | None = None,
        commit: str | None = None,
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
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            Exported: how many entities of which types, in which files, at which commit.

        Raises:
            InvalidRequestError: an unknown format or type, or a place that cannot be written.
            AlreadyExistsError: the folder is there already.
            NotFoundError: there is no such branch, commit or tag.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag, at=at)
        return exporting.export(self._open(), snapshot, to, format=format, types=types, files=files)

    def export_lines(
        self,
        *,
        types: Iterable[str] | None = None,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> Iterator[pa.Buffer]:
        """Entities of one commit as JSON lines, some at a time, for whoever sends them on.

        Args:
            types (Iterable[str] | None): names of types; all by default.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            Iterator[pa.Buffer]: bytes of whole lines.

        Raises:
            InvalidRequestError: an unknown type.
            NotFoundError: there is no such branch, commit or tag.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag, at=at)
        return exporting.lines(self._open(), snapshot, types=types)

    # -- Spark --------------------------------------------------------------------------------------------------------

    @property
    def spark(self) -> GraphSpark:
        """Types as frames of Spark's, frames into the graph, streams, and algorithms over all of it."""
        return GraphSpark(self._open(), self._schemas)
