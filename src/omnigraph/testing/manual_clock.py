"""A clock that goes only when it is told to."""

import threading

_START_US = 1_767_225_600_000_000  # 2026-01-01, UTC


class ManualClock:
    """Stands still until somebody waits on it or moves it; waiting takes no time at all."""

    def __init__(self, start_us: int = _START_US) -> None:
        self._us = start_us
        self._waited_us = 0
        self._lock = threading.Lock()

    def now_us(self) -> int:
        """Wall time, microseconds since the epoch."""
        with self._lock:
            return self._us

    def monotonic(self) -> float:
        """Seconds since the clock was made; setting the wall time back does not move it."""
        with self._lock:
            return self._waited_us / 1_000_000

    def sleep(self, seconds: float) -> None:
        """Move on by that much, at once."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Args:
            seconds (float): how much.
        """
        with self._lock:
            passed = int(seconds * 1_000_000)
            self._us += passed
            self._waited_us += passed

    def set_back(self, seconds: float) -> None:
        """Let the wall time jump back, as a corrected clock does.

        Args:
            seconds (float): how far.
        """
        with self._lock:
            self._us -= int(seconds * 1_000_000)
