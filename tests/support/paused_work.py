"""Stopping a piece of work at a named place, in a thread or in a process of its own, while something else happens."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Generic, TypeVar, cast

from omnigraph.failpoints import Failpoint, armed

T = TypeVar("T")
_TIMEOUT_S = 120


@contextmanager
def paused(work: Callable[[], T], *, at: Failpoint) -> Iterator[Future[T]]:
    """Run work in a thread; the block runs while it stands at a place for the first time, then it goes on.

    Args:
        work (Callable[[], T]): the work.
        at (Failpoint): where it stops.

    Yields:
        Future[T]: its result, to be asked for after the block.
    """
    arrived, released = threading.Event(), threading.Event()

    def stop() -> None:
        arrived.set()
        assert released.wait(_TIMEOUT_S), "nobody released the work"

    def run() -> T:
        with armed(at, stop):
            return work()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        running.add_done_callback(lambda _: arrived.set())
        try:
            assert arrived.wait(_TIMEOUT_S), f"the work never came to {at}"
            if running.done():
                running.result()
                raise AssertionError(f"the work came to its end without coming to {at}")
            yield running
        finally:
            released.set()


class OtherProcess(Generic[T]):
    """One piece of work in a process of its own. It can be stopped at a place, let go on, or killed."""

    def __init__(self, work: Callable[..., T], *arguments: object, at: Failpoint | None = None) -> None:
        """Start it.

        Args:
            work (Callable[..., T]): a function of a module, so that the process can find it.
            *arguments (object): what it is called with; these travel to the process.
            at (Failpoint | None): where it stops until it is told to go on.
        """
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process: SpawnProcess = context.Process(target=_run, args=(there, at, work, arguments), daemon=True)
        self._process.start()
        there.close()

    def wait_until_parked(self) -> None:
        """Return once it stands at its place."""
        assert self._received() == ("parked", None)

    def go_on(self) -> None:
        """Let it go on from its place."""
        self._here.send("go on")

    def result(self) -> T:
        """What came of the work.

        Returns:
            T: its result.

        Raises:
            Exception: what it raised.
        """
        _, what = self._received()
        self._process.join(_TIMEOUT_S)
        self._here.close()
        if isinstance(what, BaseException):
            raise what
        return cast("T", what)

    def kill(self) -> None:
        """End it as a power cut would: nothing in it runs any more."""
        self._process.kill()
        self._process.join(_TIMEOUT_S)
        self._here.close()

    def _received(self) -> tuple[str, object]:
        assert self._here.poll(_TIMEOUT_S), "the other process says nothing"
        said: tuple[str, object] = self._here.recv()
        return said


def _run(
    parent: "Connection[object, object]",
    at: Failpoint | None,
    work: Callable[..., object],
    arguments: tuple[object, ...],
) -> None:
    def stop() -> None:
        parent.send(("parked", None))
        parent.recv()

    try:
        if at is None:
            result = work(*arguments)
        else:
            with armed(at, stop):
                result = work(*arguments)
    except Exception as fault:  # noqa: BLE001  (handed to whoever asks for the result)
        parent.send(("raised", fault))
    else:
        parent.send(("done", result))
