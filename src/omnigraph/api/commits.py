"""The commits of a graph."""

from collections.abc import Iterable
from itertools import islice

from omnigraph.api.changes import commit_changes
from omnigraph.api.commit import Commit
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.pages import Page, check_limit, refused_token
from omnigraph.branch.arguments import checked
from omnigraph.branch.cursor import Carried, decode, encode
from omnigraph.branch.entity_change import change_filter
from omnigraph.branch.history import CommitFilter, commits
from omnigraph.branch.point import Instant, Point, instant_us
from omnigraph.branch.points import entry_at, of_commit
from omnigraph.branch.told import CommitChangesPage
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.model.commit import COMMIT_KINDS, CommitKind, Record
from omnigraph.storage import paths
from omnigraph.transaction.parts import Parts


class Commits:
    """The states a graph went through."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

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
        wanted = CommitFilter(
            actor,
            _kind(kind),
            None if since is None else instant_us(since),
            None if until is None else instant_us(until),
        )
        name = paths.branch_name(branch)
        asked = [name, actor, kind, wanted.since_us, wanted.until_us]
        head = entry_at(self._parts, Point(branch=name))
        start = head if page_token is None else self._start(asked, page_token)
        newest = head if start.branch == head.branch else None
        chain = commits(self._parts, start, wanted, head=newest)
        found = [Commit(each) for each in islice(chain, limit and limit + 1)]
        shown = found if limit is None else found[:limit]
        if len(shown) == len(found):
            return Page(shown)
        following = found[len(shown)].record
        return Page(shown, encode(Carried.COMMITS_PAGE, {"asked": asked, "at": [following.branch, following.number]}))

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
        return Commit(of_commit(self._parts, commit))

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
            max_bytes (int | None): and so many bytes of JSON, but for a single change that is larger.
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
        wanted = change_filter(kinds, types, ops)
        return commit_changes(
            self._parts, commit, limit=limit, max_bytes=max_bytes, page_token=page_token, wanted=wanted
        )

    def _start(self, asked: object, page_token: str) -> Record:
        place = decode(Carried.COMMITS_PAGE, page_token, refuse=refused_token)
        if place.get("asked") != asked:
            raise refused_token("it belongs to a list of other commits")
        where, number = place["at"]
        found = self._parts.log.read(where, number)
        if found is None:
            raise NotFoundError(f"commit number {number} of branch '{where}' not found", code="commit_not_found")
        return found


def _kind(kind: str | None) -> CommitKind | None:
    if kind is not None and kind not in COMMIT_KINDS:
        raise InvalidRequestError(f"unknown kind '{kind}' (expected {' | '.join(COMMIT_KINDS)})")
    return None if kind is None else CommitKind(kind)
