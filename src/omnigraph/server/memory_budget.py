"""Memory budgets shared by all callers of a process: bytes are counted, and what does not fit is refused at once."""

import threading

from omnigraph.server.errors import Refusal, too_many_requests

_RETRY_AFTER_S = 1


class MemoryBudget:
    """A number of bytes for one purpose, of which one actor may hold only a share."""

    def __init__(self, bytes_max: int, purpose: str, *, actor_bytes_max: int | None = None) -> None:
        """Create an empty budget.

        Args:
            bytes_max: the total over all actors.
            purpose: names the budget in refusals.
            actor_bytes_max: the limit of one actor; None allows the total.
        """
        self.bytes_max = bytes_max
        self._actor_bytes_max = bytes_max if actor_bytes_max is None else actor_bytes_max
        self._purpose = purpose
        self._held = 0
        self._actors: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """Bytes in use."""
        return self._held

    @property
    def actors(self) -> int:
        """Number of actors that hold bytes."""
        return len(self._actors)

    def take(self, size: int, actor: str) -> None:
        """Reserve bytes for an actor.

        Raises:
            Refusal: the budget, or the actor's share of it, is used up.
        """
        with self._lock:
            actor_held = self._actors.get(actor, 0)
            if self._held + size > self.bytes_max:
                raise self._exhausted(self._held, self.bytes_max, "")
            if actor_held + size > self._actor_bytes_max:
                raise self._exhausted(actor_held, self._actor_bytes_max, " of one actor")
            self._held += size
            self._actors[actor] = actor_held + size

    def give_back(self, size: int, actor: str) -> None:
        """Release bytes that an actor reserved."""
        if not size:
            return
        with self._lock:
            self._held -= size
            remaining = self._actors[actor] - size
            if remaining:
                self._actors[actor] = remaining
            else:
                # Actors who come once must not stay in memory.
                del self._actors[actor]

    def _exhausted(self, held: int, limit: int, scope: str) -> Refusal:
        return too_many_requests(
            f"the server has no room left for {self._purpose}{scope}: {held} of {limit} bytes are taken",
            retry_after_s=_RETRY_AFTER_S,
        )


class Reservation:
    """The bytes that one call has taken from a budget. Used by one thread at a time."""

    __slots__ = ("_actor", "_budget", "_held")

    def __init__(self, budget: MemoryBudget, actor: str) -> None:
        self._budget = budget
        self._actor = actor
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes in use."""
        return self._held

    def take(self, size: int) -> None:
        """Reserve more bytes.

        Raises:
            Refusal: the budget is used up.
        """
        if size:
            self._budget.take(size, self._actor)
            self._held += size

    def give_back(self, size: int) -> None:
        """Release some bytes."""
        self._budget.give_back(size, self._actor)
        self._held -= size

    def close(self) -> None:
        """Release all bytes; safe to call twice."""
        held, self._held = self._held, 0
        self._budget.give_back(held, self._actor)
