"""Timestamps in cluster documents."""

from datetime import UTC, datetime

from omnigraph.clock import Clock

_MICROSECONDS = 1_000_000


def now(clock: Clock) -> str:
    """Return the current UTC time in ISO 8601."""
    moment = datetime.fromtimestamp(clock.now_us() / _MICROSECONDS, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def age_s(clock: Clock, text: str) -> int | None:
    """Return the whole seconds since a timestamp; None if the text is not one."""
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return None
    if then.tzinfo is None:
        return None
    return max(0, clock.now_us() // _MICROSECONDS - int(then.timestamp()))
