"""The threads of a server: what is handed over is done, told, and never left behind."""

import asyncio
import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from omnigraph.server import threads as threads_module
from omnigraph.server.threads import Threads

_PATIENCE_S = 60.0
WHO: ContextVar[str] = ContextVar("who")


@pytest.fixture
def two() -> Iterator[Threads]:
    """Two threads at most, which have ended with the test."""
    made = Threads(2)
    before = set(threading.enumerate())
    yield made
    made.close()
    for each in set(threading.enumerate()) - before:
        each.join(_PATIENCE_S)


def test_there_are_as_many_threads_as_work_and_never_more_than_were_asked_for(two: Threads) -> None:
    go = threading.Event()
    seen: list[str] = []

    def work() -> str:
        seen.append(threading.current_thread().name)
        assert go.wait(_PATIENCE_S)
        return threading.current_thread().name

    async def scene() -> list[str]:
        counts = [two.count]
        calls = []
        for _ in range(3):
            calls.append(asyncio.create_task(two.run(work)))
            await asyncio.sleep(0)
            counts.append(two.count)
        assert counts == [0, 1, 2, 2]
        go.set()
        return await asyncio.gather(*calls)

    assert len(set(asyncio.run(scene()))) <= 2
    assert len(seen) == 3


def test_whoever_asks_gets_what_came_of_it_or_what_went_wrong(two: Threads) -> None:
    def wrong() -> None:
        raise KeyError("no such thing")

    async def scene() -> tuple[int, str]:
        WHO.set("act-a")
        with pytest.raises(KeyError, match="no such thing"):
            await two.run(wrong)
        with pytest.raises(RuntimeError, match="ended too early"):
            await two.run(lambda: next(iter(())))
        return await two.run(lambda: 7), await two.run(WHO.get)

    assert asyncio.run(scene()) == (7, "act-a")


def test_a_call_that_is_cancelled_ends_when_its_thread_is_done_and_not_before(two: Threads) -> None:
    began, go = threading.Event(), threading.Event()
    order: list[str] = []

    def work() -> None:
        began.set()
        assert go.wait(_PATIENCE_S)
        order.append("done")

    async def call() -> None:
        try:
            await two.run(work)
        finally:
            order.append("given back")

    async def scene() -> None:
        its = asyncio.create_task(call())
        await asyncio.to_thread(began.wait, _PATIENCE_S)
        for _ in range(2):  # however often
            its.cancel()
            await asyncio.sleep(0)
        assert not its.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await its

    asyncio.run(scene())

    assert order == ["done", "given back"]


def test_threads_that_nobody_needs_end_and_come_again(two: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_module, "_IDLE_S", 0.001)

    assert asyncio.run(two.run(lambda: 1)) == 1
    while two.count:
        pass

    assert asyncio.run(two.run(lambda: 2)) == 2


def test_what_was_handed_over_is_done_before_the_threads_end() -> None:
    threads = Threads(1)
    go = threading.Event()

    async def scene() -> list[object]:
        calls = [asyncio.create_task(threads.run(each)) for each in (lambda: go.wait(_PATIENCE_S), lambda: "second")]
        await asyncio.sleep(0)
        threads.close()
        go.set()
        found = list(await asyncio.gather(*calls))
        with pytest.raises(RuntimeError, match="have ended"):
            await threads.run(lambda: "late")
        return found

    assert asyncio.run(scene()) == [True, "second"]
