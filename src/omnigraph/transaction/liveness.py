"""Whether the process that left something behind still lives.

A process of the same boot and the same PID namespace is looked up by its number and start time. Of any other one only
its heartbeat tells. Names of hosts decide nothing: many hosts have the same.
"""

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

_PROCESSES = Path("/proc")
# What stands for the start of a process that is there and cannot be looked at.
_HIDDEN = "hidden"


class Heartbeat:
    """Shows from time to time that its process lives; in a thread of its own, once the first time has come."""

    def __init__(self, beat: Callable[[], None], *, every_s: float, name: str) -> None:
        """A heart that does not beat yet."""
        self._beat = beat
        self.every_s = every_s
        self._silent = threading.Event()
        self._beating = threading.Thread(target=self._run, name=name, daemon=True)

    def begin(self) -> None:
        """Show life from now on, the first time when `every_s` has passed."""
        _first_beats.await_that_of(self)

    def beat(self) -> bool:
        """Begin to beat, now; False where the system has no thread left for it."""
        try:
            self._beating.start()
        except RuntimeError:
            return False
        return True

    def fall_silent(self) -> None:
        """Stop showing life."""
        self._silent.set()
        _first_beats.forget(self)
        if self._beating.is_alive():
            self._beating.join()

    def _run(self) -> None:
        while not self._silent.is_set():
            with contextlib.suppress(Exception):  # a missed beat, whatever the reason
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
                thread = threading.Thread(target=self._run, name="first-heartbeats", daemon=True)
                with contextlib.suppress(RuntimeError):  # no thread is left: the next heart tries again
                    thread.start()
                    self._thread = thread
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
                    if heart.beat():
                        del self._due[heart]
                    else:
                        self._due[heart] = now + heart.every_s
                self._looks_again_at = min(self._due.values(), default=math.inf)
                self._changed.wait(None if self._looks_again_at == math.inf else self._looks_again_at - now)


_first_beats = _FirstBeats()


def _reset_in_child() -> None:
    """A forked process has none of its parent's threads."""
    global _first_beats  # noqa: PLW0603  (as the process is another one, so is what it holds)
    _first_beats = _FirstBeats()


os.register_at_fork(after_in_child=_reset_in_child)


def has_ended(writer: Writer, here: Writer) -> bool:
    """True if a process of this boot and PID namespace is gone; of any other process this one cannot tell."""
    if not writer.boot or (writer.boot, writer.namespace) != (here.boot, here.namespace):
        return False
    return _process_started(writer.pid) not in (writer.started, _HIDDEN)


def this_writer() -> Writer:
    """This process, as an intent names it."""
    return _writer(os.getpid())


@lru_cache(maxsize=1)  # by its number: a process that was forked is another writer
def _writer(pid: int) -> Writer:
    started = _process_started(pid) or "unknown"
    return Writer(socket.gethostname(), pid, started, _boot(), _namespace(), os.urandom(8).hex())


def _boot() -> str:
    """What tells this boot of this kernel from every other; empty where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _namespace() -> str:
    """In which PID namespace this process has its number."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _process_started(pid: int) -> str | None:
    """When a process of this namespace started, in its kernel's own count; None when there is none such.

    The start time tells a process from a later one that was given the same number. Where the system does not show the
    processes of other users, their signals still tell that they are there.
    """
    try:
        stat = (_PROCESSES / f"{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return _HIDDEN if _is_there(pid) else None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True  # of another user
    except (ProcessLookupError, OverflowError):
        return False
    return True
