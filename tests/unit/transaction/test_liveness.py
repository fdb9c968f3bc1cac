"""Signs of life: there when somebody needs them, and free where nobody does."""

import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.model.intent import Writer
from omnigraph.storage.object_store import StoreTransient
from omnigraph.transaction import liveness
from omnigraph.transaction.liveness import Heartbeat, has_ended, this_writer

SOON_S = 0.01
LONG_S = 3_600.0


class Beats:
    """Counts, and lets others wait for a count."""

    def __init__(self, *, failing: bool = False) -> None:
        self._failing = failing
        self._changed = threading.Condition()
        self.count = 0

    def beat(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()
        if self._failing:
            raise StoreTransient("the store is away", path="beat")

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.count >= count, timeout=60)


def threads(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


@pytest.mark.parametrize("failing", [False, True], ids=["heard", "unheard"])
def test_a_heart_goes_on_beating_until_it_falls_silent(failing: bool) -> None:
    beats = Beats(failing=failing)
    heart = Heartbeat(beats.beat, every_s=SOON_S, name="one")

    heart.begin()
    beats.wait_for(3)
    heart.fall_silent()

    counted = beats.count
    assert threads("one") == 0
    time.sleep(3 * SOON_S)
    assert beats.count == counted


def test_a_heart_that_is_soon_silent_never_had_a_thread() -> None:
    beats = Beats()
    for _ in range(100):
        heart = Heartbeat(beats.beat, every_s=LONG_S, name="short")
        heart.begin()
        assert threads("short") == 0
        heart.fall_silent()
    assert beats.count == 0


def test_a_quick_heart_need_not_wait_for_a_slow_one() -> None:
    slow, quick = Beats(), Beats()
    hearts = [Heartbeat(slow.beat, every_s=LONG_S, name="slow"), Heartbeat(quick.beat, every_s=SOON_S, name="quick")]

    for heart in hearts:
        heart.begin()
    quick.wait_for(2)
    for heart in hearts:
        heart.fall_silent()

    assert slow.count == 0


def test_a_heart_that_never_began_can_fall_silent() -> None:
    beats = Beats()
    Heartbeat(beats.beat, every_s=SOON_S, name="never").fall_silent()
    assert beats.count == 0


FORKING = """
import os, threading
from omnigraph.model.intent import Writer
from omnigraph.transaction.liveness import Heartbeat, has_ended, this_writer

def beats_once():
    beaten = threading.Event()
    heart = Heartbeat(beaten.set, every_s=0.01, name="forked")
    heart.begin()
    assert beaten.wait(60)
    heart.fall_silent()

beats_once()
child = os.fork()
if not child:
    beats_once()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_hearts_beat_in_a_forked_process_too() -> None:
    # By itself: a process of tests has threads that nobody should fork.
    words = [sys.executable, "-W", "ignore", "-c", FORKING]
    ended = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120)
    assert ended.stdout == "7\n"


def test_a_thread_that_cannot_start_ends_no_heartbeat_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    start, refused = threading.Thread.start, iter([True, False, True])

    def now_and_then(thread: threading.Thread) -> None:
        if next(refused, False):
            raise RuntimeError("can't start new thread")
        start(thread)

    beats, others = Beats(), Beats()
    monkeypatch.setattr(threading.Thread, "start", now_and_then)
    monkeypatch.setattr(liveness, "_first_beats", liveness._FirstBeats())
    heart = Heartbeat(beats.beat, every_s=SOON_S, name="late")
    other = Heartbeat(others.beat, every_s=SOON_S, name="later")
    heart.begin()  # the thread that wakes hearts does not start
    other.begin()  # it does, and then that of a heart does not
    beats.wait_for(2)
    others.wait_for(2)
    heart.fall_silent()
    other.fall_silent()


def test_a_beat_that_fails_in_any_way_is_a_missed_beat_and_no_more() -> None:
    tried = Beats()

    def fail() -> None:
        tried.beat()
        raise RuntimeError("anything")

    heart = Heartbeat(fail, every_s=SOON_S, name="unlucky")
    heart.begin()
    tried.wait_for(3)
    heart.fall_silent()


# -- which process is looked up ----------------------------------------------------------------------------------------


def ended_process() -> Writer:
    """A process of this boot and namespace that is gone, as it would have named itself."""
    code = "from omnigraph.transaction.liveness import this_writer as w; print(repr(w()))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    found = eval(printed, {"Writer": Writer})  # what we had it print
    assert isinstance(found, Writer)
    return found


def test_a_process_of_this_boot_and_namespace_that_is_gone_has_ended() -> None:
    assert not has_ended(this_writer(), this_writer())
    assert has_ended(ended_process(), this_writer())


def test_a_later_process_with_the_same_number_is_another() -> None:
    here = this_writer()
    assert has_ended(replace(here, started="1"), here)


@pytest.mark.parametrize("elsewhere", [{"boot": "another"}, {"namespace": "pid:[1]"}, {"boot": ""}], ids=str)
def test_of_a_process_elsewhere_nothing_is_told_whatever_its_host_is_called(elsewhere: dict[str, str]) -> None:
    gone = ended_process()
    assert gone.host == this_writer().host
    assert not has_ended(replace(gone, **elsewhere), this_writer())  # type: ignore[arg-type]  # names of texts


@pytest.mark.parametrize("shown", ["nothing", "what_cannot_be_read"])
def test_a_living_process_that_the_system_hides_has_not_ended(
    shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    living, gone = this_writer(), ended_process()
    if shown == "what_cannot_be_read":
        for writer in (living, gone):
            (tmp_path / f"{writer.pid}/stat").mkdir(parents=True)
    monkeypatch.setattr(liveness, "_PROCESSES", tmp_path)

    assert not has_ended(living, this_writer())
    assert has_ended(gone, this_writer())


def test_every_process_has_a_token_of_its_own() -> None:
    assert this_writer().token
    assert ended_process().token not in {"", this_writer().token, ended_process().token}
