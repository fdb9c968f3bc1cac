"""One graph, a handle that lives as long as the walk, and the model; how an act is held against the model."""

import json
import random  # noqa: TID251  (a walk is a function of its seed)
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.support.fast_folder import new_fast_folder

import omnigraph
from omnigraph import Graph, OpenOptions, limits
from omnigraph.testing import model as model
from omnigraph.testing.model import Commit, History, Property, Row, Schema, State, Type

P, T, KNOWS, OWNS, RATES, LIKES = "P", "T", "Knows", "Owns", "Rates", "Likes"
FIRST_SCHEMA = Schema(
    (
        Type(
            P,
            "P",
            (
                Property("P.name", "name", "String", key=True),
                Property("P.age", "age", "I32"),
                Property("P.role", "role", "String"),
                Property("P.mail", "mail", "String", unique=True),
            ),
        ),
        Type(T, "T", (Property("T.name", "name", "String", key=True), Property("T.note", "note", "String"))),
        Type(KNOWS, "Knows", (Property("Knows.w", "w", "I32"),), ends=(P, P)),
        Type(OWNS, "Owns", (Property("Owns.w", "w", "I32"),), ends=(P, T), most=2),
        Type(RATES, "Rates", (Property("Rates.stars", "stars", "I32"),), ends=(P, T), unique_pair=True),
        Type(LIKES, "Likes", (Property("Likes.why", "why", "String"),), ends=(P, P), keyed=True),
    )
)
IDS = {P: ("a", "b", "c", "d", "e", "f"), T: ("t", "u", "v")}
OTHER_IDS = ("k1", "k2", "k3", "k4", "k5")
WORDS = ("red", "green", "blue", "red green", "blue red")
REFUSALS = (model.BrokenRuleError, model.ConflictingRowsError, model.SchemaClashError)


