"""Memory that all callers of a process share: what is in it is counted, and what does not fit is refused at once."""

import threading

from omnigraph.server.errors import Refusal


class Room:
    """So many bytes for one purpose."""

    def __init__(self, bytes_max: int, what: str) -> None:
        self._bytes_max = bytes_max
        self._what = what
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """How many bytes are taken."""
        return self._held

    def take(self, size: int) -> None:
        """Take some of it.

        Args:
            size (int): how many bytes.

        Raises:
            Refusal: there are not so many left.
        """
        with self._lock:
            if self._held + size > self._bytes_max:
                raise Refusal(
                    429,
                    f"the server has no room left for {self._what}: {self._held} of {self._bytes_max} bytes are taken",
                    code="too_many_requests",
                    headers={"Retry-After": "1"},
                )
            self._held += size

    def give_back(self, size: int) -> None:
        """Give back what was taken.

        Args:
            size (int): how many bytes.
        """
        with self._lock:
            self._held -= size
