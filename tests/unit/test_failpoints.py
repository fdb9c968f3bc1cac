import contextvars
import re
import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph.failpoints import Crash, Failpoint, armed, reached


def test_a_place_that_nobody_armed_does_nothing() -> None:
    for place in Failpoint:
        reached(place)


def test_an_armed_place_does_what_it_was_told_every_time_and_no_other_does() -> None:
    times = []
    with armed(Failpoint.WRITE_PREPARED, lambda: times.append(1)):
        for place in Failpoint:
            reached(place)
        reached(Failpoint.WRITE_PREPARED)
    reached(Failpoint.WRITE_PREPARED)
    assert len(times) == 2


def test_a_death_is_not_caught_as_an_error() -> None:
    def die() -> None:
        raise Crash

    with armed(Failpoint.WRITE_PREPARED, die), pytest.raises(Crash):
        try:
            reached(Failpoint.WRITE_PREPARED)
        except Exception:  # noqa: BLE001  (this is what the test is about)
            pytest.fail("a death was caught as an error")


def test_a_place_is_armed_again_as_before_when_an_inner_block_ends_however_it_ends() -> None:
    seen: list[str] = []
    with armed(Failpoint.WRITE_PREPARED, lambda: seen.append("outer")):
        with pytest.raises(ZeroDivisionError), armed(Failpoint.WRITE_PREPARED, lambda: seen.append("inner")):
            reached(Failpoint.WRITE_PREPARED)
            raise ZeroDivisionError
        reached(Failpoint.WRITE_PREPARED)
    assert seen == ["inner", "outer"]


def test_a_place_is_armed_for_its_own_thread_and_for_those_given_its_context() -> None:
    seen: list[str] = []
    with armed(Failpoint.WRITE_PREPARED, lambda: seen.append("here")):
        context = contextvars.copy_context()
        for run in (lambda: reached(Failpoint.WRITE_PREPARED), lambda: context.run(reached, Failpoint.WRITE_PREPARED)):
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
    assert seen == ["here"]


def test_every_named_place_is_somewhere_in_the_product_and_named_for_the_step_just_done() -> None:
    package = Path(omnigraph.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py") if path.name != "failpoints.py")
    for place in Failpoint:
        assert f"reached(Failpoint.{place.name})" in source, place
        assert re.fullmatch(r"[a-z]+\.[a-z_]+", place)
        assert place.name == place.value.replace(".", "_").upper()
