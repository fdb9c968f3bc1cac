"""Days and instants as columns: from texts, numbers and other Arrow types, always whole columns at once.

A text names a day as `2024-01-31`, an instant as that day with a time after `T` or a space; seconds, a fraction and an
offset may be left out, and so may the whole time, which is then midnight. Without an offset it is UTC. Fractions are
cut to milliseconds.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.storage.layout import INSTANT

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

# What Python, JSON and people can name: the years 1 to 9999.
DAY_LEAST = date.min.toordinal() - EPOCH.date().toordinal()
DAY_MOST = date.max.toordinal() - EPOCH.date().toordinal()
MILLISECOND_LEAST = DAY_LEAST * 86_400_000
MILLISECOND_MOST = (DAY_MOST + 1) * 86_400_000 - 1

_DAY = r"^\d{4}-\d{2}-\d{2}$"
_INSTANT = (
    r"^(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<minute>\d{2}:\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
    r" ?(?P<zone>Z|z|[+-]\d{2}(?::?\d{2})?)?)?$"
)


def milliseconds(moment: datetime) -> int:
    """Whole milliseconds since 1970; a moment without a zone is in UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // _MILLISECOND


def days(day: date) -> int:
    """Days since 1970."""
    return day.toordinal() - EPOCH.date().toordinal()


def days_of_texts(texts: "pa.Array[Any]") -> "pa.Array[Any]":
    """The days that texts name.

    Raises:
        pa.ArrowInvalid: one names none.
    """
    _refuse_unless(texts, pc.match_substring_regex(texts, _DAY))
    return texts.cast(pa.date32())


def instants_of_texts(texts: "pa.Array[Any]") -> "pa.Array[Any]":
    """The instants that texts name.

    Raises:
        pa.ArrowInvalid: one names none.
    """
    parts = pc.extract_regex(texts, _INSTANT)
    _refuse_unless(texts, pc.is_valid(parts))
    minute = _unless_empty(parts, "minute", "00:00")
    second = _unless_empty(parts, "second", "00")
    fraction = pc.utf8_slice_codeunits(pc.binary_join_element_wise(_part(parts, "fraction"), "000", ""), 0, 3)
    zone = pc.utf8_upper(_unless_empty(parts, "zone", "Z"))
    clock = pc.binary_join_element_wise(minute, second, ":")
    whole = pc.binary_join_element_wise(_part(parts, "day"), "T", clock, ".", fraction, zone, "")
    found: pa.Array[Any] = whole.cast(INSTANT)
    _refuse_unless(texts, _within(found.cast(pa.int64()), MILLISECOND_LEAST, MILLISECOND_MOST))
    return found


def instants_of(column: "pa.Array[Any]") -> "pa.Array[Any]":
    """Timestamps of any unit and zone as instants; finer ones are cut to milliseconds, those without a zone are in UTC.

    Raises:
        pa.ArrowInvalid: one lies outside the years that can be named.
    """
    unit = column.type.unit
    # The numbers count from the same moment in every zone, so a zone can be taken away without changing one.
    moments: Any = column.cast(pa.int64()).view(pa.timestamp(unit))
    if unit in ("us", "ns"):
        moments = pc.floor_temporal(moments, unit="millisecond")
    return instants_of_numbers(moments.cast(pa.timestamp("ms"), safe=unit == "s").cast(pa.int64()))


def instants_of_numbers(numbers: "pa.Array[Any]") -> "pa.Array[Any]":
    """Milliseconds since 1970 as instants.

    Raises:
        pa.ArrowInvalid: one lies outside the years that can be named.
    """
    wide = numbers.cast(pa.int64())
    _refuse_unless(numbers, _within(wide, MILLISECOND_LEAST, MILLISECOND_MOST))
    return wide.view(INSTANT)


def days_of_numbers(numbers: "pa.Array[Any]") -> "pa.Array[Any]":
    """Days since 1970 as dates.

    Raises:
        pa.ArrowInvalid: one lies outside the years that can be named.
    """
    _refuse_unless(numbers, _within(numbers, DAY_LEAST, DAY_MOST))
    return numbers.cast(pa.int32()).view(pa.date32())


def _part(parts: "pa.Array[Any]", name: str) -> "pa.Array[Any]":
    found: pa.Array[Any] = pc.struct_field(parts, name)
    return found


def _unless_empty(parts: "pa.Array[Any]", name: str, otherwise: str) -> "pa.Array[Any]":
    found = _part(parts, name)
    filled: pa.Array[Any] = pc.if_else(pc.equal(found, ""), otherwise, found)
    return filled


def _within(numbers: "pa.Array[Any]", least: int, most: int) -> "pa.Array[Any]":
    inside: pa.Array[Any] = pc.and_(pc.greater_equal(numbers, least), pc.less_equal(numbers, most))
    return inside


def _refuse_unless(given: "pa.Array[Any]", good: "pa.Array[Any]") -> None:
    if (pc.sum(good).as_py() or 0) < len(given) - given.null_count:
        raise pa.ArrowInvalid("a value names no day or instant")
