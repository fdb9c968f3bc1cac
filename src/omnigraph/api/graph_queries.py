"""Asking a graph."""

from collections.abc import Mapping

from omnigraph.api.graph_base import OpenGraph
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.result import Result, ResultStream
from omnigraph.api.snapshot import Snapshot
from omnigraph.branch.point import Instant, Point
from omnigraph.branch.points import entry_at
from omnigraph.errors import ReclaimedError
from omnigraph.execution.engine import EngineStats
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.language.query import compile
from omnigraph.model.schema import Schema

# How often a read of the newest state starts again because a prune and a sweep were faster.
_NEWEST_LOOKS_MAX = 8


class GraphQueries(OpenGraph):
    """What can be asked of a graph, by itself: whoever only asks imports nothing else. Every answer sees one commit."""

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
        number: int | None = None,
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
            number (int | None): the branch as its commit of this number left it.
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
        if commit is None and number is None and tag is None and at is None:
            for _ in range(_NEWEST_LOOKS_MAX):
                try:
                    return self._at_head(branch).query(query, params, name=name, limits=limits)
                except ReclaimedError:
                    continue  # pruned and swept between the look at the head and the reading of rows
        return self.snapshot(branch=branch, commit=commit, number=number, tag=tag, at=at).query(
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
        number: int | None = None,
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
            number (int | None): the branch as its commit of this number left it.
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
        snapshot = self.snapshot(branch=branch, commit=commit, number=number, tag=tag, at=at)
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
        text, chosen = as_text(query, name)
        compiled = compile(text, self.schema(branch=branch), name=chosen)
        return PreparedQuery(text, compiled.name, compiled.is_mutation, compiled.parameters)

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
        """How a query or mutation would be carried out, as text for people.

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

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: there is no such query.
        """
        return self.snapshot(branch=branch, commit=commit, number=number, tag=tag, at=at).explain(query, name=name)

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
        """How many nodes or edges of a type there are.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            number (int | None): the branch as its commit of this number left it.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            int: the number.

        Raises:
            NotFoundError: there is no such type or branch.
        """
        return self.snapshot(branch=branch, commit=commit, number=number, tag=tag, at=at).count(type_name)
