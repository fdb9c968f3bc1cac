import io
import sys

import pytest

import omnigraph
from omnigraph.pipeline.load.how_far import LoadProgress
from omnigraph.pipeline.load.progress import shown
from omnigraph.testing.clock import ManualClock


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


def test_what_has_no_measure_is_named_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    window, file = Terminal(), io.StringIO()
    for out in (window, file):
        shown(out)(LoadProgress("starting Spark"))
    assert (window.getvalue(), file.getvalue()) == ("\rstarting Spark …", "starting Spark …\n")


def test_that_spark_starts_is_told_before_anything_of_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "omnigraph.pipeline.session", raising=False)

    def enough(now: LoadProgress) -> None:
        raise EOFError(now.stage)

    with omnigraph.init("memory://", "node Person { name: String @key }") as graph:
        with pytest.raises(EOFError, match="starting Spark"):
            graph.load(b'{"type":"Person","data":{"name":"Ada"}}', mode="append", progress=enough)
        assert graph.count("Person") == 0
    assert "omnigraph.pipeline.session" not in sys.modules
