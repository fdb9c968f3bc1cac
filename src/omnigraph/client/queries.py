"""Asking a graph on a server."""

from collections.abc import Mapping

from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.result import Result, ResultStream
from omnigraph.branch.arguments import checked
from omnigraph.branch.point import Instant, Point
from omnigraph.client import values
from omnigraph.client.base import RemoteBase
from omnigraph.client.rows import row_stream, rows
from omnigraph.client.snapshot import RemoteSnapshot, query_body
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.language.query import compile
from omnigraph.model.commit import MAIN as MAIN_BRANCH
from omnigraph.model.schema import Schema


class RemoteQueries(RemoteBase):
    """What can be asked of a graph on a server. Every answer sees one commit."""

    @checked
    def schema(self, *, branch: str = MAIN_BRANCH) -> Schema:
        """The types there are at the head of a branch; see `omnigraph.Graph.schema`.

        Args:
            branch (str): which branch.

        Returns:
            Schema: resolved.
        """
        return self.snapshot(branch=branch).schema

    @checked
    def schema_text(self, *, branch: str = MAIN_BRANCH) -> str:
        """The schema text accepted at the head of a branch; see `omnigraph.Graph.schema_text`.

        Args:
            branch (str): which branch.

        Returns:
            str: the text.
        """
        return str(self._open().get("schema", branch=branch)["schema_source"])

    def snapshot(
        self,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> RemoteSnapshot:
        """The graph at one commit; see `omnigraph.Graph.snapshot`.

        Args:
            branch (str | None): its head, or with `number` or `at` an earlier state of it; `main` by default.
            commit (str | None): a commit by its id, whatever its branch.
            number (int | None): a place in the branch's log.
            tag (str | None): the commit a tag names.
            at (datetime | str | None): the branch as it was at this time; without a zone it is UTC.

        Returns:
            RemoteSnapshot: for reading; it never changes.
        """
        wire = self._open()
        where = values.state(branch=branch, commit=commit, number=number, tag=tag, at=at)
        record = values.snapshot_record(wire.get("snapshot", **where))
        is_head = Point(branch=branch, commit=commit, number=number, tag=tag, at=at).is_head
        return RemoteSnapshot(wire, record, head_of=record.branch if is_head else None)

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> Result:
        """Answer a query; see `omnigraph.Graph.query`.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            number (int | None): the branch as its commit of this number left it.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.
            limits (QueryLimits): only the default: the server has its own.

        Returns:
            Result: the rows.
        """
        where = values.state(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return rows(self._open(), query_body(query, params, name, limits, **where))

    def stream(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> ResultStream:
        """Answer a query a batch at a time; see `omnigraph.Graph.stream`.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            number (int | None): the branch as its commit of this number left it.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.
            limits (QueryLimits): only the default: the server has its own.

        Returns:
            ResultStream: the rows, read while they are asked for.
        """
        where = values.state(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return row_stream(self._open(), query_body(query, params, name, limits, **where))

    def prepare(self, query: str, *, name: str | None = None, branch: str = MAIN_BRANCH) -> PreparedQuery:
        """Check a query or mutation now, to run it any number of times later; see `omnigraph.Graph.prepare`.

        Args:
            query (str): a text in the query language.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str): against whose schema it is checked.

        Returns:
            PreparedQuery: for `query`, `mutate` and `explain`.
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
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> str:
        """How a query or mutation would be carried out; see `omnigraph.Graph.explain`.

        Args:
            query (str | PreparedQuery): a text in the query language, or a prepared one.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str | None): against whose schema; `main` by default.
            commit (str | None): at this commit instead.
            number (int | None): the branch as its commit of this number left it.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            str: the plan, one step per line.
        """
        text, chosen = as_text(query, name)
        where = values.state(branch=branch, commit=commit, number=number, tag=tag, at=at)
        body = {"query": text, "name": chosen, **where}
        return "\n".join(self._open().post("explain", body)["plan"])

    @checked
    def count(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> int:
        """How many nodes or edges of a type there are; see `omnigraph.Graph.count`.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            number (int | None): the branch as its commit of this number left it.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            int: the number.
        """
        where = values.state(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return int(self._open().get("count", type=type_name, **where)["count"])
