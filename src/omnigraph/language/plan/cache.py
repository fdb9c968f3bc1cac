"""A bounded memory of what was compiled: the least recently used goes first."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Compiled = TypeVar("Compiled")


class CompileCache(Generic[Compiled]):
    """Remembers results by key; safe to use from many threads.

    Two threads that miss at once both compile: results are values, so either may stay.
    """

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._entries: OrderedDict[Hashable, Compiled] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Compiled | None:
        """What is remembered under the key, if anything."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: Hashable, made: Compiled) -> None:
        """Remember something under the key, in the place of what was there."""
        with self._lock:
            self._entries[key] = made
            self._entries.move_to_end(key)
            while len(self._entries) > self._entries_max:
                self._entries.popitem(last=False)

    def get_or_make(self, key: Hashable, make: Callable[[], Compiled]) -> Compiled:
        """What is remembered under the key, else what `make` returns, remembered from now on.

        Args:
            key: everything the result depends on.
            make: compiles; what it raises is not remembered.

        Returns:
            The result.
        """
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def __len__(self) -> int:
        return len(self._entries)
