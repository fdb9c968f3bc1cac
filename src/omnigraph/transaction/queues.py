"""In-process queues: writers of one (branch, table) run one at a time, so that they do not waste work on conflicts.

Throughput only: nothing depends on them for correctness, the fence is in the store. They are shared by every handle of
this process that was opened on the same root, however its path was spelled.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from omnigraph.errors import InternalError

_Key = tuple[str, str, str]


@dataclass(slots=True)
class _Queue:
    # Re-entrant: a write begun inside another of the same thread races it in the log instead of waiting for itself.
    lock: threading.RLock
    users: int = 0


_queues: dict[_Key, _Queue] = {}
_registry = threading.Lock()


@dataclass(frozen=True, slots=True)
class Held:
    """The queues a writer holds."""

    branch: str
    type_keys: frozenset[str]

    def covers(self, touched: frozenset[str]) -> None:
        """Refuse to go on when a table is touched that was not queued for."""
        missing = touched - self.type_keys
        if missing:
            raise InternalError(
                f"the write touched {', '.join(sorted(missing))} without queueing for it on branch '{self.branch}'",
                code="queue_not_held",
            )


@contextmanager
def held(root: str, branch: str, type_keys: frozenset[str]) -> Iterator[Held]:
    """Wait for, and hold, the queues of these tables; in sorted order, so that two writers cannot block each other."""
    with ExitStack() as stack:
        for type_key in sorted(type_keys):
            stack.enter_context(_one((root, branch, type_key)))
        yield Held(branch, type_keys)


@contextmanager
def _one(key: _Key) -> Iterator[None]:
    with _registry:
        queue = _queues.setdefault(key, _Queue(threading.RLock()))
        queue.users += 1
    try:
        with queue.lock:
            yield
    finally:
        with _registry:
            queue.users -= 1
            if queue.users == 0:
                del _queues[key]
