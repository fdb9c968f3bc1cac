"""Anything may be done to a graph, in any order, with deaths and lost answers: it equals a dictionary at every step.

A failure prints the steps that led to it and a blob that repeats them (`@reproduce_failure`).
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.support import operations as op
from tests.support import write_model as model
from tests.support.fast_folder import new_fast_folder
from tests.support.interleaving import once
from tests.support.operations import COMPANY, KNOWS, PERSON
from tests.support.write_model import Act, Content, ModelGraph, TakenError

from omnigraph import limits
from omnigraph.branch import branches, tags
from omnigraph.errors import AlreadyExistsError, ConflictError, GraphError, NotFoundError
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.model.commit import MAIN
from omnigraph.model.conflict import KeyConflict
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import IntentPolicy, Operation, Receipt, write

SETTINGS = Settings(durability="process")
CITY = "node:City"
BRANCHES = ("side", "side/deeper", "§ 3")
TAGS = ("v1", "v2")
KEYS = ("k1", "k2")

# What a write that dies here leaves behind, small or noted; everywhere else it leaves nothing that anybody sees.
VISIBLE = frozenset({Failpoint.PUBLISH_ENTRY_PUT, Failpoint.PUBLISH_INTENT_CLEARED})
FINISHED_BY_OTHERS = frozenset({Failpoint.WRITE_INTENT_COMPLETED})
OF_WRITES = tuple(place for place in Failpoint if place.startswith(("write.", "publish.")))
BEFORE_PUBLISH = (Failpoint.WRITE_PREPARED, Failpoint.WRITE_TABLES_STAGED, Failpoint.WRITE_MADE_DURABLE)
OF_RECOVERY = tuple(place for place in Failpoint if place.startswith("recovery."))

ids = st.sampled_from("abcdef")
values = st.integers(0, 3)
some_rows = st.dictionaries(ids, values, min_size=1, max_size=3)
some_ids = st.lists(ids, min_size=1, max_size=3, unique=True).map(tuple)
types = st.sampled_from([PERSON, COMPANY, KNOWS])
# Which of the live branches, in order.
places = st.integers(0, 3)


def acts_on(type_key: st.SearchStrategy[str]) -> st.SearchStrategy[Act]:
    """Writes to rows of one type."""
    return st.one_of(
        st.builds(model.insert, type_key, some_rows),
        st.builds(model.upsert, type_key, some_rows),
        st.builds(model.update, type_key, some_ids, values),
        st.builds(model.update_where, type_key, values, values),
        st.builds(model.delete, type_key, some_ids),
        st.builds(model.delete_where, type_key, values),
        st.builds(model.overwrite, type_key, st.dictionaries(ids, values, max_size=3)),
    )


loads = st.builds(model.load, st.dictionaries(types, st.dictionaries(ids, values, max_size=3), min_size=1, max_size=3))
single = acts_on(types)
acts = st.one_of(single, loads, st.builds(model.both, single, single), st.builds(model.compact, types))


def dead() -> None:
    raise Crash


class GraphMachine(RuleBasedStateMachine):
    """One graph, two handles on it, and its model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = new_fast_folder()
        self.store = FaultyStore(LocalStore(self.folder / "graph", durability=Durability.PROCESS))
        self.clock = ManualClock()
        self.model = ModelGraph()
        self.keys: dict[tuple[str, str], int] = {}
        self.made = 0
        self.looked_at = 0

    @initialize()
    def make(self) -> None:
        self.parts = op.new_graph(self.store, settings=SETTINGS, clock=self.clock)
        self.other = self.opened()
        self.model.commits[MAIN, 1] = model.after(self.model.branches[MAIN])
        for rows in ({"a": 0, "b": 1}, {"c": 2, "d": 3, "e": 0}):
            self.plainly_agreed(MAIN, model.load({PERSON: rows, COMPANY: rows}))

    def opened(self) -> GraphContext:
        return open_root(self.store, settings=SETTINGS, clock=self.clock)

    # -- what is done -------------------------------------------------------------------------------------------------

    def agreed(self, branch: str, act: Act, run: Callable[[], Receipt]) -> None:
        """Do it, and let the model do it; both must say the same."""
        try:
            expected = model.after(self.model.branches[branch], act)
        except TakenError:
            with pytest.raises(ConflictError) as refusal:
                run()
            assert isinstance(refusal.value.conflicts[0], KeyConflict)
            return
        receipt = run()
        if receipt.entry is None:
            assert expected == self.model.branches[branch]
        else:
            self.model.committed(branch, receipt.entry.number, expected)

    def plainly_agreed(self, branch: str, act: Act) -> None:
        self.agreed(branch, act, lambda: write(self.parts, branch, act.operation(self.parts)))

    def branch(self, where: int) -> str:
        live = sorted(self.model.branches)
        return live[where % len(live)]

    def operation(self, act: Act, *, noted: bool) -> Operation:
        return replace(act.operation(self.parts), intent=IntentPolicy.ALWAYS if noted else IntentPolicy.BY_SIZE)

    @rule(act=acts, where=places, noted=st.booleans(), stale=st.booleans())
    def write_something(self, act: Act, where: int, noted: bool, stale: bool) -> None:
        parts, branch = self.other if stale else self.parts, self.branch(where)
        self.agreed(branch, act, lambda: write(parts, branch, self.operation(act, noted=noted)))

    @rule(type_key=types, where=places, size=st.sampled_from([1, 2, 300]))
    def append(self, type_key: str, where: int, size: int) -> None:
        self.made += size
        act = model.append(type_key, {f"own-{self.made - each}": each for each in range(size)})
        self.plainly_agreed(self.branch(where), act)

    @rule(act=st.one_of(single, loads), where=places, key=st.sampled_from(KEYS), stale=st.booleans())
    def write_under_a_key(self, act: Act, where: int, key: str, stale: bool) -> None:
        parts, branch = self.other if stale else self.parts, self.branch(where)
        options = WriteOptions(idempotency_key=key)
        number = self.keys.get((branch, key))
        if number is not None:
            receipt = write(parts, branch, act.operation(parts), options)
            assert receipt.replayed
            assert receipt.entry is not None
            assert receipt.entry.number == number
            return
        before = dict(self.model.commits)
        self.agreed(branch, act, lambda: write(parts, branch, act.operation(parts), options))
        for new_branch, new_number in self.model.commits.keys() - before.keys():
            self.keys[new_branch, key] = new_number

    @rule(kind=st.sampled_from(["compact", "index", "column", "type"]), type_key=types, where=places, rows=some_rows)
    def change_the_layout_or_the_schema(self, kind: str, type_key: str, where: int, rows: dict[str, int]) -> None:
        branch = self.branch(where)
        match kind:
            case "compact":
                self.plainly_agreed(branch, model.compact(type_key))
            case "index":
                self.plainly_agreed(branch, model.build_index(type_key))
            case "column":  # added, and dropped again, because the writes here know two columns
                self.plainly_agreed(branch, model.add_column(type_key, "w"))
                self.plainly_agreed(branch, model.drop_column(type_key, "w"))
            case _:
                there = CITY in self.model.branches[branch]
                self.plainly_agreed(branch, model.remove_type(CITY) if there else model.add_type(CITY, rows))

    @rule(name=st.sampled_from(BRANCHES), where=places, stale=st.booleans())
    def create_a_branch(self, name: str, where: int, stale: bool) -> None:
        parts, source = self.other if stale else self.parts, self.branch(where)
        if name in self.model.branches:
            with pytest.raises(AlreadyExistsError):
                branches.create(parts, name, source=source)
        else:
            self.forked(name, branches.create(parts, name, source=source).number, source)

    def forked(self, name: str, number: int, source: str) -> None:
        self.model.forked(name, number, source)
        self.keys = {used: at for used, at in self.keys.items() if used[0] != name}

    @rule(name=st.sampled_from(BRANCHES), stale=st.booleans())
    def delete_a_branch(self, name: str, stale: bool) -> None:
        parts = self.other if stale else self.parts
        if name in self.model.branches:
            branches.delete(parts, name)
            del self.model.branches[name]
        else:
            with pytest.raises(NotFoundError):
                branches.delete(parts, name)
            with pytest.raises(NotFoundError):
                branches.create(parts, "new", source=name)
            with pytest.raises(NotFoundError):
                write(parts, name, op.insert(PERSON, {"a": 1}))

    @rule(name=st.sampled_from(TAGS), where=places, create=st.booleans())
    def create_or_delete_a_tag(self, name: str, where: int, create: bool) -> None:
        branch = self.branch(where)
        head = self.parts.log.live_head(branch)
        there = name in self.model.tags
        if create and there:
            with pytest.raises(AlreadyExistsError):
                tags.create(self.parts, name, head)
        elif create:
            tags.create(self.parts, name, head)
            self.model.committed(branch, head.number, self.model.branches[branch])
            self.model.tags[name] = (branch, head.number)
        elif there:
            tags.delete(self.parts, name)
            del self.model.tags[name]
        else:
            with pytest.raises(NotFoundError):
                tags.delete(self.parts, name)

    @rule(where=places, fold=st.booleans())
    def reopen_or_fold_the_log(self, where: int, fold: bool) -> None:
        if fold:
            self.parts.log.fold(self.branch(where))
        else:
            self.parts = self.opened()

    # -- what goes wrong ----------------------------------------------------------------------------------------------

    @rule(act=acts, where=places, place=st.sampled_from(OF_WRITES))
    def die_while_writing(self, act: Act, where: int, place: Failpoint) -> None:
        self.die(act, where, place, None, noted=False)

    @rule(act=acts, where=places, place=st.sampled_from(OF_WRITES), again=st.none() | st.sampled_from(OF_RECOVERY))
    def die_while_writing_under_an_intent(
        self, act: Act, where: int, place: Failpoint, again: Failpoint | None
    ) -> None:
        self.die(act, where, place, again, noted=True)

    def die(self, act: Act, where: int, place: Failpoint, again: Failpoint | None, *, noted: bool) -> None:
        """Die at a place; then perhaps die once more while that is healed."""
        branch = self.branch(where)
        before = self.model.branches[branch]
        try:
            expected = model.after(before, act)
        except TakenError:
            return
        try:
            with armed(place, dead):
                receipt = write(self.parts, branch, self.operation(act, noted=noted))
        except Crash:
            landed = place in VISIBLE or (noted and place in FINISHED_BY_OTHERS)
        else:
            landed = receipt.entry is not None
        if again is not None:
            with armed(again, once(dead)), suppressed(Crash):
                self.opened()
        self.parts = self.opened()
        self.found(branch, expected if landed else before)

    @rule(
        act=acts,
        where=places,
        noted=st.booleans(),
        fault=st.sampled_from([Fault.LOSE_ANSWER, Fault.LOSE_REQUEST, Fault.FAIL_BEFORE, Fault.FAIL_AFTER]),
        at=st.integers(1, 5),
    )
    def lose_an_answer(self, act: Act, where: int, noted: bool, fault: Fault, at: int) -> None:
        branch = self.branch(where)
        before = self.model.branches[branch]
        try:
            expected = model.after(before, act)
        except TakenError:
            return
        self.store.arm(fault, at=at)
        told_done = False
        try:
            receipt = write(self.parts, branch, self.operation(act, noted=noted))
            told_done = receipt.entry is not None
        except GraphError:
            pass
        finally:
            self.store.disarm()
        self.parts = self.opened()
        landed = told_done or op.contents(self.parts, branch) == expected
        self.found(branch, expected if landed else before)

    @rule(
        name=st.sampled_from(BRANCHES),
        where=places,
        fault=st.sampled_from([Fault.LOSE_ANSWER, Fault.LOSE_REQUEST, Fault.CRASH_AFTER, Fault.CRASH_BEFORE]),
        kind=st.sampled_from([RequestKind.PUT_IF_ABSENT, RequestKind.PUT]),
    )
    def fork_or_delete_in_trouble(self, name: str, where: int, fault: Fault, kind: RequestKind) -> None:
        source = self.branch(where)
        there = name in self.model.branches
        self.store.arm(fault, kind=kind)
        try:
            if there:
                branches.delete(self.parts, name)
            else:
                branches.create(self.parts, name, source=source)
        except Crash:
            # The first plain put announces the entry; only the conditional one is it.
            done = fault is Fault.CRASH_AFTER and kind is RequestKind.PUT_IF_ABSENT
        else:
            done = True
        finally:
            self.store.disarm()
        self.parts = self.opened()
        if done and there:
            del self.model.branches[name]
        elif done:
            self.forked(name, self.parts.log.live_head(name).number, source)

    def found(self, branch: str, content: Content) -> None:
        """After trouble the branch shows this; which entry that is the log tells."""
        assert op.contents(self.parts, branch) == content
        self.model.committed(branch, self.parts.log.live_head(branch).number, content)

    # -- races --------------------------------------------------------------------------------------------------------

    @rule(first=acts, second=acts, where=places, place=st.sampled_from(BEFORE_PUBLISH))
    def race_small_writes(self, first: Act, second: Act, where: int, place: Failpoint) -> None:
        self.race(first, second, where, place, noted=False)

    @rule(first=acts, second=acts, where=places, place=st.sampled_from(BEFORE_PUBLISH))
    def race_a_noted_write(self, first: Act, second: Act, where: int, place: Failpoint) -> None:
        self.race(first, second, where, place, noted=True)

    @rule(type_key=types, where=places, rows=some_rows, gone=some_ids, place=st.sampled_from(BEFORE_PUBLISH))
    def race_two_of_one_type(
        self, type_key: str, where: int, rows: dict[str, int], gone: tuple[str, ...], place: Failpoint
    ) -> None:
        """By id and about few rows: these are the ones that are rebased."""
        self.race(model.upsert(type_key, rows), model.delete(type_key, gone), where, place, noted=False)
        self.race(model.update(type_key, gone, 3), model.upsert(type_key, rows), where, place, noted=False)

    def race(self, first: Act, second: Act, where: int, place: Failpoint, *, noted: bool) -> None:
        """The first lands while the second is at a place; together they are as if one had followed the other."""
        branch = self.branch(where)

        def land() -> None:
            self.agreed(branch, first, lambda: write(self.other, branch, first.operation(self.other)))

        operation = self.operation(second, noted=noted)
        commits = len(self.model.commits)
        with armed(place, once(land)):
            try:
                receipt = write(self.parts, branch, operation)
            except ConflictError as refusal:
                clashed = len(self.model.commits) > commits
                assert self.is_taken(branch, second) or (clashed and not operation.redoable), refusal
                return
        if receipt.entry is not None:
            self.model.committed(branch, receipt.entry.number, model.after(self.model.branches[branch], second))

    def is_taken(self, branch: str, act: Act) -> bool:
        try:
            model.after(self.model.branches[branch], act)
        except TakenError:
            return True
        return False

    # -- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    @precondition(lambda self: hasattr(self, "parts"))
    def every_branch_equals_its_model(self) -> None:
        assert set(branches.names(self.parts)) == self.model.branches.keys()
        for branch, content in self.model.branches.items():
            assert op.contents(self.parts, branch) == content, branch

    @invariant()
    @precondition(lambda self: hasattr(self, "parts"))
    def an_old_commit_shows_what_it_showed(self) -> None:
        known = sorted(self.model.commits)
        self.looked_at += 1
        branch, number = known[self.looked_at * 7 % len(known)]
        entry = self.other.log.read(branch, number)
        assert entry is not None
        shown = {key: op.rows_at(self.other, key, entry) for key in entry.tables}
        assert shown == self.model.commits[branch, number], (branch, number)

    @invariant()
    @precondition(lambda self: hasattr(self, "parts"))
    def tags_name_what_they_named(self) -> None:
        found = {name: tags.read(self.parts, name) for name in tags.names(self.parts)}
        assert {name: (tag.branch, tag.number) for name, tag in found.items()} == self.model.tags

    @invariant()
    @precondition(lambda self: hasattr(self, "parts"))
    def nothing_is_left_half_done(self) -> None:
        assert [listed.path for listed in self.store.list(paths.RECOVERY)] == []

    def teardown(self) -> None:
        try:
            if hasattr(self, "parts"):
                check_graph(self.opened())
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def suppressed(kind: type[BaseException]) -> Iterator[None]:
    try:
        yield
    except kind:
        return


