"""Named places where a test may stop, fail or lose the answer of a step.

A failpoint stands between two effects and is named for the step just done.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum


class Failpoint(StrEnum):
    """Every place, named protocol.step_just_done."""

    INIT_STAMP_PUT = "init.stamp_put"
    INIT_TABLES_CREATED = "init.tables_created"
    INIT_ENTRY_PUT = "init.entry_put"
    WRITE_HEALED = "write.healed"
    WRITE_PREPARED = "write.prepared"
    WRITE_INTENT_PUT = "write.intent_put"
    WRITE_TABLE_STAGED = "write.table_staged"
    WRITE_TABLES_STAGED = "write.tables_staged"
    WRITE_INTENT_COMPLETED = "write.intent_completed"
    WRITE_MADE_DURABLE = "write.made_durable"
    PUBLISH_ENTRY_PUT = "publish.entry_put"
    PUBLISH_INTENT_CLEARED = "publish.intent_cleared"
    PUBLISH_REFUSED = "publish.refused"
    PUBLISH_JUDGED = "publish.judged"
    STARVATION_PAUSE_REQUESTED = "starvation.pause_requested"
    RECOVERY_JUDGED = "recovery.judged"
    RECOVERY_ENTRY_PUT = "recovery.entry_put"
    RECOVERY_FILES_DELETED = "recovery.files_deleted"
    BRANCH_CHANGE_NOTED = "branch.change_noted"
    BRANCH_ENTRY_PUT = "branch.entry_put"
    PRUNE_PLANNED = "prune.planned"
    PRUNE_ENTRY_PUT = "prune.entry_put"
    LOAD_NOTED = "load.noted"
    LOAD_READ = "load.read"
    LOAD_JUDGED = "load.judged"
    SWEEP_LISTED = "sweep.listed"
    SWEEP_BARRIERS_PUT = "sweep.barriers_put"
    SWEEP_ROOTS_READ = "sweep.roots_read"
    SWEEP_CLASSIFIED = "sweep.classified"
    SWEEP_FLOORS_PUT = "sweep.floors_put"
    SWEEP_BATCH_DELETED = "sweep.batch_deleted"
    LEASE_PUT = "lease.put"


class Crash(BaseException):
    """A simulated death: no `except Exception` may hide it."""


_armed: ContextVar[tuple[Failpoint, Callable[[], None]] | None] = ContextVar("armed", default=None)


def reached(place: Failpoint) -> None:
    """Do what a test armed here; in production, nothing."""
    armed_here = _armed.get()
    if armed_here is not None and armed_here[0] is place:
        armed_here[1]()


@contextmanager
def armed(place: Failpoint, action: Callable[[], None]) -> Iterator[None]:
    """Run `action` whenever `place` is reached inside this block."""
    token = _armed.set((place, action))
    try:
        yield
    finally:
        _armed.reset(token)
