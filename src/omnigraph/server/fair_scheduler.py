"""Concurrency limits of one process: admission per actor, a fair scheduler, worker threads and slots for exports.

The scheduler decides which call runs next. It lives in the event loop, between two awaits, so it needs no lock. A call
takes a slot when its body has arrived and releases it before its response is sent: slow clients hold no slot.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar

from omnigraph import limits
from omnigraph.server.errors import Refusal, too_many_requests

ANONYMOUS = "anonymous"
T = TypeVar("T")
_TRANSPORT_BYTES = limits.SERVER_STREAMS_MAX * 4 * limits.SERVER_STREAM_CHUNK_BYTES


def actor_key(actor: str | None) -> str:
    """Return the name under which requests are counted; callers without a token share one."""
    return ANONYMOUS if actor is None else actor


@dataclass(slots=True)
class _Usage:
    requests: int = 0
    size: int = 0


class Admission:
    """Limit the writes and exports that one actor has in flight; more are refused at once."""

    def __init__(self, *, requests_max: int, bytes_max: int) -> None:
        self._requests_max = requests_max
        self._bytes_max = bytes_max
        self._usage: dict[str, _Usage] = {}
        self._lock = threading.Lock()

    @contextmanager
    def admit(self, actor: str | None, size: int) -> Iterator[None]:
        """Count a request with a body of `size` bytes while the block runs.

        Raises:
            Refusal: the actor has too much in flight.
        """
        key = actor_key(actor)
        self._enter(key, size)
        try:
            yield
        finally:
            self._leave(key, size)

    @property
    def actors(self) -> int:
        """Number of actors with requests in flight."""
        return len(self._usage)

    def _enter(self, key: str, size: int) -> None:
        with self._lock:
            usage = self._usage.setdefault(key, _Usage())
            try:
                if usage.requests >= self._requests_max:
                    raise too_many_requests(f"actor in-flight count cap {self._requests_max} exceeded")
                total = usage.size + size
                if total > self._bytes_max:
                    raise too_many_requests(
                        f"actor byte budget exceeded: would use {total} bytes against cap {self._bytes_max}"
                    )
                usage.requests += 1
                usage.size = total
            finally:
                self._forget_idle(key, usage)

    def _leave(self, key: str, size: int) -> None:
        with self._lock:
            usage = self._usage[key]
            usage.requests -= 1
            usage.size -= size
            self._forget_idle(key, usage)

    def _forget_idle(self, key: str, usage: _Usage) -> None:
        # Actors who come once must not stay in memory.
        if usage.requests == 0:
            del self._usage[key]


@dataclass(slots=True)
class _ActorQueue:
    """The running calls of one actor, and those that wait in order of arrival."""

    running: int = 0
    waiting: "deque[asyncio.Future[None]]" = field(default_factory=deque)


class FairScheduler:
    """Run a fixed number of calls at once; the actor with the fewest running calls is next, then round-robin."""

    def __init__(self, *, running_max: int, actor_running_max: int, actor_max: int) -> None:
        """Create a scheduler without calls.

        Args:
            running_max: calls that run at once.
            actor_running_max: calls of one actor that run at once.
            actor_max: calls of one actor that run or wait.
        """
        self._running_max = running_max
        self._actor_running_max = actor_running_max
        self._actor_max = actor_max
        self._running = 0
        # Ordered by when an actor's calls began to wait, or last got a slot.
        self._queues: dict[str, _ActorQueue] = {}

    @property
    def running(self) -> int:
        """Number of calls that hold a slot."""
        return self._running

    @property
    def waiting(self) -> int:
        """Number of calls that wait for a slot."""
        return sum(len(queue.waiting) for queue in list(self._queues.values()))

    @property
    def actors(self) -> int:
        """Number of actors with calls that run or wait."""
        return len(self._queues)

    @asynccontextmanager
    async def slot(self, actor: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it while the block runs.

        Raises:
            Refusal: the actor has too many calls in flight.
        """
        await self.acquire(actor)
        try:
            yield
        finally:
            self.release(actor)

    async def acquire(self, actor: str) -> None:
        """Wait for a slot; see `slot`."""
        queue = self._queues.get(actor)
        if queue is None:
            queue = self._queues[actor] = _ActorQueue()
        if queue.running + len(queue.waiting) >= self._actor_max:
            self._forget_idle(actor, queue)
            raise too_many_requests(f"actor in-flight count cap {self._actor_max} exceeded")
        if self._running < self._running_max and queue.running < self._actor_running_max:
            # A free slot means that every waiting actor already runs as many calls as it may.
            self._running += 1
            queue.running += 1
            return
        granted = asyncio.get_running_loop().create_future()
        queue.waiting.append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                queue.waiting.remove(granted)
                self._forget_idle(actor, queue)
            else:
                self.release(actor)  # the slot had just been granted
            raise

    def release(self, actor: str) -> None:
        """Return a slot, and grant it to the next call."""
        queue = self._queues[actor]
        queue.running -= 1
        self._running -= 1
        self._forget_idle(actor, queue)
        while self._running < self._running_max and self._grant_next():
            pass

    def _grant_next(self) -> bool:
        """Grant a slot to the next waiting call; return False if there is none."""
        eligible = [
            (actor, queue)
            for actor, queue in self._queues.items()
            if queue.waiting and queue.running < self._actor_running_max
        ]
        if not eligible:
            return False
        actor, queue = min(eligible, key=lambda candidate: candidate[1].running)
        granted = queue.waiting.popleft()
        # To the end: round-robin among actors with equally many running calls.
        self._queues[actor] = self._queues.pop(actor)
        self._running += 1
        queue.running += 1
        granted.set_result(None)
        return True

    def _forget_idle(self, actor: str, queue: _ActorQueue) -> None:
        # Actors who come once must not stay in memory.
        if not queue.running and not queue.waiting:
            del self._queues[actor]


