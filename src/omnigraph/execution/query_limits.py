"""Limits of one query, and the budget that enforces them: memory and time."""

from dataclasses import dataclass
from typing import Protocol

from omnigraph import limits
from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import InvalidRequestError, LimitError, beyond_limit


class SharedMemory(Protocol):
    """Memory budget shared by several queries; the implementation decides what happens when it is exhausted."""

    def take(self, size: int) -> None:
        """Reserve bytes for a query; raises when too few are left."""

    def give_back(self, size: int) -> None:
        """Release bytes."""


class Budget:
    """Memory and time used by one query. Single-threaded, so nothing is locked."""

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

    def check_time(self) -> None:
        """Check the time limit; called between batches.

        Raises:
            LimitError: the query has exceeded its time limit.
        """
        if self._seconds_max is not None:
            taken = self._clock.monotonic() - self._began
            if taken > self._seconds_max:
                raise beyond_limit("query_seconds", actual=int(taken) + 1, limit=int(self._seconds_max))

    @property
    def held(self) -> int:
        """Bytes held now."""
        return self._held

    def hold(self, size: int) -> None:
        """Count bytes until they are released.

        Raises:
            LimitError: the query exceeds its memory or time limit.
        """
        self.check_time()
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
        """Release bytes."""
        self._held -= size
        if self._shared is not None:
            self._shared.give_back(size)


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of one query.

    Attributes:
        memory_bytes: for intermediate rows and, unless it is streamed, the result.
        batch_rows: number of rows processed at once.
        seconds: time limit; None is unlimited.
        shared: memory budget shared with other queries; None for a budget of its own. Its owner releases what the query
            still holds at its end, the result.
    """

    memory_bytes: int = limits.QUERY_MEMORY_BYTES_MAX
    batch_rows: int = limits.QUERY_BATCH_ROWS
    seconds: float | None = None
    shared: SharedMemory | None = None

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise InvalidRequestError(f"batch_rows must be 1 or more, not {self.batch_rows}")
        if self.memory_bytes < 0:
            raise InvalidRequestError(f"memory_bytes must be 0 or more, not {self.memory_bytes}")
        if self.seconds is not None and not self.seconds >= 0:
            raise InvalidRequestError(f"seconds must be 0 or more, not {self.seconds}")


DEFAULT_LIMITS = QueryLimits()
