"""What has been pruned of a branch. Every entry takes it on from the one before, so that the head alone tells."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pruned:
    """The marks that prunes have left on a branch.

    A marked commit is listed and read by nobody, but its data is still there. What lies below the floor is gone for
    good: a sweep may delete its data and its entries at any moment.

    Attributes:
        floor: the first entry that is kept.
        through: every commit up to and with this entry is marked.
        single: further marked entries, each by its number, ascending.
        ages: of some marked entries, number and time in microseconds, ascending; a later prune then need not read them.
        unswept: the first entry that, when the mark was made, no sweep was known to have cut away. What lies between it
            and the floor is still to be swept, whoever died meanwhile.
        gone: entries above the floor whose data is gone for good as well, ascending; their places in the log stay.
    """

    floor: int = 1
    through: int = 0
    single: tuple[int, ...] = ()
    ages: tuple[tuple[int, int], ...] = ()
    unswept: int = 1
    gone: tuple[int, ...] = ()

    def is_kept(self, number: int) -> bool:
        """Whether the data of an entry is still there."""
        return number >= self.floor and number not in self.gone

    def is_listed(self, number: int) -> bool:
        """Whether an entry is shown to readers: kept, and not marked."""
        return self.is_kept(number) and number > self.through and number not in self.single

    def next_listed(self, number: int) -> int:
        """The first entry after one that is shown to readers, if the log goes on for so long."""
        found = max(number + 1, self.floor, self.through + 1)
        while found in self.single or found in self.gone:
            found += 1
        return found


NOTHING_PRUNED = Pruned()
