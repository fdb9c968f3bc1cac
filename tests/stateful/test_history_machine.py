"""Branches, merges, prunes, deletions and sweeps in any order: history, blame, bases and merges equal a dictionary.

The model keeps every commit there ever was, with its state and its parents, and looks for bases and setters by plain
loops. What is pruned in the graph may be hidden there; what the graph tells must be what the model knows.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.support.needed_files import AT_ONCE

import omnigraph
from omnigraph import Graph
from omnigraph.api.schemas import Schemas
from omnigraph.ids import UlidSource
from omnigraph.storage.object_stores import MemoryStore
from omnigraph.testing import ancestor_model as base_model
from omnigraph.transaction.root import open_root

SCHEMA = "node P { name: String @key  a: I32?  b: I32? }"
MAIN = "main"
Row = tuple[object, object]
State = dict[str, Row]

names = st.sampled_from("xyz")
values = st.integers(0, 3)
places = st.integers(0, 9)


@dataclass
class Commit:
    """A commit that the graph has made."""

    id: str
    state: State
    parents: tuple["Commit", ...] = field(default=(), repr=False)

    def distances(self) -> dict[str, tuple[int, "Commit"]]:
        """Every ancestor, this one included, with the fewest steps to it."""
        found = {self.id: (0, self)}
        edge = [self]
        while edge:
            edge = [parent for commit in edge for parent in commit.parents if self._reach(found, commit, parent)]
        return found

    @staticmethod
    def _reach(found: dict[str, tuple[int, "Commit"]], commit: "Commit", parent: "Commit") -> bool:
        if parent.id in found:
            return False
        found[parent.id] = (found[commit.id][0] + 1, parent)
        return True

    def line(self) -> list["Commit"]:
        """This commit and its first parents, newest first."""
        found = [self]
        while found[-1].parents:
            found.append(found[-1].parents[0])
        return found


def base_of(source: Commit, target: Commit) -> Commit:
    """The best common ancestor: no other descends from it, then the nearest, then the newest."""
    ours, theirs = source.distances(), target.distances()
    common = [commit for key, (_, commit) in ours.items() if key in theirs]
    below = {key for commit in common for key in commit.distances() if key != commit.id}
    best = [commit for commit in common if commit.id not in below]
    least = min(ours[commit.id][0] + theirs[commit.id][0] for commit in best)
    return max((each for each in best if ours[each.id][0] + theirs[each.id][0] == least), key=lambda each: each.id)


def base_state(source: Commit, target: Commit) -> State:
    """What both are compared with; of several best common ancestors what these come to."""
    known = {commit.id: commit for side in (source, target) for _, commit in side.distances().values()}
    commits = base_model.Commits(lambda commit: [parent.id for parent in known[commit].parents])

    def cells(state: State) -> dict[str, dict[int, object]]:
        return {name: dict(enumerate(row)) for name, row in state.items()}

    sides = cells(source.state), cells(target.state)
    rows = base_model.base_rows(
        commits, commits.best(source.id, target.id), lambda commit: cells(known[commit].state), sides
    )
    return {name: (row[0], row[1]) for name, row in rows.items()}


def merged(base: State, source: State, target: State) -> State:
    """Rows of both sides; the target's where both changed one."""
    found: State = {}
    for name in base.keys() | source.keys() | target.keys():
        was, one, two = (state.get(name) for state in (base, source, target))
        row = one if two == was else two
        if row is not None:
            found[name] = row
    return found


