"""What happened to a graph, wherever it is: its commits, and its changes commit by commit.

What is asked, with which arguments, is said here; how it is answered, in `commits.py`, `changes.py` and `client`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Generic

from omnigraph.api.at_commit import At
from omnigraph.api.baseline import Baseline
from omnigraph.api.commit import Commit
from omnigraph.api.pages import Page, check_limit
from omnigraph.branch.arguments import checked
from omnigraph.branch.entity_change import ChangeFilter, change_filter
from omnigraph.branch.point import Instant
from omnigraph.branch.told import CommitChangesPage, FeedPage, whole_commits
from omnigraph.model.commit import MAIN as MAIN_BRANCH


@dataclass(frozen=True, slots=True)
class CommitsWanted:
    """Which commits of a branch.

    Attributes:
        branch: whose.
        actor: only those made by this actor.
        kind: only those of this kind.
        since: only those made at this time or later.
        until: only those made at this time or earlier.
    """

    branch: str
    actor: str | None
    kind: str | None
    since: Instant | None
    until: Instant | None


@dataclass(frozen=True, slots=True)
class PageWanted:
    """How much at once; None for the usual.

    Attributes:
        changes: at most so many.
        bytes: and so many bytes of JSON.
        commits: of at most so many commits.
        token: of the page before.
    """

    changes: int | None = None
    bytes: int | None = None
    commits: int | None = None
    token: str | None = None


class Past(ABC):
    """The states a graph went through."""

    @checked
    def list(
        self,
        branch: str = MAIN_BRANCH,
        *,
        actor: str | None = None,
        kind: str | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        limit: int | None = None,
        page_token: str | None = None,
    ) -> Page[Commit]:
        """The commits of a branch, newest first: its own, then those it inherited.

        Args:
            branch (str): which branch.
            actor (str | None): only those made by this actor.
            kind (str | None): only those of this kind: `mutation`, `load`, `merge`, `schema`, `revert`, `recover`, …
            since (datetime | str | None): only those made at this time or later.
            until (datetime | str | None): only those made at this time or earlier.
            limit (int | None): at most so many; all by default.
            page_token (str | None): of the page before; the other arguments must be the same.

        Returns:
            Page[Commit]: a list, with a token for the next page where there is one.

        Raises:
            NotFoundError: there is no such branch.
            InvalidRequestError: a time, kind, limit or token is none.
        """
        check_limit(limit)
        return self._list(CommitsWanted(branch, actor, kind, since, until), limit, page_token)

    @checked
    def show(self, commit: str) -> Commit:
        """One commit, on whichever branch it was made.

        Args:
            commit (str): its id.

        Returns:
            Commit: with who, when and why.

        Raises:
            NotFoundError: there is no such commit.
        """
        return self._show(commit)

    @checked
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
        """What a commit did to entities, against its first parent: nodes before edges, with images before and after.

        Args:
            commit (str): its id.
            limit (int | None): at most so many changes; 1000 by default.
            max_bytes (int | None): and so many bytes of JSON, but for a single change that is larger;
                a server bounds its pages itself.
            page_token (str | None): of the page before.
            kinds (Iterable[str]): only `node` or `edge`.
            types (Iterable[str]): only types of these names.
            ops (Iterable[str]): only `insert`, `update` or `delete`.

        Returns:
            CommitChangesPage: the changes, and a token for the rest.

        Raises:
            NotFoundError: there is no such commit.
            InvalidRequestError: the token is none of this commit and these filters, or an argument is none.
            ChangeRefusedError: it is the first commit of all, or changed the schema in a way no change of entities
                can tell.
            ChangeGapError: the commit, or the state before it, was pruned.
            LimitError: the page would be larger than pages may be.
        """
        page = PageWanted(changes=limit, bytes=max_bytes, token=page_token)
        return self._changes(commit, change_filter(kinds, types, ops), page)

    # -- how it is answered -------------------------------------------------------------------------------------------

    @abstractmethod
    def _list(self, wanted: CommitsWanted, limit: int | None, page_token: str | None) -> Page[Commit]: ...

    @abstractmethod
    def _show(self, commit: str) -> Commit: ...

    @abstractmethod
    def _changes(self, commit: str, wanted: ChangeFilter, page: PageWanted) -> CommitChangesPage: ...


class Followed(ABC, Generic[At]):
    """What happened on a branch, commit by commit."""

    @checked
    def baseline(
        self,
        branch: str = MAIN_BRANCH,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Baseline[At]:
        """A whole state of a branch, and the cursor that goes on exactly after it.

        Args:
            branch (str): which.
            kinds (Iterable[str]): only `node` or `edge`; the cursor is bound to this and the next two.
            types (Iterable[str]): only types of these names.
            ops (Iterable[str]): what the cursor will tell; the state is whole all the same.

        Returns:
            Baseline: read its lines to the end, then poll from its cursor. From a server all of it is fetched now.

        Raises:
            InvalidRequestError: a kind or operation is none.
            NotFoundError: there is no such branch.
            UnavailableError: of a graph on a server, the lines broke off.
        """
        return self._baseline(branch, change_filter(kinds, types, ops))

    @checked
    def poll(
        self,
        branch: str = MAIN_BRANCH,
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
        """What came after a place in the history of a branch.

        Args:
            branch (str): whose feed.
            cursor (str | None): of an earlier poll.
            start (str | None): without a cursor: `now` (by default), `beginning` or `after:<commit>`.
            page_token (str | None): of a page that ended inside a commit's changes.
            limit (int | None): at most so many changes; 1000 by default.
            max_bytes (int | None): and so many bytes of JSON, but for a single change that is larger;
                a server bounds its pages itself.
            max_commits (int | None): of at most so many commits, 128 by default; likewise.
            kinds (Iterable[str]): only `node` or `edge`.
            types (Iterable[str]): only types of these names.
            ops (Iterable[str]): only `insert`, `update` or `delete`.

        Returns:
            FeedPage: one block for each commit, oldest first, and the cursor or page token to go on with.

        Raises:
            InvalidRequestError: a cursor is none of this feed and these filters, or an argument is none.
            NotFoundError: there is no such branch or commit.
            ChangeGapError: the next commit was pruned: begin anew from a baseline.
            ChangeRefusedError: the next commit changed the schema in a way no change of entities can tell: likewise.
            LimitError: the page would be larger than pages may be.
        """
        page = PageWanted(limit, max_bytes, max_commits, page_token)
        return self._poll(branch, change_filter(kinds, types, ops), page, cursor, start)

    @checked
    def drain(
        self,
        branch: str = MAIN_BRANCH,
        *,
        cursor: str | None = None,
        start: str | None = None,
        limit: int | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> FeedPage:
        """Like `poll`, with as many pages as it takes to end after a commit; a commit's changes are put together.

        Args:
            branch (str): whose feed.
            cursor (str | None): of an earlier poll.
            start (str | None): without a cursor: `now` (by default), `beginning` or `after:<commit>`.
            limit (int | None): at most so many changes in a page.
            kinds (Iterable[str]): only `node` or `edge`.
            types (Iterable[str]): only types of these names.
            ops (Iterable[str]): only `insert`, `update` or `delete`.

        Returns:
            FeedPage: with a cursor.
        """
        wanted, page = change_filter(kinds, types, ops), PageWanted(limit)
        first = self._poll(branch, wanted, page, cursor, start)
        return whole_commits(first, lambda token: self._poll(branch, wanted, replace(page, token=token), None, None))

    # -- how it is answered -------------------------------------------------------------------------------------------

    @abstractmethod
    def _baseline(self, branch: str, wanted: ChangeFilter) -> Baseline[At]: ...

    @abstractmethod
    def _poll(
        self, branch: str, wanted: ChangeFilter, page: PageWanted, cursor: str | None, start: str | None
    ) -> FeedPage: ...
