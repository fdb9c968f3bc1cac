"""How far the logs have been cut away.

A sweep that deletes old entries first puts a floor: an object whose name is the first number that counts. Whoever needs
to know whether an entry was cut away reads it; what a writer must know before it acknowledges is in `log.py`.
"""

from omnigraph.clock import Clock
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.transaction.conditional_put import put_or_read


class Floors:
    """The floors of all branches of one graph."""

    def __init__(self, store: ObjectStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def highest(self, branch: str) -> int:
        """The first entry that counts; 1 where nothing was ever cut. One request."""
        for limit in (1, None):
            listed = [
                paths.entry_number(file.path) for file in self._store.list(paths.floor_folder(branch), limit=limit)
            ]
            numbers = [number for number in listed if number is not None]
            if numbers or not listed:
                return max(numbers, default=1)
        return 1  # somebody else's files are all there is

    def raise_to(self, branch: str, number: int) -> None:
        """Let entries below a number count for nothing; durable when this returns."""
        put_or_read(self._store, paths.floor(branch, number), b"{}", clock=self._clock)
