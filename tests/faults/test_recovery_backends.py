"""Healing does the same wherever a graph lies."""

from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interrupted_writes import interrupt, recovered, set_aside
from tests.support.operations import COMPANY, PERSON, rows_of
from tests.support.write_kinds import next_write, opened, prepare

from omnigraph.failpoints import Failpoint
from omnigraph.ids import UlidSource
from omnigraph.model.commit import MAIN, RecoveryKind
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.storage.object_stores.s3 import S3Store
from omnigraph.testing.invariants import check_graph
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.recovery import Healed, heal
from omnigraph.transaction.write import write

WRITE = op.both(op.update(PERSON, ["a"], 5), op.insert(COMPANY, {"n": 1}))


@pytest.fixture(params=["memory", "local", pytest.param("s3", marks=pytest.mark.s3)])
def parts(request: pytest.FixtureRequest, folder: Path) -> GraphContext:
    store: ObjectStore
    match request.param:
        case "memory":
            store = MemoryStore(f"recovery-{UlidSource().new()}")
        case "local":
            store = LocalStore(folder / "graph", durability=Durability.PROCESS)
        case _:
            found: S3Store = request.getfixturevalue("s3_store")
            store = found
    prepare(store)
    return opened(store)


def table_files(parts: GraphContext) -> set[str]:
    return {listed.path for prefix in (paths.NODES, paths.EDGES) for listed in parts.table_files.list(prefix)}


def test_a_write_staged_whole_is_finished_on_top_of_others(parts: GraphContext) -> None:
    intent = interrupt(parts, WRITE)
    with set_aside(parts, intent):
        write(parts, MAIN, op.upsert(PERSON, {"b": 9}))
    healed = opened(parts.store)
    assert (rows_of(healed, PERSON)["a"], rows_of(healed, PERSON)["b"]) == (5, 9)
    [audit] = recovered(healed)
    assert audit.recovery is not None
    assert audit.recovery.kind is RecoveryKind.FINISHED
    next_write(healed)
    check_graph(healed)


def test_a_write_that_others_stand_against_is_undone_and_its_files_are_gone(parts: GraphContext) -> None:
    before = table_files(parts)
    intent = interrupt(parts, WRITE)
    staged = table_files(parts) - before
    with set_aside(parts, intent):
        write(parts, MAIN, op.upsert(PERSON, {"a": 9}))
    healed = opened(parts.store)
    assert rows_of(healed, PERSON)["a"] == 9
    assert staged
    assert not staged & table_files(healed)
    [audit] = recovered(healed)
    assert audit.aborted == (intent,)
    next_write(healed)
    check_graph(healed)


def test_a_write_that_was_published_is_tidied_up(parts: GraphContext) -> None:
    interrupt(parts, WRITE, at=Failpoint.PUBLISH_ENTRY_PUT)
    healed = opened(parts.store)
    assert rows_of(healed, PERSON)["a"] == 5
    assert len(recovered(healed)) == 1
    assert heal(healed) == Healed()
    check_graph(healed)
