"""Prune marks of a branch. Every log entry inherits them from the previous one, so the head alone is enough."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pruned:
    """Marks that prunes have left on a branch.

    A marked commit is neither listed nor readable, but its data still exists. Data below the floor may be gone: a sweep
    may delete it and its log entries at any moment.

    Attributes:
        floor: number of the first kept entry.
        through: every commit up to and including this entry is marked.
        single: further marked entries by number, ascending.
        ages: number and time in microseconds of some marked entries, ascending; a later prune then need not read them.
        unswept: first entry that no sweep was known to have cut when the mark was made. Entries between it and the
            floor are still to be swept, even after a crash.
        gone: entries above the floor whose data is deleted as well, ascending; their log numbers stay.
    """

    floor: int = 1
    through: int = 0
    single: tuple[int, ...] = ()
    ages: tuple[tuple[int, int], ...] = ()
    unswept: int = 1
    gone: tuple[int, ...] = ()

    def is_kept(self, number: int) -> bool:
        """True if the data of an entry still exists."""
        return number >= self.floor and number not in self.gone

    def is_listed(self, number: int) -> bool:
        """True if an entry is visible to readers: kept, and not marked."""
        return self.is_kept(number) and number > self.through and number not in self.single

    def next_listed(self, number: int) -> int:
        """Return the number of the first visible entry after `number`, if the log is that long."""
        found = max(number + 1, self.floor, self.through + 1)
        while found in self.single or found in self.gone:
            found += 1
        return found


NOTHING_PRUNED = Pruned()
