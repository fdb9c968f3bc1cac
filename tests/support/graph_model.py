"""Plain-dictionary model of a graph with branches and history: the oracle of the whole-system test.

It shares no code with the product. Types and properties have identities of their own, so that a rename changes a name
and nothing else; a row is a dictionary from property identity to value, with `src` and `dst` on edges.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Row = Mapping[str, Any]
Rows = Mapping[str, Mapping[str, Row]]
SOURCE, TARGET = "source", "target"


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
    """A node or edge type; `ends` and `most` (edges per source) are of edges only."""

    uid: str
    name: str
    properties: tuple[Property, ...]
    ends: tuple[str, str] | None = None
    most: int | None = None
    unique_pair: bool = False

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
    """Two schemas that cannot be merged without a decision."""


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


# -- merging ----------------------------------------------------------------------------------------------------------


def merged_schema(base: Schema, source: Schema, target: Schema) -> Schema:
    """Merge two schemas three-way.

    Raises:
        SchemaClashError: both changed the same thing differently, or two things have one name.
    """
    types = []
    olds, news, ours = base.by_uid(), source.by_uid(), target.by_uid()
    for uid in dict.fromkeys([*ours, *news]):
        old, new, our = olds.get(uid), news.get(uid), ours.get(uid)
        if old is None:
            types.append(_merged_type(None, new or our, our or new))
        elif new is None or our is None:
            if (new or our) != old:
                raise SchemaClashError(f"{uid} is dropped on one side and changed on the other")
        else:
            types.append(_merged_type(old, new, our))
    names = [kind.name.lower() for kind in types]
    if len(names) != len(set(names)):
        raise SchemaClashError("two types of one name")
    held = {kind.uid for kind in types}
    if any(end not in held for kind in types for end in kind.ends or ()):
        raise SchemaClashError("an edge type without an end")
    return Schema(tuple(types))


def _merged_type(old: Type | None, new: Type | None, our: Type | None) -> Type:
    assert new is not None and our is not None
    olds = {prop.uid: prop for prop in (old.properties if old else ())}
    news = {prop.uid: prop for prop in new.properties}
    ours = {prop.uid: prop for prop in our.properties}
    properties = []
    for uid in dict.fromkeys([*ours, *news]):
        was, theirs, mine = olds.get(uid), news.get(uid), ours.get(uid)
        if was is None:
            if theirs and mine and theirs != mine:
                raise SchemaClashError(f"{uid} was added differently")
            properties.append(theirs or mine)
        elif theirs is None or mine is None:
            if (theirs or mine) not in (None, was):
                raise SchemaClashError(f"{uid} is dropped on one side and changed on the other")
        else:
            properties.append(_merged_property(was, theirs, mine))
    found = tuple(prop for prop in properties if prop is not None)
    names = [prop.name for prop in found]
    if len(names) != len(set(names)):
        raise SchemaClashError("two properties of one name")
    return replace(our, properties=found)


def _merged_property(was: Property, theirs: Property, mine: Property) -> Property:
    def pick(get: Callable[[Property], Any]) -> Any:  # noqa: ANN401  (the value of any attribute)
        if get(theirs) == get(mine) or get(theirs) == get(was):
            return get(mine)
        if get(mine) == get(was):
            return get(theirs)
        raise SchemaClashError(f"{was.uid} was changed differently")

    return Property(was.uid, pick(lambda p: p.name), pick(lambda p: p.type), was.unique, was.key)


@dataclass(frozen=True)
class Choices:
    """What a merge was told to do about rows that both sides changed."""

    by_property: bool = False
    prefer: str | None = None
    resolutions: Mapping[tuple[str, str], Any] = field(default_factory=dict)


def disputed_rows(base: State, source: State, target: State, *, by_property: bool) -> dict[tuple[str, str], set[str]]:
    """Return the rows that both sides changed differently, with the disputed cells (none for a delete)."""
    schema = merged_schema(base.schema, source.schema, target.schema)
    found = {}
    for uid, row_id, was, theirs, mine in _three_ways(schema, base, source, target):
        if same(theirs, mine) or same(theirs, was) or same(mine, was):
            continue
        cells = _disputed_cells(was, theirs, mine)
        if cells is None or cells or not by_property:
            found[uid, row_id] = cells or set()
    return found


def _three_ways(
    schema: Schema, base: State, source: State, target: State
) -> Iterable[tuple[str, str, Row | None, Row | None, Row | None]]:
    for kind in schema.types:
        cells = {prop.uid for prop in kind.properties} | ({"src", "dst"} if kind.is_edge else set())
        sides = [
            {
                row_id: {cell: value for cell, value in row.items() if cell in cells}
                for row_id, row in state.rows.get(kind.uid, {}).items()
            }
            for state in (base, source, target)
        ]
        for row_id in sides[0].keys() | sides[1].keys() | sides[2].keys():
            was, theirs, mine = (side.get(row_id) for side in sides)
            yield kind.uid, row_id, was, theirs, mine


def _disputed_cells(was: Row | None, theirs: Row | None, mine: Row | None) -> set[str] | None:
    """Return the cells both sides changed differently; None where only whole rows can be compared."""
    if was is None or theirs is None or mine is None:
        return None
    return {
        cell
        for cell in was.keys() | theirs.keys() | mine.keys()
        if theirs.get(cell) != mine.get(cell) and theirs.get(cell) != was.get(cell) and mine.get(cell) != was.get(cell)
    }


def merge(base: State, source: State, target: State, choices: Choices) -> State:
    """Merge three-way; blame goes along with the cells.

    Raises:
        SchemaClashError: the schemas cannot be merged.
        ConflictingRowsError: rows are disputed and not decided.
        BrokenRuleError: the result breaks a rule.
    """
    schema = merged_schema(base.schema, source.schema, target.schema)
    rows: dict[str, dict[str, Row]] = {kind.uid: {} for kind in schema.types}
    blame: dict[tuple[str, str, str], frozenset[str]] = {}
    undecided = []
    for uid, row_id, was, theirs, mine in _three_ways(schema, base, source, target):
        picked = _decide(was, theirs, mine, choices, (uid, row_id))
        if picked is _UNDECIDED:
            undecided.append((uid, row_id))
        elif picked is not None:
            rows[uid][row_id] = picked
            for cell, value in picked.items():
                blame[uid, row_id, cell] = frozenset().union(
                    *(
                        side.blame.get((uid, row_id, cell), frozenset())
                        for side, row in ((source, theirs), (target, mine))
                        if row is not None and row.get(cell) == value
                    )
                )
    if undecided:
        raise ConflictingRowsError(undecided)
    return checked(State(schema, rows, blame))


_UNDECIDED: Any = object()


def _decide(was: Row | None, theirs: Row | None, mine: Row | None, choices: Choices, where: tuple[str, str]) -> Any:  # noqa: ANN401  (a row, None or _UNDECIDED)
    resolution = choices.resolutions.get(where, _UNDECIDED)
    cells = _disputed_cells(was, theirs, mine)
    if resolution is not _UNDECIDED and resolution not in (SOURCE, TARGET):
        return resolution
    if resolution is not _UNDECIDED:
        if not (choices.by_property and cells):
            return theirs if resolution == SOURCE else mine
        return _by_cell(was, theirs, mine, cells, str(resolution))
    if same(theirs, mine) or same(theirs, was):
        return mine
    if same(mine, was):
        return theirs
    if choices.by_property and cells is not None:
        if not cells:
            return _by_cell(was, theirs, mine, set(), TARGET)
        return _UNDECIDED if choices.prefer is None else _by_cell(was, theirs, mine, cells, choices.prefer)
    if choices.prefer is None:
        return _UNDECIDED
    return theirs if choices.prefer == SOURCE else mine


def _by_cell(was: Row | None, theirs: Row | None, mine: Row | None, disputed: set[str], side: str) -> Row:
    assert was is not None and theirs is not None and mine is not None
    result = {}
    for cell in mine.keys() | theirs.keys():
        if cell in disputed:
            result[cell] = (theirs if side == SOURCE else mine).get(cell)
        else:
            result[cell] = theirs.get(cell) if mine.get(cell) == was.get(cell) else mine.get(cell)
    return result


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

    def ancestors(self, commit: str) -> set[str]:
        """Return a commit and everything it descends from."""
        found: set[str] = set()
        waiting = [commit]
        while waiting:
            here = waiting.pop()
            if here not in found:
                found.add(here)
                waiting.extend(self.commits[here].parents)
        return found

    def merge_bases(self, one: str, other: str) -> list[str]:
        """Return the common ancestors that are ancestors of no other common ancestor."""
        common = self.ancestors(one) & self.ancestors(other)
        below = {parent for commit in common for parent in self.ancestors(commit) - {commit}}
        return sorted(common - below)
