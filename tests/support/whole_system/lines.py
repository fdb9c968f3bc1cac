"""Branches, tags, merges and reverts of a walk."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from tests.support.whole_system.base import WalkBase

from omnigraph.testing import ancestor_model as base_model
from omnigraph.testing import merge_model
from omnigraph.testing import model as model
from omnigraph.testing.merge_model import SOURCE, TARGET, Cells, Choices
from omnigraph.testing.model import Row, Schema, State, Type

BRANCHES = ("one", "two", "three")
CROSSING = "crossing"


class Lines(WalkBase):
    """What moves between lines of history."""

    def create_branch(self) -> str | None:
        """Branch off a head, a tag, or an older commit that is still listed; names of deleted branches come back."""
        free = [name for name in BRANCHES if name not in self.history.heads]
        if not free:
            return None
        name, source = self.chance.choice(free), self.a_branch()
        how = self.chance.random()
        if how < 0.25:
            commit = self.chance.choice(self.listed(source))
            self.graph.branches.create(name, commit=commit)
        elif how < 0.4 and self.tags:
            tag = self.chance.choice(sorted(self.tags))
            commit = self.tags[tag]
            self.graph.branches.create(name, tag=tag)
        else:
            commit = self.history.heads[source]
            self.graph.branches.create(name, source=source)
        self.history.heads[name] = commit
        self.own[name] = set()
        return f"{name} from {commit} of {source}"

    def delete_branch(self) -> str | None:
        """Delete a branch; its children live on."""
        branch = self.a_branch()
        if branch == "main":
            return None
        self.graph.branches.delete(branch)
        del self.history.heads[branch]
        return branch

    def tag(self) -> str | None:
        """Tag a listed commit."""
        branch = self.a_branch()
        name = next(name for name in (f"v{number}" for number in count(1)) if name not in self.tags)
        commit = self.chance.choice(self.listed(branch))
        self.graph.tags.create(name, commit=commit)
        self.tags[name] = commit
        return f"{name} = {commit} of {branch}"

    def untag(self) -> str | None:
        """Delete a tag."""
        if not self.tags:
            return None
        name = self.chance.choice(sorted(self.tags))
        self.graph.tags.delete(name)
        del self.tags[name]
        return name

    # -- merges -------------------------------------------------------------------------------------------------------

    def merge(self) -> str | None:
        """Merge any branch into any other, with or without choices; a preview tells the same beforehand."""
        if len(self.history.heads) < 2:
            return None
        source, target = self.chance.sample(sorted(self.history.heads), 2)
        return self.merge_into(source, target)

    def criss_cross(self) -> str | None:
        """Merge two branches into each other as they both were before, with upkeep between; others then meet both."""
        if len(self.history.heads) < 2 or CROSSING in self.history.heads:
            return None
        one, other = self.chance.sample(sorted(self.history.heads), 2)
        self.graph.branches.create(CROSSING, source=one)
        self.history.heads[CROSSING] = self.history.heads[one]
        self.own[CROSSING] = set()
        outcomes = [f"between {one} and {other}"]
        for source, target in ((other, one), (CROSSING, other)):
            for act in self.chance.sample(self.between_merges(), self.chance.randint(0, 2)):
                outcomes.append(f"{act.__name__} {act()}")
                self.trace[-1] = f"criss_cross: {outcomes} …"
            outcomes.append(str(self.merge_into(source, target)))
            self.trace[-1] = f"criss_cross: {outcomes} …"
        if self.chance.random() < 0.7:
            self.graph.branches.delete(CROSSING)
            del self.history.heads[CROSSING]
            outcomes.append("deleted")
        return "; ".join(outcomes)

    def between_merges(self) -> list[Callable[[], str | None]]:
        """Return what may happen between the two merges of a criss-cross."""
        return []

    def merge_into(self, source: str, target: str) -> str | None:
        """Merge one branch into another."""
        theirs, ours = self.history.heads[source], self.history.heads[target]
        base = self.history.merge_base(theirs, ours)
        try:
            states = (self.base_state(theirs, ours), self.state_of(theirs), self.state_of(ours))
        except model.NotModelledError:
            return None
        choices = Choices(
            by_property=self.chance.random() < 0.4, prefer=self.chance.choice([None, None, SOURCE, TARGET])
        )
        is_known = base == theirs
        arguments: dict[str, Any] = {}
        try:
            if not is_known:
                choices, arguments = self.with_resolutions(states, choices)
        except model.NotModelledError:
            return None
        arguments |= {"by": "property" if choices.by_property else "row", "prefer": choices.prefer}
        self.trace[-1] += f" [merge {source} into {target} {arguments} …]"
        preview = self.chance.random() < 0.3 and self.graph.merge(source, into=target, preview=True, **arguments)

        def expected() -> State:
            return states[2] if is_known else merge_model.merge(*states, choices)

        def act() -> None:
            result = self.graph.merge(source, into=target, **arguments)
            assert result.base == base, f"merge base {result.base}, not {base}"
            if preview:
                assert not preview.conflicts, f"only the preview has conflicts: {preview.conflicts}"
                assert (preview.outcome, preview.changes) == (result.outcome, result.changes)
            outcome = "already_up_to_date" if is_known else "fast_forward" if base == ours else "merged"
            assert result.outcome == outcome, f"{result.outcome}, not {outcome}"

        done = self.attempt(target, expected, act, None if is_known else theirs)
        return f"{source} into {target} {arguments}: {done}"

    def base_state(self, theirs: str, ours: str) -> State:
        """Return what two commits are compared with; of several best common ancestors what these come to.

        Raises:
            NotModelledError: there are several, and their schemas differ or a side has dropped something.
        """
        commits = base_model.Commits(lambda commit: self.history.commits[commit].parents)
        best = commits.best(theirs, ours)
        if len(best) == 1:
            return self.state_of(best[0])
        schema, *others = (self.state_of(commit).schema for commit in commits.involved(best))
        sides = [self.state_of(commit) for commit in (theirs, ours)]
        if any(other != schema for other in others) or any(has_dropped(schema, side.schema) for side in sides):
            raise model.NotModelledError("several common ancestors and more than one schema")
        one, other = (rows_by_place(side) for side in sides)
        found = base_model.base_rows(commits, best, lambda commit: rows_by_place(self.state_of(commit)), (one, other))
        rows: dict[str, dict[str, Row]] = {kind.uid: {} for kind in schema.types}
        for (uid, row_id), row in found.items():
            rows[uid][row_id] = row
        return State(schema, rows)

    def with_resolutions(self, states: tuple[State, State, State], choices: Choices) -> tuple[Choices, dict[str, Any]]:
        """Decide most clashes of schemas and rows, and now and then what is not disputed."""
        items: dict[str, str] = {}
        while True:
            try:
                schema = merge_model.merged_schema(*states, choices)
                break
            except model.SchemaClashError as clash:
                if clash.uid is None or self.chance.random() < 0.3:
                    return choices, {"resolutions": {"schema": items}} if items else {}
                side = self.chance.choice([SOURCE, TARGET])
                items[item_named(clash.uid, states)] = side
                choices = replace(choices, schema={**choices.schema, clash.uid: side})
        decided: dict[tuple[str, str], Any] = {}
        named: dict[str, dict[str, Any]] = {"schema": dict(items)} if items else {}
        for where, is_disputed in merge_model.changed_rows(*states, choices).items():
            if self.chance.random() < (0.5 if is_disputed else 0.03):
                kind = schema.by_uid()[where[0]]
                rows = [state.rows.get(where[0], {}).get(where[1]) for state in states]
                decided[where], named.setdefault(kind.name, {})[where[1]] = self.a_resolution(kind, rows)
        return replace(choices, resolutions=decided), {"resolutions": named} if named else {}

    def a_resolution(self, kind: Type, rows: list[Row | None]) -> tuple[Any, Any]:
        """Make up a decision about one row, for the model and for the graph."""
        how = self.chance.choice([SOURCE, SOURCE, TARGET, TARGET, "delete", "row", "properties", "properties"])
        free = [prop for prop in kind.properties if not prop.key]
        known = next((row for row in reversed(rows) if row is not None), None)
        if how in (SOURCE, TARGET):
            return how, how
        if how == "delete" or known is None:
            return None, None
        if how == "row" or rows[1] is None or rows[2] is None or not free:
            cells = {prop.uid: known[prop.uid] if prop.key else self.random_value(prop) for prop in kind.properties}
            ends = {"src": known["src"], "dst": known["dst"]} if kind.is_edge else {}
            named = {prop.name: cells[prop.uid] for prop in free}
            if kind.is_edge and not kind.keyed:
                named |= {"from": ends["src"], "to": ends["dst"]}
            return {**cells, **ends}, named
        sides: dict[str, str] = {}
        values: dict[str, Any] = {}
        named = {}
        for prop in self.chance.sample(free, self.chance.randint(1, len(free))):
            if self.chance.random() < 0.3:
                values[prop.uid] = self.random_value(prop)
                named[prop.name] = {"value": values[prop.uid]}
            else:
                named[prop.name] = sides[prop.uid] = self.chance.choice([SOURCE, TARGET])
        return Cells(sides, values), {"$properties": named}

    # -- reverts ------------------------------------------------------------------------------------------------------

    def revert(self) -> str | None:
        """Undo a listed commit, or a range of them."""
        branch = self.a_branch()
        listed = self.listed(branch)
        first = self.chance.randrange(len(listed))
        last = max(0, first - self.chance.choice([0, 0, 0, 1, 2]))
        parents = self.history.commits[listed[first]].parents
        chain = self.history.first_parents(listed[last])
        if not parents or chain[: first - last + 1] != listed[last : first + 1]:
            return None
        if first + 1 >= len(listed) or listed[first + 1] != parents[0]:
            return None
        head = self.history.state(branch)
        before, after = self.state_of(parents[0]), self.state_of(listed[last])
        if not before.schema == after.schema == head.schema:
            return None
        asked: Any = listed[first] if first == last else (listed[first], listed[last])
        outcome = self.attempt(
            branch, lambda: reverted(head, before, after), lambda: self.graph.revert(asked, branch=branch)
        )
        return f"{asked} on {branch}: {outcome}"


def rows_by_place(state: State) -> dict[tuple[str, str], Row]:
    """Return all rows by type identity and id, with a null in every cell that is missing."""
    found: dict[tuple[str, str], Row] = {}
    for kind in state.schema.types:
        cells = [*(prop.uid for prop in kind.properties), *(("src", "dst") if kind.is_edge else ())]
        for row_id, row in state.rows[kind.uid].items():
            found[kind.uid, row_id] = {cell: row.get(cell) for cell in cells}
    return found


def has_dropped(base: Schema, side: Schema) -> bool:
    """Return whether a side lacks a type or property of the base."""
    now = {(kind.uid, prop.uid) for kind in side.types for prop in kind.properties} | {kind.uid for kind in side.types}
    was = {(kind.uid, prop.uid) for kind in base.types for prop in kind.properties} | {kind.uid for kind in base.types}
    return not was <= now


def item_named(uid: str, states: tuple[State, State, State]) -> str:
    """Return what a resolution calls a type or property, by the oldest name it has."""
    for state in states:
        for kind in state.schema.types:
            name = f"{'edge' if kind.is_edge else 'node'}:{kind.name}"
            if kind.uid == uid:
                return name
            for prop in kind.properties:
                if prop.uid == uid:
                    return f"{name}.{prop.name}"
    raise AssertionError(f"no state has {uid}")


def reverted(head: State, before: State, after: State) -> State:
    """Return the head without what happened between two states.

    Raises:
        ConflictingRowsError: rows were changed since.
        BrokenRuleError: the result breaks a rule.
    """
    rows = {uid: dict(held) for uid, held in head.rows.items()}
    clashing = []
    for (uid, row_id), (was, now) in model.changes_between(before, after).items():
        current = head.rows[uid].get(row_id)
        if model.same(current, was):
            continue
        if not model.same(current, now):
            clashing.append((uid, row_id))
        elif was is None:
            del rows[uid][row_id]
        else:
            rows[uid][row_id] = was
    if clashing:
        raise model.ConflictingRowsError(clashing)
    return model.checked(replace(head, rows=rows))
