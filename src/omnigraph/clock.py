"""The only source of time, and the only thing that waits.

Everything that reads a clock or sleeps takes a `Clock`, so that tests decide what time it is.
"""

import random  # noqa: TID251  (this module is where chance in waiting comes from)
import re
import time
from datetime import UTC, datetime
from typing import Protocol

from omnigraph import limits

_DURATION = re.compile(r"([0-9]+)([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


class Clock(Protocol):
    """Wall time in microseconds since 1970 (UTC), a monotonic second counter, and waiting."""

    def now_us(self) -> int:
        """Wall time, microseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards; only differences mean anything."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_us(self) -> int:
        """Wall time, microseconds since the epoch."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def backoff_s(
    attempt: int, *, first_ms: int = limits.PUBLISH_BACKOFF_MS_MIN, most_ms: int = limits.PUBLISH_BACKOFF_MS_MAX
) -> float:
    """How long to wait before try `attempt` (1, 2, …): doubling, capped, and anywhere in the upper half of that.

    The jitter keeps writers that lost one race together from losing the next one together.
    """
    ceiling_ms = min(most_ms, first_ms * 2 ** (attempt - 1))
    return random.uniform(ceiling_ms / 2, ceiling_ms) / 1_000


def duration_s(text: str) -> int:
    """Seconds of a duration like `30m` or `7d`.

    Raises:
        ValueError: it is none.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is no duration: an integer and one of s, m, h, d, w, like 7d")
    return int(found[1]) * _SECONDS[found[2]]


def readable_time(time_us: int) -> str:
    """Format a time as `2026-01-31T12:00:00Z`: UTC, to the second."""
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
