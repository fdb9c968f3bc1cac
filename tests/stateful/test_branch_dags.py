"""Branches written, merged in every direction, reverted and compacted in any order: each equals a dictionary.

The model merges by brute force: it looks for the base among all ancestors, and compares every entity there is. What it
and the graph must agree on is the content of every branch, or else the exact set of conflicts.
"""

from dataclasses import dataclass, field
from itertools import count

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

import omnigraph
from omnigraph import Graph, MergeConflictError, OpenOptions
from omnigraph.errors import RevertConflictError
from omnigraph.storage.object_stores import MemoryStore
from omnigraph.testing import ancestor_model as base_model

SCHEMA = """
node Person { name: String @key  age: I32?  mood: I32? }
edge Knows: Person -> Person { since: I32? }
"""
MAIN = "main"
Row = tuple[object, ...]
# By type and id: a person's age and mood, or an edge's two ends and its year.
Key = tuple[str, str]
State = dict[Key, Row]
NODE, EDGE = "node:Person", "edge:Knows"
_stores = count(1)

people = st.sampled_from("abcd")
values = st.integers(0, 2)
edge_ids = st.sampled_from("xyz")
places = st.integers(0, 5)
ways = st.sampled_from(["row", "property"])
sides = st.sampled_from(["source", "target"])


@dataclass(frozen=True)
class Commit:
    """A state of the model's graph, and where it came from."""

    number: int
    state: State
    parents: tuple["Commit", ...] = field(default=(), repr=False, compare=False)

    def distances(self) -> dict[int, tuple[int, "Commit"]]:
        """Every ancestor, this one included, with the fewest steps to it."""
        found = {self.number: (0, self)}
        edge = [self]
        while edge:
            following = []
            for commit in edge:
                for parent in commit.parents:
                    if parent.number not in found:
                        found[parent.number] = (found[commit.number][0] + 1, parent)
                        following.append(parent)
            edge = following
        return found


def base_of(source: Commit, target: Commit) -> Commit:
    """The best common ancestor: none of the others descends from it, then the nearest, then the newest."""
    ours, theirs = source.distances(), target.distances()
    common = [commit for number, (_, commit) in ours.items() if number in theirs]
    best = [each for each in common if not any(each.number in other.distances() for other in common if other != each)]
    return min(best, key=lambda each: (ours[each.number][0] + theirs[each.number][0], -each.number))


def base_state(source: Commit, target: Commit) -> State:
    """What both are compared with; of several best common ancestors what these come to."""
    known = {commit.number: commit for side in (source, target) for _, commit in side.distances().values()}
    commits = base_model.Commits(lambda number: [parent.number for parent in known[number].parents])

    def cells(state: State) -> dict[Key, dict[int, object]]:
        return {key: dict(enumerate(row)) for key, row in state.items()}

    best = commits.best(source.number, target.number)
    sides = cells(source.state), cells(target.state)
    rows = base_model.base_rows(commits, best, lambda number: cells(known[number].state), sides)
    return {key: tuple(row[place] for place in sorted(row)) for key, row in rows.items()}


def merged_row(
    base: Row | None, source: Row | None, target: Row | None, *, by_property: bool
) -> tuple[str, Row | None]:
    """What becomes of one entity: a kind of conflict, or nothing and the row."""
    if source in (base, target):
        return "", target
    if target == base:
        return "", source
    if source is None or target is None:
        return "delete_vs_update", source if target is None else target
    if base is None:
        return "divergent_insert", target
    cells = [
        (one if two == was else two, was not in (one, two) and one != two)
        for was, one, two in zip(base, source, target, strict=True)
    ]
    if by_property and not any(clash for _, clash in cells):
        return "", tuple(cell for cell, _ in cells)
    return "divergent_update", target


def merged(
    base: State, source: State, target: State, *, by_property: bool, prefer: str | None
) -> tuple[State, set[tuple[str, Key]]]:
    """The state after a merge, and every conflict."""
    found: State = {}
    conflicts: set[tuple[str, Key]] = set()
    for key in base.keys() | source.keys() | target.keys():
        kind, row = merged_row(base.get(key), source.get(key), target.get(key), by_property=by_property)
        if kind and prefer is not None:
            row = source.get(key) if prefer == "source" else target.get(key)
        elif kind:
            conflicts.add((kind, key))
        if row is not None:
            found[key] = row
    return found, conflicts | {("orphan_edge", key) for key in dangling(found)}


def dangling(state: State) -> list[Key]:
    return [key for key, row in state.items() if key[0] == EDGE and any((NODE, end) not in state for end in row[:2])]


