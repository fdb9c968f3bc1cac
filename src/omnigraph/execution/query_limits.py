"""What one query may use."""

from dataclasses import dataclass

from omnigraph import limits
from omnigraph.errors import InvalidRequestError
from omnigraph.execution.budget import SharedMemory


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What one query may use.

    Attributes:
        memory_bytes: for rows under way and, unless it is streamed, the result.
        batch_rows: how many rows are worked on at once.
        seconds: how long it may run; None for as long as it takes.
        shared: memory that it takes its own from, together with other queries; None for memory of its own. What it
            still has at its end, its result, is for whoever lent it to take back.
    """

    memory_bytes: int = limits.QUERY_MEMORY_BYTES_MAX
    batch_rows: int = limits.QUERY_BATCH_ROWS
    seconds: float | None = None
    shared: SharedMemory | None = None

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise InvalidRequestError(f"batch_rows must be 1 or more, and it is {self.batch_rows}")
        if self.memory_bytes < 0:
            raise InvalidRequestError(f"memory_bytes must be 0 or more, and it is {self.memory_bytes}")
        if self.seconds is not None and not self.seconds >= 0:
            raise InvalidRequestError(f"seconds must be 0 or more, and it is {self.seconds}")


DEFAULT_LIMITS = QueryLimits()
