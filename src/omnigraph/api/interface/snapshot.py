"""A graph at one commit: every read through it shows the same, whatever is written later."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, Self

from omnigraph.api.neighbourhood import Neighbourhood
from omnigraph.api.prepared import PreparedQuery
from omnigraph.api.query_result import Result, ResultStream
from omnigraph.errors import NotFoundError
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.model.commit import Record
from omnigraph.model.schema import EntityType, Schema
from omnigraph.transaction.validation import require_text


class SnapshotInterface(Protocol):
    """One commit, pinned for reading."""

    @property
    def record(self) -> Record:
        """The log entry: actor, time, message, and the version of every table."""
        ...

    @property
    def head_of(self) -> str | None:
        """The branch whose head it was when the snapshot was taken; None if a commit was named."""
        ...

    @property
    def schema(self) -> Schema:
        """The schema of the commit."""
        ...

    @property
    def commit(self) -> str:
        """The id of the commit."""
        return self.record.head_commit

    @property
    def number(self) -> int:
        """The position of its entry in the log of the branch."""
        return self.record.number

    @property
    def branch(self) -> str:
        """The branch in whose log the entry is."""
        return self.record.branch

    @property
    def table_versions(self) -> dict[str, int]:
        """The version of every table, by type key; a write takes them as `expected_table_versions`."""
        return {key: pin.version for key, pin in self.record.tables.items()}

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
        engine: str = "auto",
        nodes: str = "id",
    ) -> Result:
        """Run a query and return all its rows.

        Args:
            query: a text in the query language, or a query from `Graph.prepare`.
            params: values of its parameters.
            name: which query of the text; needed only where there are several.
            limits: how much memory it may use. A server has limits of its own and takes no others.
            engine: `local` runs it in this process, `spark` on Spark; `auto` on Spark where it needs more memory than
                it may use, if Spark is available. A server takes `spark` if it was started with `--spark`.
            nodes: `id` returns `$p` as the node's id, `object` as an object of its id and all properties but blobs.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            LimitError: it needs more memory than it may use.
            ReclaimedError: the commit was pruned since, and its data is deleted.
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
    ) -> ResultStream:
        """Run a query and return its rows batch by batch, so that memory does not grow with the result.

        Takes the same arguments and raises the same errors as `query`, also while rows are fetched. Rows that were
        handed over do not count against the limits.
        """
        ...

    def explain(self, query: str | PreparedQuery, *, name: str | None = None) -> str:
        """Describe the plan of a query or mutation, one step per line.

        Args:
            query: a text in the query language, or a query from `Graph.prepare`.
            name: which query of the text; needed only where there are several.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: there is no such query.
        """
        ...

    def count(self, type_name: str) -> int:
        """Count the nodes or edges of a type, without a request to the store.

        Args:
            type_name: a node type, else an edge type; or a type key like `edge:Knows`.

        Raises:
            NotFoundError: there is no such type.
        """
        ...

    def get(self, type_name: str, id: str) -> dict[str, Any] | None:
        """Return one node or edge with all properties but blobs, or None if there is none; see `Graph.get`."""
        return self.get_many(type_name, (id,))[0]

    def get_many(self, type_name: str, ids: Iterable[str]) -> list[dict[str, Any] | None]:
        """Return several nodes or edges of a type, in the order of their ids; see `Graph.get`."""
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
    ) -> Neighbourhood:
        """Return a node, the edges at it, the nodes they lead to, and so on for a few steps.

        Args:
            type_name: the type of the node in the middle.
            entity_id: the id of the node in the middle.
            edges: follow only edges of these types, in either direction; by default all.
            depth: how many steps outwards.
            limit: at most so many nodes, the middle included.
            vectors: include properties that are vectors. Blobs are always left out.

        Raises:
            NotFoundError: there is no such type or node.
            InvalidRequestError: it is an edge type, or a bound is out of range.
        """
        ...

    def entity(self, type_name: str) -> EntityType:
        """Look up a type, with its properties.

        Args:
            type_name: a node type, else an edge type; or a type key like `edge:Knows`.

        Raises:
            NotFoundError: there is no such type.
        """
        schema, name = self.schema, require_text(type_name, "the name of a type")
        found = schema.entity(name) if ":" in name else schema.node(name) or schema.edge(name)
        if found is None:
            raise no_type(type_name)
        return found

    def close(self) -> None:
        """Refuse further reads through this object."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Snapshot of {self.branch} at commit {self.commit}>"


def no_type(type_name: str) -> NotFoundError:
    """Make the error for an unknown type."""
    return NotFoundError(f"there is no type '{type_name}'", code="type_not_found", type=type_name)
