"""Whether whoever left something behind still lives: on its own host its process tells, elsewhere its heartbeat."""

import contextlib
import math
import os
import socket
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from omnigraph.model.intent import Writer
from omnigraph.storage.object_store import StoreError


class Heartbeat:
    """Shows from time to time that its process lives; in a thread of its own, once the first time has come."""

    def __init__(self, beat: Callable[[], None], *, every_s: float, name: str) -> None:
        """A heart that does not beat yet.

        Args:
            beat (Callable[[], None]): shows life once. That the store fails it is a missed beat, and no more: several
                must be missed before anybody cares.
            every_s (float): how often.
            name (str): of the thread.
        """
        self._beat = beat
        self.every_s = every_s
        self._silent = threading.Event()
        self._beating = threading.Thread(target=self._run, name=name, daemon=True)

    def begin(self) -> None:
        """Show life from now on, the first time when `every_s` has passed."""
        _first_beats.await_that_of(self)

    def beat(self) -> None:
        """Begin to beat, now."""
        self._beating.start()

    def fall_silent(self) -> None:
        """Stop showing life."""
        self._silent.set()
        _first_beats.forget(self)
        if self._beating.is_alive():
            self._beating.join()

    def _run(self) -> None:
        while not self._silent.is_set():
            with contextlib.suppress(StoreError):
                self._beat()
            self._silent.wait(self.every_s)


class _FirstBeats:
    """Wakes hearts when their first beat is due. Most are silent again long before, and never need a thread."""

    def __init__(self) -> None:
        self._due: dict[Heartbeat, float] = {}
        self._changed = threading.Condition()
        self._looks_again_at = math.inf
        self._thread: threading.Thread | None = None

    def await_that_of(self, heart: Heartbeat) -> None:
        due = time.monotonic() + heart.every_s
        with self._changed:
            self._due[heart] = due
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="first-heartbeats", daemon=True)
                self._thread.start()
            elif due < self._looks_again_at:
                self._changed.notify()

    def forget(self, heart: Heartbeat) -> None:
        with self._changed:
            self._due.pop(heart, None)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for heart in [heart for heart, due in self._due.items() if due <= now]:
                    del self._due[heart]
                    heart.beat()
                self._looks_again_at = min(self._due.values(), default=math.inf)
                self._changed.wait(None if self._looks_again_at == math.inf else self._looks_again_at - now)


_first_beats = _FirstBeats()


def _begin_anew_in_a_child() -> None:
    """A forked process has none of its parent's threads."""
    global _first_beats  # noqa: PLW0603  (as the process is another one, so is what it holds)
    _first_beats = _FirstBeats()


os.register_at_fork(after_in_child=_begin_anew_in_a_child)


def has_ended(writer: Writer, here: Writer) -> bool:
    """Whether a process of this host is there no more; of other hosts nobody here can tell."""
    return writer.host == here.host and _process_started(writer.pid) != writer.started


def this_writer() -> Writer:
    """This process, as an intent names it."""
    return _writer(os.getpid())


@lru_cache(maxsize=1)  # by its number: a process that was forked is another writer
def _writer(pid: int) -> Writer:
    return Writer(socket.gethostname(), pid, _process_started(pid) or "unknown")


def _process_started(pid: int) -> str | None:
    """When a process of this host started, in its kernel's own count; None when there is none such.

    The start time tells a process from a later one that was given the same number. Where the kernel does not say, a
    living number is taken for the same process: recovery then waits for the heartbeat instead.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return "unknown"
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]
