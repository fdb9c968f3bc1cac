"""How far the logs have been cut away, and what may be concluded from an entry that is not there.

A sweep that deletes old entries first puts a floor: an object whose name says below which number nothing counts any
more. Then, and only then, an entry that is absent may mean two things: nobody has written it yet, or it was cut away.

Nobody has to look at the floor as long as what he knows of a log is fresh. A sweep cuts no entry that has been there
for less than `cut_s` seconds; an entry that was not there a moment ago can therefore not have come and gone since.
"A moment" is a quarter of `cut_s`, measured from before the look to after the conclusion on one's own clock: clocks of
different hosts are never compared, and one that runs at half speed does no harm.
"""

from omnigraph.clock import Clock
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.transaction.settle import settled

# How much older than a writer's knowledge an entry must be before it is cut.
_MARGIN = 4


class Floors:
    """The floors of all branches of one graph."""

    def __init__(self, store: ObjectStore, *, clock: Clock, cut_s: float) -> None:
        self._store = store
        self._clock = clock
        self._trusted_s = cut_s / _MARGIN
        self._newest_at: dict[str, tuple[int, float]] = {}

    def highest(self, branch: str) -> int:
        """The first entry that counts; 1 where nothing was ever cut. One request.

        Args:
            branch (str): which.

        Returns:
            int: its number.
        """
        for limit in (1, None):
            listed = [
                paths.entry_number(file.path) for file in self._store.list(paths.floor_folder(branch), limit=limit)
            ]
            numbers = [number for number in listed if number is not None]
            if numbers or not listed:
                return max(numbers, default=1)
        return 1  # somebody else's files are all there is

    def raise_to(self, branch: str, number: int) -> None:
        """Say that entries below a number count no more; durable when this returns.

        Args:
            branch (str): whose.
            number (int): the first that counts.
        """
        settled(self._store, paths.floor(branch, number), b"{}", clock=self._clock)

    # -- what a process knows of the heads ----------------------------------------------------------------------------

    def note_newest(self, branch: str, number: int, *, at: float) -> None:
        """Note that at a time on our own clock there was no entry after `number`."""
        self._newest_at[branch] = (number, at)

    def forget(self, branch: str) -> None:
        """Take no absent entry of a branch for one that is still to come."""
        self._newest_at.pop(branch, None)

    def is_yet_to_come(self, branch: str, number: int) -> bool:
        """Whether an entry that is absent, or was until we put it, can only be one that nobody had written before.

        To be asked after the request that found it absent, or put it.
        """
        known = self._newest_at.get(branch)
        return known is not None and known[0] < number and self._clock.monotonic() - known[1] < self._trusted_s
