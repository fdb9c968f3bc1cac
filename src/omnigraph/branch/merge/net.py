"""What a line of commits did to the entities of each type in all, told by the records alone: no table is opened."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from omnigraph.branch.commit_changes import stored_changes
from omnigraph.model.commit import Record
from omnigraph.storage.object_store import ObjectNotFound
from omnigraph.storage.records.change_file import ChangedIds
from omnigraph.transaction.graph_context import GraphContext


@dataclass(slots=True)
class Net:
    """The ids of one type's changes, one commit on top of the other; what cancels out is not among them."""

    inserted: set[str] = field(default_factory=set)
    updated: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def then(self, inserted: Iterable[str], updated: Iterable[str], deleted: Iterable[str]) -> None:
        """Add what the next commit did."""
        came, changed, went = set(inserted), set(updated), set(deleted)
        returned = came & self.deleted
        self.deleted -= returned
        self.updated |= returned
        self.inserted |= came - returned
        self.updated |= changed - self.inserted
        vanished = went & self.inserted
        self.inserted -= vanished
        self.updated -= went
        self.deleted |= went - vanished

    @property
    def ids(self) -> ChangedIds:
        """By what happened, each in order."""
        return ChangedIds(sorted(self.inserted), sorted(self.updated), sorted(self.deleted))


def net_changes(parts: GraphContext, chain: Sequence[Record] | None, schema: str) -> dict[str, ChangedIds] | None:
    """What a chain of commits did in all.

    Args:
        chain: the commits, oldest first; None where they are not known.
        schema: the schema before the first of them.

    Returns:
        By type key; None where the records do not tell: the schema changed on the way, or a change set is gone.
    """
    if chain is None or any(entry.schema != schema for entry in chain):
        return None
    found: dict[str, Net] = {}
    for entry in chain:
        try:
            stored = stored_changes(parts, entry)
        except ObjectNotFound:
            return None  # swept with its commit
        for key, each in stored.items():
            if each.inserted_ids is None or each.updated_ids is None or each.deleted_ids is None:
                return None
            found.setdefault(key, Net()).then(each.inserted_ids, each.updated_ids, each.deleted_ids)
    return {key: net.ids for key, net in found.items()}
