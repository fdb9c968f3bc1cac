"""The simulator must find every defect of the kind it is there for: each is put back, and a universe must break.

A bug replaces one decision of the product while universes run. Those that are found soon are looked for in every run,
the others in the long ones.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from tests.support.simulator.universe import Universe

from omnigraph.branch import adoption
from omnigraph.branch.sweep import roots
from omnigraph.branch.sweep import sweep as sweep_module
from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectExists, OutcomeUnknown
from omnigraph.storage.object_stores.externally_fenced import ExternallyFencedStore
from omnigraph.transaction import intent, liveness, publish, recovery, root
from omnigraph.transaction.log import Log
from omnigraph.transaction.publish import Draft

UNIVERSES_MAX = 4_000
SOON = 1_000


@dataclass(frozen=True)
class Bug:
    """One decision put wrong.

    Attributes:
        name: what is wrong then.
        owner: the module or class that decides.
        decision: the attribute that is replaced.
        wrong: what stands there instead.
        is_found_soon: it breaks one universe in a hundred or more.
    """

    name: str
    owner: object
    decision: str
    wrong: Callable[..., Any]
    is_found_soon: bool = False


def _trust_for_a_minute() -> Callable[[Log, Record], bool]:
    """Take an entry that was seen less than a minute ago, by this host's own clock, for one that is there."""
    look, seen = Log.is_there, dict[tuple[int, str], float]()

    def is_there(log: Log, record: Record) -> bool:
        now_s = log._clock.monotonic()
        key = (id(log), record.commit)
        if now_s - seen.get(key, -1e9) < 60:
            return True
        if look(log, record):
            seen[key] = now_s
            return True
        return False

    return is_there


def _put_without_reading_back(log: Log, entry: Record, body: bytes) -> object:
    """Take a lost answer for a success."""
    try:
        log._store.put_if_absent(paths.entry(entry.branch, entry.number), body)
    except ObjectExists:
        return log._look(entry.branch, entry.number)
    except OutcomeUnknown:
        return None
    return None


BUGS = (
    Bug("a sweep puts no barrier", sweep_module, "put_barrier", lambda _parts, _branch: None, is_found_soon=True),
    Bug("a write passes over the barrier it meets", publish, "has_barrier", lambda _newer: False),
    Bug(
        "the entry that a put was built on is not confirmed",
        Log,
        "_judge_baseless",
        lambda log, entry, _after: log._published(entry, whole=True),
        is_found_soon=True,
    ),
    Bug("an entry seen a minute ago is trusted to be there", Log, "is_there", _trust_for_a_minute()),
    Bug("entries name no graph", Log, "expect", lambda _log, _graph, _seen=None: None),
    Bug(
        "a fence knows a graph by its address",
        ExternallyFencedStore,
        "_root_of",
        lambda store, _path: store.uri,
    ),
    Bug("a writer may name any fence", root, "_check_fence", lambda _parts, _stamp: None),
    Bug(
        "a process of a host of the same name is looked for here",
        intent,
        "has_ended",
        lambda writer, here: writer.host == here.host and liveness._process_started(writer.pid) != writer.started,
    ),
    Bug("a sweep does not look for intents", roots, "held", lambda _parts, now_us: roots.Held((), ())),
    Bug("what a tag or a fork names is not looked at again", adoption, "check_named", lambda *_: None),
    Bug("an undo declares nobody dead", recovery, "Draft", lambda **fields: Draft(**{**fields, "aborted": ()})),
    Bug("a healer ends a living intent", intent.Intents, "_may_live", lambda *_: False),
    Bug("a lost answer is taken for a success", Log, "_put_or_find", _put_without_reading_back),
)


def search(bug: Bug, most: int) -> int | None:
    """Return how many universes it took until one broke; None where none did."""
    with ExitStack() as planted:
        planted.enter_context(patch.object(bug.owner, bug.decision, bug.wrong))
        for seed in range(most):
            try:
                Universe(seed).run()
            except Exception:  # noqa: BLE001  (however it breaks)
                return seed + 1
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.is_found_soon], ids=lambda bug: bug.name)
def test_a_planted_bug_is_found_soon(bug: Bug) -> None:
    assert search(bug, SOON) is not None


@pytest.mark.torture
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("bug", [bug for bug in BUGS if not bug.is_found_soon], ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    assert search(bug, UNIVERSES_MAX) is not None
