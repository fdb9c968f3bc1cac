"""How far a load is, for people: a bar on a terminal, plain lines elsewhere."""

import os
from typing import TextIO

from omnigraph.clock import Clock, SystemClock
from omnigraph.pipeline.load.how_far import LoadProgress, Watch

_WIDTH = 24
_WORDS = {
    "reading": "reading and checking",
    "looking": "looking around",
    "judging": "comparing",
    "finding": "looking for mistakes",
}


def shown(out: TextIO, *, clock: Clock | None = None) -> Watch:
    """Return a progress callback that prints for people.

    Args:
        out: where; a bar is drawn if it is a terminal.
        clock: the source of time, for the rate.

    Returns:
        Watch: for the `progress` of a load.
    """
    return _Shown(out, clock or SystemClock())


class _Shown:
    def __init__(self, out: TextIO, clock: Clock) -> None:
        self._out = out
        self._clock = clock
        self._draws = out.isatty() and os.environ.get("TERM") != "dumb"
        self._stage = ""
        self._began = 0.0
        self._drawn = 0

    def __call__(self, now: LoadProgress) -> None:
        """Print the progress."""
        if now.stage != self._stage:
            self._stage, self._began = now.stage, self._clock.monotonic()
            if not self._draws:
                self._out.write(f"{_WORDS.get(now.stage, now.stage)} …\n")
        if self._draws:
            line = self._line(now)
            self._out.write("\r" + line.ljust(self._drawn))
            self._drawn = len(line)
            if now.bytes_total and now.bytes >= now.bytes_total:
                self._out.write("\n")
                self._drawn = 0
        elif now.bytes_total and now.bytes >= now.bytes_total:
            self._out.write(self._line(now) + "\n")
        self._out.flush()

    def _line(self, now: LoadProgress) -> str:
        if not now.bytes_total:
            return f"{_WORDS.get(now.stage, now.stage)} …"
        share = min(now.bytes / now.bytes_total, 1.0)
        taken = self._clock.monotonic() - self._began
        parts = [f"{_WORDS.get(now.stage, now.stage):<20}"]
        if self._draws:
            full = round(share * _WIDTH)
            parts.append("█" * full + "░" * (_WIDTH - full))
        parts.append(f"{share:4.0%}")
        if now.rows:
            parts.append(f"{now.rows:,} records")
            if taken > 0:
                parts.append(f"{now.rows / taken:,.0f}/s")
        return "  ".join(parts)
