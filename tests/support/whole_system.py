"""Random walks over every public operation of a graph, held against the plain model of `graph_model`.

A walk is a function of its seed. `Walk.trace` lists what was done, so that a counter-example can become a plain test.
"""

import json
import random  # noqa: TID251  (a walk is a function of its seed)
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from tests.support import graph_model as model
from tests.support.graph_model import SOURCE, TARGET, Choices, Commit, History, Property, Row, Schema, State, Type

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.testing.fast_folder import new_fast_folder

P, T, KNOWS, OWNS, RATES = "P", "T", "Knows", "Owns", "Rates"
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
    )
)
BRANCHES = ("one", "two", "three")
IDS = {P: ("a", "b", "c", "d", "e", "f"), T: ("t", "u", "v")}
REFUSED = (
    omnigraph.NotFoundError,
    omnigraph.ReclaimedError,
    omnigraph.ChangeGapError,
)


class Walk:
    """One graph, a handle that lives as long as the walk, and the model."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.folder = new_fast_folder()
        self.uri = str(self.folder / "graph")
        self.options = OpenOptions(
            durability="process", auto_compact=False, protection_s=self.chance.choice([0.0, 600.0])
        )
        self.graph = omnigraph.init(self.uri, FIRST_SCHEMA.text(), options=self.options)
        self.history = History()
        self.tags: dict[str, str] = {}
        self.pruned = False
        self.trace: list[str] = []
        self.done: dict[str, int] = {}
        self.numbers = count(1)
        first = self.graph.commits.list()[0]
        empty = State(FIRST_SCHEMA, {kind.uid: {} for kind in FIRST_SCHEMA.types})
        self.history.add("main", Commit(first.id, (), empty))

    def close(self) -> None:
        """Remove the graph."""
        self.graph.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, steps: int) -> None:
        """Take so many steps, and look at everything at the end.

        Raises:
            AssertionError: the graph and the model differ; the message has the seed and the steps.
        """
        try:
            for _ in range(steps):
                self.step()
            self.look_at_everything()
        except BaseException as fault:
            fault.add_note(f"seed {self.seed}, after:\n" + "\n".join(self.trace[-60:]))
            raise
        finally:
            self.close()

    def step(self) -> None:
        """Do one thing at random, then look at something at random."""
        acts: list[tuple[int, Callable[[], str | None]]] = [
            (10, self.write_rows),
            (8, self.update_row),
            (4, self.delete_row),
            (3, self.load_rows),
            (5, self.create_branch),
            (2, self.delete_branch),
            (8, self.merge),
            (3, self.revert),
            (2, self.tag),
            (1, self.untag),
            (3, self.optimize),
            (3, self.prune),
            (3, self.sweep),
            (1, self.cleanup),
            (3, self.change_schema),
        ]
        act = self.chance.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        self.trace.append(f"{act.__name__} …")
        outcome = act()
        if outcome is None:
            self.trace.pop()
            return
        self.trace[-1] = f"{act.__name__}: {outcome}"
        self.done[act.__name__] = self.done.get(act.__name__, 0) + 1
        self.look_at_something()

    # -- what is done -------------------------------------------------------------------------------------------------

    def a_branch(self) -> str:
        """Pick a live branch."""
        return self.chance.choice(sorted(self.history.heads))

    def attempt(
        self, branch: str, expected: Callable[[], State], act: Callable[[], object], merged: str | None = None
    ) -> str:
        """Run an act on the graph and on the model: both refuse, or both arrive at the same state."""
        before = self.history.state(branch)
        try:
            after = expected()
        except (model.BrokenRuleError, model.ConflictingRowsError, model.SchemaClashError) as refusal:
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
        if isinstance(refusal, model.ConflictingRowsError) and isinstance(fault, omnigraph.MergeConflictError):
            found = {(conflict.type_key.split(":")[1], conflict.entity_id) for conflict in fault.conflicts}
            types = self.all_types()
            missing = {(types[uid].name, row_id) for uid, row_id in refusal.rows} - found
            assert not missing, f"conflicts that were not listed: {missing}"
        expected = (
            omnigraph.ConstraintError,
            omnigraph.ConflictError,
            omnigraph.MergeConflictError,
            omnigraph.RevertConflictError,
        )
        assert isinstance(fault, expected), f"refused with {fault!r}"

    def all_types(self) -> dict[str, Type]:
        """Return types of any state by identity."""
        return {
            kind.uid: kind
            for head in self.history.heads.values()
            for kind in self.history.commits[head].state.schema.types
        }

    def head(self, branch: str) -> str:
        """Return the head commit of a branch, as the graph has it."""
        return self.graph.commits.list(branch, limit=1)[0].id

    def note_commit(self, branch: str, before: State, after: State, merged: str | None = None) -> None:
        """Take the commit that the graph made into the model."""
        newest = self.graph.commits.list(branch, limit=1)[0]
        old = self.history.heads[branch]
        if newest.id == old:
            assert not model.changes_between(before, after), "a change without a commit"
            return
        assert newest.parent == old, f"the parent is {newest.parent}, not {old}"
        assert newest.merged_parent == merged
        parents = (old,) if merged is None else (old, merged)
        known = after if merged is not None else model.blamed(before, after, newest.id)
        if merged is not None:
            blame = {cell: commits or frozenset({newest.id}) for cell, commits in known.blame.items()}
            known = replace(known, blame=blame)
        self.history.add(branch, Commit(newest.id, parents, known))

    def random_row(self, kind: Type, row_id: str, state: State) -> Row | None:
        """Make up a row of a type; None where an edge would have no ends."""
        row: dict[str, Any] = {}
        for prop in kind.properties:
            if prop.key:
                row[prop.uid] = row_id
            elif prop.type in {"I32", "I64"}:
                row[prop.uid] = self.chance.choice([None, 1, 2, 3, 4])
            elif prop.unique:
                row[prop.uid] = self.chance.choice([None, None, "x@", "y@", "z@"])
            else:
                row[prop.uid] = self.chance.choice([None, "red", "green", "blue"])
        if kind.ends is not None:
            left, reached = (sorted(state.rows[end]) for end in kind.ends)
            if not left or not reached:
                return None
            row["src"], row["dst"] = self.chance.choice(left), self.chance.choice(reached)
        return row

    def random_id(self, kind: Type) -> str:
        """Make up an id; edges have few as well, so that they meet."""
        return self.chance.choice(IDS.get(kind.uid, ("k1", "k2", "k3", "k4", "k5")))

    def given(self, kind: Type, row_id: str, row: Row) -> dict[str, Any]:
        """Return a row as `write` takes it."""
        named = {name: value for name, value in kind.named(row).items() if value is not None}
        if kind.is_edge:
            named |= {"id": row_id, "from": row["src"], "to": row["dst"]}
        elif not any(prop.key for prop in kind.properties):
            named["id"] = row_id
        return named

    def some_rows(self, state: State) -> dict[str, dict[str, Row]]:
        """Make up rows of one to three types, whose edges may name the new nodes."""
        rows: dict[str, dict[str, Row]] = {}
        known = state
        kinds = self.chance.sample(state.schema.types, self.chance.randint(1, 3))
        for kind in sorted(kinds, key=lambda kind: kind.is_edge):
            made = {}
            for _ in range(self.chance.randint(1, 3)):
                row_id = self.random_id(kind)
                row = self.random_row(kind, row_id, known)
                if row is not None:
                    made[row_id] = row
            if made:
                rows[kind.uid] = made
                known = model.with_rows(known, {kind.uid: made})
        return rows

    def write_rows(self) -> str | None:
        """Write rows in one of the three modes."""
        branch = self.a_branch()
        state = self.history.state(branch)
        rows = self.some_rows(state)
        if not rows:
            return None
        mode = self.chance.choice(["append", "merge", "merge", "overwrite"])
        types = state.schema.by_uid()
        given: dict[bool, dict[str, list[dict[str, Any]]]] = {False: {}, True: {}}
        for uid, made in rows.items():
            kind = types[uid]
            given[kind.is_edge][kind.name] = [self.given(kind, row_id, row) for row_id, row in made.items()]
        outcome = self.attempt(
            branch,
            lambda: self.written(state, rows, mode),
            lambda: self.graph.write(given[False], given[True], mode=mode, branch=branch),
        )
        return f"{mode} on {branch} {given}: {outcome}"

    def written(self, state: State, rows: dict[str, dict[str, Row]], mode: str) -> State:
        """Return what a write should leave."""
        if mode == "append":
            taken = [(uid, row_id) for uid, made in rows.items() for row_id in made if row_id in state.rows[uid]]
            if taken:
                raise model.ConflictingRowsError(taken)
        if mode == "overwrite":
            kept = {**state.rows, **{uid: {} for uid in rows}}
            state = replace(state, rows=kept)
        changed = {uid: {**state.rows[uid], **made} for uid, made in rows.items()}
        return model.checked(replace(state, rows={**state.rows, **changed}))

    def load_rows(self) -> str | None:
        """Load JSON lines in which ids may be repeated: the last one wins."""
        branch = self.a_branch()
        state = self.history.state(branch)
        rows: dict[str, dict[str, Row]] = {}
        lines: list[dict[str, Any]] = []
        types = state.schema.by_uid()
        for made in (self.some_rows(state), self.some_rows(state)):
            for uid, found in made.items():
                kind = types[uid]
                for row_id, row in found.items():
                    if not kind.is_edge and row_id in rows.get(uid, {}):
                        continue  # a key may not be repeated in one load
                    rows.setdefault(uid, {})[row_id] = row
                    data = self.given(kind, row_id, row)
                    if kind.is_edge:
                        ends = {"from": data.pop("from"), "to": data.pop("to")}
                        lines.append({"edge": kind.name, **ends, "data": data})
                    else:
                        lines.append({"type": kind.name, "data": data})
        if not lines:
            return None
        body = "\n".join(json.dumps(line) for line in lines).encode()
        outcome = self.attempt(
            branch,
            lambda: self.written(state, rows, "merge"),
            lambda: self.graph.load(body, mode="merge", branch=branch, engine="local"),
        )
        return f"on {branch} {lines}: {outcome}"

    def update_row(self) -> str | None:
        """Update one property of one node."""
        branch = self.a_branch()
        state = self.history.state(branch)
        kind = self.chance.choice([kind for kind in state.schema.types if not kind.is_edge])
        key = next(prop for prop in kind.properties if prop.key)
        free = [prop for prop in kind.properties if not prop.key]
        if not free:
            return None
        prop = self.chance.choice(free)
        row_id = self.random_id(kind)
        fresh = self.random_row(kind, row_id, state)
        assert fresh is not None
        value = fresh[prop.uid]
        old = state.rows[kind.uid].get(row_id)
        text = (
            f"query q($v: {prop.type}?, $id: String) "
            f"{{ update {kind.name} set {{ {prop.name}: $v }} where {key.name} = $id }}"
        )

        def expected() -> State:
            if old is None:
                return state
            return model.checked(model.with_rows(state, {kind.uid: {row_id: {**old, prop.uid: value}}}))

        outcome = self.attempt(
            branch, expected, lambda: self.graph.mutate(text, {"v": value, "id": row_id}, branch=branch)
        )
        return f"{kind.name} {row_id} {prop.name}={value!r} on {branch}: {outcome}"

    def delete_row(self) -> str | None:
        """Delete one node, with its edges."""
        branch = self.a_branch()
        state = self.history.state(branch)
        kind = self.chance.choice([kind for kind in state.schema.types if not kind.is_edge])
        key = next(prop for prop in kind.properties if prop.key)
        row_id = self.random_id(kind)
        text = f"query q($id: String) {{ delete {kind.name} where {key.name} = $id }}"
        outcome = self.attempt(
            branch,
            lambda: model.with_rows(state, {kind.uid: {row_id: None}}),
            lambda: self.graph.mutate(text, {"id": row_id}, branch=branch),
        )
        return f"{kind.name} {row_id} on {branch}: {outcome}"

    def create_branch(self) -> str | None:
        """Branch off a head, or off an older commit that is still listed."""
        free = [name for name in BRANCHES if name not in self.history.heads]
        if not free:
            return None
        name, source = self.chance.choice(free), self.a_branch()
        if self.chance.random() < 0.3:
            commit = self.chance.choice(self.graph.commits.list(source)).id
            self.graph.branches.create(name, commit=commit)
            self.history.heads[name] = commit
            return f"{name} from {commit} of {source}"
        self.graph.branches.create(name, source=source)
        self.history.heads[name] = self.history.heads[source]
        return f"{name} from {source}"

    def delete_branch(self) -> str | None:
        """Delete a branch; its children live on."""
        branch = self.a_branch()
        if branch == "main":
            return None
        self.graph.branches.delete(branch)
        del self.history.heads[branch]
        return branch

    def merge(self) -> str | None:
        """Merge any branch into any other, with or without choices."""
        if len(self.history.heads) < 2:
            return None
        source, target = self.chance.sample(sorted(self.history.heads), 2)
        theirs, ours = self.history.heads[source], self.history.heads[target]
        bases = self.history.merge_bases(theirs, ours)
        if len(bases) != 1:
            return None
        [base] = bases
        states = [self.history.commits[commit].state for commit in (base, theirs, ours)]
        by_property = self.chance.random() < 0.4
        prefer = self.chance.choice([None, None, SOURCE, TARGET])
        resolutions = self.some_resolutions(*states, by_property=by_property)
        choices = Choices(by_property, prefer, resolutions)
        types = {kind.uid: kind for state in states for kind in state.schema.types}
        given: dict[str, dict[str, Any]] = {}
        for (uid, row_id), choice in resolutions.items():
            given.setdefault(types[uid].name, {})[row_id] = choice

        def expected() -> State:
            if theirs in self.history.ancestors(ours):
                return states[2]
            return model.merge(states[0], states[1], states[2], choices)

        def act() -> None:
            result = self.graph.merge(
                source,
                into=target,
                by="property" if by_property else "row",
                prefer=prefer,
                resolutions=given or None,
            )
            assert result.base in (base, None), f"merge base {result.base}, not {base}"

        merged = None if theirs in self.history.ancestors(ours) else theirs
        outcome = self.attempt(target, expected, act, merged)
        how = "by property" if by_property else "by row"
        return f"{source} into {target} {how}, prefer {prefer}, resolutions {given}: {outcome}"

    def some_resolutions(
        self, base: State, source: State, target: State, *, by_property: bool
    ) -> dict[tuple[str, str], Any]:
        """Decide some of the disputed rows, and now and then one that is not disputed."""
        try:
            disputed = model.disputed_rows(base, source, target, by_property=by_property)
        except model.SchemaClashError:
            return {}
        found: dict[tuple[str, str], Any] = {}
        for where in sorted(disputed):
            if self.chance.random() < 0.6:
                found[where] = self.chance.choice([SOURCE, TARGET])
        if base.schema == source.schema == target.schema and self.chance.random() < 0.2:
            theirs = sorted(where for where in model.changes_between(base, source) if where not in disputed)
            if theirs:
                found[self.chance.choice(theirs)] = self.chance.choice([SOURCE, TARGET])
        return found

    def revert(self) -> str | None:
        """Undo a listed commit."""
        branch = self.a_branch()
        listed = [commit.id for commit in self.graph.commits.list(branch)]
        commit = self.chance.choice(listed)
        parents = self.history.commits[commit].parents
        if not parents or parents[0] not in listed:
            return None
        head = self.history.state(branch)
        before, after = (self.history.commits[at].state for at in (parents[0], commit))
        if not before.schema == after.schema == head.schema:
            return None

        def expected() -> State:
            changes: dict[str, dict[str, Row | None]] = {}
            clashing = []
            for (uid, row_id), (was, now) in model.changes_between(before, after).items():
                current = head.rows[uid].get(row_id)
                if model.same(current, now):
                    changes.setdefault(uid, {})[row_id] = was
                elif not model.same(current, was):
                    clashing.append((uid, row_id))
            if clashing:
                raise model.ConflictingRowsError(clashing)
            rows = {uid: dict(held) for uid, held in head.rows.items()}
            for uid, found in changes.items():
                for row_id, row in found.items():
                    if row is None:
                        rows[uid].pop(row_id, None)
                    else:
                        rows[uid][row_id] = row
            return model.checked(replace(head, rows=rows))

        outcome = self.attempt(branch, expected, lambda: self.graph.revert(commit, branch=branch))
        return f"{commit} on {branch}: {outcome}"

    def tag(self) -> str | None:
        """Tag a listed commit."""
        branch = self.a_branch()
        name = f"v{next(self.numbers)}"
        commit = self.chance.choice(self.graph.commits.list(branch)).id
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

    def optimize(self) -> str | None:
        """Compact a branch; its content stays."""
        branch = self.a_branch()
        state = self.history.state(branch)
        self.graph.optimize(branch)
        self.note_commit(branch, state, state)
        return branch

    def prune(self) -> str | None:
        """Drop old commits from history, by number or one by one."""
        branch = self.a_branch()
        listed = [commit.id for commit in self.graph.commits.list(branch)]
        now = self.chance.random() < 0.5
        self.pruned = True
        if self.chance.random() < 0.4:
            own = [commit.id for commit in self.graph.commits.list(branch) if commit.branch == branch][1:]
            if not own:
                return None
            commit = self.chance.choice(own)
            self.graph.prune(branch, commits=[commit], now=now)
            return f"{commit} of {branch}, now={now}"
        keep = self.chance.choice([1, 2, 5, 100])
        self.graph.prune(branch, keep=keep, now=now)
        left = [commit.id for commit in self.graph.commits.list(branch)]
        assert left[: min(keep, len(listed))] == listed[: min(keep, len(listed))], "prune dropped what it was to keep"
        return f"{branch} keep={keep}, now={now}"

    def sweep(self) -> str | None:
        """Delete what nothing needs; a second sweep finds nothing."""
        self.graph.sweep(older_than=0)
        again = self.graph.sweep(older_than=0)
        assert again.deleted_files == 0, f"a second sweep deletes {again.files_by_kind}"
        self.check_whole()
        return "done"

    def cleanup(self) -> str | None:
        """Prune every branch and sweep."""
        keep = self.chance.choice([1, 2, 4])
        self.pruned = True
        self.graph.cleanup(keep=keep, confirm=True)
        self.check_whole()
        return f"keep={keep}"

    def change_schema(self) -> str | None:
        """Add, drop, rename or widen a property, or add a type, on one branch."""
        branch = self.a_branch()
        state = self.history.state(branch)
        kind = self.chance.choice(state.schema.types)
        free = [prop for prop in kind.properties if not prop.key]
        act = self.chance.choice(["add", "add", "drop", "rename", "widen", "type"])
        renamed: dict[str, str] = {}
        name = self.chance.choice(["extra", "more", "other"])
        if act == "add":
            if any(prop.name == name for prop in kind.properties):
                return None
            # Equal additions on two branches are one addition.
            fresh = Property(f"{kind.uid}.{name}", name, "String")
            if any(
                prop.uid == fresh.uid
                for commit in self.history.ancestors(self.history.heads[branch])
                for known in self.history.commits[commit].state.schema.types
                for prop in known.properties
            ):
                fresh = replace(fresh, uid=f"{fresh.uid}#{next(self.numbers)}")
            changed = state.schema.with_type(replace(kind, properties=(*kind.properties, fresh)))
        elif act == "type":
            if any(known.name == "X" for known in state.schema.types):
                return None
            uid = f"X{next(self.numbers)}"
            key = Property(f"{uid}.name", "name", "String", key=True)
            changed = state.schema.with_type(Type(uid, "X", (key, Property(f"{uid}.n", "n", "I32"))))
        elif not free:
            return None
        else:
            prop = self.chance.choice(free)
            others = [other for other in kind.properties if other is not prop]
            if act == "drop" and not prop.unique:
                fresh_properties = tuple(others)
            elif act == "rename":
                if any(other.name == f"{name}_2" for other in others) or prop.name == f"{name}_2":
                    return None
                renamed = {prop.uid: prop.name}
                fresh_properties = tuple(
                    replace(prop, name=f"{name}_2") if known is prop else known for known in kind.properties
                )
            elif act == "widen" and prop.type == "I32":
                fresh_properties = tuple(
                    replace(prop, type="I64") if known is prop else known for known in kind.properties
                )
            else:
                return None
            changed = state.schema.with_type(replace(kind, properties=fresh_properties))
        rows: dict[str, dict[str, Row]] = {}
        for known in changed.types:
            cells = {prop.uid for prop in known.properties} | {"src", "dst"}
            rows[known.uid] = {
                row_id: {cell: value for cell, value in row.items() if cell in cells}
                for row_id, row in state.rows.get(known.uid, {}).items()
            }
        after = replace(state, schema=changed, rows=rows)
        before = replace(state, rows=rows)
        self.graph.schema_apply(changed.text(renamed), branch=branch, validated=True)
        self.note_commit(branch, before, after)
        return f"{act} on {branch}: {kind.name} {name}"

    # -- what is looked at --------------------------------------------------------------------------------------------

    def check_whole(self) -> None:
        """Check that no file that a kept commit needs is gone."""
        report = self.graph.verify(deep=self.chance.random() < 0.3)
        assert report.is_whole, f"not whole: {report.findings}"

    def look_at_something(self) -> None:
        """Look at one or two things at random, through the long-lived handle or a fresh one."""
        looks = [
            self.look_at_head,
            self.look_up_keys,
            self.look_up_keys,
            self.look_at_hops,
            self.look_at_hops,
            self.look_at_the_past,
            self.look_at_diff,
            self.look_at_blame,
            self.look_at_history,
            self.look_at_feed,
        ]
        for look in self.chance.sample(looks, 2):
            branch = self.a_branch()
            self.trace.append(f"  {look.__name__} {branch}")
            if self.chance.random() < 0.15:
                with omnigraph.open(self.uri, options=self.options) as fresh:
                    look(fresh, branch)
            else:
                look(self.graph, branch)
            self.trace.pop()

    def look_at_everything(self) -> None:
        """Compare every branch, tag and listed commit, through the long-lived handle and a fresh one."""
        self.trace.append("look_at_everything")
        with omnigraph.open(self.uri, options=self.options) as fresh:
            for graph in (self.graph, fresh):
                assert sorted(graph.branches.list()) == sorted(self.history.heads)
                for branch in self.history.heads:
                    self.look_at_head(graph, branch)
                    self.look_at_hops(graph, branch)
                    self.look_at_history(graph, branch)
                for name, commit in self.tags.items():
                    assert contents(graph.snapshot(tag=name)) == wanted(self.history.commits[commit].state)
        assert self.graph.verify(deep=True).is_whole

    def look_at_head(self, graph: Graph, branch: str) -> None:
        """Compare the whole content of a branch."""
        found = contents(graph.snapshot(branch=branch))
        assert found == wanted(self.history.state(branch))

    def look_up_keys(self, graph: Graph, branch: str) -> None:
        """Look nodes up by key."""
        state = self.history.state(branch)
        kind = self.chance.choice([kind for kind in state.schema.types if not kind.is_edge])
        key = next(prop for prop in kind.properties if prop.key)
        names = ", ".join(f"$p.{prop.name} as {prop.name}" for prop in kind.properties)
        text = f"query q($n: String) {{ match {{ $p: {kind.name} {{ {key.name}: $n }} }} return {{ {names} }} }}"
        for row_id in IDS.get(kind.uid, ("k1", "k2", "k3", "k4", "k5")):
            row = state.rows[kind.uid].get(row_id)
            found = graph.query(text, {"n": row_id}, branch=branch).to_pylist()
            assert found == ([] if row is None else [kind.named(row)]), f"{kind.name} {row_id} on {branch}: {found}"

    def look_at_hops(self, graph: Graph, branch: str) -> None:
        """Compare one hop, two hops and bounded paths."""
        state = self.history.state(branch)
        edges = [(row["src"], row["dst"]) for row in state.rows[KNOWS].values()]
        start = self.chance.choice(IDS[P])
        asked = "query q($n: String) { match { $a: P { name: $n }  $a %s $b } return { $b.name as b } order { b } }"
        one = sorted({dst for src, dst in edges if src == start})
        found = [row["b"] for row in graph.query(asked % "knows", {"n": start}, branch=branch)]
        assert found == one, f"one hop from {start} on {branch}: {found}, not {one}"
        least, most = self.chance.choice([(1, 2), (2, 2), (2, 3), (1, 3)])
        seen, level, reached = {start}, {start}, set()
        for hop in range(1, most + 1):
            loops = {src for src, dst in edges if src == dst and src in level}
            level = {dst for src, dst in edges if src in level} - seen
            seen |= level
            reached |= level | loops if hop >= least else set()
        found = [row["b"] for row in graph.query(asked % f"knows{{{least},{most}}}", {"n": start}, branch=branch)]
        assert found == sorted(reached), (
            f"{least}..{most} hops from {start} on {branch}: {found}, not {sorted(reached)}"
        )

    def look_at_the_past(self, graph: Graph, branch: str) -> None:
        """Compare a listed commit; one that is not listed is refused, or right."""
        listed = {commit.id for commit in graph.commits.list(branch)}
        commit = self.chance.choice(sorted(self.history.commits))
        try:
            found = contents(graph.snapshot(commit=commit))
        except REFUSED:
            assert commit not in listed, f"commit {commit} is listed and cannot be read"
            assert commit not in self.tags.values(), f"commit {commit} has a tag and cannot be read"
            return
        assert found == wanted(self.history.commits[commit].state), f"commit {commit}"

    def look_at_diff(self, graph: Graph, branch: str) -> None:
        """Compare the differences between two heads of equal schemas."""
        other = self.a_branch()
        older, newer = self.history.state(branch), self.history.state(other)
        if older.schema != newer.schema:
            return
        found = {
            (change["type"]["name"], change["id"]): (image(change.get("before")), image(change.get("after")))
            for change in graph.diff(branch, other).to_pylist()
        }
        types = older.schema.by_uid()
        expected = {
            (types[uid].name, row_id): (shown(types[uid], was), shown(types[uid], now))
            for (uid, row_id), (was, now) in model.changes_between(older, newer).items()
        }
        assert found == expected

    def look_at_blame(self, graph: Graph, branch: str) -> None:
        """Check that every commit named by blame is the one that set the value."""
        state = self.history.state(branch)
        kind = self.chance.choice(state.schema.types)
        if not state.rows[kind.uid]:
            return
        row_id = self.chance.choice(sorted(state.rows[kind.uid]))
        found = graph.blame(kind.name, row_id, branch=branch)
        for prop in kind.properties:
            named = found.properties.get(prop.name)
            if state.rows[kind.uid][row_id].get(prop.uid) is None:
                continue
            expected = state.blame[kind.uid, row_id, prop.uid]
            if named is None:
                assert self.pruned, f"{kind.name} {row_id}.{prop.name} on {branch}: nobody blamed, not {expected}"
            else:
                assert named.commit in expected, (
                    f"{kind.name} {row_id}.{prop.name} on {branch}: blamed {named.commit}, not {sorted(expected)}"
                )
        events = graph.log_of(kind.name, row_id, branch=branch)
        assert self.pruned or events, "an entity without a history"

    def look_at_history(self, graph: Graph, branch: str) -> None:
        """Check that the listed commits are the first parents, in order, and that each can be read."""
        listed = [commit.id for commit in graph.commits.list(branch)]
        chain = self.history.first_parents(self.history.heads[branch])
        assert listed and listed[0] == chain[0], f"the head of {branch} is not listed first"
        if self.pruned:
            assert [commit for commit in chain if commit in set(listed)] == listed
        else:
            assert listed == chain
        commit = self.chance.choice(listed)
        assert contents(graph.snapshot(commit=commit)) == wanted(self.history.commits[commit].state), commit

    def look_at_feed(self, graph: Graph, branch: str) -> None:
        """Replay the feed from a listed commit to the head."""
        listed = [commit.id for commit in graph.commits.list(branch)]
        start = self.chance.choice(listed)
        between = listed[: listed.index(start)]
        states = [self.history.commits[commit].state for commit in [*between, start]]
        if any(state.schema != states[0].schema for state in states):
            return
        chain = self.history.first_parents(self.history.heads[branch])
        try:
            page = graph.changes.drain(branch, start=f"after:{start}").to_dict()
        except omnigraph.ChangeGapError:
            assert between != chain[: chain.index(start)], "a gap where every commit is listed"
            return
        types = {kind.name: kind for kind in states[-1].schema.types}
        rows = {kind.name: dict(wanted(states[-1])[kind.name]) for kind in types.values()}
        for block in page["blocks"]:
            for change in block["changes"]:
                after = image(change.get("after"))
                name = change["type"]["name"]
                if after is None:
                    del rows[name][change["id"]]
                else:
                    rows[name][change["id"]] = after
        assert rows == wanted(states[0])


def contents(snapshot: omnigraph.Snapshot) -> dict[str, dict[str, dict[str, Any]]]:
    """Return every row of a snapshot by type and id."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for key in snapshot.table_versions:
        name = key.split(":")[1]
        rows = [row for batch in snapshot.export_arrow(key) for row in batch.to_pylist()]
        held = {row["id"]: {cell: value for cell, value in row.items() if cell != "id"} for row in rows}
        assert len(held) == len(rows), f"{name} has an id twice"
        found[name] = held
    return found


def wanted(state: State) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the content of a model state as `contents` gives it."""
    return {
        kind.name: {row_id: shown(kind, row) or {} for row_id, row in state.rows[kind.uid].items()}
        for kind in state.schema.types
    }


def shown(kind: Type, row: Row | None) -> dict[str, Any] | None:
    """Return a model row by names, with the ends of an edge."""
    if row is None:
        return None
    ends = {"src": row["src"], "dst": row["dst"]} if kind.is_edge else {}
    return {**ends, **kind.named(row)}


def image(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an image of the feed or a diff as `shown` gives rows."""
    if found is None:
        return None
    ends = found.get("endpoints")
    return {**({"src": ends["from"], "dst": ends["to"]} if ends else {}), **found["properties"]}
