"""Every kind of write against every kind: one lands while the other is between its preparation and its publish."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from tests.support import operations as op
from tests.support import write_model as model
from tests.support.conflict_table import CONTENT, KINDS, Cell, Outcome, Relation, cells
from tests.support.interleaving import RacingStore, once
from tests.support.operations import COMPANY, PERSON
from tests.support.write_model import Act

from omnigraph import limits
from omnigraph.branch import branches
from omnigraph.errors import AlreadyExistsError, ConflictError, NotFoundError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.model.conflict import KeyConflict, ReadSetChanged
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.invariants import entries
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import IntentPolicy, Operation, Receipt, write

CHANGES_THE_SCHEMA = {"add-col", "add-type", "rm-type"}


@dataclass(frozen=True, slots=True)
class Graph:
    """A prepared graph, opened twice. Every test takes a branch of its own."""

    ours: GraphContext
    theirs: GraphContext
    base: model.Content

    def branch(self, name: str) -> str:
        branches.create(self.ours, name)
        return name


@pytest.fixture(scope="module")
def graph(module_folder: Path) -> Graph:
    root = str(module_folder / "graph")
    settings = Settings(durability="process")
    ours = op.new_graph(root, settings=settings, clock=ManualClock())
    for rows in CONTENT.values():
        write(ours, MAIN, op.upsert_many({PERSON: rows, COMPANY: rows}))
    return Graph(ours, open_root(root, settings=settings, clock=ManualClock()), op.contents(ours))


def raced(graph: Graph, branch: str, first: Act, second: Operation, place: Failpoint) -> Receipt:
    """Publish `first` from another handle while `second` is at `place`."""

    def land() -> None:
        assert write(graph.theirs, branch, first.operation(graph.theirs)).entry is not None

    with armed(place, once(land)):
        return write(graph.ours, branch, second)


def variants() -> list[ParameterSet]:
    """Every cell with small writes; with intents where the most happens, and everywhere in the long run."""
    small = [pytest.param(cell, Failpoint.WRITE_PREPARED, False, id=f"{cell}") for cell in cells()]
    return small + [
        pytest.param(
            cell,
            Failpoint.WRITE_TABLES_STAGED,
            True,
            id=f"{cell}, noted",
            marks=() if cell.relation is Relation.SAME_ROWS else pytest.mark.torture,
        )
        for cell in cells()
    ]


@pytest.mark.parametrize(("cell", "place", "noted"), variants())
def test_the_second_of_two_writes_ends_as_the_table_says(
    graph: Graph, cell: Cell, place: Failpoint, noted: bool
) -> None:
    branch = graph.branch(f"{cell} {place}")
    first, second = cell.acts()
    counted = op.Counted(
        replace(second.operation(graph.ours), intent=IntentPolicy.ALWAYS if noted else IntentPolicy.BY_SIZE)
    )

    try:
        raced(graph, branch, first, counted.operation, place)
    except ConflictError as refusal:
        outcome = refused(graph, cell, branch, refusal)
        expected = model.after(graph.base, first)
    else:
        outcome = Outcome.REBASE if counted.runs == 1 else Outcome.REDO
        expected = model.after(graph.base, first, second)

    assert outcome == cell.outcome
    assert counted.runs == (1 if outcome in (Outcome.REBASE, Outcome.REFUSE) else 2)
    assert op.contents(graph.theirs, branch) == expected
    assert graph.theirs.intents.listed() == []


def refused(graph: Graph, cell: Cell, branch: str, refusal: ConflictError) -> Outcome:
    """Which refusal it was; it must name what stands in the way, and the first write must be the last one there."""
    fork, first = entries(graph.theirs, branch)
    assert first.parent == fork.head_commit
    [conflict] = refusal.conflicts
    if isinstance(conflict, KeyConflict):
        assert conflict == KeyConflict(PERSON, "n")
        return Outcome.TAKEN
    if cell.first in CHANGES_THE_SCHEMA:
        assert conflict == ReadSetChanged("schema", fork.schema, first.schema)
    else:
        assert conflict == ReadSetChanged(PERSON, version(fork), version(first))
        assert refusal.code == "read_set_conflict"
    return Outcome.REFUSE


def version(entry: Record) -> str:
    return str(entry.tables[PERSON].version)


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "deleted-and-made-again"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_write_on_a_branch_that_was_deleted_meanwhile_is_refused(graph: Graph, kind: str, again: bool) -> None:
    branch = graph.branch(f"{kind} on a branch {again}")
    _, act = Cell("insert", kind, Relation.SAME_ROWS, Outcome.REFUSE).acts()
    counted = op.Counted(act.operation(graph.ours))

    def end() -> None:
        branches.delete(graph.theirs, branch)
        if again:
            branches.create(graph.theirs, branch)

    with armed(Failpoint.WRITE_PREPARED, once(end)), pytest.raises(ConflictError) as refusal:
        write(graph.ours, branch, counted.operation)

    fork, deletion, *_ = entries(graph.theirs, branch)
    assert refusal.value.conflicts == (ReadSetChanged("branch", fork.commit, deletion.commit),)
    assert counted.runs == 1
    kinds = [CommitKind.FORK, CommitKind.DELETE, *([CommitKind.FORK] if again else [])]
    assert [entry.kind for entry in entries(graph.theirs, branch)] == kinds
    if again:
        assert op.contents(graph.ours, branch) == graph.base


def racing(graph: Graph, others: Iterable[Callable[[], object]]) -> GraphContext:
    store = RacingStore(graph.ours.store, others)
    return open_root(store, settings=graph.ours.settings, clock=ManualClock())


@pytest.mark.parametrize("noted", [False, True], ids=["small", "noted"])
def test_a_write_that_loses_many_races_in_a_row_still_runs_once(graph: Graph, noted: bool) -> None:
    branch = graph.branch(f"many races {noted}")
    others = [
        model.insert(PERSON, {"x": 1}),
        model.update(PERSON, ("b",), 7),
        model.upsert(COMPANY, {"a": 7, "z": 7}),
        model.compact(PERSON),
        model.delete(PERSON, ("c",)),
        model.build_index(PERSON),
        model.insert(PERSON, {"y": 1}),
    ]
    second = model.both(model.upsert(PERSON, {"a": 10, "n": 10}), model.delete(PERSON, ("d",)))
    counted = op.Counted(
        replace(second.operation(graph.ours), intent=IntentPolicy.ALWAYS if noted else IntentPolicy.BY_SIZE)
    )

    ours = racing(graph, [partial(write, graph.theirs, branch, each.operation(graph.theirs)) for each in others])
    receipt = write(ours, branch, counted.operation)

    assert counted.runs == 1
    assert receipt.entry is not None
    assert receipt.entry.number == 2 + len(others)
    assert op.contents(graph.theirs, branch) == model.after(graph.base, *others, second)


def test_a_write_that_always_loses_gives_up_and_says_so(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PUBLISH_ATTEMPTS_MAX", 3)
    branch = graph.branch("always lost")
    landing = (partial(write, graph.theirs, branch, op.append(COMPANY, {f"x{each}": 1})) for each in count())

    with pytest.raises(ConflictError, match="too busy") as refusal:
        write(racing(graph, landing), branch, op.upsert(PERSON, {"a": 10}))

    assert refusal.value.code == "too_busy"
    assert op.rows_of(graph.ours, PERSON, branch) == graph.base[PERSON]


class BusyWaits(ManualClock):
    """Whenever somebody waits, another one writes."""

    def __init__(self, landing: Callable[[], object]) -> None:
        super().__init__()
        self._landing = landing

    def sleep(self, seconds: float) -> None:
        """Another write lands meanwhile."""
        super().sleep(seconds)
        self._landing()


def test_what_lands_while_a_write_waits_for_its_turn_does_not_make_it_lose_again(graph: Graph) -> None:
    branch = graph.branch("busy waits")
    names = (f"x{each}" for each in count())

    def another() -> object:
        return write(graph.theirs, branch, op.append(COMPANY, {next(names): 1}))

    store = RacingStore(graph.ours.store, [another] * (limits.PUBLISH_ATTEMPTS_EAGER + 3))
    ours = open_root(store, settings=graph.ours.settings, clock=BusyWaits(another))

    receipt = write(ours, branch, op.upsert(PERSON, {"a": 10}))

    assert receipt.attempts == 1
    assert op.rows_of(graph.ours, PERSON, branch)["a"] == 10


def test_a_write_that_must_always_run_again_gives_up_and_says_so(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REDO_ATTEMPTS_MAX", 3)
    branch = graph.branch("always redone")
    landing = (partial(write, graph.theirs, branch, op.upsert(PERSON, {"a": 100 + each})) for each in count())
    counted = op.Counted(op.upsert(PERSON, {"a": 10}))

    with pytest.raises(ConflictError, match="too busy") as refusal:
        write(racing(graph, landing), branch, counted.operation)

    assert counted.runs == 3
    assert refusal.value.code == "too_busy"
    [conflict] = refusal.value.conflicts
    assert isinstance(conflict, ReadSetChanged)
    assert conflict.member == PERSON
    assert op.rows_of(graph.ours, PERSON, branch)["a"] == 102


@pytest.mark.parametrize("kind", KINDS)
def test_a_branch_is_deleted_whatever_is_written_to_it_meanwhile(graph: Graph, kind: str) -> None:
    branch = graph.branch(f"deleted under {kind}")
    act, _ = Cell(kind, "insert", Relation.SAME_ROWS, Outcome.REBASE).acts()

    ours = racing(graph, [partial(write, graph.theirs, branch, act.operation(graph.theirs))])
    deletion = branches.delete(ours, branch)

    assert [entry.kind for entry in entries(graph.theirs, branch)][::2] == [CommitKind.FORK, CommitKind.DELETE]
    assert entries(graph.theirs, branch)[-1] == deletion
    with pytest.raises(NotFoundError):
        op.contents(graph.ours, branch)


def test_of_two_that_make_a_branch_at_once_one_succeeds(graph: Graph) -> None:
    ours = racing(graph, [partial(branches.create, graph.theirs, "wanted by two")])
    with pytest.raises(AlreadyExistsError, match="already exists"):
        branches.create(ours, "wanted by two")

    graph.branch("wanted again")
    branches.delete(graph.ours, "wanted again")
    ours = racing(graph, [lambda: None, partial(branches.create, graph.theirs, "wanted again")])
    with pytest.raises(AlreadyExistsError, match="already exists"):
        branches.create(ours, "wanted again")
    assert op.contents(graph.ours, "wanted again") == graph.base


def test_of_two_that_delete_a_branch_at_once_one_is_told_that_it_is_gone(graph: Graph) -> None:
    branch = graph.branch("deleted by two")
    ours = racing(graph, [partial(branches.delete, graph.theirs, branch)])
    with pytest.raises(NotFoundError, match="not found"):
        branches.delete(ours, branch)
    assert [entry.kind for entry in entries(graph.theirs, branch)] == [CommitKind.FORK, CommitKind.DELETE]


def test_the_table_in_the_test_is_whole() -> None:
    found = cells()
    assert len(found) == len(KINDS) ** 2 * len(Relation)
    assert len(set(found)) == len(found)
