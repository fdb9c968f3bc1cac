"""Warm caches answer as cold ones: one long-lived handle, a fresh one and a dictionary agree on all states."""

import random  # noqa: TID251  (seeded)
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support.fast_folder import fast_folder

import omnigraph
from omnigraph import Graph, limits
from omnigraph.api.options import OpenOptions

SCHEMA = """
node P { name: String @key  age: I32?  note: String? }
edge Knows: P -> P { since: I32? }
"""
NAMES = tuple(f"p{number}" for number in range(8))
BRANCHES_MAX = 6

Answers = dict[str, Sequence[tuple[object, ...]]]

# Bounds so small that a handful of rows crosses them, and a cache that keeps losing what it has.
SMALLEST = {
    "READ_WHOLE_ROWS_MAX": 1,
    "LOOKUP_ROWS_MAX": 3,
    "LOOKUP_NODES_MAX": 2,
    "ORDINAL_SPACES_MAX": 2,
    "NEAR_ROWS_MAX": 3,
    "REMEMBERED_FRAGMENT_ROWS_MAX": 2,
    "CSR_PATCHED_NODES_MAX": 2,
    "ADJACENCY_VERSIONS_MAX": 2,
    "ADJACENCY_FILE_EDGES_MIN": 2,
    "ADJACENCY_CHUNK_EDGES": 2,
    "ADJACENCY_STALE_SHARE": 0.0,
    "ORDINAL_HOLES_ALLOWED": 3,
    "FINDER_CHANGES_MAX": 4,
}
SMALL_CACHE_BYTES = 12_000


@dataclass
class Model:
    """What one state of the graph holds: people by name, edges as pairs of names with a year, and added properties."""

    people: dict[str, tuple[int | None, str | None]] = field(default_factory=dict)
    edges: list[tuple[str, str, int]] = field(default_factory=list)
    properties: int = 0

    def beside(self, name: str) -> set[str]:
        """The people that somebody knows."""
        return {target for source, target, _ in self.edges if source == name}

    def behind(self, name: str) -> set[str]:
        """The people that know somebody."""
        return {source for source, target, _ in self.edges if target == name}

    def around(self, name: str) -> set[str]:
        """The people that somebody knows or is known by."""
        return self.beside(name) | self.behind(name)

    def within(self, name: str, most: int) -> set[str]:
        """Everybody within so many hops; oneself only by an edge to oneself."""
        seen, frontier = {name}, {name}
        for _ in range(most):
            frontier = {other for each in frontier for other in self.beside(each)} - seen
            seen |= frontier
        return (seen - {name}) | (self.beside(name) & {name})

    def answers(self, name: str) -> Answers:
        """The rows of every question about somebody."""
        here = [name] if name in self.people else []
        beside = sorted(self.beside(name))
        second = sorted(far for near in beside for far in self.beside(near))
        return {
            "by key": [self.people[each] for each in here],
            "all": sorted((each, *self.people[each]) for each in self.people),
            "how many": [(len(self.people),)],
            "one hop": [(each, self.people[each][0]) for each in beside],
            "one hop back": [
                (each,) for each in sorted({source for source, target, _ in self.edges if target == name})
            ],
            "two hops": [(each, self.people[each][0]) for each in second],
            "either way": [(other,) for other in sorted(self.around(name))],
            "late edges": sorted((source, target) for source, target, since in self.edges if since > 2_004),
            "all edges": [(len({(source, target) for source, target, _ in self.edges}),)],
            "within three hops": [(each,) for each in sorted(self.within(name, 3))],
            "how many are known": [(len(beside),)],
            "who has words": sorted(
                (each,) for each, (_, note) in self.people.items() if note and name in note.split()
            ),
        }


