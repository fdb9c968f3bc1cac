"""Whether whoever left something behind still lives: on its own host its process tells, elsewhere its heartbeat."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from omnigraph.model.intent import Writer
from omnigraph.storage.object_store import StoreError


class Heartbeat:
    """Shows from time to time, in a thread of its own, that its process lives."""

    def __init__(self, beat: Callable[[], None], *, every_s: float, name: str) -> None:
        """A heart that does not beat yet.

        Args:
            beat (Callable[[], None]): shows life once. That the store fails it is a missed beat, and no more: several
                must be missed before anybody cares.
            every_s (float): how often.
            name (str): of the thread.
        """
        self._beat = beat
        self._every_s = every_s
        self._silent = threading.Event()
        self._beating = threading.Thread(target=self._run, name=name, daemon=True)

    def begin(self) -> None:
        """Show life from now on."""
        self._beating.start()

    def fall_silent(self) -> None:
        """Stop showing life."""
        self._silent.set()
        if self._beating.is_alive():
            self._beating.join()

    def _run(self) -> None:
        while not self._silent.wait(self._every_s):
            with contextlib.suppress(StoreError):
                self._beat()


def has_ended(writer: Writer, here: Writer) -> bool:
    """Whether a process of this host is there no more; of other hosts nobody here can tell."""
    return writer.host == here.host and _process_started(writer.pid) != writer.started


def this_writer() -> Writer:
    """This process, as an intent names it."""
    pid = os.getpid()
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
