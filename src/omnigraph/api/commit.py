"""A commit of the history."""

from dataclasses import dataclass
from typing import Any

from omnigraph.api.documents import full_commit_document
from omnigraph.model.change import TypeChange
from omnigraph.model.commit import Record, Recovery


@dataclass(frozen=True, slots=True)
class Commit:
    """One state of the graph, and how it came about.

    Attributes:
        record: the entry of the log.
    """

    record: Record

    @property
    def id(self) -> str:
        """The id, unique across branches."""
        return self.record.commit

    @property
    def branch(self) -> str:
        """The branch it was written on."""
        return self.record.branch

    @property
    def number(self) -> int:
        """The position in the log of that branch."""
        return self.record.number

    @property
    def kind(self) -> str:
        """The kind of write: `mutation`, `load`, `merge`, `schema` and so on."""
        return self.record.kind.value

    @property
    def parent(self) -> str | None:
        """The commit before it; None for the first of all."""
        return self.record.parent

    @property
    def merged_parent(self) -> str | None:
        """The other side of a merge."""
        return self.record.merged_parent

    @property
    def actor(self) -> str | None:
        """The actor who made it."""
        return self.record.actor

    @property
    def message(self) -> str | None:
        """The commit message."""
        return self.record.message

    @property
    def created_at_us(self) -> int:
        """The time it was made, in microseconds since 1970."""
        return self.record.created_at_us

    @property
    def recovery(self) -> Recovery | None:
        """What was done about an interrupted write, on commits that ended one."""
        return self.record.recovery

    @property
    def changes(self) -> dict[str, TypeChange]:
        """How many entities of each type were inserted, updated and deleted, by type key."""
        return dict(self.record.changes.types)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return full_commit_document(self.record)
