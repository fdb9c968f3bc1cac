"""How many bytes one query may hold, and the error of one that wants more."""

from omnigraph.errors import LimitError


class Budget:
    """Counts what a query holds on to. One query runs in one thread, so nothing is locked."""

    __slots__ = ("_held", "bytes_max")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._held = 0

    @property
    def held(self) -> int:
        """How many bytes are held now."""
        return self._held

    def hold(self, size: int) -> None:
        """Count bytes that stay until they are released.

        Raises:
            LimitError: there are more than the query may hold.
        """
        self._held += size
        if self._held > self.bytes_max:
            raise LimitError(
                f"the query needs more than the {self.bytes_max:,} bytes of memory it may use; return less, add a "
                "limit, connect the parts of the pattern, or read the result as a stream",
                code="query_memory",
                bytes_max=self.bytes_max,
            )

    def release(self, size: int) -> None:
        """Count bytes that are not held any more."""
        self._held -= size
