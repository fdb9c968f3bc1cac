"""LRU cache: a thread-safe mapping with a maximum number of entries."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Keeps the most recently used values. A value is never None, which stands for a miss."""

    def __init__(self, entries_max: int, *, evicted: Callable[[Value], None] | None = None) -> None:
        """Create an empty cache.

        Args:
            entries_max: above this number the least recently used entries are dropped.
            evicted: called with every value that is dropped, inside the lock.
        """
        self._entries_max = entries_max
        self._evicted = evicted
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """Return the value of `key`, or None."""
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def put(self, key: Key, value: Value) -> None:
        """Set the value of `key`."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            self._evict()

    def setdefault(self, key: Key, value: Value) -> Value:
        """Return the value of `key`, which is `value` if there was none."""
        with self._lock:
            present = self._entries.setdefault(key, value)
            self._entries.move_to_end(key)
            self._evict()
            return present

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of `key`, made by `make` on a miss. Two threads that miss at once both call it."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value)
        return value

    def _evict(self) -> None:
        while len(self._entries) > self._entries_max:
            _, value = self._entries.popitem(last=False)
            if self._evicted is not None:
                self._evicted(value)

    def __len__(self) -> int:
        return len(self._entries)
