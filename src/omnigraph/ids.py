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
    """Source of globally unique identifiers."""

    def new(self) -> str:
        """Return a new ULID of 26 characters, greater than every earlier one of this source."""
        ...


class UlidSource:
    """ULIDs from a clock and the operating system's randomness, rising also within one millisecond."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._last = 0

    def new(self) -> str:
        """Return a new ULID."""
        fresh = (self._clock.now_us() // 1_000) << _RANDOM_BITS | int.from_bytes(os.urandom(_RANDOM_BITS // 8), "big")
        with self._lock:
            # Within one millisecond (or when the clock steps back) count on from the last, so order is kept.
            self._last = max(fresh, self._last + 1)
            return encode(self._last)


# Two characters at a time: one lookup per ten bits.
_PAIRS = [first + second for first in _CROCKFORD for second in _CROCKFORD]


def encode(value: int) -> str:
    """Encode a 128-bit number as 26 characters."""
    return "".join([_PAIRS[(value >> shift) & 1023] for shift in range(120, -1, -10)])


def after(previous: str, fresh: str) -> str:
    """Return `fresh`, or an id just after `previous` if that is greater (another host's clock was ahead).

    The next number would keep the order, but two hosts that are both behind would choose the same one. So the result
    is in the next millisecond, with the random bits of `fresh`.
    """
    if fresh > previous:
        return fresh
    return encode(((decode(previous) >> _RANDOM_BITS) + 1) << _RANDOM_BITS | decode(fresh) & (1 << _RANDOM_BITS) - 1)


def decode(ulid: str) -> int:
    """Decode a ULID into its 128-bit number."""
    value = 0
    for character in ulid:
        value = value << 5 | _VALUES[character]
    return value


def is_ulid(text: str) -> bool:
    """Return whether `text` has the form of a ULID."""
    return len(text) == ULID_LENGTH and text[0] in "01234567" and all(character in _VALUES for character in text)
