"""The change feed of a branch: its commits in first-parent order, each with its changes.

A cursor is a place between two commits, a page token one inside the changes of a commit. Both are bound to the graph,
to this life of the branch and to the filter: whatever they are given to, they go on exactly where they were, or are
refused. A poll looks at the head once and goes no further, however many pages it takes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph import limits
from omnigraph.branch.commit_changes import CommitChanges, Place, Room, gap
from omnigraph.branch.cursor import Carried, decode, encode, rejected, sound_payload
from omnigraph.branch.entity_change import ChangeFilter
from omnigraph.branch.find_entry import entry_before, of_commit
from omnigraph.branch.history_values import Block, CommitChangesPage, FeedPage
from omnigraph.branch.lineage import Line, birth, lines
from omnigraph.errors import ChangeGapError, FormatError, InvalidRequestError, LimitError
from omnigraph.model.commit import Record
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.validation import require_optional_whole_number

_AFTER = "after:"
_READ_FIRST_ENTRIES = 8


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place in a chain: the entry that was delivered last, or with `inside`, the one that is being delivered."""

    branch: str
    number: int
    inside: Place | None = None


@dataclass(frozen=True, slots=True)
class PageBounds:
    """How much a page may hold.

    Attributes:
        changes: at most so many.
        bytes: and so many bytes of JSON.
        commits: of at most so many commits.
    """

    changes: int = limits.CHANGE_PAGE_CHANGES
    bytes: int = limits.CHANGE_PAGE_BYTES
    commits: int = limits.CHANGE_POLL_COMMITS

    def room(self) -> Room:
        """An empty page.

        Raises:
            InvalidRequestError: nothing would fit.
            LimitError: it would be larger than pages may be.
        """
        require_optional_whole_number(self.changes, "a page limit")
        if self.changes < 1 or self.bytes < 1 or self.commits < 1:
            raise InvalidRequestError("change page limit must be greater than zero")
        for resource, limit, actual in (
            ("commit_changes_page_changes", limits.CHANGE_PAGE_CHANGES_MAX, self.changes),
            ("commit_changes_page_bytes", limits.CHANGE_PAGE_BYTES_MAX, self.bytes),
            ("change_feed_commits_per_poll", limits.CHANGE_POLL_COMMITS_MAX, self.commits),
        ):
            if actual > limit:
                raise LimitError(
                    f"{resource} may be at most {limit}, not {actual}", resource=resource, limit=limit, actual=actual
                )
        return Room(self.changes, self.bytes)


