import io

import pytest

from omnigraph.pipeline.load.progress import shown
from omnigraph.pipeline.load.request import LoadProgress
from omnigraph.testing.manual_clock import ManualClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(out: io.StringIO) -> str:
    clock = ManualClock()
    watch = shown(out, clock=clock)
    watch(LoadProgress("reading", bytes_total=100))
    clock.advance(2.0)
    watch(LoadProgress("reading", rows=1_000, bytes=50, bytes_total=100))
    clock.advance(2.0)
    watch(LoadProgress("reading", rows=4_000, bytes=100, bytes_total=100))
    watch(LoadProgress("judging", bytes_total=100))
    return out.getvalue()


def test_a_terminal_sees_a_bar_with_stage_rows_and_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    drawn = told(Terminal()).split("\r")
    assert "reading and checking  ████████████░░░░░░░░░░░░   50%  1,000 records  500/s" in drawn[2]
    assert "████████████████████████  100%  4,000 records  1,000/s\n" in drawn[3]
    assert drawn[4].startswith("comparing")


def test_elsewhere_there_are_plain_lines() -> None:
    assert told(io.StringIO()).splitlines() == [
        "reading and checking …",
        "reading and checking  100%  4,000 records  1,000/s",
        "comparing …",
    ]