NORMAL = settings(
    max_examples=int(os.environ.get("OMNIGRAPH_TESTS_EXAMPLES", "32")),
    stateful_step_count=20,
    derandomize=True,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
LONG = settings(NORMAL, max_examples=2_000, stateful_step_count=40, derandomize=False)

# Bounds so small that ordinary steps cross them.
TINY = {
    "HINT_EVERY_ENTRIES": 2,
    "CHECKPOINT_ENTRIES": 3,
    "INLINE_CHANGE_IDS_MAX": 1,
    "INLINE_FOOTPRINT_TOKENS_MAX": 2,
    "FOOTPRINT_TOKENS_MAX": 9,
    "WHOLE_MAP_TYPES_MAX": 2,
    "WHOLE_MAP_EVERY_ENTRIES": 3,
    "STAGED_EFFECTS_MAX": 1,
    "OPEN_TABLES_MAX": 4,
    "ID_FILTER_IDS_MAX": 1,
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TINY.items():
        assert hasattr(limits, name)
        monkeypatch.setattr(limits, name, value)


def test_a_graph_equals_its_model_whatever_is_done_to_it() -> None:
    run_state_machine_as_test(GraphMachine, settings=NORMAL)


def test_a_graph_equals_its_model_when_every_bound_is_tiny(tiny: None) -> None:
    run_state_machine_as_test(GraphMachine, settings=settings(NORMAL, max_examples=12))


@pytest.mark.torture
@pytest.mark.timeout(7_200)
def test_a_graph_equals_its_model_for_long() -> None:
    run_state_machine_as_test(GraphMachine, settings=LONG)


@pytest.mark.torture
@pytest.mark.timeout(7_200)
def test_a_graph_equals_its_model_for_long_when_every_bound_is_tiny(tiny: None) -> None:
    run_state_machine_as_test(GraphMachine, settings=LONG)
