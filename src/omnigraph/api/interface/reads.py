"""Reads of a graph. Every read sees one commit for its whole life, whatever is written meanwhile."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, Self, Unpack

import pyarrow as pa

from omnigraph.api.blob import Blob
from omnigraph.api.interface.history import (
    BranchesInterface,
    ChangeFeedInterface,
    CommitsInterface,
    DiffInterface,
    TagsInterface,
)
from omnigraph.api.interface.snapshot import SnapshotInterface
from omnigraph.api.neighbourhood import Neighbourhood
from omnigraph.api.prepared import PreparedQuery
from omnigraph.api.query_result import Result, ResultStream
from omnigraph.branch.history_values import Blame, EntityEvent
from omnigraph.branch.point import Point, PointKeywords
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.model.commit import MAIN
from omnigraph.model.schema import Schema
from omnigraph.pipeline.export.formats import Destination, Exported

# A branch, tag or commit by name, `BRANCH@NUMBER`, `BRANCH@TIME`; a point; or a snapshot.
State = str | Point | SnapshotInterface


class ReadInterface(Protocol):
    """What can be read of a graph."""

    @property
    def uri(self) -> str:
        """The address of the graph."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether this object refuses writes. A served graph never does: the server decides."""
        ...

    @property
    def branches(self) -> BranchesInterface:
        """The branches: create, list and delete them."""
        ...

    @property
    def tags(self) -> TagsInterface:
        """The tags: names of commits that never move."""
        ...

    @property
    def commits(self) -> CommitsInterface:
        """The history: commits, and what each changed."""
        ...

    @property
    def changes(self) -> ChangeFeedInterface:
        """The change feed of a branch: a baseline, then changes commit by commit."""
        ...

    def close(self) -> None:
        """Refuse further calls. Every acknowledged write is on the store already; background work is finished first."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def snapshot(self, **point: Unpack[PointKeywords]) -> SnapshotInterface:
        """Pin one commit for reading. Queries on it are checked against the schema of that commit.

        Raises:
            NotFoundError: there is no such branch, commit, number or tag, or the branch is younger than the time.
            InvalidRequestError: the keywords name two states.
        """
        ...

    def schema(self, *, branch: str = MAIN) -> Schema:
        """Return the resolved schema at the head of a branch.

        Raises:
            NotFoundError: there is no such branch.
        """
        ...

    def schema_text(self, *, branch: str = MAIN) -> str:
        """Return the schema text at the head of a branch, as it was applied.

        Raises:
            NotFoundError: there is no such branch.
        """
        ...

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
        engine: str = "auto",
        nodes: str = "id",
        **point: Unpack[PointKeywords],
    ) -> Result:
        """Run a query and return all its rows.

        Args:
            query: a text in the query language, or a query from `prepare`.
            params: values of its parameters.
            name: which query of the text; needed only where there are several.
            limits: how much memory it may use. A server has limits of its own and takes no others.
            engine: `local` runs it in this process, `spark` on Spark; `auto` on Spark where it needs more memory than
                it may use, if Spark is available. A server takes `spark` if it was started with `--spark`.
            nodes: `id` returns `$p` as the node's id, `object` as an object of its id and all properties but blobs.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            NotFoundError: there is no such branch, commit, number or tag.
            LimitError: it needs more memory than it may use.
        """
        ...

    def stream(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
        nodes: str = "id",
        **point: Unpack[PointKeywords],
    ) -> ResultStream:
        """Run a query and return its rows batch by batch, so that memory does not grow with the result.

        Takes the same arguments and raises the same errors as `query`; a `LimitError` may also come while rows are
        fetched. Rows that were handed over do not count against the limits.
        """
        ...

    def prepare(self, query: str | PreparedQuery, *, name: str | None = None, branch: str = MAIN) -> PreparedQuery:
        """Compile a query or mutation now, to run it any number of times later.

        Args:
            query: a text in the query language.
            name: which query of the text; needed only where there are several.
            branch: the branch against whose schema it is checked.

        Returns:
            What `query`, `stream`, `mutate` and `explain` take in the place of a text.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: there is no such query.
        """
        ...

    def explain(self, query: str | PreparedQuery, *, name: str | None = None, **point: Unpack[PointKeywords]) -> str:
        """Describe the plan of a query or mutation, one step per line.

        Args:
            query: a text in the query language, or a query from `prepare`.
            name: which query of the text; needed only where there are several.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: there is no such query.
        """
        ...

    def count(self, type_name: str, **point: Unpack[PointKeywords]) -> int:
        """Count the nodes or edges of a type.

        Args:
            type_name: a node type, else an edge type; or a type key like `edge:Knows`.

        Raises:
            NotFoundError: there is no such type or branch.
        """
        ...

    def get(self, type_name: str, id: str, **point: Unpack[PointKeywords]) -> dict[str, Any] | None:
        """Return one node or edge with all properties but blobs, or None if there is none with this id.

        Args:
            type_name: a node type, else an edge type; or a type key like `edge:Knows`.
            id: of a keyed node, its key.

        Returns:
            JSON values: `id`, for an edge `from` and `to`, then the properties as the schema declares them.

        Raises:
            NotFoundError: there is no such type or branch.
        """
        return self.get_many(type_name, (id,), **point)[0]

    def get_many(
        self, type_name: str, ids: Iterable[str], **point: Unpack[PointKeywords]
    ) -> list[dict[str, Any] | None]:
        """Return several nodes or edges of a type, in the order of their ids, all from one commit; see `get`."""
        ...

    def neighbourhood(
        self,
        type_name: str,
        entity_id: str,
        *,
        edges: Iterable[str] = (),
        depth: int = 1,
        limit: int = NEIGHBOURHOOD_NODES,
        vectors: bool = False,
        **point: Unpack[PointKeywords],
    ) -> Neighbourhood:
        """Return a node, the edges at it, the nodes they lead to, and so on for a few steps.

        Args:
            type_name: the type of the node in the middle.
            entity_id: the id of the node in the middle.
            edges: follow only edges of these types, in either direction; by default all.
            depth: how many steps outwards.
            limit: at most so many nodes, the middle included. Edge types take turns, so that one with very many edges
                does not hide the others.
            vectors: include properties that are vectors. Blobs are always left out.

        Raises:
            NotFoundError: there is no such type, node or branch.
            InvalidRequestError: it is an edge type, or a bound is out of range.
        """
        ...

    def blob(self, entity: str, type_name: str, id: str, property: str, **point: Unpack[PointKeywords]) -> Blob:
        """Look up the blob of one property of one entity. Its bytes are fetched when they are read.

        Args:
            entity: `node` or `edge`.
            type_name: the type of the entity.
            id: the id of the entity.
            property: the blob property.

        Raises:
            InvalidRequestError: there is no such type or property, or it holds no blobs.
            NotFoundError: there is no such branch, commit or entity, or it has no value there.
        """
        ...

    def export(
        self,
        to: Destination,
        *,
        format: str = "jsonl",
        types: Iterable[str] | None = None,
        files: int | None = None,
        **point: Unpack[PointKeywords],
    ) -> Exported:
        """Write the entities of one commit to a file, a folder or a stream, each type in the order of its ids.

        A served graph exports JSON lines as one file; use the graph's storage for other formats and several files.

        Args:
            to: a path or a stream of bytes. JSON lines and GraphML are one file, which appears when it is complete;
                Parquet and CSV hold one type in a file, and make a folder for several.
            format: `jsonl` (which `load` takes back), `parquet`, `csv` or `graphml`.
            types: names of types, each standing for the node type and the edge type of that name; by default all.
            files: write each type into up to this many files of a folder, in parallel on Spark. Concatenated, the JSON
                lines files are the single file. By default one file, written in this process.

        Raises:
            InvalidRequestError: the format or a type is unknown, or the destination cannot be written.
            AlreadyExistsError: the folder exists.
            NotFoundError: there is no such branch, commit or tag.
        """
        ...

    def export_lines(
        self, *, types: Iterable[str] | None = None, **point: Unpack[PointKeywords]
    ) -> Iterator[pa.Buffer]:
        """Return the entities of one commit as JSON lines, piece by piece, for sending on.

        Args:
            types: names of types; by default all.

        Returns:
            Pieces of whole lines. From a server the pieces are cut anywhere, and a missing end raises an error.

        Raises:
            InvalidRequestError: a type is unknown.
            NotFoundError: there is no such branch, commit or tag.
        """
        ...

    def diff(
        self,
        older: State,
        newer: State,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        merge_base: bool = False,
        engine: str = "auto",
    ) -> DiffInterface:
        """Compare any two states: every entity that differs, with its values before and after.

        Args:
            older: a branch, tag or commit by name, `BRANCH@NUMBER`, `BRANCH@TIME`, a `Point`, or a snapshot.
            newer: likewise. It need not be younger, nor of the same branch.
            kinds: only `node` or `edge`; by default both.
            types: only types of these names; by default all.
            ops: only `insert`, `update` or `delete`; by default all.
            merge_base: compare `newer` with the last commit that both have in common instead of with `older`: shows
                what `newer` did since, and nothing that `older` did. See `changes_of`.
            engine: where rows are compared: `local`, `spark`, or `auto`, which takes Spark for very large differences.
                A server decides itself.

        Returns:
            The changes, read while they are iterated.

        Raises:
            NotFoundError: there is no such state.
            InvalidRequestError: a kind, operation or engine is unknown.
            ConflictError: with `merge_base`, no commit that both have in common is kept.
        """
        ...

    def changes_of(
        self,
        branch: str,
        *,
        against: str = MAIN,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        engine: str = "auto",
    ) -> DiffInterface:
        """List what a branch changed since it left another: what a merge would bring, for review.

        Changes made on `against`, the branch it would be merged into, are not shown; `diff` compares the two heads.
        Takes the filters and the engine of `diff`, and raises the same errors.
        """
        return self.diff(against, branch, kinds=kinds, types=types, ops=ops, merge_base=True, engine=engine)

    def log_of(
        self, type_name: str, entity_id: str, *, branch: str = MAIN, limit: int | None = None
    ) -> list[EntityEvent]:
        """List the commits that changed one entity, newest first.

        Args:
            type_name: a node type, else an edge type; or a type key like `edge:Knows`.
            entity_id: the id of the entity.
            branch: whose history to follow; of a merge, the commits it brought in are listed.
            limit: at most so many; by default all.

        Returns:
            Commits with what they did to the entity; empty if it never existed.

        Raises:
            NotFoundError: there is no such type or branch.
        """
        ...

    def blame(self, type_name: str, entity_id: str, *, branch: str = MAIN) -> Blame:
        """Find, for each property of an entity, the commit that last set it; through merges, the original commit.

        Args:
            type_name: a node type, else an edge type; or a type key like `edge:Knows`.
            entity_id: the id of the entity.
            branch: the branch at whose head the entity is read.

        Raises:
            NotFoundError: there is no such type, entity or branch.
        """
        ...