class HistoryMachine(RuleBasedStateMachine):
    """One graph and its model."""

    @initialize()
    def make(self) -> None:
        store = MemoryStore(f"history-{UlidSource().new()}")
        omnigraph.init(store, SCHEMA).close()
        parts = open_root(store, settings=AT_ONCE)
        self.graph = Graph(parts, Schemas(parts))
        first = self.graph.snapshot().commit
        self.heads = {MAIN: Commit(first, {})}
        self.write(0, "x", 0, 0)
        self.create(0, 0)

    def branch(self, place: int) -> str:
        live = sorted(self.heads)
        return live[place % len(live)]

    def follow(self, branch: str, state: State, *others: Commit) -> None:
        """Note the commit that the graph has made, if it has made one."""
        commit = self.graph.snapshot(branch=branch).commit
        if commit != self.heads[branch].id:
            self.heads[branch] = Commit(commit, state, (self.heads[branch], *others))

    @rule(place=places, name=names, a=values, b=values)
    def write(self, place: int, name: str, a: int, b: int) -> None:
        branch = self.branch(place)
        self.graph.write({"P": [{"name": name, "a": a, "b": b}]}, mode="merge", branch=branch)
        self.follow(branch, self.heads[branch].state | {name: (a, b)})

    @rule(place=places, name=names, a=values)
    def update(self, place: int, name: str, a: int) -> None:
        branch = self.branch(place)
        self.graph.mutate(f'query q() {{ update P set {{ a: {a} }} where name = "{name}" }}', branch=branch)
        state = dict(self.heads[branch].state)
        if name in state:
            state[name] = (a, state[name][1])
        self.follow(branch, state)

    @rule(place=places, name=names)
    def remove(self, place: int, name: str) -> None:
        branch = self.branch(place)
        self.graph.mutate(f'query q() {{ delete P where name = "{name}" }}', branch=branch)
        self.follow(branch, {key: row for key, row in self.heads[branch].state.items() if key != name})

    @rule(place=places, which=places)
    def create(self, place: int, which: int) -> None:
        if len(self.heads) < 4:
            source, name = self.branch(place), f"b{which % 3}"
            if name not in self.heads:  # names are used again
                self.graph.branches.create(name, source=source)
                self.heads[name] = self.heads[source]

    @rule(place=places)
    def delete(self, place: int) -> None:
        branch = self.branch(place)
        if branch != MAIN:
            self.graph.branches.delete(branch)
            del self.heads[branch]

    @rule(one=places, other=places)
    def merge(self, one: int, other: int) -> None:
        source, target = self.branch(one), self.branch(other)
        if source == target:
            return
        here, there = self.heads[target], self.heads[source]
        base = base_of(there, here)
        done = self.graph.merge(source, into=target, prefer="target")
        assert done.base == base.id
        self.follow(target, merged(base_state(there, here), there.state, here.state), there)

    @rule(place=places, keep=st.integers(1, 3))
    def prune(self, place: int, keep: int) -> None:
        self.graph.prune(self.branch(place), keep=keep, now=True)

    @rule(place=places, back=st.integers(1, 3), now=st.booleans())
    def prune_one(self, place: int, back: int, now: bool) -> None:
        branch = self.branch(place)
        own = [commit for commit in self.graph.commits.list(branch) if commit.branch == branch]
        if back < len(own):
            self.graph.prune(branch, commits=[own[back].id], now=now)

    @rule()
    def sweep(self) -> None:
        self.graph.sweep(older_than=0)

    @rule(keep=st.integers(1, 3))
    def clean(self, keep: int) -> None:
        self.graph.cleanup(keep=keep, confirm=True)

    @rule(place=places)
    def optimize(self, place: int) -> None:
        branch = self.branch(place)
        self.graph.optimize(branch=branch)
        self.follow(branch, self.heads[branch].state)

    @invariant()
    def every_branch_is_as_the_model_has_it(self) -> None:
        for branch, head in getattr(self, "heads", {}).items():
            rows = self.graph.export_arrow("P", branch=branch).read_all().to_pylist()
            assert {row["name"]: (row["a"], row["b"]) for row in rows} == head.state
            assert self.graph.snapshot(commit=head.id).commit == head.id

    @invariant()
    def history_is_part_of_the_true_one(self) -> None:
        for branch, head in getattr(self, "heads", {}).items():
            line = [commit.id for commit in head.line()]
            told = [commit.id for commit in self.graph.commits.list(branch)]
            assert told == [commit for commit in line if commit in set(told)]
            states = {commit.id: commit.state for commit in head.line()}
            for commit in told:
                rows = self.graph.snapshot(commit=commit).export_arrow("P").read_all().to_pylist()
                assert {row["name"]: (row["a"], row["b"]) for row in rows} == states[commit]

    @invariant()
    def blame_names_a_commit_that_set_the_value(self) -> None:
        for branch, head in getattr(self, "heads", {}).items():
            for name, row in head.state.items():
                told = self.graph.blame("P", name, branch=branch)
                for place, column in enumerate("ab"):
                    entry = told.properties.get(column)
                    if entry is None:
                        continue
                    commit = next(each for _, each in head.distances().values() if each.id == entry.commit)
                    assert commit.state[name][place] == row[place]
                    # It was not so before it, on any of the ways that lead there.
                    befores = [parent.state.get(name) for parent in commit.parents]
                    assert any(before is None or before[place] != row[place] for before in befores) or not befores

    @invariant()
    def every_two_branches_find_their_base(self) -> None:
        heads = getattr(self, "heads", {})
        for source in heads:
            for target in heads:
                if source < target and heads[source].id != heads[target].id:
                    done = self.graph.merge(source, into=target, prefer="target", preview=True)
                    assert done.base == base_of(heads[source], heads[target]).id

    def teardown(self) -> None:
        if hasattr(self, "graph"):
            self.graph.close()


@pytest.mark.parametrize(
    ("runs", "steps"),
    [(12, 25), pytest.param(400, 60, marks=[pytest.mark.torture, pytest.mark.timeout(7_200)])],
    ids=["few", "many"],
)
def test_history_survives_pruning_deleting_and_sweeping(runs: int, steps: int) -> None:
    run_state_machine_as_test(
        HistoryMachine,
        settings=settings(
            max_examples=runs,
            stateful_step_count=steps,
            suppress_health_check=list(HealthCheck),
        ),
    )
