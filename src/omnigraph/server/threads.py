"""The threads in which calls run: few, made when they are needed, with one queue before them.

A general pool between an event loop and threads keeps scopes, limits and contexts for each call, which costs more than
most queries. Here turns have decided already who runs (`turns.py`), so all that is left is to hand work over and back.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Generic, TypeVar

T = TypeVar("T")
_IDLE_S = 10.0


class _Work(Generic[T]):
    """What one call has done in a thread."""

    __slots__ = ("_context", "_do", "_done", "_loop", "is_over")

    def __init__(self, do: Callable[[], T], done: "asyncio.Future[T]") -> None:
        self._do = do
        self._done = done
        self._loop = done.get_loop()
        self._context: Context = copy_context()
        self.is_over = asyncio.Event()

    def run(self) -> None:
        """Do it, in a thread, and tell the loop."""
        try:
            found = self._context.run(self._do)
        except BaseException as fault:  # noqa: BLE001  (whoever waits is told, whatever it is)
            self._tell(self._fail, fault)
        else:
            self._tell(self._succeed, found)

    def _tell(self, how: Callable[..., None], what: object) -> None:
        try:
            self._loop.call_soon_threadsafe(how, what)
        except RuntimeError:
            if not self._loop.is_closed():  # nobody waits any more where it is
                raise

    def _succeed(self, found: T) -> None:
        self.is_over.set()
        if not self._done.cancelled():
            self._done.set_result(found)

    def _fail(self, fault: BaseException) -> None:
        self.is_over.set()
        if not self._done.cancelled():
            # The end of an iterator is nothing that a coroutine may end with.
            told = RuntimeError("an iterator ended too early") if isinstance(fault, StopIteration) else fault
            self._done.set_exception(told)


class Threads:
    """Threads that do what they are given, in the order it comes."""

    def __init__(self, most: int) -> None:
        """No thread yet.

        Args:
            most: how many there may be.
        """
        self._most = most
        self._work: queue.SimpleQueue[_Work[object] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0
        self._under_way = 0
        self._is_closed = False

    @property
    def count(self) -> int:
        """How many there are."""
        return self._count

    async def run(self, do: Callable[[], T]) -> T:
        """Have something done in a thread.

        Whoever is cancelled meanwhile learns so when it is done: what runs cannot be stopped, and what it holds is
        given back only afterwards.

        Args:
            do: what to do.

        Returns:
            What that returns.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        work = _Work(do, done)
        self._hand_over(work)
        try:
            return await done
        except asyncio.CancelledError:
            while not work.is_over.is_set():
                try:
                    await work.is_over.wait()
                except asyncio.CancelledError:
                    continue  # once more: it is cancelled already
            raise

    def close(self) -> None:
        """Let all of them end, once what was handed over is done. Nothing may be handed over afterwards."""
        with self._lock:
            self._is_closed = True
            for _ in range(self._count):
                self._work.put(None)

    def _hand_over(self, work: _Work[T]) -> None:
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the threads have ended")
            self._under_way += 1
            if self._under_way > self._count < self._most:
                self._count += 1
                threading.Thread(target=self._thread, name=f"call {self._count}").start()
            self._work.put(work)  # type: ignore[arg-type]  # of any type: nobody here looks at what comes of it

    def _thread(self) -> None:
        while True:
            try:
                work = self._work.get(timeout=_IDLE_S)
            except queue.Empty:
                if self._may_leave():
                    return
                continue
            if work is None:
                return
            try:
                work.run()
            finally:
                del work  # or what it holds stays until the next comes
                with self._lock:
                    self._under_way -= 1

    def _may_leave(self) -> bool:
        """Whether a thread that has waited long may go: not where what is under way counts on it."""
        with self._lock:
            if self._is_closed or self._under_way >= self._count:
                return False
            self._count -= 1
            return True
