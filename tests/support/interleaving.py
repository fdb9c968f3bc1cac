"""Controlled races: one writer lands before another, writers take turns by schedule, processes race for the same paths.

`Turns` runs each writer in a thread of its own, but only one at a time moves; it passes the turn on before each request
to the store. So an interleaving is a list of numbers, and can be drawn, repeated and made smaller.
"""

import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from omnigraph.failpoints import Crash
from omnigraph.storage import paths as graph_paths
from omnigraph.storage.object_store import ObjectExists, ObjectStore
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T
from omnigraph.testing.stores import PagingStore

REPOSITORY = Path(__file__).parents[2]

_Result = TypeVar("_Result")


def once(action: Callable[[], object]) -> Callable[[], None]:
    """An action to arm at a failpoint that others, and the action itself, come through too.

    Args:
        action (Callable[[], object]): what to do.

    Returns:
        Callable[[], None]: does it the first time and never again.
    """
    left = [action]

    def run() -> None:
        if left:
            left.pop()()

    return run


class RacingStore(ForwardingStore):
    """Lets others write first: before each log entry that is put through it, one of theirs lands."""

    def __init__(self, inner: ObjectStore, others: Iterable[Callable[[], object]]) -> None:
        """A store before `inner`.

        Args:
            inner (ObjectStore): does the work.
            others (Iterable[Callable[[], object]]): what lands before the first entry, before the second and so on; it
                goes through another store.
        """
        super().__init__(inner)
        self._others = iter(others)

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        if kind is RequestKind.PUT_IF_ABSENT and path.startswith(graph_paths.LOGS):
            for land in islice(self._others, 1):
                land()
        return send()


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


def race_in_processes(
    make_store: Callable[[], ObjectStore], paths: Sequence[str], *, processes: int
) -> Sequence[Sequence[str]]:
    """Let processes put every path if it is absent, all in the same order and from the same moment on.

    Args:
        make_store (Callable[[], ObjectStore]): each process opens the store with it; must be picklable.
        paths (Sequence[str]): what they race for. The winner writes its number, from 0, into each.
        processes (int): how many.

    Returns:
        Sequence[Sequence[str]]: for each process the paths it won.
    """
    racers = [
        subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY
        )
        for _ in range(processes)
    ]
    try:
        for number, racer in enumerate(racers):
            assert racer.stdin is not None
            pickle.dump((make_store, tuple(paths), number), racer.stdin)
            racer.stdin.flush()
        for racer in racers:
            assert racer.stdout is not None
            racer.stdout.readline()  # it is ready
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write(b"go\n")
            racer.stdin.flush()
        return [json.loads(racer.communicate()[0]) for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()


def main() -> None:
    """What each process does: open the store, say so, wait for the start, try for every path, tell what it won."""
    make_store, paths, number = pickle.load(sys.stdin.buffer)
    store: ObjectStore = make_store()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.buffer.readline()
    won = []
    for path in paths:
        try:
            store.put_if_absent(path, str(number).encode())
        except ObjectExists:
            continue
        won.append(path)
    sys.stdout.write(json.dumps(won))


if __name__ == "__main__":
    main()
