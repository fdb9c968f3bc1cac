"""Corrected times of the entries of a log, where a clock was ahead when they were written.

Pairs of an entry's number and a time in microseconds, ascending. Each counts from its entry up to the next pair; a time
of 0 says that from there on entries have the time they were written with. Every entry takes them on from the one before
it, so that the head alone tells.
"""

from bisect import bisect_right
from collections.abc import Sequence

Times = tuple[tuple[int, int], ...]


def time_of(times: Times, number: int, written_us: int) -> int:
    """The time of an entry; `written_us` is what it says itself."""
    place = bisect_right(times, number, key=lambda pair: pair[0])
    return (times[place - 1][1] if place else 0) or written_us


def since(times: Times, first: int) -> Times:
    """What is needed of them for the entries from `first` on; of those before, which a tag may hold, roughly."""
    before = [(0, 0), *times]
    return tuple(
        pair for last, pair in zip(before, times, strict=False) if pair[0] >= first or not pair[1] or not last[1]
    )


def sampled(times: Sequence[tuple[int, int]], most: int) -> Times:
    """At most so many of them, spread over all; the first and the last stay."""
    kept = list(times)
    while len(kept) > most:
        kept = [*kept[:-1:2], kept[-1]]
    return tuple(kept)
