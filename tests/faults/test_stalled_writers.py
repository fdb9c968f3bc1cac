"""Writers and readers that stood still while others pruned and swept: nobody builds on, or reads, what is gone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interleaving import RacingStore, once
from tests.support.needed_files import needless_files
from tests.support.operations import COMPANY, PERSON
from tests.support.paused_work import OtherProcess, paused

from omnigraph.branch import branches, tags
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import ConflictError
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.model.conflict import BasePruned
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.records.read import record_bytes
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction import queues
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.log import Baseless, Done, Log
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.publish import Draft, entry_after
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, Receipt, write
from omnigraph.transaction.write_set.stage import nothing_staged

AT_ONCE = Settings(durability="process", protection_s=0, log_cut_s=0)
NOTED = replace(AT_ONCE, intent_rows_min=0)
COMPANIES = {"x": 3, "y": 2, "z0": 0, "z1": 0, "z2": 0}
PLACES = [Failpoint.WRITE_PREPARED, Failpoint.WRITE_TABLE_STAGED, Failpoint.WRITE_MADE_DURABLE]


@contextmanager
def nobody_waits(_root: str, branch: str, type_keys: frozenset[str]) -> Iterator[queues.Held]:
    yield queues.Held(branch, type_keys)


@pytest.fixture(autouse=True)
def _as_in_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who are parked make nobody else in this process wait."""
    monkeypatch.setattr(queues, "held", nobody_waits)


@pytest.fixture
def parts(root: Path) -> GraphContext:
    """The prepared graph with a few more commits, which nobody holds, and nothing to wait for."""
    made = opened(root)
    for number in range(3):
        write(made, MAIN, op.upsert(COMPANY, {"y": 2, f"z{number}": 0}))
    return made


def opened(root: str | Path, settings: Settings = AT_ONCE) -> GraphContext:
    return open_root(LocalStore(root, durability=Durability.PROCESS), settings=settings, clock=ManualClock())


def others_go_on(root: str | Path, *, times: int = 4) -> None:
    """Another process writes, compacts, prunes all but the newest and sweeps everything."""
    other = opened(root)
    for number in range(times):
        write(other, MAIN, op.upsert_many({PERSON: {"a": 100 + number}, COMPANY: {"x": number}}))
    write(other, MAIN, op.compact(other, PERSON))
    prune(other, MAIN, Policy(keep=1, now=True))
    sweep(other, older_than_s=0)


def entry_on(parts: GraphContext, head: Record) -> Record:
    """An entry that changes nothing, for the place after `head`."""
    draft = Draft(branch=head.branch, kind=CommitKind.BARRIER, actor="stalled")
    return entry_after(parts, head, nothing_staged(head), draft)


def check(root: str | Path, **rows: op.Rows) -> None:
    """Everything that is kept is there and readable, and nothing else is."""
    fresh = opened(root)
    for key, expected in rows.items():
        assert op.rows_of(fresh, {"person": PERSON, "company": COMPANY}[key]) == expected
    sweep(fresh, older_than_s=0)
    assert needless_files(fresh) == []


# -- writers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [AT_ONCE, NOTED], ids=["plain", "noted"])
@pytest.mark.parametrize("at", PLACES)
def test_a_stalled_write_that_may_run_again_does_so_on_what_is_there_now(
    at: Failpoint, settings: Settings, root: Path
) -> None:
    parts = opened(root, settings)

    with paused(lambda: write(parts, MAIN, op.upsert(PERSON, {"n": 1, "a": 7})), at=at) as writing:
        others_go_on(root)

    assert writing.result().entry is not None
    check(root, person={"a": 7, "b": 2, "c": None, "d": 4, "n": 1}, company={"x": 3, "y": 2})


@pytest.mark.parametrize("at", PLACES)
def test_a_stalled_write_that_may_not_is_told_what_happened(at: Failpoint, parts: GraphContext, root: Path) -> None:
    with paused(lambda: write(parts, MAIN, op.update_where(COMPANY, "v = 2", 9)), at=at) as writing:
        others_go_on(root)

    with pytest.raises(ConflictError, match="was pruned while it ran") as caught:
        writing.result()
    assert isinstance(caught.value.conflicts[0], BasePruned)
    check(root, company=COMPANIES)


def test_what_was_staged_on_the_anchor_is_published_beside_a_pruning_write(parts: GraphContext, root: Path) -> None:
    other = opened(root)
    with paused(lambda: write(parts, MAIN, op.append(PERSON, {"n": 1})), at=Failpoint.WRITE_MADE_DURABLE) as writing:
        write(other, MAIN, op.append(PERSON, {"o": 2}), WriteOptions(prune_previous=True))
        sweep(other, older_than_s=600)

    assert writing.result().attempts == 1
    check(root, person={"a": 10, "b": 2, "c": None, "d": 4, "n": 1, "o": 2})


