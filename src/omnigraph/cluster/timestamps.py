"""Moments as documents write them down."""

from datetime import UTC, datetime

from omnigraph.clock import Clock

_MICROSECONDS = 1_000_000


def now(clock: Clock) -> str:
    """This moment, in UTC."""
    moment = datetime.fromtimestamp(clock.now_us() / _MICROSECONDS, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def age_s(clock: Clock, text: str) -> int | None:
    """Whole seconds since a moment; None where the text is none."""
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return None
    if then.tzinfo is None:
        return None
    return max(0, clock.now_us() // _MICROSECONDS - int(then.timestamp()))
