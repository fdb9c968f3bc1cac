"""A graph on a server at one commit: whatever is written later, every read through it shows the same."""

from collections.abc import Iterable, Mapping
from functools import cached_property

from omnigraph.api.near import Neighbourhood
from omnigraph.api.params import json_params
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.result import Result, ResultStream
from omnigraph.client import values
from omnigraph.client.rows import row_stream, rows
from omnigraph.client.wire import Wire, present
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.model.commit import Record
from omnigraph.model.schema import EntityType, Schema
from omnigraph.model.schema_document import from_document
from omnigraph.transaction.said import text


class RemoteSnapshot:
    """One commit, pinned for reading. The server holds nothing for it."""

    def __init__(self, wire: Wire, record: Record, *, head_of: str | None) -> None:
        self._wire = wire
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
        return {key: pin.version for key, pin in self.record.tables.items()}

    @cached_property
    def schema(self) -> Schema:
        """The types there are."""
        return from_document(self._open().get("schema/resolved", snapshot=self.commit)["schema"])

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> Result:
        """Answer a query; see `omnigraph.Snapshot.query`.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            limits (QueryLimits): only the default: the server has its own.

        Returns:
            Result: the rows.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            LimitError: it needs more memory than the server lets it use.
            ReclaimedError: the commit was pruned since, and its data is gone.
        """
        found = rows(self._open(), query_body(query, params, name, limits, snapshot=self.commit))
        return Result(found.to_arrow(), query_name=found.query_name, branch=self._head_of, commit=found.commit)

    def stream(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> ResultStream:
        """Answer a query a batch at a time; see `omnigraph.Snapshot.stream`.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            limits (QueryLimits): only the default: the server has its own.

        Returns:
            ResultStream: the rows, read while they are asked for.
        """
        found = row_stream(self._open(), query_body(query, params, name, limits, snapshot=self.commit))
        return ResultStream(
            found.schema, found.batches(), query_name=found.query_name, branch=self._head_of, commit=found.commit
        )

    def explain(self, query: str | PreparedQuery, *, name: str | None = None) -> str:
        """How a query or mutation would be carried out; see `omnigraph.Snapshot.explain`.

        Args:
            query (str | PreparedQuery): a text in the query language, or a prepared one.
            name (str | None): which query of the text; may be left out where there is only one.

        Returns:
            str: the plan, one step per line.
        """
        text, chosen = as_text(query, name)
        body = {"query": text, "name": chosen, "snapshot": self.commit}
        return "\n".join(self._open().post("explain", body)["plan"])

    def count(self, type_name: str) -> int:
        """How many nodes or edges of a type there are. Costs no request.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.

        Returns:
            int: the number.

        Raises:
            NotFoundError: there is no such type.
        """
        self._open()
        tables, name = self._record.tables, text(type_name, "the name of a type")
        keys = [name] if ":" in name else [f"node:{name}", f"edge:{name}"]
        found = next((tables[key] for key in keys if key in tables), None)
        if found is None:
            raise _no_type(type_name)
        return found.rows

    def neighbourhood(
        self,
        type_name: str,
        entity_id: str,
        *,
        edges: Iterable[str] = (),
        depth: int = 1,
        limit: int = NEIGHBOURHOOD_NODES,
    ) -> Neighbourhood:
        """What surrounds a node; see `omnigraph.Graph.neighbourhood`.

        Args:
            type_name (str): its type.
            entity_id (str): its id.
            edges (Iterable[str]): only edges of these types, in either direction; all by default.
            depth (int): how many steps outwards.
            limit (int): nodes at most, the one in the middle included.

        Returns:
            Neighbourhood: nodes with their properties, and the edges between them.
        """
        return values.neighbourhood(
            self._open().get(
                "neighbourhood",
                type=type_name,
                id=entity_id,
                edge=tuple(edges),
                depth=depth,
                limit=limit,
                snapshot=self.commit,
            )
        )

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
            raise _no_type(type_name)
        return found

    def close(self) -> None:
        """Refuse further reads through this object."""
        self._closed = True

    def __enter__(self) -> "RemoteSnapshot":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Snapshot of {self.branch} at commit {self.commit}>"

    def _open(self) -> Wire:
        if self._closed:
            raise InvalidRequestError("the snapshot was closed", code="closed")
        return self._wire


def query_body(
    query: str | PreparedQuery,
    params: Mapping[str, object] | None,
    name: str | None,
    limits: QueryLimits,
    **where: str | int | None,
) -> dict[str, object]:
    """The body of a request that asks a query.

    Raises:
        InvalidRequestError: the caller wants other limits than the server's.
    """
    if limits is not DEFAULT_LIMITS:
        raise InvalidRequestError("a server has its own limits: a query to it cannot name others", code="own_limits")
    text, chosen = as_text(query, name)
    return present({"query": text, "name": chosen, "params": json_params(params), **where})


def _no_type(type_name: str) -> NotFoundError:
    return NotFoundError(f"there is no type '{type_name}'", code="type_not_found", type=type_name)