@pytest.mark.parametrize(
    "operation",
    [
        op.append(PERSON, {"n": 1}),
        op.insert(PERSON, {f"n{number}": number for number in range(600)}),
        op.update_where(PERSON, "v = 2", 3),
        op.both(op.append(PERSON, {"n": 1}), op.delete(COMPANY, ["x"])),
    ],
    ids=["append", "with files of its own", "update", "two tables"],
)
def test_a_barrier_makes_a_writer_stage_again_what_the_sweep_has_taken(
    operation: Operation, parts: GraphContext, root: Path
) -> None:
    other = opened(root)
    with paused(lambda: write(parts, MAIN, operation), at=Failpoint.WRITE_MADE_DURABLE) as writing:
        swept = sweep(other, older_than_s=0)
        assert any(file.is_staged for file in swept.deleted), "what was staged is gone"

    assert writing.result().attempts == 1, "the operation did not run again"
    check(root)


def test_a_new_table_that_was_swept_is_made_again(parts: GraphContext, root: Path) -> None:
    other = opened(root)
    adding = op.add_table(parts, "node:City", {"p": 1})
    with paused(lambda: write(parts, MAIN, adding), at=Failpoint.WRITE_MADE_DURABLE) as writing:
        sweep(other, older_than_s=0)

    entry = writing.result().entry
    assert entry is not None
    assert op.rows_at(opened(root), "node:City", entry) == {"p": 1}
    check(root)


def stalled_append(root: str) -> Receipt:
    """For a process of its own."""
    return write(open_root(root, settings=AT_ONCE), MAIN, op.append(PERSON, {"n": 1}))


def stalled_update(root: str) -> Receipt:
    """Likewise; it may not run again."""
    return write(open_root(root, settings=AT_ONCE), MAIN, op.update_where(COMPANY, "v = 2", 9))


def test_a_writer_in_another_process_parked_across_a_prune_and_a_sweep_ends_well_or_is_told(root: Path) -> None:
    appending = OtherProcess(stalled_append, str(root), at=Failpoint.WRITE_MADE_DURABLE)
    updating = OtherProcess(stalled_update, str(root), at=Failpoint.WRITE_PREPARED)
    appending.wait_until_parked()
    updating.wait_until_parked()
    others_go_on(root)
    appending.go_on()
    appending.wait_until_parked()  # it comes by a second time
    appending.go_on()
    updating.go_on()

    assert appending.result().entry is not None
    with pytest.raises(ConflictError, match="was pruned while it ran"):
        updating.result()
    check(root, person={"a": 103, "b": 2, "c": None, "d": 4, "n": 1}, company={"x": 3, "y": 2})


# -- entries put where others' were cut away --------------------------------------------------------------------------


def test_an_entry_for_a_place_that_was_cut_away_is_refused_and_leaves_nothing(parts: GraphContext, root: Path) -> None:
    head = parts.log.live_head(MAIN)
    late = entry_on(parts, head)
    others_go_on(root)
    assert parts.log.read(MAIN, late.number) is None, "its place is free again"

    assert parts.log.put(late, after=head) == Baseless()

    assert parts.log.read(MAIN, late.number) is None


def test_a_put_overtaken_on_its_way_is_not_taken_for_a_win(root: Path) -> None:
    others_go_on(root)  # the place after this is one that nobody holds
    racing = RacingStore(LocalStore(root, durability=Durability.PROCESS), [lambda: others_go_on(root)])
    parts = open_root(racing, settings=AT_ONCE, clock=ManualClock())
    head = parts.log.live_head(MAIN)

    assert parts.log.put(entry_on(parts, head), after=head) == Baseless()

    assert parts.log.live_head(MAIN) == opened(root).log.live_head(MAIN)
    check(root)


@pytest.mark.parametrize("held", ["the base", "the first entry", "nothing"])
def test_a_writer_that_stood_still_while_its_base_was_held_and_the_log_behind_it_cut_is_refused(
    held: str, root: Path
) -> None:
    others_go_on(root)
    store = Far(LocalStore(root, durability=Durability.PROCESS))
    parts = open_root(store, settings=AT_ONCE, clock=ManualClock())
    head = parts.log.read(MAIN, 1) if held == "the first entry" else parts.log.live_head(MAIN)
    assert head is not None
    if held == "the base":
        tags.create(parts, "held", head)
    others_go_on(root)
    others_go_on(root)

    for _ in range(3):
        assert not isinstance(parts.log.put(entry_on(parts, head), after=head), Done)
        assert parts.log.live_head(MAIN) == opened(root).log.live_head(MAIN)
    write(parts, MAIN, op.append(PERSON, {"n": 1}))
    assert op.rows_of(opened(root), PERSON)["n"] == 1
    check(root)


