"""What happened to one entity in one commit, as clients of the change feed see it."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from omnigraph.errors import InvalidRequestError
from omnigraph.model.commit import Record

_TYPE_DOMAIN = b"omnigraph.type\0"
Words = TypeVar("Words", bound=StrEnum)


class EntityKind(StrEnum):
    """Nodes come before edges."""

    NODE = "node"
    EDGE = "edge"


class Op(StrEnum):
    """What happened to an entity."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Image:
    """An entity as it was, or became.

    Attributes:
        properties: JSON values by property.
        source: id of the node an edge leaves.
        target: id of the node it reaches.
    """

    properties: Mapping[str, Any]
    source: str | None = None
    target: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The image as a JSON document."""
        document: dict[str, Any] = {"properties": dict(self.properties)}
        if self.source is not None:
            document["endpoints"] = {"from": self.source, "to": self.target}
        return document


@dataclass(frozen=True, slots=True)
class EntityChange:
    """One insert, update or delete.

    Attributes:
        kind: node or edge.
        type_id: names the type for as long as it lives, whatever it is called.
        type_name: what it is called at that commit.
        id: of the entity.
        op: what happened.
        before: the entity before; None for an insert.
        after: the entity after; None for a delete.
    """

    kind: EntityKind
    type_id: str
    type_name: str
    id: str
    op: Op
    before: Image | None
    after: Image | None

    def to_dict(self) -> dict[str, Any]:
        """The change as a JSON document."""
        document: dict[str, Any] = {
            "kind": self.kind.value,
            "type": {"id": self.type_id, "name": self.type_name},
            "id": self.id,
            "op": self.op.value,
        }
        if self.before is not None:
            document["before"] = self.before.to_dict()
        if self.after is not None:
            document["after"] = self.after.to_dict()
        return document


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes are wanted; an empty set asks for all.

    Attributes:
        kinds: `node`, `edge`.
        types: names of node and edge types.
        ops: `insert`, `update`, `delete`.
    """

    kinds: frozenset[EntityKind] = frozenset()
    types: frozenset[str] = frozenset()
    ops: frozenset[Op] = frozenset()

    def takes_type(self, kind: EntityKind, name: str) -> bool:
        """Whether changes of a type are wanted at all."""
        return (not self.kinds or kind in self.kinds) and (not self.types or name in self.types)

    def takes_op(self, op: Op) -> bool:
        """Whether such changes are wanted."""
        return not self.ops or op in self.ops

    @property
    def digest(self) -> str:
        """Equal for filters that want the same; tokens carry it."""
        text = "\n".join(",".join(sorted(names)) for names in (self.kinds, self.types, self.ops))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def change_filter(kinds: Iterable[str] = (), types: Iterable[str] = (), ops: Iterable[str] = ()) -> ChangeFilter:
    """A filter from words.

    Raises:
        InvalidRequestError: a kind or operation is none.
    """
    return ChangeFilter(
        frozenset(_word(EntityKind, "kind", word) for word in kinds),
        frozenset(types),
        frozenset(_word(Op, "op", word) for word in ops),
    )


def type_id(table: str) -> str:
    """What a type is known by outside, from the table that holds it for as long as it lives."""
    return base64.urlsafe_b64encode(hashlib.sha256(_TYPE_DOMAIN + table.encode()).digest()).decode().rstrip("=")


def cause_document(entry: Record) -> dict[str, Any]:
    """The commit that caused changes, as a JSON document."""
    document: dict[str, Any] = {
        "graph_commit_id": entry.commit,
        "parent_commit_id": entry.parent,
        "merged_parent_commit_id": entry.merged_parent,
        "authored_branch": entry.branch,
        "actor_id": entry.actor,
        "authored_at": entry.created_at_us,
        "kind": entry.kind.value,
        "message": entry.message,
    }
    return {name: value for name, value in document.items() if value is not None}


def _word(words: type[Words], what: str, word: str) -> Words:
    try:
        return words(word)
    except ValueError:
        raise InvalidRequestError(f"unknown {what} '{word}' (expected {' | '.join(words)})") from None
