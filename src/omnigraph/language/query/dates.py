"""Parse dates and times."""

import re
from datetime import UTC, date, datetime, timedelta

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_DATETIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)? ?(Z|z|[+-]\d{2}(?::?\d{2})?)?)?"
)


def parse_date(text: str) -> date | None:
    """Parse `2024-01-31`; None if it is invalid."""
    found = _DATE.fullmatch(text)
    if found is None or not text.isascii():
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None


def parse_datetime(text: str) -> datetime | None:
    """Parse a timestamp to UTC, truncated to milliseconds; None if it is invalid.

    `T` or a space separates date and time. Fraction, offset and the whole time are optional: a missing time is
    midnight, a missing offset is UTC.
    """
    found = _DATETIME.fullmatch(text)
    if found is None or not text.isascii():
        return None
    year, month, day, hour, minute, second, fraction, offset = found.groups(default="0")
    milliseconds = int(fraction[:3].ljust(3, "0"))
    try:
        local = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second), milliseconds * 1_000, tzinfo=UTC
        )
        return local - _offset(offset)
    except (ValueError, OverflowError):
        return None


def _offset(text: str) -> timedelta:
    if text[0] not in "+-":
        return timedelta()
    digits = text[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError(text)
    span = timedelta(hours=hours, minutes=minutes)
    return span if text[0] == "+" else -span
