"""A write that stood still so long that another process finished it, and what became of the log since."""

from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interleaving import RacingStore
from tests.support.interrupted_writes import set_aside
from tests.support.needed_files import AT_ONCE
from tests.support.operations import COMPANY, PERSON, rows_of
from tests.support.paused_work import paused

from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import ConflictError, OutcomeUnknownError
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.storage import paths
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.transaction import intent
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.recovery import heal
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet

# Twice in the log it would be twice in the table.
APPEND = op.noted(op.append(PERSON, {"n": 1}))


def end_as_another_process(root: Path, monkeypatch: pytest.MonkeyPatch) -> GraphContext:
    """Take the writer of the only intent for dead, and end its work."""
    other = open_root(LocalStore(root, durability=Durability.PROCESS), settings=AT_ONCE)
    with monkeypatch.context() as as_elsewhere:
        as_elsewhere.setattr(intent, "_live", set())
        assert len(heal(other).ended) == 1
    return other


@pytest.mark.parametrize("cuts", [False, True], ids=["pruned", "pruned and swept"])
def test_it_is_acknowledged_once_though_its_base_was_pruned(
    root: Path, parts: GraphContext, monkeypatch: pytest.MonkeyPatch, *, cuts: bool
) -> None:
    with paused(lambda: write(parts, MAIN, APPEND), at=Failpoint.WRITE_INTENT_COMPLETED) as writing:
        other = end_as_another_process(root, monkeypatch)
        finished = other.log.live_head(MAIN)
        prune(other, MAIN, Policy(keep=1, now=True))
        if cuts:
            sweep(other, older_than_s=0)

    entry = writing.result().entry
    assert entry is not None
    assert (entry.commit, entry.kind) == (finished.commit, CommitKind.RECOVER)
    assert rows_of(parts, PERSON)["n"] == 1


def test_it_is_acknowledged_once_though_the_files_it_is_rebased_on_were_swept(
    root: Path, parts: GraphContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing of the other's is in the log when it is looked at; everything is when the tables are read.
    store = LocalStore(root, durability=Durability.PROCESS)
    faster = RacingStore(store, [lambda: write(parts, MAIN, op.append(PERSON, {"o": 1}))])
    slow = open_root(faster, settings=AT_ONCE)
    with paused(lambda: write(slow, MAIN, APPEND), at=Failpoint.PUBLISH_JUDGED) as writing:
        other = end_as_another_process(root, monkeypatch)
        finished = other.log.live_head(MAIN)
        prune(other, MAIN, Policy(keep=1, now=True))
        sweep(other, older_than_s=0)

    entry = writing.result().entry
    assert entry is not None
    assert (entry.commit, entry.kind) == (finished.commit, CommitKind.RECOVER)
    assert rows_of(parts, PERSON)["n"] == 1


def test_its_outcome_is_unknown_once_the_entry_that_finished_it_was_cut(
    root: Path, parts: GraphContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with paused(lambda: write(parts, MAIN, APPEND), at=Failpoint.WRITE_INTENT_COMPLETED) as writing:
        other = end_as_another_process(root, monkeypatch)
        write(other, MAIN, op.append(COMPANY, {"n": 1}))
        prune(other, MAIN, Policy(keep=1, now=True))
        sweep(other, older_than_s=0)

    with pytest.raises(OutcomeUnknownError, match="took the write"):
        writing.result()
    assert rows_of(parts, PERSON)["n"] == 1


def test_it_is_refused_where_it_was_undone(root: Path, parts: GraphContext, monkeypatch: pytest.MonkeyPatch) -> None:
    with paused(lambda: write(parts, MAIN, APPEND), at=Failpoint.WRITE_MADE_DURABLE) as writing:
        other = end_as_another_process(root, monkeypatch)
        prune(other, MAIN, Policy(keep=1, now=True))
        sweep(other, older_than_s=0)

    with pytest.raises(ConflictError):
        writing.result()
    assert "n" not in rows_of(parts, PERSON)


def test_an_attempt_that_was_withdrawn_is_not_published_by_a_healer_that_decided_before(
    root: Path, parts: GraphContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = count(1)

    def run(write_set: WriteSet) -> None:
        write_set.insert(PERSON, op.table_of({f"run {next(runs)}": 1}), fresh_ids=True)

    operation = op.noted(Operation(CommitKind.MUTATION, frozenset({PERSON}), run, redoable=True))
    other = open_root(LocalStore(root, durability=Durability.PROCESS), settings=AT_ONCE)
    with ExitStack() as standing_still:
        place = Failpoint.WRITE_INTENT_COMPLETED
        writing = standing_still.enter_context(paused(lambda: write(parts, MAIN, operation), at=place))
        write(other, MAIN, op.append(COMPANY, {"n": 1}))
        [intent_id] = {name.path.removeprefix(paths.RECOVERY)[:26] for name in other.store.list(paths.RECOVERY)}
        monkeypatch.setattr(intent, "_live", set())
        with paused(lambda: heal(other), at=Failpoint.RECOVERY_JUDGED) as healing:
            with set_aside(other, intent_id):  # a prune that was planned before the intent was put
                prune(other, MAIN, Policy(keep=1, now=True))
            standing_still.close()
            entry = writing.result().entry

    assert entry is not None
    assert entry.aborted == (intent_id,)
    assert healing.result().ended == (intent_id,)
    assert [name for name in rows_of(parts, PERSON) if name.startswith("run")] == ["run 2"]
    assert list(other.store.list(paths.RECOVERY)) == []
