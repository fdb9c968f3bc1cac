"""Writers of one table on one branch of one graph wait for each other; nobody else does."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import pytest
from tests.support import operations as op
from tests.support.operations import COMPANY, KNOWS, PERSON, rows_of
from tests.support.paused_work import paused

from omnigraph.branch import branches
from omnigraph.errors import InternalError
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN, Record
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.invariants import check_graph, entries
from omnigraph.transaction import idempotency, queues
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.queues import Held, held
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write

PERSONS = frozenset({PERSON})
_A_MOMENT_S = 0.05
_LONG_S = 60


def entering(root: str, branch: str, type_key: str) -> threading.Event:
    """Let a writer of this table come; the event is set once it is let in."""
    entered = threading.Event()

    def enter() -> None:
        with held(root, branch, frozenset({type_key})):
            entered.set()

    threading.Thread(target=enter, daemon=True).start()
    return entered


def waits(root: str, branch: str, type_key: str) -> bool:
    """Whether a writer of this table that comes now is not let in: looked at for a moment only."""
    return not entering(root, branch, type_key).wait(_A_MOMENT_S)


def goes_on(root: str, branch: str, type_key: str) -> bool:
    """Whether a writer of this table that comes now is let in."""
    return entering(root, branch, type_key).wait(_LONG_S)


def test_a_writer_waits_only_for_the_same_table_on_the_same_branch_of_the_same_graph() -> None:
    with held("graph", MAIN, PERSONS):
        assert waits("graph", MAIN, PERSON)
        assert goes_on("graph", MAIN, COMPANY)
        assert goes_on("graph", "side", PERSON)
        assert goes_on("another", MAIN, PERSON)


def test_a_queue_nobody_uses_is_forgotten() -> None:
    with held("graph", MAIN, frozenset({PERSON, COMPANY})):
        pass
    assert not [key for key in queues._queues if key[0] == "graph" and key[2] == COMPANY]


def test_a_writer_that_fails_lets_the_next_one_in() -> None:
    with pytest.raises(ZeroDivisionError), held("failing", MAIN, PERSONS):
        raise ZeroDivisionError
    assert goes_on("failing", MAIN, PERSON)


def test_writers_of_many_tables_named_in_any_order_never_block_each_other() -> None:
    tables = ("node:A", "node:B", "node:C")
    counts = dict.fromkeys(tables, 0)

    def work(order: tuple[str, ...]) -> None:
        for _ in range(50):
            with held("many", MAIN, frozenset(order[:2])):
                for table in order[:2]:
                    counts[table] += 1

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, order) for order in permutations(tables)]:
            done.result(timeout=60)
    assert sum(counts.values()) == 6 * 50 * 2


def test_a_table_that_was_not_queued_for_is_refused_by_name() -> None:
    Held(MAIN, PERSONS).covers(PERSONS)
    Held(MAIN, PERSONS).covers(frozenset())
    with pytest.raises(InternalError, match=COMPANY) as refused:
        Held(MAIN, PERSONS).covers(frozenset({PERSON, COMPANY}))
    assert refused.value.code == "queue_not_held"


def test_whoever_is_next_in_line_does_not_wait_until_a_key_is_noted(
    parts: GraphContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_in = []
    note_use = idempotency.note_use

    def noting(parts: GraphContext, branch: str, key: str, entry: Record) -> None:
        let_in.append(goes_on(parts.store.uri, branch, PERSON))
        note_use(parts, branch, key, entry)

    monkeypatch.setattr(idempotency, "note_use", noting)
    first = write(parts, MAIN, op.insert(PERSON, {"a": 1}), WriteOptions(idempotency_key="once"))
    again = write(parts, MAIN, op.insert(PERSON, {"a": 1}), WriteOptions(idempotency_key="once"))

    assert let_in == [True]
    assert again.replayed
    assert again.entry == first.entry


def test_a_write_that_touches_a_table_it_did_not_announce_does_nothing(parts: GraphContext) -> None:
    both = op.both(op.insert(PERSON, {"a": 1}), op.insert(COMPANY, {"x": 1}))
    files = {listed.path for listed in parts.table_files.list("")}
    with pytest.raises(InternalError, match=COMPANY):
        write(parts, MAIN, Operation(both.kind, PERSONS, both.run, redoable=True))
    assert {listed.path for listed in parts.table_files.list("")} == files
    assert len(entries(parts)) == 1


def test_a_write_waits_only_for_one_of_its_own_table_and_branch(store: MemoryStore, parts: GraphContext) -> None:
    branches.create(parts, "side")
    other = open_root(store)
    with ThreadPoolExecutor(1) as pool:
        with paused(lambda: write(parts, MAIN, op.insert(PERSON, {"a": 1})), at=Failpoint.WRITE_PREPARED) as first:
            write(other, MAIN, op.insert(COMPANY, {"x": 1}))
            write(other, "side", op.insert(PERSON, {"a": 1}))
            # The queue is the process's, not the handle's.
            second = pool.submit(write, other, MAIN, op.insert(PERSON, {"b": 2}))
            assert waits(store.uri, MAIN, PERSON)
            assert not second.done()
        assert first.result().attempts == second.result().attempts == 1
    assert rows_of(parts, PERSON) == {"a": 1, "b": 2}
    check_graph(parts)


def test_many_writers_of_several_tables_beside_healers_all_come_through(parts: GraphContext) -> None:
    def work(number: int) -> None:
        keys = [PERSON, COMPANY, KNOWS]
        rotated = keys[number % 3 :] + keys[: number % 3]
        operation = op.upsert_many({key: {f"{number}": number} for key in rotated[:2]})
        write(parts, MAIN, op.noted(operation) if number % 2 else operation)

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, number) for number in range(12)]:
            done.result(timeout=120)
    assert len(entries(parts)) == 13
    check_graph(parts)
