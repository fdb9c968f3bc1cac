"""Work that talks to Spark is done aside, by a thread of its own, so that Ctrl-C never strikes within a talk.

An interrupt is raised in the main thread, at any instruction. In the middle of a question to Java it would leave an
answer half read, and what PySpark does about that closes connections which other questions need: the next of them fails
for no reason of its own. So the main thread only waits. When it is interrupted, the jobs that are under way are
cancelled, and it goes on with the interrupt once the work has ended and cleared up after itself.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import wraps
from typing import ParamSpec, TypeVar

from omnigraph import limits

P = ParamSpec("P")
T = TypeVar("T")


class _SparkCall:
    """One piece of work, done by a thread of its own."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._cancels: list[Callable[[], None]] = []
        self._began = self._stopped = False
        self._ended = threading.Event()

    def run(self) -> None:
        """Do the work; unless it was stopped before it began."""
        _current.set(self)
        self._began = True
        try:
            if not self._stopped:
                self._work()
        except BaseException as error:  # noqa: BLE001  (raised again by who waits)
            self._error = error
        finally:
            self._ended.set()

    def wait(self) -> None:
        """Until it has ended; raises the error it ended with."""
        self._ended.wait()
        if self._error is not None:
            raise self._error

    def raise_if_cancelled(self) -> None:
        """Raise an interrupt if the caller was interrupted."""
        if self._stopped:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Cancel the running jobs and wait for the end."""
        # The order matters: the thread says that it began before it looks whether it was stopped.
        self._stopped = True
        while self._began and not self._ended.wait(limits.SPARK_CANCEL_EVERY_S):
            # Again and again: a job may have been on its way while the last ones were cancelled. By a thread, so that
            # another interrupt does not strike here.
            threading.Thread(target=self._cancel, daemon=True).start()

    def _cancel(self) -> None:
        for cancel_job in list(self._cancels):
            try:
                cancel_job()
            except Exception:  # noqa: BLE001  (Spark is gone, and the jobs with it)
                continue

    @contextmanager
    def cancelled_by(self, cancel: Callable[[], None]) -> Iterator[None]:
        """While the block runs, this cancels its jobs."""
        self._cancels.append(cancel)
        try:
            yield
        finally:
            self._cancels.remove(cancel)


_current: ContextVar[_SparkCall | None] = ContextVar("talk", default=None)


def interruptible(work: Callable[P, T]) -> Callable[P, T]:
    """A function that does its work aside, where it is called by the main thread; elsewhere it is as it was.

    Args:
        work: what to do; it talks to Spark.

    Returns:
        Callable[P, T]: the same to callers. An interrupt cancels its jobs and is raised when the work has ended,
            unless that was done by then; a second one is raised at once.
    """

    @wraps(work)
    def run_interruptible(*args: P.args, **kwargs: P.kwargs) -> T:
        if threading.current_thread() is not threading.main_thread():
            return work(*args, **kwargs)
        answers: list[T] = []
        call = _SparkCall(lambda: answers.append(work(*args, **kwargs)))
        thread = threading.Thread(target=copy_context().run, args=(call.run,), name="omnigraph-spark", daemon=True)
        try:
            thread.start()
            call.wait()
        except KeyboardInterrupt:
            call.stop()
            if not answers:
                raise
            # It was done before anything could be cancelled: to say that it was not would be a lie.
        except BaseException:
            call.stop()
            raise
        return answers[0]

    return run_interruptible


def raise_if_cancelled() -> None:
    """For work that waits without a job: raise if the caller was interrupted.

    Raises:
        KeyboardInterrupt: nobody does.
    """
    call = _current.get()
    if call is not None:
        call.raise_if_cancelled()


@contextmanager
def cancellable(cancel: Callable[[], None]) -> Iterator[None]:
    """Jobs within the block are cancelled when the main thread is interrupted.

    Args:
        cancel: cancels them; may be called more than once.

    Yields:
        None: while they run.

    Raises:
        KeyboardInterrupt: it was; whatever the cancelled job says.
    """
    call = _current.get()
    if call is None:
        yield
        return
    with call.cancelled_by(cancel):
        call.raise_if_cancelled()
        try:
            yield
        except Exception:  # whatever Spark says of a job that was cancelled: the interrupt is told instead
            call.raise_if_cancelled()
            raise
