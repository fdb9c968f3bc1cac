"""Worker threads of the server: results, errors, cancellation and shutdown."""

import asyncio
import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from omnigraph.server.fair_scheduler import WorkerThreads

TIMEOUT_S = 60.0
ACTOR: ContextVar[str] = ContextVar("actor")


@pytest.fixture
def two() -> Iterator[WorkerThreads]:
    """At most two threads, which have ended after the test."""
    before = set(threading.enumerate())
    threads = WorkerThreads(2)
    yield threads
    threads.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()


def test_threads_start_as_needed_up_to_the_limit(two: WorkerThreads) -> None:
    release = threading.Event()
    before = threading.active_count()

    def work() -> str:
        assert release.wait(TIMEOUT_S)
        return threading.current_thread().name

    async def run_three() -> list[str]:
        started = [threading.active_count() - before]
        calls = []
        for _ in range(3):
            calls.append(asyncio.create_task(two.run(work)))
            await asyncio.sleep(0)
            started.append(threading.active_count() - before)
        assert started == [0, 1, 2, 2]
        release.set()
        return await asyncio.gather(*calls)

    names = asyncio.run(run_three())

    assert len(names) == 3
    assert len(set(names)) <= 2


def test_the_caller_gets_the_result_or_the_error(two: WorkerThreads) -> None:
    def fail() -> None:
        raise KeyError("no such thing")

    async def run_all() -> tuple[int, str]:
        ACTOR.set("act-a")
        with pytest.raises(KeyError, match="no such thing"):
            await two.run(fail)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await two.run(lambda: next(iter(())))
        return await two.run(lambda: 7), await two.run(ACTOR.get)

    assert asyncio.run(run_all()) == (7, "act-a")


def test_a_cancelled_call_ends_when_its_work_has_ended(two: WorkerThreads) -> None:
    began, release = threading.Event(), threading.Event()
    order: list[str] = []

    def work() -> None:
        began.set()
        assert release.wait(TIMEOUT_S)
        order.append("work ended")

    async def call() -> None:
        try:
            await two.run(work)
        finally:
            order.append("call ended")

    async def cancel_twice() -> None:
        task = asyncio.create_task(call())
        await asyncio.to_thread(began.wait, TIMEOUT_S)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_twice())

    assert order == ["work ended", "call ended"]


def test_work_that_was_handed_over_is_done_before_the_threads_end() -> None:
    threads = WorkerThreads(1)
    release = threading.Event()

    async def close_early() -> list[object]:
        works = (lambda: release.wait(TIMEOUT_S), lambda: "second")
        calls = [asyncio.create_task(threads.run(work)) for work in works]
        await asyncio.sleep(0)
        threads.close()
        release.set()
        results = list(await asyncio.gather(*calls))
        with pytest.raises(RuntimeError, match="after shutdown"):
            await threads.run(lambda: "late")
        return results

    assert asyncio.run(close_early()) == [True, "second"]