class WalkBase:
    """The state of a walk."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.folder = new_fast_folder()
        self.uri = str(self.folder / "graph")
        self.options = OpenOptions(
            durability="process", auto_compact=False, protection_s=self.chance.choice([0.0, 600.0])
        )
        # Half of the walks cut logs at every sweep; the others keep every entry.
        with patch.object(limits, "LOG_CUT_S", self.chance.choice([0.0, 86_400.0])):
            self.graph = omnigraph.init(self.uri, FIRST_SCHEMA.text(), options=self.options)
        self.history = History()
        self.tags: dict[str, str] = {}
        self.own: dict[str, set[str]] = {"main": set()}
        self.pruned = False
        self.trace: list[str] = []
        self.done: dict[str, int] = {}
        first = self.graph.commits.list()[0]
        empty = State(FIRST_SCHEMA, {kind.uid: {} for kind in FIRST_SCHEMA.types})
        self.history.add("main", Commit(first.id, (), empty))

    def close(self) -> None:
        """Remove the graph."""
        self.graph.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def a_branch(self) -> str:
        """Pick a live branch."""
        return self.chance.choice(sorted(self.history.heads))

    def listed(self, branch: str) -> list[str]:
        """Return the commits that the graph lists for a branch, newest first."""
        return [commit.id for commit in self.graph.commits.list(branch)]

    def state_of(self, commit: str) -> State:
        """Return the content that a commit should have."""
        return self.history.commits[commit].state

    # -- acts ---------------------------------------------------------------------------------------------------------

    def attempt(
        self, branch: str, expected: Callable[[], State], act: Callable[[], object], merged: str | None = None
    ) -> str:
        """Run an act on the graph and on the model: both refuse, or both arrive at the same state."""
        before = self.history.state(branch)
        try:
            after = expected()
        except REFUSALS as refusal:
            try:
                act()
            except omnigraph.GraphError as fault:
                self.check_refusal(refusal, fault)
                assert self.head(branch) == self.history.heads[branch]
                return f"refused by both: {type(refusal).__name__} {refusal} / {fault.code}"
            raise AssertionError(f"accepted what breaks a rule: {refusal!r}") from refusal
        act()
        self.note_commit(branch, before, after, merged)
        return "done"

    def check_refusal(self, refusal: Exception, fault: omnigraph.GraphError) -> None:
        """Check that both refused for the same reason."""
        if isinstance(fault, omnigraph.MergeConflictError):
            over_schemas = [conflict for conflict in fault.conflicts if conflict.kind == "divergent_schema"]
            assert bool(over_schemas) == isinstance(refusal, model.SchemaClashError), f"{refusal!r}, not {fault!r}"
            if isinstance(refusal, model.ConflictingRowsError):
                found = {(conflict.type_key.split(":")[1], conflict.entity_id) for conflict in fault.conflicts}
                types = self.all_types()
                missing = {(types[uid].name, row_id) for uid, row_id in refusal.rows} - found
                assert not missing, f"conflicts that were not listed: {missing}"
            return
        expected = (omnigraph.ConstraintError, omnigraph.ConflictError, omnigraph.RevertConflictError)
        assert isinstance(fault, expected), f"refused with {fault!r}"

    def all_types(self) -> dict[str, Type]:
        """Return types of any state by identity."""
        return {kind.uid: kind for head in self.history.heads.values() for kind in self.state_of(head).schema.types}

    def head(self, branch: str) -> str:
        """Return the head commit of a branch, as the graph has it."""
        return self.graph.commits.list(branch, limit=1)[0].id

    def note_commit(self, branch: str, before: State, after: State, merged: str | None = None) -> None:
        """Take the commit that the graph made into the model."""
        newest = self.graph.commits.list(branch, limit=1)[0]
        old = self.history.heads[branch]
        if newest.id == old:
            assert not model.changes_between(before, after), "a change without a commit"
            assert before.schema == after.schema, "a change of the schema without a commit"
            return
        assert newest.parent == old, f"the parent is {newest.parent}, not {old}"
        assert newest.merged_parent == merged
        self.own[branch].add(newest.id)
        if merged is None:
            self.history.add(branch, Commit(newest.id, (old,), model.blamed(before, after, newest.id)))
            return
        blame = {cell: commits or frozenset({newest.id}) for cell, commits in after.blame.items()}
        self.history.add(branch, Commit(newest.id, (old, merged), replace(after, blame=blame)))

    # -- values -------------------------------------------------------------------------------------------------------

    def random_value(self, prop: Property) -> Any:  # noqa: ANN401  (a value of the property's type)
        """Make up a value of a property that is no key."""
        if prop.type in {"I32", "I64"}:
            return self.chance.choice([None, 1, 2, 3, 4])
        if prop.unique:
            return self.chance.choice([None, None, "x@", "y@", "z@"])
        return self.chance.choice([None, *WORDS])

    def random_row(self, kind: Type, state: State) -> tuple[str, Row] | None:
        """Make up a row with its id; None where an edge would have no ends. Ids are few, so that they meet."""
        row_id = self.random_id(kind)
        row = {prop.uid: row_id if prop.key else self.random_value(prop) for prop in kind.properties}
        if kind.ends is not None:
            left, reached = (sorted(state.rows[end]) for end in kind.ends)
            if not left or not reached:
                return None
            row["src"], row["dst"] = self.chance.choice(left), self.chance.choice(reached)
            if kind.keyed:
                row_id = key_of_ends(row["src"], row["dst"])
        return row_id, row

    def random_id(self, kind: Type) -> str:
        """Make up an id of a node, or of an edge without a key."""
        return self.chance.choice(IDS.get(kind.uid, OTHER_IDS))

    def a_node_type(self, state: State) -> tuple[Type, Property]:
        """Pick a node type, with its key."""
        kind = self.chance.choice([kind for kind in state.schema.types if not kind.is_edge])
        return kind, next(prop for prop in kind.properties if prop.key)


def left_by_a_sweep(graph: Graph) -> dict[str, int]:
    """Return what a sweep deletes right after another, by kind."""
    return graph.sweep(older_than=0).files_by_kind


def key_of_ends(src: str, dst: str) -> str:
    """Return the id of an edge whose key are its ends."""
    return json.dumps([src, dst], separators=(",", ":"))


def given(kind: Type, row_id: str, row: Row) -> dict[str, Any]:
    """Return a row as `write` takes it."""
    named = {name: value for name, value in kind.named(row).items() if value is not None}
    if kind.is_edge:
        named |= {"from": row["src"], "to": row["dst"]}
    if kind.is_edge and not kind.keyed:
        named["id"] = row_id
    return named
