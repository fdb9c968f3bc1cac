"""What a caller may require of the head, and who wins when two require the same."""

from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interleaving import once
from tests.support.operations import COMPANY, PERSON

from omnigraph.branch import branches
from omnigraph.errors import ConflictError, PreconditionError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN, Record
from omnigraph.model.conflict import ExpectedVersionMismatch
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.invariants import check_graph, entries
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.pruning.prune import put_barrier
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write

SETTINGS = Settings(durability="process")


@pytest.fixture
def parts(tmp_path: Path) -> GraphContext:
    parts = op.new_graph(str(tmp_path / "graph"), settings=SETTINGS, clock=ManualClock())
    write(parts, MAIN, op.upsert_many({PERSON: {"a": 1, "b": 2}, COMPANY: {"x": 1}}))
    return parts


@pytest.fixture
def other(parts: GraphContext) -> GraphContext:
    return open_root(parts.store, settings=SETTINGS, clock=ManualClock())


def head(parts: GraphContext) -> Record:
    return parts.log.live_head(MAIN)


def expecting(entry: Record, *type_keys: str) -> WriteOptions:
    return WriteOptions(expected_table_versions={key: entry.tables[key].version for key in type_keys})


@pytest.mark.parametrize("place", [Failpoint.WRITE_HEALED, Failpoint.WRITE_PREPARED, Failpoint.WRITE_TABLES_STAGED])
@pytest.mark.parametrize(
    "second",
    [op.insert(PERSON, {"n": 1}), op.append(PERSON, {"n": 1}), op.update(PERSON, ["b"], 5), op.delete(PERSON, ["b"])],
    ids=["insert", "append", "update", "delete"],
)
def test_of_two_writers_that_expect_one_table_version_one_succeeds_whatever_their_rows(
    parts: GraphContext, other: GraphContext, second: Operation, place: Failpoint
) -> None:
    base = head(parts)
    landed: list[Record | None] = []

    def land() -> None:
        landed.append(write(other, MAIN, op.insert(PERSON, {"m": 1}), expecting(base, PERSON)).entry)

    with armed(place, once(land)), pytest.raises(ConflictError) as refusal:
        write(parts, MAIN, second, expecting(base, PERSON))

    [winner] = landed
    assert winner is not None
    assert refusal.value.conflicts == (
        ExpectedVersionMismatch(PERSON, base.tables[PERSON].version, winner.tables[PERSON].version),
    )
    assert head(parts) == winner
    assert op.rows_of(parts, PERSON) == {"a": 1, "b": 2, "m": 1}
    check_graph(parts)


def test_an_expectation_on_a_table_the_write_does_not_touch_is_enforced_too(
    parts: GraphContext, other: GraphContext
) -> None:
    base = head(parts)
    moved = write(other, MAIN, op.insert(COMPANY, {"y": 1})).entry
    assert moved is not None

    with pytest.raises(ConflictError) as refusal:
        write(parts, MAIN, op.insert(PERSON, {"n": 1}), expecting(base, PERSON, COMPANY))

    assert refusal.value.conflicts == (
        ExpectedVersionMismatch(COMPANY, base.tables[COMPANY].version, moved.tables[COMPANY].version),
    )
    assert op.rows_of(parts, PERSON) == {"a": 1, "b": 2}


def test_an_expectation_on_an_unknown_table_finds_it_at_version_zero(parts: GraphContext) -> None:
    before = entries(parts)
    with pytest.raises(ConflictError) as refusal:
        write(
            parts, MAIN, op.insert(PERSON, {"n": 1}), WriteOptions(expected_table_versions={"node:Ghost": 3, PERSON: 4})
        )
    actual = before[-1].tables[PERSON].version
    assert refusal.value.conflicts == (
        ExpectedVersionMismatch("node:Ghost", 3, 0),
        ExpectedVersionMismatch(PERSON, 4, actual),
    )
    assert entries(parts) == before


def test_expected_versions_that_hold_let_a_write_be_rebased_over_other_tables(
    parts: GraphContext, other: GraphContext
) -> None:
    base = head(parts)

    with armed(Failpoint.WRITE_PREPARED, once(lambda: write(other, MAIN, op.insert(COMPANY, {"y": 1})))):
        receipt = write(parts, MAIN, op.insert(PERSON, {"n": 1}), expecting(base, PERSON))

    assert receipt.entry is not None
    assert receipt.entry.number == base.number + 2
    check_graph(parts)


@pytest.mark.parametrize("place", [None, Failpoint.WRITE_PREPARED, Failpoint.WRITE_TABLES_STAGED])
def test_a_write_on_a_named_commit_is_refused_once_the_head_is_another(
    parts: GraphContext, other: GraphContext, place: Failpoint | None
) -> None:
    base = head(parts)
    land = once(lambda: write(other, MAIN, op.insert(COMPANY, {"y": 1})))
    if place is None:
        land()
    with armed(place or Failpoint.WRITE_PREPARED, land), pytest.raises(PreconditionError) as refusal:
        write(parts, MAIN, op.insert(PERSON, {"n": 1}), WriteOptions(if_commit=base.commit))

    moved = head(parts)
    assert refusal.value.details == {"branch": MAIN, "expected": base.commit, "actual": moved.commit}
    assert moved.number == base.number + 1
    assert op.rows_of(parts, PERSON) == {"a": 1, "b": 2}


def test_the_head_commit_of_a_fresh_branch_is_its_sources_and_can_be_named(parts: GraphContext) -> None:
    base = head(parts)
    branches.create(parts, "side")

    receipt = write(parts, "side", op.insert(PERSON, {"n": 1}), WriteOptions(if_commit=base.commit))

    assert receipt.entry is not None
    assert receipt.entry.parent == base.commit
    with pytest.raises(PreconditionError):
        write(parts, "side", op.insert(PERSON, {"o": 1}), WriteOptions(if_commit=base.commit))


def test_a_write_that_changes_nothing_is_bound_by_its_conditions_all_the_same(parts: GraphContext) -> None:
    base = head(parts)
    nothing = op.delete(PERSON, ["nobody"])
    assert write(parts, MAIN, nothing, WriteOptions(if_commit=base.commit)).entry is None
    assert write(parts, MAIN, nothing, expecting(base, PERSON)).entry is None
    write(parts, MAIN, op.insert(PERSON, {"n": 1}))

    with pytest.raises(PreconditionError):
        write(parts, MAIN, nothing, WriteOptions(if_commit=base.commit))
    with pytest.raises(ConflictError):
        write(parts, MAIN, nothing, expecting(base, PERSON))
    assert head(parts).number == base.number + 1


def test_commits_that_change_no_row_break_no_precondition(parts: GraphContext, other: GraphContext) -> None:
    base = head(parts)
    write(other, MAIN, op.build_index(other, PERSON))
    write(other, MAIN, op.compact(other, PERSON))
    put_barrier(other, MAIN)
    write(other, MAIN, op.compact(other, COMPANY))

    write(parts, MAIN, op.insert(PERSON, {"n": 1}), WriteOptions(if_commit=base.commit))

    with pytest.raises(PreconditionError):
        write(parts, MAIN, op.insert(PERSON, {"o": 1}), WriteOptions(if_commit=base.commit))
    write(parts, MAIN, op.insert(COMPANY, {"n": 1}), expecting(base, COMPANY))
    with pytest.raises(ConflictError):
        write(parts, MAIN, op.insert(PERSON, {"o": 1}), expecting(base, PERSON))
    with pytest.raises(ConflictError):
        write(parts, MAIN, op.insert(COMPANY, {"o": 1}), expecting(base, COMPANY))
