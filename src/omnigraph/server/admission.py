"""What one actor may have under way at a time; more is refused at once, and others are not slowed down."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from omnigraph.server.errors import too_many

ANONYMOUS = "anonymous"


@dataclass(slots=True)
class _Held:
    requests: int = 0
    size: int = 0


class Admission:
    """Counts what each actor has under way."""

    def __init__(self, *, requests_max: int, bytes_max: int) -> None:
        self._requests_max = requests_max
        self._bytes_max = bytes_max
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()

    @contextmanager
    def admitted(self, actor: str | None, size: int) -> Iterator[None]:
        """Room for one request while the block runs.

        Args:
            actor (str | None): who asks.
            size (int): how many bytes its body has.

        Raises:
            Refusal: the actor has too much under way.
        """
        who = bucket(actor)
        self._enter(who, size)
        try:
            yield
        finally:
            self._leave(who, size)

    @property
    def actors(self) -> int:
        """How many actors have something under way."""
        return len(self._held)

    def _enter(self, who: str, size: int) -> None:
        with self._lock:
            held = self._held.setdefault(who, _Held())
            try:
                if held.requests >= self._requests_max:
                    raise too_many(f"actor in-flight count cap {self._requests_max} exceeded")
                if held.size + size > self._bytes_max:
                    raise too_many(
                        f"actor byte budget exceeded: would use {held.size + size} bytes against cap {self._bytes_max}"
                    )
                held.requests += 1
                held.size += size
            finally:
                self._forget(who, held)

    def _leave(self, who: str, size: int) -> None:
        with self._lock:
            held = self._held[who]
            held.requests -= 1
            held.size -= size
            self._forget(who, held)

    def _forget(self, who: str, held: _Held) -> None:
        # Actors who come once must not stay in memory.
        if held.requests == 0:
            del self._held[who]


def bucket(actor: str | None) -> str:
    """Under which name an actor's requests are counted; those without one are counted together."""
    return ANONYMOUS if actor is None else actor
