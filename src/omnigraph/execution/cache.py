"""Thread-safe LRU cache of immutable values, bounded in bytes.

Keys name versions, so values are never invalidated. When several threads need the same value, one computes it and the
others wait.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast


class Sized(Protocol):
    """A value with a known size."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        ...


Value = TypeVar("Value", bound=Sized)


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Contents and counters of a cache.

    Attributes:
        bytes: bytes in use.
        bytes_max: capacity in bytes.
        values: number of values.
        hits: lookups that found a value.
        misses: lookups that had to compute it.
        evictions: values evicted.
    """

    bytes: int
    bytes_max: int
    values: int
    hits: int
    misses: int
    evictions: int


class _Entry:
    """One value under any number of keys: versions that share it are charged once."""

    __slots__ = ("keys", "nbytes", "value")

    def __init__(self, value: Sized) -> None:
        self.value = value
        self.nbytes = value.nbytes
        self.keys = 0


class ByteCache:
    """LRU cache bounded in bytes."""

    def __init__(self, bytes_max: int, *, on_evict: Callable[[], None] | None = None) -> None:
        """Create an empty cache.

        Args:
            bytes_max: capacity in bytes.
            on_evict: called after evictions, so that other holders release the values too.
        """
        self.bytes_max = bytes_max
        self._on_evict = on_evict
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._by_identity: dict[int, _Entry] = {}
        self._making: dict[Hashable, threading.Lock] = {}
        self._bytes = self._hits = self._misses = self._evictions = 0

    def peek(self, key: Hashable) -> Sized | None:
        """Return a cached value without marking it as used."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def find(self, key: Hashable) -> Sized | None:
        """Return a cached value and mark it as used."""
        return self._find(key)

    @property
    def evictions(self) -> int:
        """Number of values evicted so far."""
        return self._evictions

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, computing it if it is not cached.

        Args:
            key: names the value and its version; equal keys mean equal values.
            make: computes it; may get other values meanwhile, but never this one.
        """
        found = self._find(key)
        if found is None:
            with self._lock:
                turn = self._making.setdefault(key, threading.Lock())
            with turn:
                found = self._find(key)
                if found is None:
                    try:
                        made = make()
                        self._put(key, made)
                    finally:
                        with self._lock:
                            self._making.pop(key, None)
                    return made
        return cast(Value, found)

    def recharge(self, key: Hashable) -> None:
        """Charge a value that has grown by its present size; one larger than the cache is removed."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return
            size = entry.value.nbytes
            self._bytes += size - entry.nbytes
            entry.nbytes = size
            # One larger than the cache goes first, rather than all others.
            self._entries.move_to_end(key, last=size <= self.bytes_max)
            self._evict()

    def drop(self, key: Hashable) -> None:
        """Remove a value."""
        with self._lock:
            self._remove(key)

    def stats(self) -> CacheStats:
        """Return the contents and counters."""
        with self._lock:
            return CacheStats(
                self._bytes, self.bytes_max, len(self._by_identity), self._hits, self._misses, self._evictions
            )

    def _find(self, key: Hashable) -> Sized | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            self._hits += 1
            return entry.value

    def _put(self, key: Hashable, value: Sized) -> None:
        with self._lock:
            self._misses += 1
            entry = self._by_identity.get(id(value))
            if entry is None:
                entry = _Entry(value)
                if entry.nbytes > self.bytes_max:
                    return
                self._by_identity[id(value)] = entry
                self._bytes += entry.nbytes
            self._remove(key)
            entry.keys += 1
            self._entries[key] = entry
            self._evict()

    def _evict(self) -> None:
        before = self._evictions
        while self._bytes > self.bytes_max:
            self._remove(next(iter(self._entries)))
            self._evictions += 1
        if self._evictions > before and self._on_evict is not None:
            self._on_evict()

    def _remove(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        entry.keys -= 1
        if not entry.keys:
            del self._by_identity[id(entry.value)]
            self._bytes -= entry.nbytes
