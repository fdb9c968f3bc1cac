"""Report progress on stderr: a bar on a terminal, a line now and then elsewhere."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from omnigraph.cli.context import CommandContext

_EVERY_S = 0.1
_LINES_EVERY_S = 5.0
_BAR = 24


class Progress(Protocol):
    """The part of `LoadProgress` used here; importing that one imports the pipeline."""

    @property
    def stage(self) -> str:
        """The current stage."""

    @property
    def rows(self) -> int:
        """The number of rows processed."""

    @property
    def bytes(self) -> int:
        """The number of bytes read."""

    @property
    def bytes_total(self) -> int | None:
        """The number of bytes to read."""


@contextmanager
def report_progress(context: CommandContext) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a progress callback that writes to stderr; None with `--quiet`."""
    if context.args.global_quiet:
        yield None
        return
    bar = _ProgressBar(context.stderr)
    try:
        yield bar
    finally:
        bar.close()


class _ProgressBar:
    def __init__(self, stream: TextIO) -> None:
        self._err = stream
        self._live = stream.isatty()
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
        text = f"{progress.stage}: {rows:,} rows, {rows / seconds:,.0f}/s, {seconds:.0f} s"
        if not rows and not progress.bytes_total:
            text = f"{progress.stage} …"  # of unknown size
        elif progress.bytes_total:
            share = min(progress.bytes / progress.bytes_total, 1.0)
            full = round(share * _BAR)
            text = f"[{'█' * full}{'·' * (_BAR - full)}] {share:4.0%} {text}" if self._live else f"{share:.0%} {text}"
        if self._live:
            width = shutil.get_terminal_size().columns
            self._err.write(f"\r\033[K{text[: width - 1]}")
        else:
            self._err.write(f"{text}\n")
        self._err.flush()
