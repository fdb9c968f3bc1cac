"""Writers of one branch, interleaved request by request: whatever happens is as if they had come one after the other.

The log says in which order. A failure prints the acts and the order of turns, and a blob that repeats them.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from tests.support import operations as op
from tests.support import write_model as model
from tests.support.fast_folder import new_fast_folder
from tests.support.interleaving import Ended, TurningStore, Turns
from tests.support.operations import COMPANY, PERSON
from tests.support.write_model import Act

from omnigraph.errors import ConflictError
from omnigraph.failpoints import Crash
from omnigraph.model.commit import MAIN, Record, RecoveryKind
from omnigraph.model.conflict import DeclaredDead, KeyConflict
from omnigraph.model.intent import Writer
from omnigraph.storage import paths
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.invariants import check_graph, entries
from omnigraph.transaction import intent, queues
from omnigraph.transaction import write as write_module
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import IntentPolicy, Receipt, write

SETTINGS = Settings(durability="process", stale_s=0)
UNDONE = RecoveryKind.UNDONE

ids = st.sampled_from("abcdefgh")
values = st.integers(0, 3)
rows = st.dictionaries(ids, values, min_size=1, max_size=2)
some_ids = st.lists(ids, min_size=1, max_size=2, unique=True).map(tuple)
types = st.sampled_from([PERSON, PERSON, COMPANY])
single = st.one_of(
    st.builds(model.insert, types, rows),
    st.builds(model.upsert, types, rows),
    st.builds(model.update, types, some_ids, values),
    st.builds(model.update_where, types, values, values),
    st.builds(model.delete, types, some_ids),
    st.builds(model.delete_where, types, values),
    st.builds(model.overwrite, types, rows),
    st.builds(model.compact, types),
)
acts = st.one_of(single, st.builds(model.both, single, single))


def turns_of(schedule: int) -> Iterator[int]:
    """Whose turn is next, again and again: a long list from a short number, the same for the same number."""
    for part in range(8):
        for byte in blake2b(f"{schedule} {part}".encode()).digest():
            yield from (byte >> shift & 3 for shift in (0, 2, 4, 6))


@dataclass(frozen=True, slots=True)
class Writing:
    """What one writer does.

    Attributes:
        acts: its writes, one after the other.
        noted: whether they are under intents.
        dies_at: before which of its requests it dies, if it does.
    """

    acts: tuple[Act, ...]
    noted: bool
    dies_at: int | None


schedules = st.integers(0, 2**32 - 1)
writings = st.builds(
    Writing,
    st.lists(acts, min_size=1, max_size=3).map(tuple),
    st.booleans(),
    st.none() | st.none() | st.integers(3, 40),
)


class Interleavings(RuleBasedStateMachine):
    """One branch of one graph; in each step two or three writers that begin together."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = new_fast_folder()
        self.store = LocalStore(self.folder / "graph", durability=Durability.PROCESS)
        self.rounds = 0

    @initialize()
    def make(self) -> None:
        self.parts = op.new_graph(self.store, settings=SETTINGS, clock=ManualClock())
        for some in ({"a": 0, "b": 1}, {"c": 2}):
            write(self.parts, MAIN, op.upsert_many({PERSON: some, COMPANY: some}))
        self.content = op.contents(self.parts)

    @rule(together=st.lists(writings, min_size=2, max_size=3), schedule=schedules)
    def write_together(self, together: list[Writing], schedule: int) -> None:
        self.rounds += 1
        before = len(entries(self.parts))
        turns = Turns(turns_of(schedule))
        ended = turns.run([partial(self.write_all, turns, number, each) for number, each in enumerate(together)])

        self.parts = open_root(self.store, settings=SETTINGS, clock=ManualClock())

        log = entries(self.parts)[before:]
        self.check_order(together, log)
        for number, (writing, hows) in enumerate(zip(together, ended, strict=True)):
            assert hows.result is not None, hows.raised
            for at, how in enumerate(hows.result):
                token = self.token(number, at)
                self.check_answer(writing.acts[at], how, [entry for entry in log if entry.message == token])
        left = [listed.path for listed in self.store.list(paths.RECOVERY)]
        assert left == []

    def token(self, writer: int, at: int) -> str:
        return f"round {self.rounds}, writer {writer}, act {at}"

    def write_all(self, turns: Turns, number: int, writing: Writing) -> list[Ended[Receipt]]:
        """What came of each of a writer's acts; a writer that dies has done no more."""
        # Opened outside the turns: what is interleaved is the writing, from its first look at the head on.
        parts = opened_quietly(self.store, TurningStore(self.store, turns, number, dies_at=writing.dies_at))
        hows: list[Ended[Receipt]] = []
        for at, act in enumerate(writing.acts):
            operation = replace(
                act.operation(parts), intent=IntentPolicy.ALWAYS if writing.noted else IntentPolicy.BY_SIZE
            )
            try:
                hows.append(Ended(write(parts, MAIN, operation, WriteOptions(message=self.token(number, at))), None))
            except ConflictError as refusal:
                hows.append(Ended(None, refusal))
            except Crash as death:
                return [*hows, Ended(None, death)]
        return hows

    def check_order(self, together: list[Writing], log: list[Record]) -> None:
        """Every commit shows what the acts up to it, in the order of the log, make of the content before."""
        by_token = {
            self.token(number, at): act
            for number, writing in enumerate(together)
            for at, act in enumerate(writing.acts)
        }
        for entry in log:
            if entry.message is not None:
                self.content = model.after(self.content, by_token[entry.message])
            shown = {key: op.rows_at(self.parts, key, entry) for key in entry.tables}
            assert shown == self.content, f"entry {entry.number}, {entry.message}"
        undone = {entry.recovery.intent for entry in log if entry.recovery and entry.recovery.kind is UNDONE}
        assert undone.isdisjoint(entry.intent for entry in log), "told as undone, and there all the same"

    def check_answer(self, act: Act, how: Ended[Receipt], mine: list[Record]) -> None:
        """What a writer was told is what the log says."""
        match how.raised:
            case None:
                assert how.result is not None
                assert [entry.commit for entry in mine] == ([how.result.entry.commit] if how.result.entry else [])
            case Crash():
                assert len(mine) <= 1
            case ConflictError() as refusal:
                assert mine == [], "it was refused and is there all the same"
                redoable = act.operation(self.parts).redoable
                assert not redoable or isinstance(refusal.conflicts[0], KeyConflict | DeclaredDead), refusal
            case other:
                raise other

    def teardown(self) -> None:
        try:
            if hasattr(self, "parts"):
                check_graph(self.parts)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def opened_quietly(store: LocalStore, turning: TurningStore) -> GraphContext:
    """A graph opened through one store and used through another."""
    quiet = open_root(store, settings=SETTINGS, clock=ManualClock(), read_only=True)
    log = type(quiet.log)(turning, clock=quiet.clock)
    intents = intent.Intents(
        turning, clock=quiet.clock, ids=quiet.ids, heartbeat_s=SETTINGS.heartbeat_s, stale_s=SETTINGS.stale_s
    )
    return replace(quiet, store=turning, log=log, intents=intents, read_only=False)


