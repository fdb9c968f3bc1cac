"""Death in the middle of upkeep, at every step it takes: no answer changes, and no writer has to wait for anything."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cuts import Copies, at_every_failpoint, at_every_request
from tests.support.interrupted_writes import die_in, set_aside
from tests.support.operations import contents, upsert
from tests.support.write_kinds import SETTINGS, opened

from omnigraph.failpoints import Failpoint
from omnigraph.language.schema import accept
from omnigraph.model.commit import MAIN, CommitKind, RecoveryKind
from omnigraph.model.schema import Schema
from omnigraph.model.schema_document import digest
from omnigraph.storage.layout import table_schemas
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph, entries
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.optimize import compact_tail, optimize
from omnigraph.transaction.recovery import Healed, heal
from omnigraph.transaction.root import init
from omnigraph.transaction.write import write

PERSON, COMPANY = "node:Person", "node:Company"
SCHEMA = accept("node Person { v: I64? @index } node Company { v: I64? }")
EXPECTED: dict[str, dict[str, int | None]] = {
    COMPANY: {f"c{number}": number for number in range(4)},
    PERSON: {"often": 3, **{f"p{number}": number for number in range(4)}},
}
Act = Callable[[GraphContext], object]


def schema_of(_: str) -> Schema:
    return SCHEMA


def optimizing(parts: GraphContext) -> object:
    return optimize(parts, MAIN, schema_of)


def compacting(parts: GraphContext) -> object:
    return compact_tail(parts, MAIN, frozenset({PERSON}), schema_of)


ACTS = [pytest.param(optimizing, id="optimize"), pytest.param(compacting, id="tail")]


@pytest.fixture(scope="module")
def fragmented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables of several small fragments; rows replaced and deleted."""
    root = tmp_path_factory.mktemp("fragmented") / "graph"
    store = LocalStore(root, durability=Durability.PROCESS)
    parts = init(store, table_schemas(SCHEMA), schema=digest(SCHEMA), settings=SETTINGS, clock=ManualClock())
    for number in range(4):
        write(parts, MAIN, upsert(PERSON, {f"p{number}": number, "often": number}))
        write(parts, MAIN, upsert(COMPANY, {f"c{number}": number}))
    return root


@pytest.fixture
def copies(fragmented: Path, folder: Path) -> Copies:
    return Copies(fragmented, folder)


def fragments(parts: GraphContext, type_key: str = PERSON) -> int:
    return parts.snapshot(parts.log.live_head(MAIN)).table(type_key).layout().fragments


def survives(store: FaultyStore, where: str) -> int:
    """Open what is left as a new process would; returns how many fragments it has."""
    parts = opened(store)
    assert contents(parts) == EXPECTED, where
    found = fragments(parts)
    assert found in (1, 4), where
    receipt = write(parts, MAIN, upsert(PERSON, {"next": 1}))
    assert receipt.attempts == 1, where
    assert heal(parts) == Healed(), where
    check_graph(parts)
    optimize(parts, MAIN, schema_of)
    assert contents(parts) == {**EXPECTED, PERSON: {**EXPECTED[PERSON], "next": 1}}, where
    assert fragments(parts) == 1, where
    return found


@pytest.mark.parametrize("act", ACTS)
def test_upkeep_that_dies_at_any_request_changes_no_answer_and_hinders_nobody(act: Act, copies: Copies) -> None:
    def work(store: FaultyStore) -> None:
        act(opened(store))

    seen = [survives(cut.store, cut.where) for cut in at_every_request(copies, Fault.CRASH_AFTER, work)]
    # From some request on it is done, or is finished by whoever opens the graph next.
    assert seen[-1] == 1
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize("act", ACTS)
def test_upkeep_that_dies_between_two_steps_changes_no_answer_and_hinders_nobody(act: Act, copies: Copies) -> None:
    def work(store: FaultyStore) -> None:
        act(opened(store))

    places = [place for place in Failpoint if place.startswith(("write.", "publish."))]
    seen = [survives(cut.store, cut.where) for cut in at_every_failpoint(copies, work, places)]
    assert {1, 4} == set(seen)


def test_upkeep_whose_put_is_answered_by_nobody_is_there_once(copies: Copies) -> None:
    store = copies.fresh()
    parts = opened(store)
    store.arm(Fault.LOSE_ANSWER, path_part="/log/")
    done = optimize(parts, MAIN, schema_of)
    store.disarm()
    assert done.entry is not None
    kinds = [entry.kind for entry in parts.log.between(MAIN, 1, parts.log.live_head(MAIN).number)]
    assert kinds.count(CommitKind.COMPACT) == 1
    assert contents(parts) == EXPECTED


def test_upkeep_that_died_is_finished_on_top_of_rows_written_since(copies: Copies) -> None:
    parts = opened(copies.fresh())
    intent_id = die_in(parts, lambda: optimizing(parts))
    with set_aside(parts, intent_id):
        write(parts, MAIN, upsert(PERSON, {"late": 9, "often": 10}))
    assert fragments(parts) == 5

    reopened = opened(parts.store)

    assert reopened.intents.listed() == []
    assert [entry.recovery.kind for entry in entries(parts) if entry.recovery] == [RecoveryKind.FINISHED]
    assert contents(reopened) == {**EXPECTED, PERSON: {**EXPECTED[PERSON], "late": 9, "often": 10}}
    assert fragments(reopened) == 2
    check_graph(reopened)


def test_upkeep_that_died_is_undone_where_others_laid_out_the_table_since(copies: Copies) -> None:
    parts = opened(copies.fresh())
    intent_id = die_in(parts, lambda: optimizing(parts))
    with set_aside(parts, intent_id):
        optimizing(parts)

    reopened = opened(parts.store)

    assert [entry.recovery.kind for entry in entries(parts) if entry.recovery] == [RecoveryKind.UNDONE]
    assert contents(reopened) == EXPECTED
    check_graph(reopened)
