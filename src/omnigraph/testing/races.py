"""Letting somebody else be faster."""

from collections.abc import Callable, Iterable
from itertools import islice

from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T


def once(action: Callable[[], object]) -> Callable[[], None]:
    """An action to arm at a failpoint that others, and the action itself, come through too.

    Args:
        action (Callable[[], object]): what to do.

    Returns:
        Callable[[], None]: does it the first time and never again.
    """
    left = [action]

    def run() -> None:
        if left:
            left.pop()()

    return run


class RacingStore(ForwardingStore):
    """Lets others write first: before each log entry that is put through it, one of theirs lands."""

    def __init__(self, inner: ObjectStore, others: Iterable[Callable[[], object]]) -> None:
        """A store before `inner`.

        Args:
            inner (ObjectStore): does the work.
            others (Iterable[Callable[[], object]]): what lands before the first entry, before the second and so on; it
                goes through another store.
        """
        super().__init__(inner)
        self._others = iter(others)

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        if kind is RequestKind.PUT_IF_ABSENT and path.startswith(paths.LOGS):
            for land in islice(self._others, 1):
                land()
        return send()
