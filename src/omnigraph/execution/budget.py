"""How many bytes one query may hold and how long it may take, and the error of one that wants more."""

from typing import Protocol

from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import LimitError, beyond_limit


class SharedMemory(Protocol):
    """Memory that several queries take from. Whoever lends it decides what happens when there is none left."""

    def take(self, size: int) -> None:
        """Count bytes that a query is about to hold; raises where there are not so many left."""

    def give_back(self, size: int) -> None:
        """Count bytes that it holds no more."""


class Budget:
    """Counts what a query holds on to, and its time. One query runs in one thread, so nothing is locked."""

    __slots__ = ("_began", "_clock", "_held", "_seconds_max", "_shared", "bytes_max")

    def __init__(
        self,
        bytes_max: int,
        *,
        seconds_max: float | None = None,
        clock: Clock | None = None,
        shared: SharedMemory | None = None,
    ) -> None:
        self.bytes_max = bytes_max
        self._shared = shared
        self._held = 0
        self._seconds_max = seconds_max
        self._clock = clock or SystemClock()
        self._began = 0.0 if seconds_max is None else self._clock.monotonic()

    def in_time(self) -> None:
        """Asked from batch to batch, also by those who hold nothing.

        Raises:
            LimitError: the query has taken longer than it may.
        """
        if self._seconds_max is not None:
            taken = self._clock.monotonic() - self._began
            if taken > self._seconds_max:
                raise beyond_limit("query_seconds", actual=int(taken) + 1, limit=int(self._seconds_max))

    @property
    def held(self) -> int:
        """How many bytes are held now."""
        return self._held

    def hold(self, size: int) -> None:
        """Count bytes that stay until they are released.

        Raises:
            LimitError: there are more than the query may hold, or it has taken longer than it may.
        """
        self.in_time()
        self._held += size
        if self._held > self.bytes_max:
            raise LimitError(
                f"the query needs more than the {self.bytes_max:,} bytes of memory it may use; return less, add a "
                "limit, connect the parts of the pattern, or read the result as a stream",
                code="query_memory",
                bytes_max=self.bytes_max,
            )
        if self._shared is not None:
            self._shared.take(size)

    def release(self, size: int) -> None:
        """Count bytes that are not held any more."""
        self._held -= size
        if self._shared is not None:
            self._shared.give_back(size)