class BranchMachine(RuleBasedStateMachine):
    """One graph and its model."""

    @initialize()
    def make(self) -> None:
        store = MemoryStore(f"dags-{next(_stores)}-{omnigraph.ids.UlidSource().new()}")
        self.graph: Graph = omnigraph.init(store, SCHEMA, options=OpenOptions(durability="process"))
        self.numbers = count(1)
        self.heads = {MAIN: Commit(0, {})}
        self.commits: dict[str, Commit] = {}
        self.write(MAIN, {"a": (0, 0), "b": (1, 1), "c": (2, 2)}, {})
        self.write(MAIN, {}, {"x": ("a", "b", 0)})
        for name in ("one", "two"):
            self.graph.branches.create(name)
            self.heads[name] = self.heads[MAIN]

    def branch(self, place: int) -> str:
        live = sorted(self.heads)
        return live[place % len(live)]

    def state(self, branch: str) -> State:
        return dict(self.heads[branch].state)

    def committed(self, branch: str, state: State, *others: Commit) -> None:
        """Follow the graph, where it has made a commit."""
        commit = self.graph.snapshot(branch=branch).commit
        if commit not in self.commits:
            self.heads[branch] = Commit(next(self.numbers), state, (self.heads[branch], *others))
            self.commits[commit] = self.heads[branch]

    # -- what is done -------------------------------------------------------------------------------------------------

    def write(self, branch: str, nodes: dict[str, Row], edges: dict[str, Row]) -> None:
        state = self.state(branch)
        state |= {(NODE, name): row for name, row in nodes.items()}
        state |= {(EDGE, each): row for each, row in edges.items()}
        self.graph.write(
            {"Person": [{"name": name, "age": row[0], "mood": row[1]} for name, row in nodes.items()]},
            {"Knows": [{"id": each, "from": a, "to": b, "since": since} for each, (a, b, since) in edges.items()]},
            mode="merge",
            branch=branch,
        )
        self.committed(branch, state)

    @rule(place=places, rows=st.dictionaries(people, st.tuples(values, values), min_size=1, max_size=2))
    def put_people(self, place: int, rows: dict[str, Row]) -> None:
        self.write(self.branch(place), rows, {})

    @rule(place=places, edge=edge_ids, ends=st.tuples(people, people), since=values)
    def put_edge(self, place: int, edge: str, ends: tuple[str, str], since: int) -> None:
        branch = self.branch(place)
        if all((NODE, end) in self.heads[branch].state for end in ends):
            self.write(branch, {}, {edge: (*ends, since)})

    @rule(place=places, name=people)
    def delete_person(self, place: int, name: str) -> None:
        branch = self.branch(place)
        state = {key: row for key, row in self.state(branch).items() if key != (NODE, name)}
        for key in dangling(state):
            del state[key]
        self.graph.mutate("query q($n: String) { delete Person where name = $n }", {"n": name}, branch=branch)
        self.committed(branch, state)

    @rule(place=places, since=values)
    def delete_edges(self, place: int, since: int) -> None:
        branch = self.branch(place)
        state = {key: row for key, row in self.state(branch).items() if key[0] == NODE or row[2] != since}
        self.graph.mutate("query q($s: I32) { delete Knows where since = $s }", {"s": since}, branch=branch)
        self.committed(branch, state)

    @precondition(lambda self: len(self.heads) < 5)
    @rule(place=places)
    def fork(self, place: int) -> None:
        self.fork_off(self.branch(place), f"branch {len(self.heads)}")

    def fork_off(self, source: str, name: str) -> None:
        self.graph.branches.create(name, source=source)
        self.heads[name] = self.heads[source]

    @rule(brought=places, changed=places)
    def merge_rows(self, brought: int, changed: int) -> None:
        self.merge(self.branch(brought), self.branch(changed), "row", None)

    @rule(brought=places, changed=places)
    def merge_properties(self, brought: int, changed: int) -> None:
        self.merge(self.branch(brought), self.branch(changed), "property", None)

    @rule(brought=places, changed=places, by=ways, prefer=sides)
    def merge_preferring(self, brought: int, changed: int, by: str, prefer: str) -> None:
        self.merge(self.branch(brought), self.branch(changed), by, prefer)

    @rule(first=places, second=places, prefer=sides)
    def merge_both_ways_at_once(self, first: int, second: int, prefer: str) -> None:
        """Each takes what the other was before: afterwards both were the base of the other."""
        one, other = self.branch(first), self.branch(second)
        if one != other:
            self.fork_off(one, "as it was")
            self.merge(other, one, "row", prefer)
            self.merge("as it was", other, "row", prefer)
            self.graph.branches.delete("as it was")
            del self.heads["as it was"]

    def merge(self, one: str, other: str, by: str, prefer: str | None) -> None:
        if one == other:
            return
        ours, theirs = self.heads[one], self.heads[other]
        base = base_of(ours, theirs)
        seen = self.graph.merge(one, into=other, by=by, prefer=prefer, preview=True)
        if base == ours:
            assert self.graph.merge(one, into=other, by=by, prefer=prefer).outcome == "already_up_to_date"
            return
        was = base_state(ours, theirs)
        expected, conflicts = merged(was, ours.state, theirs.state, by_property=by == "property", prefer=prefer)
        if conflicts:
            with pytest.raises(MergeConflictError) as refused:
                self.graph.merge(one, into=other, by=by, prefer=prefer)
            found = [(each.kind.value, (each.type_key, each.entity_id)) for each in refused.value.conflicts]
            assert sorted(found) == sorted(conflicts)
            assert seen.conflicts == refused.value.conflicts
            return
        done = self.graph.merge(one, into=other, by=by, prefer=prefer)
        assert done.outcome == ("fast_forward" if base == theirs else "merged")
        assert seen.changes == done.changes
        self.committed(other, expected, ours)
        self.check_changes(other, theirs.state, expected)

    def check_changes(self, branch: str, before: State, after: State) -> None:
        """What the commit says of itself is what it did, or more: an edit that was taken back counts as an update."""
        record = self.graph.snapshot(branch=branch).record
        for type_key in (NODE, EDGE):
            said = record.changes.types.get(type_key)
            old = {key for key in before if key[0] == type_key}
            new = {key for key in after if key[0] == type_key}
            updated = {key for key in old & new if before[key] != after[key]}
            counts = (said.inserted, said.updated, said.deleted) if said is not None else (0, 0, 0)
            assert (counts[0], counts[2]) == (len(new - old), len(old - new))
            assert counts[1] >= len(updated)

    @rule(place=places, back=st.integers(0, 3))
    def revert(self, place: int, back: int) -> None:
        branch = self.branch(place)
        undone = self.heads[branch]
        for _ in range(back):
            undone = undone.parents[0] if undone.parents else undone
        if undone.number <= 1:
            return
        before, after, state = undone.parents[0].state, undone.state, self.state(branch)
        changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        stuck = [key for key in changed if state.get(key) not in (after.get(key), before.get(key))]
        for key in changed:
            state.pop(key, None)
            if key in before:
                state[key] = before[key]
        commit = next(each for each, known in self.commits.items() if known is undone)
        if stuck or dangling(state):
            with pytest.raises(RevertConflictError):
                self.graph.revert(commit, branch=branch)
            return
        self.graph.revert(commit, branch=branch)
        self.committed(branch, state)

    @rule(place=places)
    def compact(self, place: int) -> None:
        branch = self.branch(place)
        self.graph.optimize(branch=branch)
        self.committed(branch, self.state(branch))

    # -- what must hold -----------------------------------------------------------------------------------------------

    @rule(older=places, newer=places)
    def differ(self, older: int, newer: int) -> None:
        one, other = self.branch(older), self.branch(newer)
        before, after = self.heads[one].state, self.heads[other].state
        expected = {
            (key, "insert" if key not in before else "update" if key in after else "delete")
            for key in before.keys() | after.keys()
            if before.get(key) != after.get(key)
        }
        found = [((f"{each.kind}:{each.type_name}", each.id), each.op.value) for each in self.graph.diff(one, other)]
        assert sorted(found) == sorted(expected)
        assert len(self.graph.diff(one, other)) == len(expected)

    @invariant()
    def every_branch_equals_its_model(self) -> None:
        for branch, head in getattr(self, "heads", {}).items():
            found: State = {}
            for row in self.graph.export_arrow("Person", branch=branch).read_all().to_pylist():
                found[NODE, row["id"]] = (row["age"], row["mood"])
            for row in self.graph.export_arrow("Knows", branch=branch).read_all().to_pylist():
                found[EDGE, row["id"]] = (row["src"], row["dst"], row["since"])
            assert found == head.state, branch

    def teardown(self) -> None:
        if hasattr(self, "graph"):
            self.graph.close()


