"""Several writers at once, taken apart into turns: who goes next, request by request, is decided by the test.

Each writer runs in a thread of its own but only one at a time moves; it passes the turn on before each request to the
store. So an interleaving is a list of numbers, and can be drawn, repeated and made smaller.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from omnigraph.failpoints import Crash
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.forwarding import RequestKind, T
from omnigraph.testing.paging import PagingStore

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Ended(Generic[_Result]):
    """How a writer ended.

    Attributes:
        result: what it returned.
        raised: what it raised instead.
    """

    result: _Result | None
    raised: BaseException | None


class Turns:
    """Gives the turn to one writer after the other."""

    def __init__(self, schedule: Iterable[int]) -> None:
        """Turns in a given order.

        Args:
            schedule (Iterable[int]): each number chooses among the writers that still run; when there are no more, each
                goes on to its end, the first first.
        """
        self._schedule = iter(schedule)
        self._changed = threading.Condition()
        self._left: list[int] = []
        self._threads: dict[int, int] = {}
        self._turn = -1

    def run(self, works: Sequence[Callable[[], _Result]]) -> list[Ended[_Result]]:
        """Let all run, and wait for all.

        Args:
            works (Sequence[Callable[[], _Result]]): one per writer; each uses a `TurningStore` with its own number.

        Returns:
            list[Ended[_Result]]: how each ended, in the same order.
        """
        ended: dict[int, Ended[_Result]] = {}

        def one(writer: int, work: Callable[[], _Result]) -> None:
            self._threads[writer] = threading.get_ident()
            self._await(writer)
            try:
                ended[writer] = Ended(work(), None)
            except BaseException as raised:  # noqa: BLE001  (a simulated death must not end the thread with a trace)
                ended[writer] = Ended(None, raised)
            with self._changed:
                self._left.remove(writer)
                self._choose()

        threads = [
            threading.Thread(target=one, args=(writer, work), name=f"writer-{writer}", daemon=True)
            for writer, work in enumerate(works)
        ]
        with self._changed:
            self._left = list(range(len(works)))
            self._choose()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [ended[writer] for writer in range(len(works))]

    def passed_on(self, writer: int) -> None:
        """Let somebody else go first, perhaps; returns when it is this writer's turn again.

        Args:
            writer (int): whose turn it is.
        """
        if threading.get_ident() != self._threads[writer]:
            return  # a helper of a writer that waits for it: it has the turn already
        with self._changed:
            self._choose(unless=writer)
        self._await(writer)

    def _await(self, writer: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._turn == writer)

    def _choose(self, *, unless: int | None = None) -> None:
        if self._left:
            drawn = next(self._schedule, None)
            stays = unless if unless in self._left else self._left[0]
            self._turn = stays if drawn is None else self._left[drawn % len(self._left)]
        self._changed.notify_all()


class TurningStore(PagingStore):
    """One writer's store: before each request the others may go first, and at one of them its writer may die."""

    def __init__(self, inner: ObjectStore, turns: Turns, writer: int, *, dies_at: int | None = None) -> None:
        """A store before `inner`.

        Args:
            inner (ObjectStore): does the work.
            turns (Turns): who goes next.
            writer (int): whose store this is.
            dies_at (int | None): the request, counted from 1, before which its writer dies.
        """
        super().__init__(inner)
        self._turns = turns
        self._writer = writer
        self._dies_at = dies_at
        self._seen = 0

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        self._turns.passed_on(self._writer)
        self._seen += 1
        if self._dies_at is not None and self._seen >= self._dies_at:  # the dead ask for nothing more
            raise Crash(f"death of writer {self._writer} at {kind} of {path!r}")
        return send()
