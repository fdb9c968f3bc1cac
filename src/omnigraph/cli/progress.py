"""How far long work is: a bar on a terminal, a line now and then elsewhere."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from omnigraph.cli.call import Call

_EVERY_S = 0.1
_LINES_EVERY_S = 5.0
_BAR = 24


class Progress(Protocol):
    """How far a load is, as the pipeline tells; named here by its shape, for the pipeline is heavy to import."""

    @property
    def stage(self) -> str:
        """What is being done."""

    @property
    def rows(self) -> int:
        """How many rows were done."""

    @property
    def bytes(self) -> int:
        """How many bytes were read."""

    @property
    def bytes_total(self) -> int | None:
        """How many there are to read."""


@contextmanager
def reporting(call: Call) -> Iterator[Callable[[Progress], None] | None]:
    """Something to tell how far the work is; None where nobody wants to know.

    Args:
        call: whose stderr is used.

    Yields:
        To be called with a progress whenever there is one.
    """
    if call.args.global_quiet:
        yield None
        return
    report = _Report(call, live=call.errors_to.isatty())
    try:
        yield report
    finally:
        report.close()


class _Report:
    def __init__(self, call: Call, *, live: bool) -> None:
        self._err = call.errors_to
        self._live = live
        self._began = time.monotonic()
        self._shown_at = 0.0
        self._stage = ""

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        every = _EVERY_S if self._live else _LINES_EVERY_S
        if progress.stage == self._stage and now - self._shown_at < every:
            return
        if self._live or progress.stage != self._stage or now - self._shown_at >= every:
            self._show(progress, now)
        self._stage, self._shown_at = progress.stage, now

    def close(self) -> None:
        if self._live and self._stage:
            self._err.write("\r\033[K")
            self._err.flush()

    def _show(self, progress: Progress, now: float) -> None:
        seconds = max(now - self._began, 1e-3)
        rows = progress.rows
        said = f"{progress.stage}: {rows:,} rows, {rows / seconds:,.0f}/s, {seconds:.0f} s"
        if not rows and not progress.bytes_total:
            said = f"{progress.stage} …"  # work of which nobody knows how much it is
        elif progress.bytes_total:
            share = min(progress.bytes / progress.bytes_total, 1.0)
            full = round(share * _BAR)
            said = f"[{'█' * full}{'·' * (_BAR - full)}] {share:4.0%} {said}" if self._live else f"{share:.0%} {said}"
        if self._live:
            width = shutil.get_terminal_size().columns
            self._err.write(f"\r\033[K{said[: width - 1]}")
        else:
            self._err.write(f"{said}\n")
        self._err.flush()
