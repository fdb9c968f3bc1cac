"""Whose turn it is: calls run in few threads, and actors take turns at them.

Everything here happens in the event loop, between two awaits, so nothing is locked. A turn is taken when the body of a
request has come and given back before its answer is sent: whoever is slow takes no turn meanwhile.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from omnigraph.server.errors import too_many


@dataclass(slots=True)
class _Line:
    """What one actor has under way.

    Attributes:
        running: calls that have their turn.
        waiting: those that wait for it, in the order they came.
    """

    running: int = 0
    waiting: "deque[asyncio.Future[None]]" = field(default_factory=deque)


class Turns:
    """So many calls at once; of those that wait, one of the actor who has the fewest running is next."""

    def __init__(self, *, running_max: int, actor_running_max: int, actor_max: int) -> None:
        """Nobody's turn yet.

        Args:
            running_max: how many calls run at once.
            actor_running_max: of those, how many of one actor.
            actor_max: how many one actor may have running and waiting.
        """
        self._running_max = running_max
        self._actor_running_max = actor_running_max
        self._actor_max = actor_max
        self._running = 0
        # In the order in which their calls began to wait, or had a turn last.
        self._lines: dict[str, _Line] = {}

    @property
    def running(self) -> int:
        """How many calls have their turn."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many wait for it."""
        return sum(len(line.waiting) for line in list(self._lines.values()))

    @property
    def actors(self) -> int:
        """How many actors have something under way."""
        return len(self._lines)

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """One turn of an actor, while the block runs.

        Args:
            who: the actor.

        Raises:
            Refusal: the actor has too much under way.
        """
        await self._begin(who)
        try:
            yield
        finally:
            self._end(who)

    async def _begin(self, who: str) -> None:
        line = self._lines.get(who)
        if line is None:
            line = self._lines[who] = _Line()
        if line.running + len(line.waiting) >= self._actor_max:
            self._forget(who, line)
            raise too_many(f"actor in-flight count cap {self._actor_max} exceeded")
        if self._running < self._running_max and line.running < self._actor_running_max:
            # A free thread means that all who wait have as many as one actor may have.
            self._running += 1
            line.running += 1
            return
        its = asyncio.get_running_loop().create_future()
        line.waiting.append(its)
        try:
            await its
        except asyncio.CancelledError:
            if its.cancelled():
                line.waiting.remove(its)
                self._forget(who, line)
            else:
                self._end(who)  # it had just been given
            raise

    def _end(self, who: str) -> None:
        line = self._lines[who]
        line.running -= 1
        self._running -= 1
        self._forget(who, line)
        while self._running < self._running_max and self._give():
            pass

    def _give(self) -> bool:
        """Give a turn to whoever is next; whether anybody was."""
        able = [
            (who, line) for who, line in self._lines.items() if line.waiting and line.running < self._actor_running_max
        ]
        if not able:
            return False
        who, line = min(able, key=lambda each: each[1].running)
        its = line.waiting.popleft()
        # To the end: among those who have equally many, everybody's turn comes.
        self._lines[who] = self._lines.pop(who)
        self._running += 1
        line.running += 1
        its.set_result(None)
        return True

    def _forget(self, who: str, line: _Line) -> None:
        # Actors who come once must not stay in memory.
        if not line.running and not line.waiting:
            del self._lines[who]
