"""Commits and their parents, read from the logs their entries lie in.

A commit's entry is found by its place: the entry before it in the log, for the first of a branch the place it was
forked from, and for the other side of a merge the place that the merge wrote down. Where a log was cut, the line ends.
"""

from dataclasses import dataclass

from omnigraph import limits
from omnigraph.errors import FormatError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.transaction.parts import Parts

MERGE_NOTE = "merge"
SOURCE_BRANCH, SOURCE_NUMBER = "source_branch", "source_number"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a log."""

    branch: str
    number: int


class Ancestry:
    """The commits seen so far. Entries are read in blocks that grow, once each."""

    def __init__(self, parts: Parts) -> None:
        self._log = parts.log
        self._entries: dict[Place, Record] = {}
        self._blocks: dict[str, int] = {}
        # Of every commit seen, where its own entry lies or would lie, and an entry that shows its state.
        self.places: dict[str, Place] = {}
        self.states: dict[str, Record] = {}

    def enter(self, entry: Record) -> str:
        """Begin at an entry; returns the commit whose state it shows."""
        self._entries[Place(entry.branch, entry.number)] = entry
        self._find(entry.head_commit, Place(entry.branch, entry.number))
        return entry.head_commit

    def parents(self, commit: str) -> tuple[str, ...]:
        """The parents of a commit seen before, the first one first; none where its own entry is no more."""
        place = self.places[commit]
        entry = self._entry(place)
        if entry is None or entry.commit != commit:
            return ()
        found = []
        if entry.parent is not None:
            self._find(entry.parent, Place(entry.branch, entry.number - 1))
            found.append(entry.parent)
        if entry.merged_parent is not None:
            self._find(entry.merged_parent, _merged_place(entry))
            found.append(entry.merged_parent)
        return tuple(found)

    def entry_of(self, commit: str) -> Record | None:
        """A commit's own entry; None where the log was cut."""
        entry = self._entry(self.places[commit])
        return entry if entry is not None and entry.commit == commit else None

    def chain(self, head: str, base: str) -> list[Record] | None:
        """The commits after `base` on the chain of first parents that ends at `head`, oldest first.

        None where the chain does not come by, or was cut.
        """
        found = []
        while head != base:
            entry = self.entry_of(head)
            if entry is None or head < base:
                return None
            found.append(entry)
            first = self.parents(head)[:1]
            if not first:
                return None
            head = first[0]
        return found[::-1]

    def is_cut(self, commit: str) -> bool:
        """Whether the line of a commit seen before ends here because its own entry is no more."""
        return self.entry_of(commit) is None

    def same_life(self, place: Place, other: Place) -> bool:
        """Whether two places of one log belong to one life of the branch, though entries between may be gone."""
        if place.branch != other.branch:
            return False
        head = self._log.head(place.branch)
        born = (head.life or 1) if head is not None else None
        return born is not None and min(place.number, other.number) >= born

    def _find(self, commit: str, place: Place) -> None:
        """Go from a place that shows a commit's state to the place of its own entry, as far as entries are there."""
        if commit in self.places and not self.is_cut(commit):
            return
        while True:
            entry = self._entry(place)
            if entry is None or entry.head_commit != commit:
                break
            self.states[commit] = entry
            if entry.commit == commit:
                break
            if entry.kind is CommitKind.FORK and entry.fork_of is not None and entry.fork_number is not None:
                place = Place(entry.fork_of, entry.fork_number)
            else:
                place = Place(place.branch, place.number - 1)
        self.places[commit] = place

    def _entry(self, place: Place) -> Record | None:
        if place.number < 1:
            return None
        known = self._entries.get(place)
        if known is not None:
            return known
        for entry in self._read(place):
            self._entries[Place(entry.branch, entry.number)] = entry
        return self._entries.get(place)

    def _read(self, place: Place) -> list[Record]:
        block = self._blocks.get(place.branch, 1)
        self._blocks[place.branch] = min(2 * block, limits.ANCESTORS_READ_AT_ONCE)
        if block > 1:
            try:
                return self._log.between(place.branch, max(1, place.number - block + 1), place.number)
            except FormatError:
                pass  # the log was cut within the block: one by one then
        found = self._log.read(place.branch, place.number)
        return [] if found is None else [found]


def _merged_place(entry: Record) -> Place:
    note = entry.notes.get(MERGE_NOTE)
    branch, number = (note.get(SOURCE_BRANCH), note.get(SOURCE_NUMBER)) if isinstance(note, dict) else (None, None)
    if not isinstance(branch, str) or not isinstance(number, int):
        return Place(entry.branch, 0)  # a merge that does not say: its other side ends here
    return Place(branch, number)