@dataclass(frozen=True, slots=True)
class Feed:
    """The feed of one branch under one filter."""

    context: GraphContext
    branch: str
    wanted: ChangeFilter

    def poll(
        self,
        *,
        cursor: str | None = None,
        start: str | None = None,
        page_token: str | None = None,
        bounds: PageBounds | None = None,
    ) -> FeedPage:
        """What came after a place.

        Raises:
            InvalidRequestError: the place is named in two ways or in none, or is not one of this feed.
            NotFoundError: there is no such branch or commit.
            ChangeGapError: the next commit was pruned.
            ChangeRefusedError: the next commit changed the schema in a way no change of rows can tell.
            LimitError: the page would be larger than pages may be.
        """
        if sum(option is not None for option in (cursor, start, page_token)) > 1:
            raise InvalidRequestError("cursor, start, and page_token are mutually exclusive")
        bounds = bounds or PageBounds()
        room = bounds.room()
        head = self.context.log.live_head(self.branch)
        if page_token is not None:
            spot, number = self._from_token(page_token, head)
            captured = self._entry(head, number)
        else:
            captured = head
            spot = self._from_cursor(cursor, head) if cursor is not None else self._from_start(start, head)
        try:
            return self._page(captured, spot, room, bounds.commits, head)
        except ChangeGapError as missing:
            missing.details["cursor"] = cursor
            raise

    def cursor_at(self, head: Record) -> str:
        """The cursor after everything there is at a head of this branch."""
        return self._cursor(_Spot(head.branch, head.number), birth(self.context, head))

    # -- places -------------------------------------------------------------------------------------------------------

    def _from_start(self, start: str | None, head: Record) -> _Spot:
        match start:
            case None | "now":
                return _Spot(head.branch, head.number)
            case "beginning":
                oldest = list(lines(self.context, head, head=head))[-1]
                return _Spot(oldest.branch, oldest.first)
            case _ if start == f"{_AFTER}{head.head_commit}":
                return _Spot(head.branch, head.number)
            case _ if start.startswith(_AFTER) and len(start) > len(_AFTER):
                after = of_commit(self.context, start.removeprefix(_AFTER), near=self.branch)
                for line in lines(self.context, head, head=head):
                    if line.branch == after.branch and line.first <= after.number <= line.last:
                        return _Spot(after.branch, after.number)
                raise rejected("start commit is not on this branch's first-parent chain")
            case _:
                raise InvalidRequestError("start must be now | beginning | after:<commit_id>")

    def _from_cursor(self, cursor: str, head: Record) -> _Spot:
        with sound_payload(Carried.FEED_CURSOR):
            branch, number = self._carried(Carried.FEED_CURSOR, cursor, head)["at"]
            return _Spot(str(branch), int(number))

    def _from_token(self, token: str, head: Record) -> tuple[_Spot, int]:
        with sound_payload(Carried.FEED_PAGE):
            carried = self._carried(Carried.FEED_PAGE, token, head)
            branch, number = carried["at"]
            type_id, offset = carried["inside"]
            return _Spot(str(branch), int(number), Place(str(type_id), int(offset))), int(carried["head"])

    def _carried(self, what: Carried, text: str, head: Record) -> Mapping[str, Any]:
        carried = decode(what, text)
        mine = self._bound(birth(self.context, head))
        for name, owner in (
            ("graph", "a different graph"),
            ("branch", "a different branch"),
            ("life", "an earlier branch of that name"),
            ("filter", "different filters"),
        ):
            if carried.get(name) != mine[name]:
                raise rejected(f"{what} belongs to {owner}")
        return carried

    def _bound(self, life: int) -> dict[str, Any]:
        return {"graph": self.context.graph, "branch": self.branch, "life": life, "filter": self.wanted.digest}

    def _cursor(self, spot: _Spot, life: int) -> str:
        return encode(Carried.FEED_CURSOR, self._bound(life) | {"at": [spot.branch, spot.number]})

    def _token(self, spot: _Spot, inside: Place, captured: Record, life: int) -> str:
        place = {"at": [spot.branch, spot.number], "inside": [inside.type_id, inside.offset], "head": captured.number}
        return encode(Carried.FEED_PAGE, self._bound(life) | place)

    def _entry(self, head: Record, number: int) -> Record:
        found = head if number == head.number else self.context.log.read(self.branch, number)
        if found is None:
            raise gap(head.commit)
        return found

    # -- blocks -------------------------------------------------------------------------------------------------------

    def _page(self, captured: Record, spot: _Spot, room: Room, commits: int, head: Record) -> FeedPage:
        life = birth(self.context, captured)
        blocks: list[Block] = []
        start = spot.inside or Place()
        for previous, entry in self._entries(captured, spot, commits, head):
            spot = _Spot(entry.branch, entry.number)
            if not entry.is_commit:
                continue
            if blocks and (room.is_full or len(blocks) == commits):
                spot = _Spot(entry.branch, entry.number_before)
                break
            changes, rest = CommitChanges(self.context, entry, previous, self.wanted).page(start, room)
            blocks.append(Block(entry, changes))
            start = Place()
            if rest is not None:
                return FeedPage(blocks, next_page_token=self._token(spot, rest, captured, life))
        at_head = (spot.branch, spot.number) == (captured.branch, captured.number)
        return FeedPage(blocks, cursor=self._cursor(spot, life), caught_up=at_head)

    def _entries(
        self, captured: Record, spot: _Spot, commits: int, head: Record
    ) -> Iterator[tuple[Record | None, Record]]:
        """The entries after a place up to the captured head, oldest first, each with the one before it in its log."""
        if (spot.branch, spot.number, spot.inside) == (captured.branch, captured.number, None):
            return
        ahead: list[tuple[Line, int]] = []
        for line in lines(self.context, captured, head=head):
            here = line.branch == spot.branch and line.first <= spot.number <= line.last
            ahead.append((line, spot.number + (spot.inside is None) if here else line.first))
            if here:
                break
        else:
            raise rejected("its commit is not on this branch's first-parent chain")
        for line, first in reversed(ahead):
            yield from self._run(line, first, commits)

    def _run(self, line: Line, first: int, commits: int) -> Iterator[tuple[Record | None, Record]]:
        """The entries of one line from a number on, more and more at a time: a page may be full after a few."""
        previous: Record | None = None
        step = _READ_FIRST_ENTRIES
        while first <= line.last:
            last = min(line.last, first + step - 1)
            step = min(step * 2, commits)
            # The entry before the first as well: its state is what the first is compared with. One that readers are
            # not shown is nothing to compare with, and the commit after it is a gap.
            begin = first if previous is not None or not line.pruned.is_listed(first - 1) else first - 1
            try:
                some = self.context.log.between(line.branch, max(begin, line.first), last)
            except FormatError as missing:
                if missing.code != "entry_missing":
                    raise
                raise gap(self._known_commit(line, first)) from missing
            for entry in some:
                if entry.number >= first:
                    if entry.is_commit and not line.pruned.is_listed(entry.number):
                        raise gap(entry.commit)
                    yield previous, entry
                previous = entry
            first = last + 1

    def _known_commit(self, line: Line, number: int) -> str:
        """The oldest commit of a line that can still be named, where the one in question was cut away."""
        for entry_number in range(max(number, line.lowest), line.last + 1):
            found = self.context.log.read(line.branch, entry_number)
            if found is not None and found.is_commit:
                return found.commit
        return f"number {number} of {line.branch}"