_PERSON = "$p: P { name: $n }"
QUESTIONS = {
    "by key": f"match {{ {_PERSON} }} return {{ $p.age, $p.note }}",
    "all": "match { $p: P } return { $p.name as n, $p.age, $p.note } order { n }",
    "how many": "match { $p: P } return { count(*) as c }",
    "one hop": f"match {{ {_PERSON} $p knows $f }} return {{ $f.name as n, $f.age }} order {{ n }}",
    "one hop back": f"match {{ {_PERSON} $f knows $p }} return {{ $f.name as n }} order {{ n }}",
    "two hops": f"match {{ {_PERSON} $p knows $g $g knows $f }} return {{ $f.name as n, $f.age }} order {{ n }}",
    "either way": f"match {{ {_PERSON} $p <knows> $f }} return {{ $f.name as n }} order {{ n }}",
    "late edges": "match { $a: P $a $e: knows $b $e.since > 2004 } "
    "return { $a.name as a, $b.name as b } order { a, b }",
    "all edges": "match { $a: P $a knows $b } return { count(*) as c }",
    "within three hops": f"match {{ {_PERSON} $p knows{{1,3}} $f }} return {{ $f.name as n }} order {{ n }}",
    "how many are known": f"match {{ {_PERSON} $p knows $f }} return {{ count($f) as c }}",
    "who has words": "match { $p: P search($p.note, $n) } return { $p.name as n } order { n }",
}


def answers(
    graph: Graph, questions: Iterable[str], name: str, *, branch: str | None = None, commit: str | None = None
) -> Answers:
    """What a handle says to some questions."""
    return {
        what: [
            tuple(row.values())
            for row in graph.query(
                f"query q($n: String) {{ {QUESTIONS[what]} }}", {"n": name}, branch=branch, commit=commit
            )
        ]
        for what in questions
    }


class OneHandle:
    """Branches of branches, changed through one handle that has been asked about any of them before."""

    def __init__(self, folder: Path, draw: random.Random, cache_bytes: int) -> None:
        self.root = str(folder / "graph")
        self.draw = draw
        options = OpenOptions(durability="process", cache_bytes=cache_bytes, auto_compact=False)
        self.warm = omnigraph.init(self.root, SCHEMA, options=options)
        # Another handle has caches of its own, as another process has: what it writes is news to the first.
        self.other = omnigraph.open(self.root, options=options)
        self.states: dict[str, Model] = {"main": Model()}
        self.commits: list[tuple[str, Model]] = []
        self.steps: list[str] = []
        self.put()

    def step(self) -> None:
        """Anything; questions most of all, few at a time: what a version has in memory depends on what was asked."""
        changes = (self.put, self.update, self.update, self.delete, self.connect, self.disconnect)
        rarely = (self.fork, self.fork, self.optimize, self.add_property, self.ask_everything_everywhere)
        self.draw.choice((self.draw.choice(changes), self.draw.choice(rarely), self.ask_a_branch, self.ask_the_past))()

    def note(self, *step: object) -> None:
        self.steps.append(" ".join(map(str, step)))

    def name(self) -> str:
        return self.draw.choice(NAMES)

    def branch(self) -> str:
        return self.draw.choice(sorted(self.states))

    def writer(self) -> Graph:
        """One of the two handles."""
        return self.draw.choice((self.warm, self.warm, self.other))

    def remember(self, branch: str) -> None:
        self.commits.append((self.warm.snapshot(branch=branch).commit, deepcopy(self.states[branch])))

    # --- changes --------------------------------------------------------------------------------------------------

    def put(self) -> None:
        """New people, and others in the place of those there are."""
        branch, some, age = self.branch(), self.draw.sample(NAMES, self.draw.randint(1, 4)), self.draw.randint(0, 9)
        self.note("put", branch, some, age)
        rows = [{"name": name, "age": age, "note": f"{name} p{age}"} for name in some]
        self.writer().write({"P": rows}, mode="merge", branch=branch)
        self.states[branch].people.update({name: (age, f"{name} p{age}") for name in some})
        self.remember(branch)

    def update(self) -> None:
        branch, name, age = self.branch(), self.name(), self.draw.randint(10, 99)
        self.note("update", branch, name, age)
        people = self.states[branch].people
        text = "query q($n: String, $a: I32) { update P set { age: $a } where name = $n }"
        done = self.writer().mutate(text, {"n": name, "a": age}, branch=branch)
        assert done.affected_nodes == (name in people)
        if name in people:
            people[name] = (age, people[name][1])
            self.remember(branch)

    def delete(self) -> None:
        """With all edges at it."""
        branch, name = self.branch(), self.name()
        self.note("delete", branch, name)
        state = self.states[branch]
        left = [edge for edge in state.edges if name not in edge[:2]]
        done = self.writer().mutate("query q($n: String) { delete P where name = $n }", {"n": name}, branch=branch)
        gone = int(state.people.pop(name, None) is not None)
        assert (done.affected_nodes, done.affected_edges) == (gone, len(state.edges) - len(left))
        state.edges = left
        if gone:
            self.remember(branch)

    def connect(self) -> None:
        branch = self.branch()
        state = self.states[branch]
        if state.people:
            there = sorted(state.people)
            count = self.draw.randint(1, 4)
            added = [
                (self.draw.choice(there), self.draw.choice(there), self.draw.randint(2000, 2009)) for _ in range(count)
            ]
            self.note("connect", branch, added)
            self.writer().write(
                {},
                {"Knows": [{"from": source, "to": target, "since": since} for source, target, since in added]},
                branch=branch,
            )
            state.edges += added
            self.remember(branch)

    def disconnect(self) -> None:
        branch, name = self.branch(), self.name()
        self.note("disconnect", branch, name)
        state = self.states[branch]
        left = [edge for edge in state.edges if edge[0] != name]
        done = self.writer().mutate("query q($n: String) { delete Knows where from = $n }", {"n": name}, branch=branch)
        assert done.affected_edges == len(state.edges) - len(left)
        if len(left) < len(state.edges):
            state.edges = left
            self.remember(branch)

    def fork(self) -> None:
        if len(self.states) < BRANCHES_MAX:
            source, name = self.branch(), f"b{len(self.states)}"
            self.note("fork", source, name)
            self.warm.branches.create(name, source=source)
            self.states[name] = deepcopy(self.states[source])

    def optimize(self) -> None:
        branch = self.branch()
        self.note("optimize", branch)
        self.writer().optimize(branch=branch)

    def add_property(self) -> None:
        """Another optional property, on one branch only."""
        branch = self.branch()
        state = self.states[branch]
        state.properties += 1
        self.note("add a property", branch)
        more = "  ".join(f"extra{number}: String?" for number in range(state.properties))
        self.writer().schema_apply(SCHEMA.replace("note: String?", f"note: String?  {more}"), branch=branch)
        self.remember(branch)

    # --- questions ------------------------------------------------------------------------------------------------

    def some_questions(self) -> list[str]:
        return self.draw.sample(sorted(QUESTIONS), self.draw.randint(1, 3))

    def ask_a_branch(self) -> None:
        branch, name, some = self.branch(), self.name(), self.some_questions()
        self.note("ask", branch, name, some)
        self.check(answers(self.warm, some, name, branch=branch), self.states[branch], name)

    def ask_the_past(self) -> None:
        (commit, state), name, some = self.draw.choice(self.commits), self.name(), self.some_questions()
        self.note("ask", commit, name, some)
        self.check(answers(self.warm, some, name, commit=commit), state, name)

    def ask_everything_everywhere(self) -> None:
        name = self.name()
        self.note("ask everything", name)
        with omnigraph.open(self.root, read_only=True) as cold:
            for branch, state in sorted(self.states.items()):
                self.check(answers(cold, QUESTIONS, name, branch=branch), state, name)
                self.check(answers(self.warm, QUESTIONS, name, branch=branch), state, name)

    def check(self, found: Answers, state: Model, name: str) -> None:
        expected = state.answers(name)
        assert found == {what: expected[what] for what in found}


