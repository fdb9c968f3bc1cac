"""The commits of a graph."""

from itertools import islice

from omnigraph.api.changes import page_bounds
from omnigraph.api.commit import Commit
from omnigraph.api.following import CommitsWanted, PageWanted, Past
from omnigraph.api.pages import Page, refused_token
from omnigraph.branch.commit_pages import commit_page
from omnigraph.branch.cursor import Carried, decode, encode
from omnigraph.branch.entity_change import ChangeFilter
from omnigraph.branch.history import CommitFilter, commits
from omnigraph.branch.point import Point, instant_us
from omnigraph.branch.points import entry_at, own_entry
from omnigraph.branch.told import CommitChangesPage
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.model.commit import COMMIT_KINDS, CommitKind, Record
from omnigraph.storage import paths
from omnigraph.transaction.parts import Parts


class Commits(Past):
    """The states a graph went through."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def _list(self, wanted: CommitsWanted, limit: int | None, page_token: str | None) -> Page[Commit]:
        chosen = CommitFilter(
            wanted.actor,
            _kind(wanted.kind),
            None if wanted.since is None else instant_us(wanted.since),
            None if wanted.until is None else instant_us(wanted.until),
        )
        name = paths.branch_name(wanted.branch)
        asked = [name, wanted.actor, wanted.kind, chosen.since_us, chosen.until_us]
        head = entry_at(self._parts, Point(branch=name))
        start = head if page_token is None else self._start(asked, page_token)
        newest = head if start.branch == head.branch else None
        chain = commits(self._parts, start, chosen, head=newest)
        found = [Commit(each) for each in islice(chain, limit and limit + 1)]
        shown = found if limit is None else found[:limit]
        if len(shown) == len(found):
            return Page(shown)
        following = found[len(shown)].record
        return Page(shown, encode(Carried.COMMITS_PAGE, {"asked": asked, "at": [following.branch, following.number]}))

    def _show(self, commit: str) -> Commit:
        return Commit(own_entry(self._parts, commit))

    def _changes(self, commit: str, wanted: ChangeFilter, page: PageWanted) -> CommitChangesPage:
        bounds = page_bounds(page.changes, page.bytes, None)
        return commit_page(self._parts, own_entry(self._parts, commit), wanted, page_token=page.token, bounds=bounds)

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
