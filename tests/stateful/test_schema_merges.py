"""Schemas and rows changed on three branches that are merged in every direction: each branch equals a dictionary.

The model knows a property by a letter, whatever it is called, and merges letters and rows one by one. A row is only
written on the branch that its id names, so that rows never conflict; schemas do, and then the set of conflicts and what
becomes of them by either preference must be the model's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pytest

import omnigraph
from omnigraph import Graph, MergeConflictError, OpenOptions

BRANCHES = ("main", "one", "two")
LETTERS = "abcdefgh"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Column:
    """A property of the model: what it is called, and how wide it is."""

    name: str
    is_wide: bool = False
    is_indexed: bool = False

    @property
    def text(self) -> str:
        return f"{self.name}: {'I64' if self.is_wide else 'I32'}?{' @index' if self.is_indexed else ''}"


@dataclass(frozen=True)
class State:
    """One commit of the model: properties by letter, rows by id with values by letter, and the letters of books."""

    columns: dict[str, Column] = field(default_factory=dict)
    rows: dict[str, dict[str, int | None]] = field(default_factory=dict)
    has_books: bool = False
    books: frozenset[str] = frozenset()

    def text(self, renamed: dict[str, str] | None = None) -> str:
        parts = [
            each.text + (f' @rename_from("{renamed[letter]}")' if renamed and letter in renamed else "")
            for letter, each in sorted(self.columns.items())
        ]
        books = "node Book { name: String @key }\n" if self.has_books else ""
        return f"node Person {{ name: String @key  {'  '.join(parts)} }}\n{books}"

    def shown(self) -> dict[str, dict[str, Any]]:
        return {
            name: {"id": name, "name": name} | {each.name: row.get(letter) for letter, each in self.columns.items()}
            for name, row in self.rows.items()
        }


def three_way(base: _T, source: _T, target: _T) -> tuple[bool, _T]:
    if source in (base, target):
        return True, target
    return target == base, source


def merged(base: State, source: State, target: State, prefer: str | None) -> tuple[State, set[str], set[str]]:
    """The state after a merge, the letters that are in conflict, and the rows that are."""
    conflicts: set[str] = set()
    met: set[str] = set()
    columns: dict[str, Column] = {}
    left_out: set[tuple[int, str]] = set()
    for letter in LETTERS:
        was, ours, theirs = (state.columns.get(letter) for state in (base, source, target))
        if ours is None or theirs is None:
            kept, side = (theirs, target) if ours is None else (ours, source)
            if kept is None:
                continue
            if was is not None:
                is_touched = kept != was or any(
                    base.rows.get(name, {}).get(letter) != row.get(letter) for name, row in side.rows.items()
                )
                if not is_touched:
                    continue
                conflicts.add(letter)
                if prefer != ("target" if ours is None else "source"):
                    continue
            columns[letter] = kept
            continue
        parts: dict[str, Any] = {}
        for name in ("name", "is_wide", "is_indexed"):
            values = [None if each is None else getattr(each, name) for each in (was, ours, theirs)]
            if was is None and name == "is_indexed":
                values[0] = False
            is_decided, value = three_way(*values)
            if not is_decided:
                conflicts.add(letter)
                value = values[1] if prefer == "source" else values[2]
            parts[name] = value
        columns[letter] = Column(**parts)
        if was is None and not columns[letter].is_wide:
            # Both added it, and the values of a wider one do not fit.
            left_out |= {(at, letter) for at, each in enumerate((ours, theirs), 1) if each.is_wide}
    rows = {}
    for name in {*source.rows, *target.rows}:
        # Written on one branch only: what differs from the base is the news.
        images = [
            _seen(state, name, [letter for letter in columns if (at, letter) not in left_out], base)
            for at, state in enumerate((base, source, target))
        ]
        is_decided, row = three_way(*images)
        if not is_decided:
            # It came both ways, in other columns: the base is one of several that the two have in common.
            met.add(name)
            row = images[1] if prefer == "source" else images[2]
        if row is not None:
            rows[name] = {letter: row.get(letter) for letter in columns}
    has_books = three_way(base.has_books, source.has_books, target.has_books)[1]
    books = (base.books & source.books & target.books) | (source.books - base.books) | (target.books - base.books)
    return State(columns, rows, has_books, books if has_books else frozenset()), conflicts, met


def _seen(state: State, name: str, letters: list[str], base: State) -> dict[str, int | None] | None:
    row = state.rows.get(name)
    if row is None:
        return None
    # A property that one side dropped and the merge keeps is as it was at the base.
    return {
        letter: row.get(letter) if letter in state.columns else base.rows.get(name, {}).get(letter)
        for letter in letters
    }


class Machine:
    """One run: a graph, and what it should be."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        start = State({"a": Column("a0"), "b": Column("b0")})
        self.graph = omnigraph.init("memory://", start.text(), options=OpenOptions(durability="process"))
        for name in BRANCHES[1:]:
            self.graph.branches.create(name)
        self.heads = dict.fromkeys(BRANCHES, start)
        self.commits = {self.graph.snapshot(branch=name).commit: start for name in BRANCHES}
        self.next_letter = 2
        self.turn = 0
        self.dropped: set[str] = set()
        self.told: list[str] = []

    def run(self, steps: int) -> None:
        acts: list[Callable[[str], None]] = [
            self.write,
            self.write,
            self.add,
            self.drop,
            self.rename,
            self.widen,
            self.index,
            self.books,
        ]
        acts += [self.merge, self.merge, self.merge, self.merge, self.optimize]
        with self.graph:
            for _ in range(steps):
                self.turn += 1
                self.pick(acts)(self.pick(BRANCHES))
                self.look()

    def pick(self, some: Sequence[_T]) -> _T:
        return some[int(self.random.integers(len(some)))]

    # -- what is done to one branch -----------------------------------------------------------------------------------

    def write(self, branch: str) -> None:
        state = self.heads[branch]
        rows = {name: dict(row) for name, row in state.rows.items()}
        name = f"{branch}-{self.random.integers(5)}"
        if name in rows and self.random.random() < 0.3:
            self.graph.mutate(f'query q() {{ delete Person where name = "{name}" }}', branch=branch)
            del rows[name]
        else:
            row = {letter: self.pick([None, 1, 2, 3]) for letter in state.columns}
            given = {state.columns[letter].name: value for letter, value in row.items()}
            self.graph.write({"Person": [{"name": name} | given]}, mode="merge", branch=branch)
            rows[name] = row
        self.done(branch, replace(state, rows=rows), f"write {name}")

    def add(self, branch: str) -> None:
        """Add one of the latest properties, that other branches may have added, too."""
        letter = self.pick(LETTERS[max(0, min(self.next_letter, len(LETTERS) - 1) - 2) :][:3])
        if letter in self.heads[branch].columns or letter in self.dropped:
            return  # added again after a drop it would be another one
        self.next_letter = max(self.next_letter, LETTERS.index(letter) + 1)
        state = self.heads[branch]
        self.apply(branch, replace(state, columns=state.columns | {letter: Column(f"{letter}0")}), f"add {letter}")

    def drop(self, branch: str) -> None:
        state = self.heads[branch]
        letters = sorted(state.columns)
        if len(letters) < 2:
            return
        letter = self.pick(letters)
        columns = {each: column for each, column in state.columns.items() if each != letter}
        rows = {name: {k: v for k, v in row.items() if k != letter} for name, row in state.rows.items()}
        self.dropped.add(letter)
        self.apply(branch, replace(state, columns=columns, rows=rows), f"drop {letter}")

    def rename(self, branch: str) -> None:
        state = self.heads[branch]
        if not state.columns:
            return
        letter = self.pick(sorted(state.columns))
        was = state.columns[letter]
        now = replace(was, name=f"{letter}{self.turn}")
        self.apply(
            branch, replace(state, columns=state.columns | {letter: now}), f"rename {letter}", {letter: was.name}
        )

    def widen(self, branch: str) -> None:
        state = self.heads[branch]
        if not state.columns:
            return
        letter = self.pick(sorted(state.columns))
        now = replace(state.columns[letter], is_wide=True)
        self.apply(branch, replace(state, columns=state.columns | {letter: now}), f"widen {letter}")

    def index(self, branch: str) -> None:
        state = self.heads[branch]
        if not state.columns:
            return
        letter = self.pick(sorted(state.columns))
        was = state.columns[letter]
        now = replace(was, is_indexed=not was.is_indexed)
        self.apply(branch, replace(state, columns=state.columns | {letter: now}), f"index {letter}")

    def books(self, branch: str) -> None:
        """Make the type that every branch makes for itself, then rows of it."""
        state = self.heads[branch]
        if not state.has_books:
            self.apply(branch, replace(state, has_books=True), "books")
            return
        name = f"book-{self.turn}"
        self.graph.write({"Book": [{"name": name}]}, branch=branch)
        self.done(branch, replace(state, books=state.books | {name}), f"book {name}")

    def optimize(self, branch: str) -> None:
        self.graph.optimize(branch=branch)
        self.done(branch, self.heads[branch], "optimize")

    def apply(self, branch: str, state: State, told: str, renamed: dict[str, str] | None = None) -> None:
        self.graph.schema_apply(state.text(renamed), branch=branch, validated=True)
        self.done(branch, state, told)

    # -- merges -------------------------------------------------------------------------------------------------------

    def merge(self, into: str) -> None:
        source = self.pick([name for name in BRANCHES if name != into])
        prefer = self.pick(["source", "target"])
        seen = self.graph.merge(source, into=into, preview=True)
        base = self.commits[seen.base or ""]
        expected, conflicts, met = merged(base, self.heads[source], self.heads[into], None)
        self.told.append(f"# {source} into {into}: {sorted(conflicts)} {sorted(met)}")
        if seen.outcome == "already_up_to_date":
            return
        named = {self.item(letter, base, source, into) for letter in conflicts}
        assert {each.entity_id for each in seen.conflicts} == (named or met), (seen.conflicts, named, self.story())
        if named or met:
            with pytest.raises(MergeConflictError):
                self.graph.merge(source, into=into)
            expected, _, met = merged(base, self.heads[source], self.heads[into], prefer)
            if met or self.random.random() < 0.5:
                self.graph.merge(source, into=into, prefer=prefer)
            else:
                self.graph.merge(source, into=into, resolutions={"schema": dict.fromkeys(named, prefer)})
        else:
            self.graph.merge(source, into=into)
        self.done(into, expected, f"merge {source} {prefer}")
        assert self.graph.merge(source, into=into).outcome == "already_up_to_date"

    def item(self, letter: str, base: State, source: str, into: str) -> str:
        states = (base, self.heads[source], self.heads[into])
        return "node:Person." + next(state.columns[letter].name for state in states if letter in state.columns)

    # -- what is seen -------------------------------------------------------------------------------------------------

    def done(self, branch: str, state: State, told: str) -> None:
        self.told.append(f"{branch} {told}")
        self.heads[branch] = state
        self.commits[self.graph.snapshot(branch=branch).commit] = state

    def look(self) -> None:
        for branch, state in self.heads.items():
            self.compare(self.graph, state, branch=branch)
            assert self.graph.schema_plan(state.text(), branch=branch, validated=True).is_empty, self.story()
        commit = self.pick(sorted(self.commits))
        past = self.graph.snapshot(commit=commit)
        found = {row["id"]: row for row in past.export_arrow("Person").read_all().to_pylist()}
        assert found == self.commits[commit].shown(), (commit, self.story())
        assert len(self.graph.diff(past, past)) == 0

    def compare(self, graph: Graph, state: State, *, branch: str) -> None:
        found = {row["id"]: row for row in graph.export_arrow("Person", branch=branch).read_all().to_pylist()}
        assert found == state.shown(), (branch, self.story())
        if state.has_books:
            names = set(graph.export_arrow("Book", branch=branch).read_all().column("id").to_pylist())
            assert names == state.books, (branch, self.story())

    def story(self) -> str:
        return "\n".join(self.told)


@pytest.mark.parametrize("seed", range(8))
def test_branches_of_many_schemas_equal_the_model(seed: int) -> None:
    Machine(seed).run(30)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(1_000, 1_400))
def test_many_branches_of_many_schemas_equal_the_model(seed: int) -> None:
    Machine(seed).run(100)