_WHAT = Carried.COMMIT_PAGE


def changes_of(context: GraphContext, entry: Record, wanted: ChangeFilter | None = None) -> CommitChanges:
    """The changes of a commit against the state before it."""
    return CommitChanges(context, entry, entry_before(context, entry), wanted or ChangeFilter())


def commit_page(
    context: GraphContext, entry: Record, wanted: ChangeFilter, *, page_token: str | None, bounds: PageBounds
) -> CommitChangesPage:
    """A page of a commit's changes.

    Raises:
        InvalidRequestError: the token is none of this commit and filter.
        ChangeRefusedError: there is no first parent, or the schema changed in a way no change of rows can tell.
        ChangeGapError: the commit, or the state before it, was pruned.
        LimitError: the page would be larger than pages may be.
    """
    room = bounds.room()
    bound = {"graph": context.graph, "commit": entry.commit, "filter": wanted.digest}
    start = Place()
    if page_token is not None:
        with sound_payload(_WHAT):
            carried = decode(_WHAT, page_token)
            for name, owner in (("graph", "a different graph"), ("commit", "a different commit")):
                if carried[name] != bound[name]:
                    raise rejected(f"{_WHAT} belongs to {owner}")
            if carried["filter"] != bound["filter"]:
                raise rejected(f"{_WHAT} belongs to different filters")
            start = Place(str(carried["inside"][0]), int(carried["inside"][1]))
    changes, rest = changes_of(context, entry, wanted).page(start, room)
    token = None if rest is None else encode(_WHAT, bound | {"inside": [rest.type_id, rest.offset]})
    return CommitChangesPage(entry, changes, token)
