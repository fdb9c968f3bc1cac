"""Writes that were interrupted under an intent, and what is left of them."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.operations import noted

from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.model.commit import MAIN, Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.testing.invariants import entries
from omnigraph.transaction import recovery, root
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.recovery import Healed
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write

LONG_AGO_S = 1_000_000_000


def interrupt(
    parts: GraphContext,
    operation: Operation,
    *,
    at: Failpoint = Failpoint.WRITE_INTENT_COMPLETED,
    branch: str = MAIN,
    options: WriteOptions | None = None,
) -> str:
    """Begin a write under an intent, and die at a place on the way.

    Args:
        operation (Operation): what to begin.
        at (Failpoint): where to die; by default when everything is staged and nothing published.
        branch (str): where to write.
        options (WriteOptions | None): what else to say about the write.

    Returns:
        str: the intent left behind.
    """
    return die_in(parts, lambda: write(parts, branch, noted(operation), options or WriteOptions(actor="ada")), at=at)


def die_in(parts: GraphContext, work: Callable[[], object], *, at: Failpoint = Failpoint.WRITE_INTENT_COMPLETED) -> str:
    """Begin work that leaves an intent, and die at a place on the way.

    Args:
        work (Callable[[], object]): what to begin.
        at (Failpoint): where to die.

    Returns:
        str: the intent left behind.
    """
    died = False

    def die() -> None:
        nonlocal died
        died = True
        raise Crash

    before = set(noted_intents(parts))
    with suppress(Crash), armed(at, die):
        work()
    assert died, f"the work never came to {at}"
    [left] = set(noted_intents(parts)) - before
    return left


def noted_intents(parts: GraphContext) -> list[str]:
    """The intents on the store, in order, whoever made them.

    Returns:
        list[str]: their ids.
    """
    names = [listed.path.removeprefix(paths.RECOVERY) for listed in parts.store.list(paths.RECOVERY)]
    return [name.removesuffix(".json") for name in names if name.endswith(".json")]


def recovered(parts: GraphContext, branch: str = MAIN) -> list[Record]:
    """The entries that say how an interrupted write ended, oldest first.

    Args:
        branch (str): whose log to look in.

    Returns:
        list[Record]: each with its audit.
    """
    return [entry for entry in entries(parts, branch) if entry.recovery is not None]


def move_to_another_host(parts: GraphContext, intent: str) -> None:
    """Let an intent look as if a process of another host had put it a moment ago.

    Args:
        parts (GraphContext): of a graph on local disk.
        intent (str): which.
    """
    path = paths.intent(intent)
    found = json.loads(parts.store.get(path))
    found["writer"] |= {"boot": "another boot", "token": "another process"}
    parts.store.put(path, json.dumps(found).encode())


def let_it_grow_old(parts: GraphContext, intent: str) -> None:
    """Let an intent look as if its writer had not shown life for a long time.

    Args:
        parts (GraphContext): of a graph on local disk.
        intent (str): which.
    """
    folder = Path(parts.store.uri) / paths.RECOVERY
    for file in folder.glob(f"{intent}.*"):
        os.utime(file, (LONG_AGO_S, LONG_AGO_S))


@contextmanager
def set_aside(parts: GraphContext, intent: str) -> Iterator[None]:
    """Take an intent off the store while the block runs, as if its writer had put it only afterwards.

    What is written inside is then on the store as another process would have written it beside the living writer.

    Args:
        intent (str): which.
    """
    names = [listed.path for listed in parts.store.list(paths.RECOVERY) if intent in listed.path]
    taken = {name: parts.store.get(name) for name in names}
    for name in names:
        parts.store.delete(name)
    yield
    for name, body in taken.items():
        parts.store.put(name, body)


def open_and_heal(uri: str | ObjectStore, **options: Any) -> tuple[GraphContext, Healed]:  # noqa: ANN401  (those of `open_root`)
    """Open a graph, and return what opening it has healed, too."""
    found = [Healed()]

    def heal(parts: GraphContext) -> Healed:
        found.append(recovery.heal(parts))
        return found[-1]

    with patch.object(root, "heal", heal):
        return open_root(uri, **options), found[-1]
