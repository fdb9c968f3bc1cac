"""Results of history calls as plain values: events, changes, pages, tags. Importing them loads no storage code."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.branch.entity_change import (
    EntityChange,
    Image,
    Op,
    cause_document,
)
from omnigraph.model.commit import Record


@dataclass(frozen=True, slots=True)
class EntityEvent:
    """What one commit did to one entity.

    Attributes:
        entry: the commit's entry.
        op: what it did.
        before: the entity before; None for an insert.
        after: the entity after; None for a delete.
        renamed: properties that the commit renamed, new name to old; `before` has the new ones.
        pruned: the commit was pruned, or a pruned one before it may have done some of it.
        own_op: where pruned commits before it may have changed the entity as well, what the commit itself certainly
            did; `before` is then the entity before those. None where that is not known, or the commit was pruned.
    """

    entry: Record
    op: Op
    before: Image | None
    after: Image | None
    renamed: Mapping[str, str] = field(default_factory=dict)
    pruned: bool = False
    own_op: Op | None = None

    @property
    def commit(self) -> str:
        """The id of the commit."""
        return self.entry.commit

    @property
    def changed(self) -> tuple[str, ...]:
        """The properties that have another value than before, ends included; a property that is absent has none."""
        before, after = values_of(self.before), values_of(self.after)
        return tuple(name for name in sorted(before | after) if before.get(name) != after.get(name))


def values_of(image: Image | None) -> dict[str, object]:
    """Properties and ends of an entity by name; nothing for one that is not there."""
    if image is None:
        return {}
    ends = {} if image.source is None else {"from": image.source, "to": image.target}
    return {**image.properties, **ends}


@dataclass(frozen=True, slots=True)
class Blame:
    """Who made an entity what it is.

    Attributes:
        properties: for every property, and the ends of an edge as `from` and `to`, the entry of the commit that last
            set it. One whose commit was pruned is absent.
        created: the entry of the commit that inserted it; None where that was pruned.
        last: the entry of the commit that changed it last; None where that was pruned.
        pruned: the properties that a pruned commit set.
    """

    entity_id: str
    properties: Mapping[str, Record]
    created: Record | None
    last: Record | None
    pruned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """The changes of one commit, or some of them.

    Attributes:
        entry: the commit.
        changes: what it did, in order.
    """

    entry: Record
    changes: list[EntityChange]

    def to_dict(self) -> dict[str, Any]:
        """The block as a JSON document."""
        return {"cause": cause_document(self.entry), "changes": [change.to_dict() for change in self.changes]}


@dataclass(frozen=True, slots=True)
class FeedPage:
    """What one poll gives. It ends either inside a commit's changes, with a page token, or after one, with a cursor.

    Attributes:
        blocks: one for each commit, oldest first; commits without wanted changes too.
        next_page_token: for the rest of the last block.
        cursor: for the next poll.
        caught_up: whether the cursor is at the head the poll looked at.
    """

    blocks: list[Block] = field(default_factory=list)
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """The page as a JSON document."""
        document: dict[str, Any] = {"blocks": [block.to_dict() for block in self.blocks]}
        if self.next_page_token is not None:
            document["next_page_token"] = self.next_page_token
        if self.cursor is not None:
            document |= {"cursor": self.cursor, "caught_up": self.caught_up}
        return document


def whole_commits(page: FeedPage, following: Callable[[str], FeedPage]) -> FeedPage:
    """A page and as many that follow it as it takes to end after a commit; a commit's changes are put together."""
    blocks: list[Block] = list(page.blocks)
    while page.next_page_token is not None:
        page = following(page.next_page_token)
        rest, *others = page.blocks
        blocks[-1] = replace(blocks[-1], changes=[*blocks[-1].changes, *rest.changes])
        blocks += others
    return replace(page, blocks=blocks)


@dataclass(frozen=True, slots=True)
class CommitChangesPage:
    """Changes of one commit.

    Attributes:
        entry: the commit.
        changes: what it did, in order.
        next_page_token: for the rest.
    """

    entry: Record
    changes: list[EntityChange]
    next_page_token: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The page as a JSON document."""
        document: dict[str, Any] = {
            "cause": cause_document(self.entry),
            "changes": [change.to_dict() for change in self.changes],
        }
        if self.next_page_token is not None:
            document["next_page_token"] = self.next_page_token
        return document


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for one commit.

    Attributes:
        name: the tag.
        commit: what it names.
        branch: in whose log that commit's entry is.
        number: at which place.
        actor: who made it.
        created_at_us: when.
    """

    name: str
    commit: str
    branch: str
    number: int
    actor: str | None
    created_at_us: int


@dataclass(frozen=True, slots=True)
class DiffStats:
    """How many entities differ."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.inserted + self.updated + self.deleted
