"""Corrected timestamps of log entries, for entries written while a clock was ahead.

Pairs of an entry number and a time in microseconds, ascending. A pair applies from its entry up to the next pair; a
time of 0 restores the times written in the entries. Every entry inherits the pairs of the previous one, so the head
alone is enough.
"""

from bisect import bisect_right
from collections.abc import Sequence

Times = tuple[tuple[int, int], ...]


def correct_time(times: Times, number: int, written_us: int) -> int:
    """Return the corrected time of an entry; `written_us` is the time stored in it."""
    place = bisect_right(times, number, key=lambda pair: pair[0])
    return (times[place - 1][1] if place else 0) or written_us


def keep_since(times: Times, first: int) -> Times:
    """Return the pairs needed for the entries from `first` on, and approximate ones for tagged entries before."""
    before = [(0, 0), *times]
    return tuple(
        pair for last, pair in zip(before, times, strict=False) if pair[0] >= first or not pair[1] or not last[1]
    )


def sampled(times: Sequence[tuple[int, int]], most: int) -> Times:
    """Return at most `most` pairs, evenly thinned; the first and the last stay."""
    kept = list(times)
    while len(kept) > most:
        kept = [*kept[:-1:2], kept[-1]]
    return tuple(kept)
