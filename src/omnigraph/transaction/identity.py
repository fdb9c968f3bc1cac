"""That the graph at a root is still the one that was opened there.

Somebody may remove a root and make another graph in its place. Numbers of entries begin anew there, so a handle on the
old graph would put its next entry behind a hole in the new log, where nobody reads, and call it published; a sweep of
its own would find every file of the new graph needless.

On local disk and in memory the stamp tells without a request, so every look at a head and every put asks. Elsewhere the
stamp is read again when it was not seen for a while.
"""

from omnigraph import limits
from omnigraph.clock import Clock
from omnigraph.errors import NotFoundError
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore
from omnigraph.storage.records.read import read_stamp


class Identity:
    """Whose root it is, as far as this process knows."""

    def __init__(self, store: ObjectStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._graph: str | None = None
        self._seen: tuple[int, ...] | None = None
        self._seen_at = 0.0

    def expect(self, graph: str, seen: tuple[int, ...] | None) -> None:
        """Let this be the graph; until it is said, every graph is right.

        Args:
            graph (str): its id, as its stamp says; empty where it has none yet.
            seen (tuple[int, ...] | None): what told the stamp from others, asked for before it was read.
        """
        self._graph = graph or None
        self._note(seen)

    def confirm(self, *, anew: bool = False) -> None:
        """Make sure that it is still there.

        Args:
            anew (bool): ask the store even where it was asked a moment ago.

        Raises:
            NotFoundError: another graph is there, or none.
            UnavailableError: the store does not tell.
        """
        if self._graph is None:
            return
        now = self._store.identity(paths.STAMP)
        is_fresh = self._clock.monotonic() - self._seen_at < limits.ROOT_TRUSTED_S and not anew
        if now == self._seen and (now is not None or is_fresh):
            return
        try:
            stamp = read_stamp(self._store.get(paths.STAMP), path=paths.absolute(self._store, paths.STAMP))
        except ObjectNotFound:
            raise NotFoundError(
                f"the graph that was opened at {self._store.uri} is there no more: its root was removed",
                code="graph_not_found",
            ) from None
        if stamp.graph != self._graph:
            raise NotFoundError(
                f"another graph is at {self._store.uri} now ({stamp.graph}), in place of the one that was opened "
                f"there ({self._graph}); nothing was done to it: open it again",
                code="graph_replaced",
            )
        self._note(now)

    def _note(self, seen: tuple[int, ...] | None) -> None:
        self._seen = seen
        self._seen_at = self._clock.monotonic()