def live_through(seeds: Iterable[int], steps: int, cache_bytes: int) -> None:
    """As many random lives of a handle; what fails says which seed and which steps."""
    for seed in seeds:
        with fast_folder() as folder:
            handle = OneHandle(folder, random.Random(seed), cache_bytes)
            try:
                for _ in range(steps):
                    handle.step()
            except Exception as error:
                error.add_note(f"seed {seed}\n" + "\n".join(handle.steps))
                raise
            finally:
                handle.warm.close()
                handle.other.close()


@contextmanager
def everything_at_its_smallest() -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in SMALLEST.items():
            assert hasattr(limits, name)
            stack.enter_context(patch.object(limits, name, value))
        yield


def test_warm_caches_answer_as_cold_ones() -> None:
    live_through(range(12), 60, limits.QUERY_CACHE_BYTES_MAX)


def test_caches_that_keep_forgetting_answer_as_cold_ones() -> None:
    with everything_at_its_smallest():
        live_through(range(12), 60, SMALL_CACHE_BYTES)


@pytest.mark.torture
@pytest.mark.timeout(7_200)
def test_warm_caches_answer_as_cold_ones_for_long() -> None:
    live_through(range(1_000, 2_000), 120, limits.QUERY_CACHE_BYTES_MAX)
    with everything_at_its_smallest():
        live_through(range(1_000, 2_000), 120, SMALL_CACHE_BYTES)
