"""Work done aside: its answers, its errors, and what an interrupt does to it."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from omnigraph.errors import ConflictError
from omnigraph.pipeline.interruptible import cancellable, interruptible, raise_if_cancelled

mood = ContextVar("mood", default="calm")


@pytest.fixture
def interrupts() -> Iterator[None]:
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


def press_ctrl_c() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_the_main_thread_waits_and_gets_the_answer() -> None:
    mood.set("keen")

    def work(number: int, *, more: int) -> tuple[int, str, bool]:
        return number + more, mood.get(), threading.current_thread() is threading.main_thread()

    assert interruptible(work)(2, more=3) == (5, "keen", False)


def test_other_threads_do_their_work_themselves() -> None:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(interruptible(threading.current_thread)() is thread))
    thread.start()
    thread.join()
    assert found == [True]


def test_an_error_is_the_callers_as_it_is() -> None:
    def fails() -> None:
        raise ConflictError("taken")

    with pytest.raises(ConflictError, match="taken"):
        interruptible(fails)()


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_cancels_the_job_and_comes_when_the_work_has_cleared_up() -> None:
    cancelled, cleared = threading.Event(), threading.Event()

    def work() -> None:
        try:
            with cancellable(cancelled.set):
                press_ctrl_c()
                cancelled.wait()
                raise ConnectionError("the job was cancelled")
        except KeyboardInterrupt:
            cleared.set()
            raise

    with pytest.raises(KeyboardInterrupt):
        interruptible(work)()
    assert cleared.is_set()


@pytest.mark.usefixtures("interrupts")
def test_after_an_interrupt_no_other_job_begins() -> None:
    cancelled = threading.Event()
    begun: list[str] = []

    def work() -> None:
        with cancellable(cancelled.set):
            press_ctrl_c()
            cancelled.wait()
        with cancellable(lambda: None):
            begun.append("another one")

    with pytest.raises(KeyboardInterrupt):
        interruptible(work)()
    assert begun == []


@pytest.mark.usefixtures("interrupts")
def test_work_that_waits_for_something_else_can_ask_whether_to_go_on() -> None:
    ended: list[type[BaseException]] = []

    def work() -> None:
        raise_if_cancelled()
        press_ctrl_c()
        try:
            while True:
                raise_if_cancelled()
        except BaseException as error:
            ended.append(type(error))
            raise

    with pytest.raises(KeyboardInterrupt):
        interruptible(work)()
    assert ended == [KeyboardInterrupt]
    raise_if_cancelled()  # whoever is not aside always may


@pytest.mark.usefixtures("interrupts")
def test_what_was_done_before_it_could_be_cancelled_is_told_as_done() -> None:
    heard = threading.Event()

    def work() -> str:
        with contextlib.suppress(KeyboardInterrupt), cancellable(heard.set):
            press_ctrl_c()
            heard.wait()
        return "done"

    assert interruptible(work)() == "done"


def test_jobs_that_nobody_waits_for_aside_are_as_they_were() -> None:
    with pytest.raises(ConnectionError), cancellable(lambda: None):
        raise ConnectionError("lost")
