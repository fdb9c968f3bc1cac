"""Which commit last set each property of an entity.

The chain of first parents is walked down from the head. Where a merge brought a value in, the walk goes on along the
branch it came from, so that the commit told is the one that set it, not the one that carried it over.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from omnigraph.branch.entity_change import Op
from omnigraph.branch.entity_log import Entity, events, image_at, renamed
from omnigraph.branch.find_entry import of_commit
from omnigraph.branch.history_values import Blame, EntityEvent, values_of
from omnigraph.branch.merge.ancestry import MERGE_NOTE, SOURCE_BRANCH, SOURCE_NUMBER
from omnigraph.branch.merge.sides import SchemaOf
from omnigraph.errors import FormatError, NotFoundError, ReclaimedError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.transaction.graph_context import GraphContext

# Of a version whose files were swept, and of an entry that was cut away with its log.
_GONE = frozenset({ReclaimedError.code, "entry_missing"})


@dataclass(slots=True)
class _Search:
    """The search for one entity, as far as it is."""

    context: GraphContext
    schema_of: SchemaOf
    entity: Entity
    found: dict[str, Record | None] = field(default_factory=dict)
    created: list[Record | None] = field(default_factory=list)
    last: list[Record | None] = field(default_factory=list)

    def walk(self, start: Record, names: dict[str, str], *, head: Record | None = None) -> None:
        """Find who set some properties, from an entry down; each by its name there, with the one it has today."""
        for event in events(self.context, self.schema_of, self.entity, start, head=head):
            wanted = names.keys() & event.changed if event.op is Op.UPDATE else names.keys()
            merged: set[str] = set()
            if wanted and not event.pruned:
                merged = self._walk_what_was_merged(event, {name: names[name] for name in wanted})
            # What came from a branch that no longer tells who set it was set by a commit that is gone.
            teller = None if event.pruned or merged else event.entry
            if event.changed or event.op is not Op.UPDATE:
                self.last = self.last or [teller]
            for name in wanted:
                self.found.setdefault(names[name], None if event.pruned or name in merged else event.entry)
            names = {event.renamed.get(name, name): names[name] for name in names.keys() - wanted}
            if event.op is Op.INSERT:
                self.created = self.created or [teller]
            if event.op is Op.INSERT or (not names and self.created):
                return

    def _walk_what_was_merged(self, event: EntityEvent, names: dict[str, str]) -> set[str]:
        """Go on along the branch that a merge took values from; returns the properties that it took from there."""
        if event.entry.kind is not CommitKind.MERGE or event.entry.merged_parent is None:
            return set()
        with _what_is_gone_passed_over():
            source = _source_of(self.context, event.entry)
            if source is None:
                return set(names)
            other = renamed(self.schema_of, self.entity, source, event.entry)
            there = values_of(image_at(self.context, self.schema_of, self.entity, source))
            here = values_of(event.after)
            merged = {name for name in names if there and there.get(other.get(name, name)) == here.get(name)}
            if merged != names.keys():
                self.last = self.last or [event.entry]  # the others were decided in the merge
            if merged:
                with _what_is_gone_passed_over():
                    self.walk(source, {other.get(name, name): names[name] for name in merged})
            return merged
        return set(names)


@contextmanager
def _what_is_gone_passed_over() -> Iterator[None]:
    """A branch that was merged may be deleted, and what it held swept."""
    try:
        yield
    except FormatError as fault:
        if fault.code not in _GONE:
            raise


def blame(context: GraphContext, schema_of: SchemaOf, entity: Entity, head: Record) -> Blame:
    """Who made an entity what it is at a head.

    Raises:
        NotFoundError: it is not there.
    """
    image = image_at(context, schema_of, entity, head)
    if image is None:
        raise NotFoundError(
            f"there is no entity '{entity.id}' at commit {head.head_commit}", code="entity_not_found", id=entity.id
        )
    search = _Search(context, schema_of, entity)
    search.walk(head, {name: name for name in values_of(image)}, head=head)
    known = {name: entry for name, entry in search.found.items() if entry is not None}
    created, last = (some[0] if some else None for some in (search.created, search.last))
    return Blame(entity.id, known, created, last, tuple(sorted(values_of(image).keys() - known.keys())))


def _source_of(context: GraphContext, merge: Record) -> Record | None:
    """The entry that a merge brought in; None where it is no longer there."""
    note = merge.notes.get(MERGE_NOTE)
    if isinstance(note, dict) and SOURCE_NUMBER in note:
        return context.log.read(str(note[SOURCE_BRANCH]), int(note[SOURCE_NUMBER]))
    try:
        return of_commit(context, merge.merged_parent or "")
    except NotFoundError:
        return None
