"""The history of an open graph: branches, tags, commits, and the change feed."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from omnigraph import limits
from omnigraph.api.baseline import Baseline
from omnigraph.api.commit import Commit
from omnigraph.api.interface.history import (
    BranchesInterface,
    ChangeFeedInterface,
    CommitsInterface,
    TagsInterface,
)
from omnigraph.api.pages import Page, check_limit, page_of_names, refused_token
from omnigraph.api.snapshot import GraphReader, Snapshot
from omnigraph.branch import blame, branches, tags
from omnigraph.branch.arguments import checked_methods
from omnigraph.branch.cursor import Carried, decode, encode
from omnigraph.branch.entity_change import ChangeFilter, EntityKind, change_filter
from omnigraph.branch.entity_log import Entity, events, shown
from omnigraph.branch.feed import Feed, PageBounds, commit_page
from omnigraph.branch.find_entry import act_at, entry_at, own_entry
from omnigraph.branch.history_values import Blame, CommitChangesPage, EntityEvent, FeedPage, Tag, whole_commits
from omnigraph.branch.lineage import CommitFilter, commits
from omnigraph.branch.point import Instant, Point, instant_us
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.model.commit import COMMIT_KINDS, MAIN, CommitKind, Record
from omnigraph.model.schema import NodeType
from omnigraph.pipeline.export.formats import chosen_entities
from omnigraph.pipeline.export.run import stream_lines
from omnigraph.storage import paths
from omnigraph.transaction.graph_context import GraphContext


@checked_methods
class Branches(BranchesInterface):
    """Branches: named lines of commits. Creating one costs one small write, whatever the size of the graph."""

    def __init__(self, parts: GraphContext) -> None:
        self._parts = parts

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
        start = Point(branch=source, commit=commit, number=number, tag=tag, at=at)
        return branches.create(self._parts, name, point=start, actor=actor).head_commit

    def delete(self, name: str, *, actor: str | None = None, if_commit: str | None = None) -> None:
        branches.delete(self._parts, name, actor=actor, if_commit=if_commit)

    def list(self, *, limit: int | None = None, page_token: str | None = None) -> Page[str]:
        return page_of_names(branches.names(self._parts), limit=limit, page_token=page_token)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and branches.exists(self._parts, name)
        except InvalidRequestError:
            return False


@checked_methods
class Tags(TagsInterface):
    """Tags: names of commits. A tag never moves, and the commit it names is kept."""

    def __init__(self, parts: GraphContext) -> None:
        self._parts = parts

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
        named = Point(branch=branch, commit=commit, number=number, at=at)
        return act_at(self._parts, named, lambda entry: tags.create(self._parts, name, entry, actor=actor))

    def read(self, name: str) -> Tag:
        return tags.read(self._parts, name)

    def delete(self, name: str) -> None:
        tags.delete(self._parts, name)

    def list(self, *, limit: int | None = None, page_token: str | None = None) -> Page[str]:
        return page_of_names(tags.names(self._parts), limit=limit, page_token=page_token)


@checked_methods
class Commits(CommitsInterface):
    """The commits of a graph."""

    def __init__(self, parts: GraphContext) -> None:
        self._parts = parts

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
        check_limit(limit)
        since_us = None if since is None else instant_us(since)
        until_us = None if until is None else instant_us(until)
        chosen = CommitFilter(actor, _kind(kind), since_us, until_us)
        name = paths.branch_name(branch)
        question = [name, actor, kind, since_us, until_us]
        head = entry_at(self._parts, Point(branch=name))
        start = head if page_token is None else self._start(question, page_token)
        newest = head if start.branch == head.branch else None
        chain = commits(self._parts, start, chosen, head=newest)
        found = [Commit(entry) for entry in islice(chain, limit and limit + 1)]
        shown = found if limit is None else found[:limit]
        if len(shown) == len(found):
            return Page(shown)
        following = found[len(shown)].record
        place = {"asked": question, "at": [following.branch, following.number]}
        return Page(shown, encode(Carried.COMMITS_PAGE, place))

    def show(self, commit: str) -> Commit:
        return Commit(own_entry(self._parts, commit))

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
        entry, bounds = own_entry(self._parts, commit), _page_bounds(limit, max_bytes, None)
        return commit_page(self._parts, entry, change_filter(kinds, types, ops), page_token=page_token, bounds=bounds)

    def _start(self, question: object, page_token: str) -> Record:
        place = decode(Carried.COMMITS_PAGE, page_token, refuse=refused_token)
        if place.get("asked") != question:
            raise refused_token("it belongs to a list of other commits")
        where, number = place["at"]
        found = self._parts.log.read(where, number)
        if found is None:
            raise NotFoundError(f"commit number {number} of branch '{where}' not found", code="commit_not_found")
        return found


@checked_methods
class ChangeFeed(ChangeFeedInterface):
    """The changes of a branch, commit by commit. A follower that keeps the cursor misses and repeats nothing."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._parts = reader.parts

    def baseline(
        self,
        branch: str = MAIN,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> "BaselineInStorage":
        name, wanted = paths.branch_name(branch), change_filter(kinds, types, ops)
        head = self._parts.log.live_head(name)
        cursor = Feed(self._parts, name, wanted).cursor_at(head)
        return BaselineInStorage(Snapshot(self._reader, head, head_of=name), cursor, self._parts, wanted)

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
        feed = Feed(self._parts, paths.branch_name(branch), change_filter(kinds, types, ops))
        bounds = _page_bounds(limit, max_bytes, max_commits)
        return feed.poll(cursor=cursor, start=start, page_token=page_token, bounds=bounds)

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
        poll = partial(self.poll, branch, limit=limit, kinds=kinds, types=types, ops=ops)
        return whole_commits(poll(cursor=cursor, start=start), lambda token: poll(page_token=token))


@dataclass(frozen=True, slots=True)
class BaselineInStorage(Baseline):
    """A state of an open graph, read while its lines are iterated."""

    _parts: GraphContext
    _wanted: ChangeFilter

    def lines(self) -> Iterator[bytes]:
        entities = [
            entity
            for entity in chosen_entities(self.snapshot.schema, None)
            if self._wanted.takes_type(
                EntityKind.NODE if isinstance(entity, NodeType) else EntityKind.EDGE, entity.name
            )
        ]
        for piece in stream_lines(self._parts.snapshot(self.snapshot.record), entities):
            yield piece.to_pybytes()
        yield json.dumps({"baseline": self.to_dict()}).encode() + b"\n"


def entity_log(
    reader: GraphReader, at: Snapshot, type_name: str, entity_id: str, limit: int | None
) -> list[EntityEvent]:
    """List the commits that changed an entity; see `Graph.log_of`."""
    entity = _stored_entity(at, type_name, entity_id)
    return list(islice(shown(events(reader.parts, reader.schemas.of, entity, at.record, head=at.record)), limit))


def entity_blame(reader: GraphReader, at: Snapshot, type_name: str, entity_id: str) -> Blame:
    """Find the commit that last set each property of an entity; see `Graph.blame`."""
    return blame.blame(reader.parts, reader.schemas.of, _stored_entity(at, type_name, entity_id), at.record)


def _stored_entity(at: Snapshot, type_name: str, entity_id: str) -> Entity:
    found = at.entity(type_name)
    return Entity(at.record.tables[found.type_key].table, found.type_id, entity_id)


def _page_bounds(changes: int | None, size: int | None, commits: int | None) -> PageBounds:
    return PageBounds(
        limits.CHANGE_PAGE_CHANGES if changes is None else changes,
        limits.CHANGE_PAGE_BYTES if size is None else size,
        limits.CHANGE_POLL_COMMITS if commits is None else commits,
    )


def _kind(kind: str | None) -> CommitKind | None:
    if kind is not None and kind not in COMMIT_KINDS:
        raise InvalidRequestError(f"unknown kind '{kind}' (expected {' | '.join(COMMIT_KINDS)})")
    return None if kind is None else CommitKind(kind)
