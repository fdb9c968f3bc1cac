"""Commits and their parents, read from the logs their entries lie in.

A commit's entry is found by its place: the entry before it in the log, for the first of a branch the place it was
forked from, and for the other side of a merge the place that the merge wrote down. Where a log was cut, the ancestry
that the sweep has left tells how the line goes on.
"""

from bisect import bisect_right
from collections.abc import Iterable

from omnigraph import limits
from omnigraph.branch.find_entry import entry_at, of_commit
from omnigraph.branch.lineage import entry_of_commit, read_if_whole
from omnigraph.branch.point import Point
from omnigraph.errors import FormatError, NotFoundError
from omnigraph.model.ancestry import Ancestor, CutCommit, CutLog, Place
from omnigraph.model.commit import CommitKind, Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectNotFound
from omnigraph.storage.records.ancestry_v1 import read_ancestry
from omnigraph.transaction.graph_context import GraphContext

MERGE_NOTE = "merge"
SOURCE_BRANCH, SOURCE_NUMBER = "source_branch", "source_number"


class Ancestry:
    """The commits seen so far. Entries are read in blocks that grow, once each."""

    def __init__(self, context: GraphContext, entries: Iterable[Record] = ()) -> None:
        """Know some entries from the start."""
        self._context = context
        self._entries = {Place(entry.branch, entry.number): entry for entry in entries}
        self._blocks: dict[str, int] = {}
        self._newest: dict[str, int] = {}
        self._cut: dict[str, CutLog | None] = {}
        self._named: dict[str, tuple[str, CutCommit]] = {}
        self._before: dict[str, Place] = {}
        self._steps: dict[tuple[str, str], int] = {}
        # Of every commit seen, where its own entry lies or lay, and an entry that shows its state.
        self.places: dict[str, Place] = {}
        self.states: dict[str, Record] = {}
        self.unknown: set[str] = set()
        """Commits seen whose parents nothing tells any more."""

    def enter(self, entry: Record) -> str:
        """Begin at an entry; returns the commit whose state it shows."""
        place = Place(entry.branch, entry.number)
        self._entries[place] = entry
        self._newest[entry.branch] = max(entry.number, self._newest.get(entry.branch, 0))
        self._find(entry.head_commit, place)
        return entry.head_commit

    def named(self, commit: str) -> Record:
        """Return the entry of a commit given by id, on any branch.

        Raises:
            NotFoundError: it is not there, or was pruned.
        """
        return entry_at(self._context, Point(commit=commit))

    def parents(self, commit: str) -> tuple[str, ...]:
        """The parents of a commit seen before, the first one first.

        Of a commit that was cut away, those ancestors that are known by name; none where nothing is known (`unknown`).
        """
        entry = self.entry_of(commit)
        if entry is None:
            return self._parents_below_the_cut(commit)
        found = []
        if entry.parent is not None:
            self._find(entry.parent, Place(entry.branch, entry.number_before))
            place = self.places[entry.parent]  # marks may lie between
            if place.branch == entry.branch and place.number >= (entry.life or entry.number_before):
                self._before.setdefault(entry.parent, place)
            found.append(entry.parent)
        if entry.merged_parent is not None:
            self._find(entry.merged_parent, self._merged_place(entry))
            found.append(entry.merged_parent)
        return tuple(found)

    def steps(self, commit: str, parent: str) -> int:
        """How many commits further down one of `parents` is."""
        return self._steps.get((commit, parent), 1)

    def entry_of(self, commit: str) -> Record | None:
        """A commit's own entry; None where the log was cut."""
        entry = self._entry(self.places[commit])
        return entry if entry is not None and entry.stands_for(commit) else None

    def state(self, commit: str) -> Record | None:
        """Return an entry that shows the state of a commit seen before; None where it was cut away."""
        if commit not in self.states:
            self._find_elsewhere(commit)
        return self.states.get(commit)

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

    def _parents_below_the_cut(self, commit: str) -> tuple[str, ...]:
        known = self._ancestors(commit)
        if known is None and self.entry_of(commit) is not None:
            return self.parents(commit)
        if known is None:
            self.unknown.add(commit)
            return ()
        for parent in known:
            self._steps[commit, parent.commit] = parent.steps
            self._find(parent.commit, parent.place)
        return tuple(parent.commit for parent in known)

    def _ancestors(self, commit: str) -> tuple[Ancestor, ...] | None:
        place = self.places[commit]
        cut = self._cut_log(place.branch)
        is_on_its_line = commit not in self._named and self._before.get(commit) == place
        if cut is not None and place.number < cut.first and is_on_its_line:
            # It has no name there, so it has one parent and one child: whatever is next below the commit above it.
            above = bisect_right(cut.commits, place.number, key=lambda known: known.number)
            parents = cut.commits[above].parents if above < len(cut.commits) else None
            if not parents or parents[0].commit != commit:
                return parents[:1] if parents else None
            # Or it is that one: a mark that was cut showed it, and its own entry lies where the note says.
            self._find(commit, parents[0].place)
            if self.entry_of(commit) is not None:
                return None
        known = self._find_elsewhere(commit)
        return None if known is None else known.parents

    def _find_elsewhere(self, commit: str) -> CutCommit | None:
        """Find a commit that was seen through a mark that was cut: in the notes about cut logs, else in any log."""
        self._cut_log(self.places[commit].branch)
        for branch in () if commit in self._named else self._context.log.branch_names():
            self._cut_log(branch)
        if commit not in self._named:
            for branch in self._context.log.branch_names():
                head = self._context.log.head(branch)
                entry = None if head is None else entry_of_commit(self._context, head, commit)
                if entry is not None:
                    self._find(commit, Place(branch, entry.number))
            return None
        branch, known = self._named[commit]
        self._find(commit, Place(branch, known.number))
        return known

    def _cut_log(self, branch: str) -> CutLog | None:
        if branch not in self._cut:
            found = self._cut[branch] = self._read_cut_log(branch)
            for known in () if found is None else found.commits:
                self._named.setdefault(known.commit, (branch, known))
        return self._cut[branch]

    def _read_cut_log(self, branch: str) -> CutLog | None:
        store = self._context.store
        for _ in range(limits.HEAD_LOOKS_MAX):
            listed = (file.path for file in store.list(paths.ancestry_folder(branch)))
            newest = next((path for path in listed if paths.entry_number(path) is not None), None)
            if newest is None:
                return None
            try:
                return read_ancestry(store.get(newest), path=paths.absolute(store, newest))
            except ObjectNotFound:
                continue  # a newer one has taken its place
        return None

    def _find(self, commit: str, place: Place) -> None:
        """Go from a place that shows a commit's state to the place of its own entry, as far as entries are there."""
        if commit in self.places and self.entry_of(commit) is not None:
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
                place = Place(place.branch, entry.number_before)
        self.places[commit] = place

    def _entry(self, place: Place) -> Record | None:
        if place.number < 1:
            return None
        known = self._entries.get(place)
        if known is not None:
            return known
        cut = self._cut.get(place.branch)
        if cut is not None and place.number < cut.first:
            found = read_if_whole(self._context, place.branch, place.number)  # still held, or cut away
            if found is not None:
                self._entries[place] = found
            return found
        for entry in self._read(place):
            self._entries[Place(entry.branch, entry.number)] = entry
        return self._entries.get(place)

    def _read(self, place: Place) -> list[Record]:
        block = self._blocks.get(place.branch, 1)
        self._blocks[place.branch] = min(2 * block, limits.ANCESTORS_READ_AT_ONCE)
        last = place.number + -place.number % limits.CHECKPOINT_ENTRIES
        if block >= limits.ANCESTORS_READ_BEFORE_CHECKPOINTS and last <= self._newest.get(place.branch, 0):
            folded = self._context.log.folded(place.branch, last)
            if folded is not None:
                return folded
        first = max(place.number - block + 1, last - limits.CHECKPOINT_ENTRIES + 1)
        if block > 1:
            try:
                return self._context.log.between(place.branch, first, place.number)
            except FormatError:
                pass  # the log was cut within the block: one by one then
        found = read_if_whole(self._context, place.branch, place.number)
        return [] if found is None else [found]

    def _merged_place(self, merge: Record) -> Place:
        note = merge.notes.get(MERGE_NOTE)
        branch, number = (note.get(SOURCE_BRANCH), note.get(SOURCE_NUMBER)) if isinstance(note, dict) else (None, None)
        if isinstance(branch, str) and isinstance(number, int):
            return Place(branch, number)
        try:
            entry = of_commit(self._context, merge.merged_parent or "")  # a merge of an earlier format does not say
        except NotFoundError:
            return Place(merge.branch, 0)
        return Place(entry.branch, entry.number)