NORMAL = settings(
    max_examples=24,
    stateful_step_count=24,
    derandomize=True,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


def test_branches_equal_their_model_whatever_is_merged_into_what() -> None:
    run_state_machine_as_test(BranchMachine, settings=NORMAL)


def test_a_node_is_deleted_after_the_table_of_its_edges_was_emptied_and_compacted() -> None:
    """Found by the machine: columns of the version before were taken for those of the empty one."""
    machine = BranchMachine()
    machine.make()
    machine.compact(0)
    machine.delete_edges(0, 0)
    machine.compact(1)
    machine.compact(0)
    for place, name in ((0, "b"), (4, "b"), (0, "a")):
        machine.delete_person(place, name)
        machine.every_branch_equals_its_model()
    machine.teardown()


def test_a_row_that_one_side_wrote_again_as_it_was_is_found_where_it_lies_now() -> None:
    """Found by the machine: it was no change, so it was looked for where it had been."""
    machine = BranchMachine()
    machine.make()
    machine.put_people(0, {"a": (0, 0)})
    machine.fork(0)
    machine.delete_person(0, "a")
    machine.fork(0)
    machine.put_people(4, {"a": (0, 0)})
    machine.merge_properties(0, 4)
    machine.every_branch_equals_its_model()
    machine.teardown()


@pytest.mark.torture
@pytest.mark.timeout(7_200)
def test_branches_equal_their_model_for_long() -> None:
    run_state_machine_as_test(
        BranchMachine, settings=settings(NORMAL, max_examples=1_500, stateful_step_count=40, derandomize=False)
    )
