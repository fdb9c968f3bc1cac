"""Values that cost much to make and never change, kept for whoever needs them next, bounded in bytes.

Keys name versions, so a value is good for as long as it is kept; nothing is ever invalidated. Of several threads that
need the same value one makes it and the others wait. The least recently used values go first.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast


class Sized(Protocol):
    """A value that knows how many bytes it takes."""

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        ...


Value = TypeVar("Value", bound=Sized)


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache holds and has done.

    Attributes:
        bytes: how much is kept now.
        bytes_max: how much may be kept.
        values: how many values.
        hits: how often a value was there.
        misses: how often it had to be made.
        evictions: how many values had to go.
    """

    bytes: int
    bytes_max: int
    values: int
    hits: int
    misses: int
    evictions: int


class _Kept:
    """One value, under however many keys: versions that share it are charged once."""

    __slots__ = ("keys", "nbytes", "value")

    def __init__(self, value: Sized) -> None:
        self.value = value
        self.nbytes = value.nbytes
        self.keys = 0


class ByteCache:
    """A bounded cache, safe to use from several threads."""

    def __init__(self, bytes_max: int, *, evicted: Callable[[], None] | None = None) -> None:
        """An empty cache.

        Args:
            bytes_max (int): how much may be kept.
            evicted (Callable[[], None] | None): called whenever values had to go, so that others let go of them too.
        """
        self.bytes_max = bytes_max
        self._evicted = evicted
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._by_identity: dict[int, _Kept] = {}
        self._making: dict[Hashable, threading.Lock] = {}
        self._bytes = self._hits = self._misses = self._evictions = 0

    def peek(self, key: Hashable) -> Sized | None:
        """The value, if it is kept; being looked at is no use."""
        kept = self._kept.get(key)
        return None if kept is None else kept.value

    def found(self, key: Hashable) -> Sized | None:
        """The value, if it is kept, which is a use of it."""
        return self._found(key)

    @property
    def evictions(self) -> int:
        """How many values had to go so far."""
        return self._evictions

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made if it is not kept.

        Args:
            key (Hashable): names the value and its version; equal keys mean equal values.
            make (Callable[[], Value]): makes it; may get other values meanwhile, but never this one.

        Returns:
            Value: kept for next time if it fits at all.
        """
        found = self._found(key)
        if found is None:
            with self._lock:
                turn = self._making.setdefault(key, threading.Lock())
            with turn:
                found = self._found(key)
                if found is None:
                    try:
                        made = make()
                        self._keep(key, made)
                    finally:
                        with self._lock:
                            self._making.pop(key, None)
                    return made
        return cast(Value, found)

    def drop(self, key: Hashable) -> None:
        """Let go of a value."""
        with self._lock:
            self._remove(key)

    def stats(self) -> CacheStats:
        """What it holds and has done."""
        with self._lock:
            return CacheStats(
                self._bytes, self.bytes_max, len(self._by_identity), self._hits, self._misses, self._evictions
            )

    def _found(self, key: Hashable) -> Sized | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
            self._hits += 1
            return kept.value

    def _keep(self, key: Hashable, value: Sized) -> None:
        with self._lock:
            self._misses += 1
            kept = self._by_identity.get(id(value))
            if kept is None:
                kept = _Kept(value)
                if kept.nbytes > self.bytes_max:
                    return
                self._by_identity[id(value)] = kept
                self._bytes += kept.nbytes
            self._remove(key)
            kept.keys += 1
            self._kept[key] = kept
            before = self._evictions
            while self._bytes > self.bytes_max:
                self._remove(next(iter(self._kept)))
                self._evictions += 1
            if self._evictions > before and self._evicted is not None:
                self._evicted()

    def _remove(self, key: Hashable) -> None:
        kept = self._kept.pop(key, None)
        if kept is None:
            return
        kept.keys -= 1
        if not kept.keys:
            del self._by_identity[id(kept.value)]
            self._bytes -= kept.nbytes
