"""The history of a graph: branches, tags, commits, the change feed, and the difference of two states."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from omnigraph.api.baseline import Baseline
from omnigraph.api.commit import Commit
from omnigraph.api.pages import Page
from omnigraph.branch.entity_change import EntityChange
from omnigraph.branch.history_values import CommitChangesPage, DiffStats, FeedPage, Tag
from omnigraph.branch.point import Instant
from omnigraph.model.commit import MAIN


class BranchesInterface(Protocol):
    """Branches: named lines of commits. Creating one costs one small write, whatever the size of the graph."""

    def create(
        self,
        name: str,
        *,
        source: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        actor: str | None = None,
    ) -> str:
        """Create a branch from the head of another, or from any earlier state of the graph.

        Args:
            name: any text without control characters; slashes are allowed.
            source: the branch it starts from; by default `main`.
            commit: the commit it starts from instead.
            number: start at the commit of this number in the log of the source.
            tag: the tag it starts from instead.
            at: start from the source as it was at this time; without a zone it is UTC.
            actor: who, for the history. A served graph takes no actor: the bearer token decides.

        Returns:
            The id of the commit it starts at.

        Raises:
            AlreadyExistsError: there is such a branch.
            NotFoundError: there is no such source, commit or tag.
            InvalidRequestError: the name is invalid, or the start is named in two ways.
            OutcomeUnknownError: the answer of a server was lost; list the branches.
        """
        ...

    def delete(self, name: str, *, actor: str | None = None, if_commit: str | None = None) -> None:
        """Delete a branch; branches created from it stay.

        Args:
            name: any branch but `main`.
            actor: who, for the history. A served graph takes no actor: the bearer token decides.
            if_commit: delete it only if this is its head commit.

        Raises:
            NotFoundError: there is no such branch.
            InvalidRequestError: it is `main`.
            PreconditionError: the head is another commit.
            OutcomeUnknownError: the answer of a server was lost; list the branches.
        """
        ...

    def list(self, *, limit: int | None = None, page_token: str | None = None) -> Page[str]:
        """List the names of the branches in order, with one request, whatever their number.

        Args:
            limit: at most so many; by default all.
            page_token: `next_page_token` of the page before.

        Raises:
            InvalidRequestError: the limit is below one, or the token is invalid.
        """
        ...

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def __contains__(self, name: object) -> bool:
        """Look up one branch by name."""
        ...


class TagsInterface(Protocol):
    """Tags: names of commits. A tag never moves, and the commit it names is kept."""

    def create(
        self,
        name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        at: Instant | None = None,
        actor: str | None = None,
    ) -> Tag:
        """Name a commit.

        Args:
            name: the new tag.
            branch: its head commit, or with `number` or `at` an earlier one; by default `main`.
            commit: the commit with this id instead.
            number: the commit of this number in the log of the branch.
            at: the branch as it was at this time.
            actor: who, for the history. A served graph takes no actor: the bearer token decides.

        Raises:
            AlreadyExistsError: there is such a tag.
            NotFoundError: there is no such branch or commit.
            InvalidRequestError: the name is invalid.
            OutcomeUnknownError: the answer of a server was lost; read the tag.
        """
        ...

    def read(self, name: str) -> Tag:
        """Look up a tag, with the id of its commit.

        Raises:
            NotFoundError: there is no such tag.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a tag; the commit stays in history.

        Raises:
            NotFoundError: there is no such tag.
            OutcomeUnknownError: the answer of a server was lost; list the tags.
        """
        ...

    def list(self, *, limit: int | None = None, page_token: str | None = None) -> Page[str]:
        """List the names of the tags in order, with one request per thousand.

        Args:
            limit: at most so many; by default all.
            page_token: `next_page_token` of the page before.

        Raises:
            InvalidRequestError: the limit is below one, or the token is invalid.
        """
        ...

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())


class CommitsInterface(Protocol):
    """The commits of a graph."""

    def list(
        self,
        branch: str = MAIN,
        *,
        actor: str | None = None,
        kind: str | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        limit: int | None = None,
        page_token: str | None = None,
    ) -> Page[Commit]:
        """List the commits of a branch, newest first: its own, then those it inherited.

        Args:
            branch: the branch whose history is listed.
            actor: only commits of this actor.
            kind: only commits of this kind: `mutation`, `load`, `merge`, `schema`, `revert`, `recover`, …
            since: only commits made at this time or later.
            until: only commits made at this time or earlier.
            limit: at most so many; by default all.
            page_token: `next_page_token` of the page before; the other arguments must be the same.

        Raises:
            NotFoundError: there is no such branch.
            InvalidRequestError: a time, kind, limit or token is invalid.
        """
        ...

    def show(self, commit: str) -> Commit:
        """Look up a commit by id, on any branch.

        Raises:
            NotFoundError: there is no such commit.
        """
        ...

    def changes(
        self,
        commit: str,
        *,
        limit: int | None = None,
        max_bytes: int | None = None,
        page_token: str | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> CommitChangesPage:
        """List what a commit did to entities, against its first parent: nodes before edges, with old and new values.

        Args:
            commit: the id of the commit.
            limit: at most so many changes; by default 1000.
            max_bytes: at most so many bytes of JSON, unless a single change is larger. Not for a served graph.
            page_token: of the page before.
            kinds: only `node` or `edge`; by default both.
            types: only types of these names; by default all.
            ops: only `insert`, `update` or `delete`; by default all.

        Raises:
            NotFoundError: there is no such commit.
            InvalidRequestError: the token belongs to another commit or filter, or an argument is invalid.
            ChangeRefusedError: it is the first commit of the graph, or changed the schema in a way that changes of
                entities cannot express.
            ChangeGapError: the commit, or its parent, was pruned.
            LimitError: the page would be larger than pages may be.
        """
        ...


class ChangeFeedInterface(Protocol):
    """The changes of a branch, commit by commit. A follower that keeps the cursor misses and repeats nothing."""

    def baseline(
        self,
        branch: str = MAIN,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Baseline:
        """Take the whole state of a branch, and the cursor that continues right after it.

        Args:
            branch: the branch to follow.
            kinds: only `node` or `edge`; the cursor is bound to this and the next two filters.
            types: only types of these names; by default all.
            ops: the operations that the cursor will report; the state itself is complete all the same.

        Returns:
            Read its lines to the end, then poll from its cursor. From a server all of it is fetched at once.

        Raises:
            InvalidRequestError: a kind or operation is unknown.
            NotFoundError: there is no such branch.
            UnavailableError: the answer of a server broke off.
        """
        ...

    def poll(
        self,
        branch: str = MAIN,
        *,
        cursor: str | None = None,
        start: str | None = None,
        page_token: str | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
        max_commits: int | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> FeedPage:
        """Fetch the changes after a cursor.

        Args:
            branch: the branch to follow.
            cursor: of an earlier poll or a baseline.
            start: without a cursor: `now` (the default), `beginning` or `after:<commit>`.
            page_token: of a page that ended inside the changes of a commit.
            limit: at most so many changes; by default 1000.
            max_bytes: at most so many bytes of JSON, unless a single change is larger. Not for a served graph.
            max_commits: changes of at most so many commits, by default 128. Not for a served graph.
            kinds: only `node` or `edge`; by default both.
            types: only types of these names; by default all.
            ops: only `insert`, `update` or `delete`; by default all.

        Returns:
            One block for each commit, oldest first, and the cursor or page token to continue with.

        Raises:
            InvalidRequestError: the cursor belongs to another feed or filter, or an argument is invalid.
            NotFoundError: there is no such branch or commit.
            ChangeGapError: the next commit was pruned; start over from a baseline.
            ChangeRefusedError: the next commit changed the schema in a way that changes of entities cannot express;
                start over from a baseline.
            LimitError: the page would be larger than pages may be.
        """
        ...

    def drain(
        self,
        branch: str = MAIN,
        *,
        cursor: str | None = None,
        start: str | None = None,
        limit: int | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> FeedPage:
        """Poll as many pages as it takes to end after a whole commit, and put the changes of each commit together.

        Takes the arguments and raises the errors of `poll`; `limit` is about each page.
        """
        ...


class DiffInterface(Protocol):
    """The difference of two states; changes are read while they are iterated."""

    @property
    def from_commit(self) -> str:
        """The commit of the older state."""
        ...

    @property
    def to_commit(self) -> str:
        """The commit of the newer state."""
        ...

    @property
    def stats(self) -> Mapping[str, DiffStats]:
        """How many entities differ, by type key; types without changes are absent."""
        ...

    @property
    def types(self) -> tuple[str, ...]:
        """The type keys that have changes."""
        ...

    def __iter__(self) -> Iterator[EntityChange]: ...

    def __len__(self) -> int: ...

    def __bool__(self) -> bool: ...

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return every change as a plain dictionary, as JSON shows it."""
        ...
