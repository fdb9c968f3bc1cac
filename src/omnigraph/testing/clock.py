"""A clock that is moved by hand."""

import threading

_START_US = 1_767_225_600_000_000  # 2026-01-01, UTC


class ManualClock:
    """Stands still until it is advanced; `sleep` advances it and returns at once."""

    def __init__(self, start_us: int = _START_US) -> None:
        self._us = start_us
        self._waited_us = 0
        self._lock = threading.Lock()

    def now_us(self) -> int:
        """Return the wall time in microseconds since the epoch."""
        with self._lock:
            return self._us

    def monotonic(self) -> float:
        """Return the seconds since the clock was made; setting the wall time back does not change it."""
        with self._lock:
            return self._waited_us / 1_000_000

    def sleep(self, seconds: float) -> None:
        """Advance without waiting."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            passed = int(seconds * 1_000_000)
            self._us += passed
            self._waited_us += passed

    def set_back(self, seconds: float) -> None:
        """Let the wall time jump back, as a corrected clock does."""
        with self._lock:
            self._us -= int(seconds * 1_000_000)