class Nobody(set[str]):
    """The writers alive in this process, as a healer in another process knows them."""

    def add(self, _: str) -> None:
        """Nobody is."""


@contextmanager
def nobody_waits(_root: str, branch: str, type_keys: frozenset[str]) -> Iterator[queues.Held]:
    yield queues.Held(branch, type_keys)


@pytest.fixture(autouse=True)
def no_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers of one process do not wait for each other: nothing may depend on that they do."""
    monkeypatch.setattr(queues, "held", nobody_waits)


@pytest.fixture
def taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every healer takes every other writer for a dead one of another host, however lively it is."""
    monkeypatch.setattr(intent, "_live", Nobody())
    monkeypatch.setattr(write_module, "this_writer", lambda: Writer("elsewhere.example", 1, "long ago"))


NORMAL = settings(
    max_examples=15,
    stateful_step_count=8,
    derandomize=True,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
LONG = settings(NORMAL, max_examples=2_000, stateful_step_count=15, derandomize=False)


def test_writers_of_one_branch_come_one_after_the_other() -> None:
    run_state_machine_as_test(Interleavings, settings=NORMAL)


@pytest.mark.usefixtures("taken_for_dead")
def test_writers_that_are_taken_for_dead_are_told_how_their_write_ended() -> None:
    run_state_machine_as_test(Interleavings, settings=NORMAL)


@pytest.mark.torture
@pytest.mark.timeout(7_200)
def test_writers_of_one_branch_come_one_after_the_other_for_long() -> None:
    run_state_machine_as_test(Interleavings, settings=LONG)


@pytest.mark.torture
@pytest.mark.timeout(7_200)
@pytest.mark.usefixtures("taken_for_dead")
def test_writers_that_are_taken_for_dead_are_told_how_their_write_ended_for_long() -> None:
    run_state_machine_as_test(Interleavings, settings=LONG)
