"""The only source of new identifiers: ULIDs, which sort by the time they were made."""

import os
import threading
from typing import Protocol

from omnigraph.clock import Clock, SystemClock

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {character: value for value, character in enumerate(_CROCKFORD)}
_RANDOM_BITS = 80
ULID_LENGTH = 26


class IdSource(Protocol):
    """Makes identifiers that nobody else makes."""

    def new(self) -> str:
        """A fresh ULID: 26 characters, greater than every earlier one of this source."""
        ...


class UlidSource:
    """ULIDs from a clock and the operating system's randomness, rising also within one millisecond."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._last = 0

    def new(self) -> str:
        """A fresh ULID."""
        fresh = (self._clock.now_us() // 1_000) << _RANDOM_BITS | int.from_bytes(os.urandom(_RANDOM_BITS // 8), "big")
        with self._lock:
            # Within one millisecond (or when the clock steps back) count on from the last, so order is kept.
            self._last = max(fresh, self._last + 1)
            return encode(self._last)


# Two characters at a time: one lookup per ten bits.
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]


def encode(value: int) -> str:
    """The 26 characters of a 128-bit number."""
    return "".join([_PAIRS[(value >> shift) & 1023] for shift in range(120, -1, -10)])


def after(previous: str, fresh: str) -> str:
    """`fresh`, or an id just after `previous` when that is not the smaller one (another host's clock was ahead).

    The next number would do for the order, but two hosts that are both behind would choose the same one. So it is the
    next millisecond, with the chance that is in `fresh`.
    """
    if fresh > previous:
        return fresh
    return encode(((decode(previous) >> _RANDOM_BITS) + 1) << _RANDOM_BITS | decode(fresh) & (1 << _RANDOM_BITS) - 1)


def decode(ulid: str) -> int:
    """The 128-bit number of a ULID."""
    value = 0
    for character in ulid:
        value = value << 5 | _VALUES[character]
    return value


def is_ulid(text: str) -> bool:
    """Whether `text` is spelled like a ULID."""
    return len(text) == ULID_LENGTH and text[0] in "01234567" and all(character in _VALUES for character in text)