@pytest.mark.parametrize("finds", ["a stray", "the newest"])
def test_nobody_builds_on_what_a_stalled_writer_left_where_the_log_was_cut(finds: str, root: Path) -> None:
    others_go_on(root)
    store = Far(LocalStore(root, durability=Durability.PROCESS))
    first, second = (open_root(store, settings=AT_ONCE, clock=ManualClock()) for _ in range(2))
    head = first.log.live_head(MAIN)
    assert second.log.live_head(MAIN) == head
    others_go_on(root)
    if finds == "a stray":
        assert first.log.put(entry_on(first, head), after=head) == Baseless()
        assert first.log.read(MAIN, head.number + 1) is not None, "it stands there, built on what the second knows"

    entry = write(second, MAIN, op.append(PERSON, {"n": 1})).entry

    assert entry is not None
    assert entry == opened(root).log.live_head(MAIN)
    assert op.rows_of(first, PERSON)["n"] == 1
    check(root)


class Far(ForwardingStore):
    """A store that tells nothing without being asked, and where requests cost."""

    def identity(self, path: str) -> None:
        """Nothing."""

    @property
    def is_near(self) -> bool:
        """Far."""
        return False


class AfterPut(ForwardingStore):
    """Lets something happen right after a log entry was put through it, before the putter has its answer."""

    def __init__(self, inner: ObjectStore, action: Callable[[], object]) -> None:
        super().__init__(inner)
        self._action = once(action)

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        found = send()
        if kind is RequestKind.PUT_IF_ABSENT and path.startswith(paths.LOGS):
            self._action()
        return found


def test_a_win_that_others_have_built_on_and_pruned_is_still_a_win(root: Path) -> None:
    def build_on_it() -> None:
        other = opened(root)
        write(other, MAIN, op.append(PERSON, {"o": 1}))
        other.log.floors.raise_to(MAIN, other.log.live_head(MAIN).number)

    store = AfterPut(LocalStore(root, durability=Durability.PROCESS), build_on_it)
    parts = open_root(store, settings=AT_ONCE, clock=ManualClock())

    assert write(parts, MAIN, op.append(PERSON, {"n": 1})).attempts == 1
    assert op.rows_of(parts, PERSON)["n"] == 1


def test_what_somebody_left_in_a_place_that_was_cut_away_leads_nobody_astray(parts: GraphContext, root: Path) -> None:
    head = parts.log.live_head(MAIN)
    late = replace(entry_on(parts, head), graph=parts.graph, previous=head.link)
    others_go_on(root)
    parts.store.put(paths.entry(MAIN, late.number), record_bytes(late))  # by a writer that died before it looked
    parts.store.put(paths.hint(MAIN), str(late.number).encode())

    fresh = Log(parts.store, clock=ManualClock())
    newest = fresh.head(MAIN)

    assert newest is not None
    assert newest.number > late.number
    assert parts.log.live_head(MAIN) == newest
    check(root)


def test_a_branch_made_again_does_not_begin_in_a_place_that_was_cut_away(parts: GraphContext, root: Path) -> None:
    other = opened(root)
    branches.create(other, "again")
    for number in range(3):
        write(other, "again", op.append(PERSON, {f"x{number}": 1}))
    branches.delete(other, "again")
    other.clock.sleep(1)
    sweep(other, older_than_s=0)

    entry = branches.create(parts, "again")

    assert entry.number == 6
    check(root)


# -- readers ----------------------------------------------------------------------------------------------------------


def test_a_reader_whose_head_was_cut_away_finds_the_new_one(parts: GraphContext, root: Path) -> None:
    before = parts.log.live_head(MAIN)
    others_go_on(root)

    after = parts.log.live_head(MAIN)

    assert parts.log.read(MAIN, before.number) is None
    assert after == opened(root).log.live_head(MAIN)
    assert [entry.number for entry in parts.log.since(MAIN, before.number)][-1] == after.number


def test_no_read_and_no_write_looks_at_the_floor(root: Path) -> None:
    counted = CountingStore(LocalStore(root, durability=Durability.PROCESS))
    parts = open_root(counted, settings=AT_ONCE, clock=ManualClock())
    counted.reset()
    parts.log.live_head(MAIN)
    write(parts, MAIN, op.append(PERSON, {"n": 1}))
    assert not any(path.startswith(paths.FLOORS) for _, path in counted.requests())


def test_young_entries_are_not_cut_away_by_whoever_waits_for_nothing_else(root: Path) -> None:
    parts = opened(root, replace(AT_ONCE, log_cut_s=60))
    written = [write(parts, MAIN, op.append(PERSON, {f"n{number}": 1})).entry for number in range(3)]
    prune(parts, MAIN, Policy(keep=1, now=True))

    swept = sweep(parts, older_than_s=0)

    assert any(file.is_staged for file in swept.deleted)
    assert [entry for entry in written if entry != parts.log.read(MAIN, entry.number if entry else 0)] == []
