"""Plain-dictionary model of a graph with branches and history: the oracle of the whole-system test.

It shares no code with the product. Types and properties have identities of their own, so that a rename changes a name
and nothing else; a row is a dictionary from property identity to value, with `src` and `dst` on edges.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Row = Mapping[str, Any]
Rows = Mapping[str, Mapping[str, Row]]


@dataclass(frozen=True)
class Property:
    """One property; `uid` outlives renames."""

    uid: str
    name: str
    type: str
    unique: bool = False
    key: bool = False


@dataclass(frozen=True)
class Type:
    """A node type, or, with `ends`, an edge type.

    Attributes:
        uid: outlives renames.
        ends: the types that an edge joins.
        most: how many edges may leave a node.
        unique_pair: two edges may not join the same two nodes.
        keyed: an edge's id is made of its ends.
    """

    uid: str
    name: str
    properties: tuple[Property, ...]
    ends: tuple[str, str] | None = None
    most: int | None = None
    unique_pair: bool = False
    keyed: bool = False

    @property
    def is_edge(self) -> bool:
        """True for edge types."""
        return self.ends is not None

    def named(self, row: Row) -> dict[str, Any]:
        """Return a row by property names instead of identities."""
        return {prop.name: row.get(prop.uid) for prop in self.properties}


@dataclass(frozen=True)
class Schema:
    """All types of one state."""

    types: tuple[Type, ...]

    def by_uid(self) -> dict[str, Type]:
        """Return the types by identity."""
        return {kind.uid: kind for kind in self.types}

    def with_type(self, changed: Type) -> "Schema":
        """Return the schema with one type replaced or added."""
        kept = [changed if kind.uid == changed.uid else kind for kind in self.types]
        return Schema(tuple(kept if changed in kept else [*kept, changed]))

    def text(self, renamed: Mapping[str, str] | None = None) -> str:
        """Write the schema down; `renamed` maps property identities to former names."""
        names = {kind.uid: kind.name for kind in self.types}
        return "\n".join(_type_text(kind, names, renamed or {}) for kind in self.types)


def _type_text(kind: Type, names: Mapping[str, str], renamed: Mapping[str, str]) -> str:
    lines = []
    for prop in kind.properties:
        optional = "" if prop.key else "?"
        marks = " @key" * prop.key + " @unique" * prop.unique
        hint = f' @rename_from("{renamed[prop.uid]}")' if prop.uid in renamed else ""
        lines.append(f"  {prop.name}: {prop.type}{optional}{marks}{hint}")
    if kind.unique_pair:
        lines.append("  @unique(src, dst)")
    if kind.keyed:
        lines.append("  @key(src, dst)")
    body = "\n".join(lines)
    if kind.ends is None:
        return f"node {kind.name} {{\n{body}\n}}"
    most = "" if kind.most is None else f" @card(0..{kind.most})"
    return f"edge {kind.name}: {names[kind.ends[0]]} -> {names[kind.ends[1]]}{most} {{\n{body}\n}}"


@dataclass(frozen=True)
class State:
    """The content of one commit, with the commits that may be blamed for every cell."""

    schema: Schema
    rows: Rows
    blame: Mapping[tuple[str, str, str], frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Commit:
    """One commit: its parents, first parent first, and its content."""

    id: str
    parents: tuple[str, ...]
    state: State


class BrokenRuleError(Exception):
    """A write or merge whose result breaks a rule of the schema."""


class ConflictingRowsError(Exception):
    """A merge or revert that meets rows changed on both sides."""

    def __init__(self, rows: Iterable[tuple[str, str]]) -> None:
        super().__init__(sorted(rows))
        self.rows = frozenset(rows)


class SchemaClashError(Exception):
    """Two schemas that cannot be merged without a decision; `uid` is of the type or property, None for two of them."""

    def __init__(self, message: str, uid: str | None) -> None:
        super().__init__(message)
        self.uid = uid


class NotModelledError(Exception):
    """A case that the model has no opinion about."""


def broken_rules(state: State) -> list[str]:
    """Evaluate every rule of the schema by plain loops."""
    found = []
    types = state.schema.by_uid()
    for uid, rows in state.rows.items():
        kind = types[uid]
        for prop in kind.properties:
            if prop.unique:
                values = [row.get(prop.uid) for row in rows.values() if row.get(prop.uid) is not None]
                if len(values) != len(set(values)):
                    found.append(f"unique {kind.name}.{prop.name}")
        if kind.ends is None:
            continue
        degrees: dict[str, int] = {}
        pairs = set()
        for row_id, row in rows.items():
            if row["src"] not in state.rows[kind.ends[0]] or row["dst"] not in state.rows[kind.ends[1]]:
                found.append(f"dangling {kind.name} {row_id}")
            degrees[row["src"]] = degrees.get(row["src"], 0) + 1
            pairs.add((row["src"], row["dst"]))
        if kind.most is not None and any(count > kind.most for count in degrees.values()):
            found.append(f"cardinality {kind.name}")
        if kind.unique_pair and len(pairs) != len(rows):
            found.append(f"pair {kind.name}")
    return found


def with_rows(state: State, changes: Mapping[str, Mapping[str, Row | None]]) -> State:
    """Return the state with rows put or (None) deleted; deleting a node deletes its edges."""
    rows = {uid: dict(held) for uid, held in state.rows.items()}
    gone: dict[str, set[str]] = {}
    for uid, changed in changes.items():
        for row_id, row in changed.items():
            if row is None:
                rows[uid].pop(row_id, None)
                gone.setdefault(uid, set()).add(row_id)
            else:
                rows[uid][row_id] = dict(row)
    for kind in state.schema.types:
        if kind.ends is not None:
            left, reached = gone.get(kind.ends[0], set()), gone.get(kind.ends[1], set())
            rows[kind.uid] = {
                row_id: row
                for row_id, row in rows[kind.uid].items()
                if row["src"] not in left and row["dst"] not in reached
            }
    return replace(state, rows=rows)


def checked(state: State) -> State:
    """Return the state.

    Raises:
        BrokenRuleError: it breaks a rule.
    """
    broken = broken_rules(state)
    if broken:
        raise BrokenRuleError(broken)
    return state


def blamed(before: State, after: State, commit: str) -> State:
    """Return `after` with `commit` blamed for every cell that differs from `before`."""
    blame = {}
    for uid, rows in after.rows.items():
        for row_id, row in rows.items():
            old = before.rows.get(uid, {}).get(row_id)
            for cell, value in row.items():
                known = before.blame.get((uid, row_id, cell))
                unchanged = old is not None and old.get(cell) == value and known is not None
                blame[uid, row_id, cell] = known if unchanged and known else frozenset({commit})
    return replace(after, blame=blame)


def changes_between(older: State, newer: State) -> dict[tuple[str, str], tuple[Row | None, Row | None]]:
    """Return every row that differs, as it was and as it is, by type identity and id."""
    found: dict[tuple[str, str], tuple[Row | None, Row | None]] = {}
    for uid in older.rows.keys() | newer.rows.keys():
        was, now = older.rows.get(uid, {}), newer.rows.get(uid, {})
        for row_id in was.keys() | now.keys():
            if not same(was.get(row_id), now.get(row_id)):
                found[uid, row_id] = (was.get(row_id), now.get(row_id))
    return found


def same(one: Row | None, other: Row | None) -> bool:
    """Compare two rows; a missing cell is a null."""
    if one is None or other is None:
        return one is other
    return all(one.get(cell) == other.get(cell) for cell in one.keys() | other.keys())


# -- history ----------------------------------------------------------------------------------------------------------


class History:
    """Every commit that was ever made, and the heads of the live branches."""

    def __init__(self) -> None:
        self.commits: dict[str, Commit] = {}
        self.heads: dict[str, str] = {}

    def add(self, branch: str, commit: Commit) -> None:
        """Make a commit the head of a branch."""
        self.commits[commit.id] = commit
        self.heads[branch] = commit.id

    def state(self, branch: str) -> State:
        """Return the content of a branch."""
        return self.commits[self.heads[branch]].state

    def first_parents(self, commit: str) -> list[str]:
        """Return a commit and its first parents, newest first."""
        found = [commit]
        while self.commits[found[-1]].parents:
            found.append(self.commits[found[-1]].parents[0])
        return found

    def distances(self, commit: str) -> dict[str, int]:
        """Return every ancestor of a commit, itself included, with the fewest steps to it."""
        found = {commit: 0}
        level = [commit]
        while level:
            parents = [(here, parent) for here in level for parent in self.commits[here].parents]
            level = []
            for here, parent in parents:
                if parent not in found:
                    found[parent] = found[here] + 1
                    level.append(parent)
        return found

    def merge_base(self, one: str, other: str) -> str:
        """Return the common ancestor above all others; of several the nearest to both, then the newest."""
        first, second = self.distances(one), self.distances(other)
        common = first.keys() & second.keys()
        below = {parent for commit in common for parent in self.commits[commit].parents}
        nearest = min(first[commit] + second[commit] for commit in common - below)
        return max(commit for commit in common - below if first[commit] + second[commit] == nearest)
