"""A graph at one commit, wherever the graph is: what can be asked of it, what the questions take, and what they mean.

How they are answered is the matter of a graph that is open (`snapshot.py`) and of one on a server (`client`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Self, TypeVar

from omnigraph.api.near import Neighbourhood
from omnigraph.api.prepared import Asked, PreparedQuery
from omnigraph.api.result import Result, ResultStream
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.model.commit import Record
from omnigraph.model.schema import EntityType, Schema
from omnigraph.transaction.said import text


class AtCommit(ABC):
    """One commit, pinned for reading."""

    def __init__(self, record: Record, *, head_of: str | None) -> None:
        self._record = record
        self._head_of = head_of
        self._closed = False

    @property
    def commit(self) -> str:
        """The id of the commit."""
        return self._record.head_commit

    @property
    def number(self) -> int:
        """The place of its entry in the branch's log."""
        return self._record.number

    @property
    def branch(self) -> str:
        """The branch in whose log the entry is."""
        return self._record.branch

    @property
    def head_of(self) -> str | None:
        """The branch whose head it was when it was taken; None where a commit was named."""
        return self._head_of

    @property
    def record(self) -> Record:
        """The entry itself: who, when, why, and the version of every table."""
        return self._record

    @property
    def table_versions(self) -> dict[str, int]:
        """The version of every table, by type key: what a write may expect to find still."""
        return {key: pin.version for key, pin in self._record.tables.items()}

    @property
    def schema(self) -> Schema:
        """The types there are."""
        return self._schema()

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> Result:
        """Answer a query.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `Graph.prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            limits (QueryLimits): what it may use; a server has limits of its own, and takes no others.

        Returns:
            Result: the rows.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            LimitError: it needs more memory than it may use.
            ReclaimedError: the commit was pruned since, and its data is gone.
        """
        return self._query(Asked(query, params, name, limits))

    def stream(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> ResultStream:
        """Answer a query a batch at a time, so that memory does not follow the size of the result.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `Graph.prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            limits (QueryLimits): what it may use, rows that were handed over not counted; a server has its own.

        Returns:
            ResultStream: the rows, found while they are asked for, all of them at this commit.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            LimitError: it needs more memory than it may use; also later, when rows are asked for.
            ReclaimedError: the commit was pruned since, and its data is gone; likewise.
        """
        return self._stream(Asked(query, params, name, limits))

    def explain(self, query: str | PreparedQuery, *, name: str | None = None) -> str:
        """How a query or mutation would be carried out, as text for people.

        Args:
            query (str | PreparedQuery): a text in the query language, or a prepared one.
            name (str | None): which query of the text; may be left out where there is only one.

        Returns:
            str: the plan, one step per line.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: there is no such query.
        """
        return self._explain(query, name)

    def count(self, type_name: str) -> int:
        """How many nodes or edges of a type there are. Costs no request.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.

        Returns:
            int: the number.

        Raises:
            NotFoundError: there is no such type.
        """
        return self._count(type_name)

    def neighbourhood(
        self,
        type_name: str,
        entity_id: str,
        *,
        edges: Iterable[str] = (),
        depth: int = 1,
        limit: int = NEIGHBOURHOOD_NODES,
    ) -> Neighbourhood:
        """What surrounds a node.

        Args:
            type_name (str): its type.
            entity_id (str): its id.
            edges (Iterable[str]): only edges of these types, in either direction; all by default.
            depth (int): how many steps outwards.
            limit (int): nodes at most, the one in the middle included.

        Returns:
            Neighbourhood: nodes with their properties, and the edges between them.

        Raises:
            NotFoundError: there is no such type or node.
            InvalidRequestError: it is an edge type, or a bound is out of range.
        """
        return self._neighbourhood(type_name, entity_id, edges=edges, depth=depth, limit=limit)

    def entity(self, type_name: str) -> EntityType:
        """A type there is.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.

        Returns:
            EntityType: with its properties.

        Raises:
            NotFoundError: there is no such type.
        """
        schema, name = self.schema, text(type_name, "the name of a type")
        found = schema.entity(name) if ":" in name else schema.node(name) or schema.edge(name)
        if found is None:
            raise no_type(type_name)
        return found

    def close(self) -> None:
        """Refuse further reads through this object."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Snapshot of {self.branch} at commit {self.commit}>"

    def _refuse_closed(self) -> None:
        if self._closed:
            raise InvalidRequestError("the snapshot was closed", code="closed")

    # -- how it is answered -------------------------------------------------------------------------------------------

    @abstractmethod
    def _schema(self) -> Schema: ...

    @abstractmethod
    def _query(self, asked: Asked) -> Result: ...

    @abstractmethod
    def _stream(self, asked: Asked) -> ResultStream: ...

    @abstractmethod
    def _explain(self, query: str | PreparedQuery, name: str | None) -> str: ...

    @abstractmethod
    def _count(self, type_name: str) -> int: ...

    @abstractmethod
    def _neighbourhood(
        self, type_name: str, entity_id: str, *, edges: Iterable[str], depth: int, limit: int
    ) -> Neighbourhood: ...


# What one commit is read with, where the graph is.
At = TypeVar("At", bound=AtCommit)


def no_type(type_name: str) -> NotFoundError:
    """That there is no type of a name, in the words of everybody who says so."""
    return NotFoundError(f"there is no type '{type_name}'", code="type_not_found", type=type_name)
