"""What can be asked of a graph, wherever it is: what the questions are called, what they take, and what they mean.

How they are answered is the matter of a graph that is open (`graph_queries.py`) and of one on a server (`client`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic

from omnigraph.api.at_commit import At
from omnigraph.api.prepared import Asked, PreparedQuery, as_text
from omnigraph.api.result import Result, ResultStream
from omnigraph.branch.arguments import checked
from omnigraph.branch.point import Instant, Point
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.language.query import compile
from omnigraph.model.commit import MAIN as MAIN_BRANCH
from omnigraph.model.schema import Schema


class Asking(ABC, Generic[At]):
    """What can be asked of a graph. Every answer sees one commit."""

    def snapshot(
        self,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> At:
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
        return self._at(Point(branch=branch, commit=commit, number=number, tag=tag, at=at))

    @checked
    def schema(self, *, branch: str = MAIN_BRANCH) -> Schema:
        """The types there are at the head of a branch.

        Args:
            branch (str): which branch.

        Returns:
            Schema: resolved.

        Raises:
            NotFoundError: there is no such branch.
        """
        return self._at(Point(branch=branch)).schema

    @checked
    def schema_text(self, *, branch: str = MAIN_BRANCH) -> str:
        """The schema text accepted at the head of a branch, as it was written.

        Args:
            branch (str): which branch.

        Returns:
            str: the text.

        Raises:
            NotFoundError: there is no such branch.
        """
        return self._schema_text(branch)

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
            limits (QueryLimits): what it may use; a server has limits of its own, and takes no others.

        Returns:
            Result: the rows.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            NotFoundError: there is no such branch or commit.
            LimitError: it needs more memory than it may use.
        """
        point = Point(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return self._query(point, Asked(query, params, name, limits))

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
            limits (QueryLimits): what it may use, rows that were handed over not counted; a server has its own.

        Returns:
            ResultStream: the rows, found while they are asked for; all of one commit, whatever is written meanwhile.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            NotFoundError: there is no such branch or commit.
            LimitError: it needs more memory than it may use; also later, when rows are asked for.
        """
        point = Point(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return self._stream(point, Asked(query, params, name, limits))

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
        point = Point(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return self._explain(point, query, name=name)

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
        point = Point(branch=branch, commit=commit, number=number, tag=tag, at=at)
        return self._count(point, type_name)

    # -- how it is answered -------------------------------------------------------------------------------------------

    @abstractmethod
    def _at(self, point: Point) -> At: ...

    @abstractmethod
    def _schema_text(self, branch: str) -> str: ...

    @abstractmethod
    def _query(self, point: Point, asked: Asked) -> Result: ...

    @abstractmethod
    def _stream(self, point: Point, asked: Asked) -> ResultStream: ...

    @abstractmethod
    def _explain(self, point: Point, query: str | PreparedQuery, *, name: str | None) -> str: ...

    @abstractmethod
    def _count(self, point: Point, type_name: str) -> int: ...
