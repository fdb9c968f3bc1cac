"""How far long work is: bars where a person looks, lines where a file does, nothing where nobody wants to know."""

import io
from dataclasses import dataclass

import pytest

from omnigraph.cli.context import CommandContext
from omnigraph.cli.parsing import parse_command
from omnigraph.cli.progress import report_progress


@dataclass(frozen=True, slots=True)
class Far:
    """How far it is."""

    stage: str
    rows: int
    bytes: int
    bytes_total: int | None


class Window(io.StringIO):
    """What a person looks at."""

    def isatty(self) -> bool:
        return True


STEPS = [
    Far("reading", 10, 50, 100),
    Far("reading", 20, 100, 100),
    Far("judging", 20, 100, 100),
    Far("ending", 20, 0, None),
]


def context(err: io.StringIO, *flags: str) -> CommandContext:
    """The context of a load."""
    parsed = parse_command(["load", "g", "--data", "x", "--mode", "append", *flags])
    return CommandContext(parsed.spec, parsed.arguments, out=io.StringIO(), err=err)


def output(err: io.StringIO, *flags: str) -> str:
    """Return the reported progress."""
    with report_progress(context(err, *flags)) as report:
        if report is not None:
            for step in STEPS:
                report(step)
    return err.getvalue()


@pytest.fixture(autouse=True)
def _wide_and_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    # However long a test takes, no time passes between two steps of a stage.
    for pause in ("_EVERY_S", "_LINES_EVERY_S"):
        monkeypatch.setattr(f"omnigraph.cli.progress.{pause}", 1e9)


def test_a_person_sees_a_bar_that_is_gone_afterwards() -> None:
    seen = output(Window())
    assert "\r\033[K[████████████············]  50% reading: 10 rows" in seen
    assert "\n" not in seen
    assert seen.endswith("\r\033[K")


def test_a_file_gets_one_line_for_each_stage_without_any_bar() -> None:
    lines = output(io.StringIO()).splitlines()
    assert [line.split(":")[0] for line in lines] == ["50% reading", "100% judging", "ending"]
    assert not any(sign in line for line in lines for sign in "█·\r\033")


def test_what_has_no_measure_is_named_alone() -> None:
    for window in (Window(), io.StringIO()):
        with report_progress(context(window)) as report:
            assert report is not None
            report(Far("starting Spark", 0, 0, 0))
            assert window.getvalue().strip("\r\033[K\n") == "starting Spark …"


def test_quiet_means_nothing_at_all() -> None:
    assert output(io.StringIO(), "--quiet") == ""
    assert output(Window(), "--quiet") == ""


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_are_for_people_who_did_not_refuse_them(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], coloured: bool
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    parsed = parse_command(["version"])
    assert CommandContext(parsed.spec, parsed.arguments, out=Window(), err=Window()).has_colours is coloured
    assert CommandContext(parsed.spec, parsed.arguments, out=io.StringIO(), err=Window()).has_colours is False
