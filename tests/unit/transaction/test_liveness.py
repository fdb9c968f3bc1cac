"""Signs of life: there when somebody needs them, and free where nobody does."""

import subprocess
import sys
import threading
import time

import pytest

from omnigraph.storage.object_store import StoreTransient
from omnigraph.transaction.liveness import Heartbeat

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
from omnigraph.transaction.liveness import Heartbeat

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
