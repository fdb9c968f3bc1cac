"""Memory that all callers of a process share: what is in it is counted, and what does not fit is refused at once."""

import threading

from omnigraph.server.errors import too_many

_RETRY_AFTER_S = 1


class Room:
    """So many bytes for one purpose, of which one actor has only a part."""

    def __init__(self, bytes_max: int, what: str, *, actor_bytes_max: int | None = None) -> None:
        """An empty room.

        Args:
            bytes_max: what fits.
            what: what is in it, in words.
            actor_bytes_max: what of one actor fits; None for all of it.
        """
        self.bytes_max = bytes_max
        self._actor_bytes_max = bytes_max if actor_bytes_max is None else actor_bytes_max
        self._what = what
        self._held = 0
        self._actors: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """How many bytes are taken."""
        return self._held

    @property
    def actors(self) -> int:
        """How many actors have taken some."""
        return len(self._actors)

    def take(self, size: int, who: str) -> None:
        """Take some of it.

        Args:
            size: how many bytes.
            who: for which actor.

        Raises:
            Refusal: there are not so many left.
        """
        with self._lock:
            theirs = self._actors.get(who, 0)
            if self._held + size > self.bytes_max:
                raise self._full(self._held, self.bytes_max, "")
            if theirs + size > self._actor_bytes_max:
                raise self._full(theirs, self._actor_bytes_max, " of one actor")
            self._held += size
            self._actors[who] = theirs + size

    def give_back(self, size: int, who: str) -> None:
        """Give back what was taken.

        Args:
            size: how many bytes.
            who: for which actor.
        """
        if not size:
            return
        with self._lock:
            self._held -= size
            left = self._actors[who] - size
            if left:
                self._actors[who] = left
            else:
                # Actors who come once must not stay in memory.
                del self._actors[who]

    def _full(self, held: int, most: int, whose: str) -> Exception:
        return too_many(
            f"the server has no room left for {self._what}{whose}: {held} of {most} bytes are taken",
            retry_after_s=_RETRY_AFTER_S,
        )


class Holding:
    """What one call has taken of a room. Used by one thread at a time."""

    __slots__ = ("_held", "_room", "_who")

    def __init__(self, room: Room, who: str) -> None:
        self._room = room
        self._who = who
        self._held = 0

    @property
    def held(self) -> int:
        """How many bytes it has taken."""
        return self._held

    def take(self, size: int) -> None:
        """Take more.

        Args:
            size: how many bytes.

        Raises:
            Refusal: there are not so many left.
        """
        if size:
            self._room.take(size, self._who)
            self._held += size

    def give_back(self, size: int) -> None:
        """Give some back.

        Args:
            size: how many bytes.
        """
        self._room.give_back(size, self._who)
        self._held -= size

    def close(self) -> None:
        """Give back whatever is left."""
        held, self._held = self._held, 0
        self._room.give_back(held, self._who)
