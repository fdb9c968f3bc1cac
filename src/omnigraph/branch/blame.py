"""Which commit last set each property of an entity.

The chain of first parents is walked down from the head. Where a merge brought a value in, the walk goes on along the
branch it came from, so that the commit told is the one that set it, not the one that carried it over.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from omnigraph.branch.entity_change import Op
from omnigraph.branch.entity_log import Entity, events, image_at
from omnigraph.branch.merge.ancestry import MERGE_NOTE, SOURCE_BRANCH, SOURCE_NUMBER
from omnigraph.branch.points import of_commit
from omnigraph.branch.told import Blame, EntityEvent, values_of
from omnigraph.errors import FormatError, NotFoundError, ReclaimedError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.transaction.parts import Parts

# Of a version whose files were swept, and of an entry that was cut away with its log.
_GONE = frozenset({ReclaimedError.code, "entry_missing"})


@dataclass(slots=True)
class _Search:
    """The search for one entity, as far as it is."""

    parts: Parts
    entity: Entity
    found: dict[str, Record] = field(default_factory=dict)
    created: Record | None = None
    last: Record | None = None

    def walk(self, start: Record, names: set[str], *, head: Record | None = None) -> None:
        """Find who set these properties, from an entry down."""
        for event in events(self.parts, self.entity, start, head=head):
            asked = names & set(event.changed) if event.op is Op.UPDATE else set(names)
            with _what_is_gone_passed_over():
                brought = self._brought_in(event, asked) if asked else None
                if brought is not None:
                    self.walk(brought, asked)
            if self.last is None:
                self.last = event.entry
            for name in asked:
                self.found.setdefault(name, event.entry)
            names = names - asked
            if event.op is Op.INSERT and self.created is None:
                self.created = event.entry
            if event.op is Op.INSERT or (not names and self.created is not None):
                return

    def _brought_in(self, event: EntityEvent, names: set[str]) -> Record | None:
        """The entry a merge took these values from; None where it did not, or where they were decided in the merge."""
        if event.entry.kind is not CommitKind.MERGE or event.entry.merged_parent is None:
            return None
        source = _source_of(self.parts, event.entry)
        if source is None:
            return None
        there, here = values_of(image_at(self.parts, self.entity, source)), values_of(event.after)
        return source if there and all(there.get(name) == here.get(name) for name in names) else None


@contextmanager
def _what_is_gone_passed_over() -> Iterator[None]:
    """A branch that was merged may be deleted, and what it held swept: then the merge is the oldest that tells."""
    try:
        yield
    except FormatError as fault:
        if fault.code not in _GONE:
            raise


def blame(parts: Parts, entity: Entity, head: Record) -> Blame:
    """Who made an entity what it is at a head.

    Raises:
        NotFoundError: it is not there.
    """
    image = image_at(parts, entity, head)
    if image is None:
        raise NotFoundError(
            f"there is no entity '{entity.id}' at commit {head.head_commit}", code="entity_not_found", id=entity.id
        )
    search = _Search(parts, entity)
    search.walk(head, set(values_of(image)), head=head)
    return Blame(entity.id, search.found, search.created, search.last)


def _source_of(parts: Parts, merge: Record) -> Record | None:
    """The entry that a merge brought in; None where it is no longer there."""
    note = merge.notes.get(MERGE_NOTE)
    if isinstance(note, dict) and SOURCE_NUMBER in note:
        return parts.log.read(str(note[SOURCE_BRANCH]), int(note[SOURCE_NUMBER]))
    try:
        return of_commit(parts, merge.merged_parent or "")
    except NotFoundError:
        return None
