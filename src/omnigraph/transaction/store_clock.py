"""The store's own clock, and how far the time of a commit may be ahead of it.

One commit from a clock that is years ahead would give its time to every later one: times rise along a log. So what the
store says of the time is learned when a graph is opened for writing, and asked for again only when a commit seems to be
ahead of it: by then the machine may have been suspended, or its clock set.
"""

from datetime import UTC, datetime

from omnigraph import limits
from omnigraph.clock import Clock
from omnigraph.errors import ClockError
from omnigraph.storage.object_store import ObjectStore

AHEAD_US_MAX = int(limits.COMMIT_TIME_AHEAD_S_MAX * 1_000_000)


class StoreClock:
    """What time the store has, as far as this process knows; no request as long as commits are not ahead of that."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        # The store's time less the monotonic one. Somewhat too little, so that a doubt leads to a question.
        self._offset_us: int | None = None

    def ask(self) -> int:
        """Ask the store for its time, in microseconds, and remember it; proves its conditional put on the way."""
        now_us = self._store.prove_put_if_absent()
        self.learn(now_us)
        return now_us

    def learn(self, store_us: int) -> None:
        """Remember the time that the store has just reported."""
        self._offset_us = store_us - int(self._clock.monotonic() * 1_000_000)

    def check(self, at_us: int) -> None:
        """Refuse a commit time that the store's clock has not nearly reached."""
        if self._offset_us is not None and at_us <= self._now_us(self._offset_us) + AHEAD_US_MAX:
            return
        now_us = self.ask()
        if at_us <= now_us + AHEAD_US_MAX:
            return
        raise ClockError(
            f"the commit would have the time {_spelled(at_us)}, and the clock of the store at {self._store.uri} says "
            f"{_spelled(now_us)}: more than {limits.COMMIT_TIME_AHEAD_S_MAX:.0f} s ahead. Nothing was written. "
            + (
                "It has that time from the commit before it: if the store's clock is right, mend the log with "
                "`omnigraph repair --clock`"
                if at_us > self._clock.now_us()
                else "Set the clock of this machine"
            ),
            commit_time_us=at_us,
            store_time_us=now_us,
        )

    def _now_us(self, offset_us: int) -> int:
        return offset_us + int(self._clock.monotonic() * 1_000_000)


def _spelled(at_us: int) -> str:
    try:
        return datetime.fromtimestamp(at_us / 1_000_000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return f"{at_us} µs"