class _Work:
    """Something to run, and where its result goes."""

    __slots__ = ("call", "context", "has_ended", "loop", "result", "waiter")

    def __init__(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.context = copy_context()
        self.loop = loop
        self.result: asyncio.Future[Any] = loop.create_future()
        self.waiter: asyncio.Future[None] | None = None
        self.has_ended = False

    def run(self) -> None:
        """Run it in this thread, and hand the outcome to the event loop."""
        value: object = None
        fault: BaseException | None = None
        try:
            value = self.context.run(self.call)
        except StopIteration as stop:
            # A future cannot hold a StopIteration: its caller would wait forever.
            fault = RuntimeError("the call raised StopIteration")
            fault.__cause__ = stop
        except BaseException as error:  # noqa: BLE001  (the caller that waits gets it)
            fault = error
        with suppress(RuntimeError):  # the loop was closed: no caller waits any longer
            self.loop.call_soon_threadsafe(self._end, value, fault)

    def _end(self, value: object, fault: BaseException | None) -> None:
        self.has_ended = True
        if not self.result.done():
            if fault is None:
                self.result.set_result(value)
            else:
                self.result.set_exception(fault)
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class WorkerThreads:
    """Thread pool in which calls run, in order of arrival.

    One queue and one wake-up of the event loop per call: with `ThreadPoolExecutor`, whose futures have locks of their
    own, handing a call over takes twice the processor time, a third of that of a small read.
    """

    def __init__(self, threads_max: int) -> None:
        self._threads_max = threads_max
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._is_closed = False

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` in a thread and return its result.

        A cancelled caller waits until the call has ended: a running thread cannot be interrupted, and what it holds is
        released only afterwards. This is why `anyio.to_thread` does not do: it leaves at once when its task is
        cancelled.
        """
        if self._is_closed:
            raise RuntimeError("cannot run a call after shutdown")
        work = _Work(call, asyncio.get_running_loop())
        self._busy += 1
        if self._busy > self._threads and self._threads < self._threads_max:
            self._threads += 1
            threading.Thread(target=self._run_all, name=f"call_{self._threads}", daemon=True).start()
        self._work.put(work)
        try:
            result: T = await work.result
        except asyncio.CancelledError:
            while not work.has_ended:
                work.waiter = work.loop.create_future()
                with suppress(asyncio.CancelledError):
                    await work.waiter
            raise
        finally:
            self._busy -= 1
        return result

    def close(self) -> None:
        """End the threads after the work that was handed over; further work raises RuntimeError."""
        self._is_closed = True
        for _ in range(self._threads):
            self._work.put(None)

    def _run_all(self) -> None:
        while (work := self._work.get()) is not None:
            work.run()
            del work  # the result must not live until the next call


class StreamSlots:
    """Limit exports: one of each graph at a time, and a few in a process."""

    def __init__(self) -> None:
        self._graphs: set[str] = set()
        self._lock = threading.Lock()
        self._process = threading.BoundedSemaphore(limits.SERVER_STREAMS_MAX)

    def take(self, graph_id: str) -> Callable[[], None]:
        """Take a slot and return the function that releases it; calling that twice is harmless.

        Raises:
            Refusal: no slot is free.
        """
        with self._lock:
            if graph_id in self._graphs:
                raise _limit_exceeded("stream_export_slots", limit=1, actual=2)
            self._graphs.add(graph_id)
        if not self._process.acquire(timeout=limits.SERVER_STREAM_WAIT_S):
            with self._lock:
                self._graphs.discard(graph_id)
            actual = _TRANSPORT_BYTES + _TRANSPORT_BYTES // limits.SERVER_STREAMS_MAX
            raise _limit_exceeded("stream_export_transport_bytes", limit=_TRANSPORT_BYTES, actual=actual)
        is_released = False

        def release() -> None:
            nonlocal is_released
            with self._lock:
                if is_released:
                    return
                is_released = True
                self._graphs.discard(graph_id)
            self._process.release()

        return release

    @property
    def taken(self) -> int:
        """Number of slots in use."""
        return len(self._graphs)


def _limit_exceeded(resource: str, *, limit: int, actual: int) -> Refusal:
    return Refusal(
        413,
        f"resource limit exceeded for {resource}: actual {actual}, limit {limit}",
        details={"resource_limit": {"resource": resource, "limit": limit, "actual": actual}},
    )
