"""What a walk looks at: contents, lookups, hops and searches, and what history tells, against the model."""

from itertools import pairwise
from typing import Any

from tests.support.whole_system.base import IDS, KNOWS, OTHER_IDS, WORDS, P, T, WalkBase

import omnigraph
from omnigraph import Graph
from omnigraph.testing import model as model
from omnigraph.testing.model import Row, State, Type

Contents = dict[str, dict[str, dict[str, Any]]]
UNREADABLE = (omnigraph.NotFoundError, omnigraph.ReclaimedError, omnigraph.ChangeGapError)


class Looks(WalkBase):
    """Questions whose answers the model knows."""

    def look_at_something(self) -> None:
        """Look at two things at random, through the long-lived handle or a fresh one."""
        looks = [
            self.look_at_head,
            self.look_up_keys,
            self.look_up_keys,
            self.look_at_hops,
            self.look_at_hops,
            self.look_for_words,
            self.look_at_the_past,
            self.look_at_diff,
            self.look_at_review,
            self.look_at_blame,
            self.look_at_history,
            self.look_at_feed,
        ]
        for look in self.chance.sample(looks, 2):
            branch = self.a_branch()
            is_fresh = self.chance.random() < 0.15
            self.trace.append(f"  {look.__name__} {branch}{' by a fresh handle' * is_fresh}")
            if is_fresh:
                with omnigraph.open(self.uri, options=self.options) as fresh:
                    look(fresh, branch)
            else:
                look(self.graph, branch)
            self.trace.pop()

    def look_at_everything(self) -> None:
        """Compare every branch and tag, through the long-lived handle and a fresh one."""
        self.trace.append("look_at_everything")
        with omnigraph.open(self.uri, options=self.options) as fresh:
            for graph in (self.graph, fresh):
                assert sorted(graph.branches.list()) == sorted(self.history.heads)
                assert sorted(graph.tags.list()) == sorted(self.tags)
                for branch in self.history.heads:
                    self.look_at_head(graph, branch)
                    self.look_at_hops(graph, branch)
                    self.look_for_words(graph, branch)
                    self.look_at_history(graph, branch)
                for name, commit in self.tags.items():
                    compare(graph.snapshot(tag=name), self.state_of(commit), f"tag {name}")
        report = self.graph.verify(deep=True)
        assert report.is_whole, f"not whole: {report.findings}"

    # -- one state ----------------------------------------------------------------------------------------------------

    def look_at_head(self, graph: Graph, branch: str) -> None:
        """Compare the whole content of a branch."""
        compare(graph.snapshot(branch=branch), self.history.state(branch), branch)

    def look_up_keys(self, graph: Graph, branch: str) -> None:
        """Look nodes up by key, at the head or at a tag."""
        state, snapshot, where = self.history.state(branch), graph.snapshot(branch=branch), branch
        if self.tags and self.chance.random() < 0.2:
            where = self.chance.choice(sorted(self.tags))
            state, snapshot = self.state_of(self.tags[where]), graph.snapshot(tag=where)
        kind, key = self.a_node_type(state)
        names = ", ".join(f"$p.{prop.name} as {prop.name}" for prop in kind.properties)
        text = f"query q($n: String) {{ match {{ $p: {kind.name} {{ {key.name}: $n }} }} return {{ {names} }} }}"
        for row_id in IDS.get(kind.uid, OTHER_IDS):
            row = state.rows[kind.uid].get(row_id)
            expected = [] if row is None else [kind.named(row)]
            found = snapshot.query(text, {"n": row_id}).to_pylist()
            assert found == expected, f"{kind.name} {row_id} at {where}: {found}, not {expected}"

    def look_at_hops(self, graph: Graph, branch: str) -> None:
        """Compare one hop and bounded paths, forward and back."""
        state = self.history.state(branch)
        edges = [(row["src"], row["dst"]) for row in state.rows[KNOWS].values()]
        start = self.chance.choice(IDS[P])
        text = "query q($n: String) { match { $a: P { name: $n }  %s } return { $b.name as b } order { b } }"
        least, most = self.chance.choice([(1, 2), (2, 2), (2, 3), (1, 3)])
        seen, level, reached = {start}, {start}, set()
        for hop in range(1, most + 1):
            loops = {src for src, dst in edges if src == dst and src in level}
            level = {dst for src, dst in edges if src in level} - seen
            seen |= level
            reached |= level | loops if hop >= least else set()
        asked = {
            "$a knows $b": {dst for src, dst in edges if src == start},
            "$b knows $a": {src for src, dst in edges if dst == start},
            f"$a knows{{{least},{most}}} $b": reached,
        }
        for pattern, expected in asked.items():
            found = [row["b"] for row in graph.query(text % pattern, {"n": start}, branch=branch)]
            assert found == sorted(expected), f"{pattern} from {start} on {branch}: {found}, not {sorted(expected)}"

    def look_for_words(self, graph: Graph, branch: str) -> None:
        """Search for words in the texts of a type."""
        state = self.history.state(branch)
        kind = state.schema.by_uid()[self.chance.choice([P, T])]
        texts = [prop for prop in kind.properties if prop.type == "String" and not prop.key and not prop.unique]
        if not texts:
            return
        prop, words = self.chance.choice(texts), self.chance.choice(WORDS)
        key = next(held.name for held in kind.properties if held.key)
        expected = sorted(
            row_id
            for row_id, row in state.rows[kind.uid].items()
            if set((row.get(prop.uid) or "").split()) & set(words.split())
        )
        pattern = f"$p: {kind.name}  search($p.{prop.name}, $w)"
        text = f"query q($w: String) {{ match {{ {pattern} }} return {{ $p.{key} as n }} order {{ n }} }}"
        found = [row["n"] for row in graph.query(text, {"w": words}, branch=branch)]
        assert found == expected, f"{words!r} in {kind.name}.{prop.name} on {branch}: {found}, not {expected}"

    def look_at_the_past(self, graph: Graph, branch: str) -> None:
        """Compare any commit there ever was: one that is not listed is refused, or right."""
        listed = {commit.id for commit in graph.commits.list(branch)}
        commit = self.chance.choice(sorted(self.history.commits))
        try:
            snapshot = graph.snapshot(commit=commit)
            compare(snapshot, self.state_of(commit), f"commit {commit}")
        except UNREADABLE:
            assert commit not in listed, f"commit {commit} is listed and cannot be read"
        for name in self.chance.sample(sorted(self.tags), min(1, len(self.tags))):
            compare(graph.snapshot(tag=name), self.state_of(self.tags[name]), f"tag {name}")

    # -- two states ---------------------------------------------------------------------------------------------------

    def look_at_diff(self, graph: Graph, branch: str) -> None:
        """Compare the differences between two listed commits of equal schemas: applied to one they give the other."""
        other = self.a_branch()
        older = self.chance.choice([commit.id for commit in graph.commits.list(branch)])
        newer = self.chance.choice([commit.id for commit in graph.commits.list(other)])
        self.compare_changes(graph.diff(older, newer).to_pylist(), older, newer)

    def look_at_review(self, graph: Graph, branch: str) -> None:
        """Compare what a branch did since it parted from another."""
        other = self.a_branch()
        head = self.history.heads[branch]
        base = self.history.merge_base(head, self.history.heads[other])
        self.compare_changes(graph.changes_of(branch, against=other).to_pylist(), base, head)

    def compare_changes(self, changes: list[dict[str, Any]], older: str, newer: str) -> None:
        """Hold changes between two commits against the model, where both have one schema."""
        was, now = self.state_of(older), self.state_of(newer)
        if was.schema != now.schema:
            return
        found = {
            (change["type"]["name"], change["id"]): (image(change.get("before")), image(change.get("after")))
            for change in changes
        }
        assert len(found) == len(changes), "a change is told twice"
        types = was.schema.by_uid()
        expected = {
            (types[uid].name, row_id): (shown(types[uid], before), shown(types[uid], after))
            for (uid, row_id), (before, after) in model.changes_between(was, now).items()
        }
        wrong = {where for where in found.keys() | expected.keys() if found.get(where) != expected.get(where)}
        assert not wrong, f"{older} to {newer}: {[(at, found.get(at), expected.get(at)) for at in sorted(wrong)]}"

    # -- history ------------------------------------------------------------------------------------------------------

    def look_at_blame(self, graph: Graph, branch: str) -> None:
        """Check that every commit named by blame is the one that set the value, and what the log of an entity tells."""
        state = self.history.state(branch)
        kind = self.chance.choice(state.schema.types)
        if not state.rows[kind.uid]:
            return
        row_id = self.chance.choice(sorted(state.rows[kind.uid]))
        row = state.rows[kind.uid][row_id]
        found = graph.blame(kind.name, row_id, branch=branch)
        for prop in kind.properties:
            named = found.properties.get(prop.name)
            if row.get(prop.uid) is None:
                continue
            expected = state.blame[kind.uid, row_id, prop.uid]
            where = f"{kind.name} {row_id}.{prop.name} on {branch}"
            if named is None:
                assert self.pruned, f"{where}: nobody blamed, not {sorted(expected)}"
            elif named.commit not in expected:
                is_told = self.pruned and self.brought_in(named.commit, kind.uid, row_id, prop.uid, row[prop.uid])
                assert is_told, f"{where}: blamed {named.commit}, not {sorted(expected)}"
        self.check_log_of(graph, branch, kind, row_id)

    def brought_in(self, commit: str, uid: str, row_id: str, cell: str, value: object) -> bool:
        """True if a merge gave a cell this value: what is told where the commit that set it was pruned."""
        parents = self.history.commits[commit].parents
        if len(parents) < 2:
            return False
        after, before = (self.state_of(at).rows.get(uid, {}).get(row_id) for at in (commit, parents[0]))
        is_new = before is None or before.get(cell) != value
        return is_new and after is not None and after.get(cell) == value

    def check_log_of(self, graph: Graph, branch: str, kind: Type, row_id: str) -> None:
        """Check that the log of an entity names the commits of the line that changed it, in order."""
        chain = self.history.first_parents(self.history.heads[branch])
        changed, maybe = [], set()
        for newer, older in pairwise(chain):
            now, was = self.state_of(newer), self.state_of(older)
            if now.schema != was.schema:
                maybe.add(newer)
            elif not model.same(*(state.rows.get(kind.uid, {}).get(row_id) for state in (now, was))):
                changed.append(newer)
        told = [event.commit for event in graph.log_of(kind.name, row_id, branch=branch)]
        certain = [commit for commit in told if commit not in maybe]
        expected = [commit for commit in changed if commit in set(told)] if self.pruned else changed
        assert certain == expected, f"log of {kind.name} {row_id} on {branch}: {told}, not {changed}, maybe {maybe}"
        assert [commit for commit in chain if commit in set(told)] == told

    def look_at_history(self, graph: Graph, branch: str) -> None:
        """Check that the listed commits are the first parents, in order, and that each can be read."""
        listed = [commit.id for commit in graph.commits.list(branch)]
        chain = self.history.first_parents(self.history.heads[branch])
        assert listed and listed[0] == chain[0], f"the head of {branch} is not listed first"
        expected = [commit for commit in chain if commit in set(listed)] if self.pruned else chain
        assert listed == expected, f"{branch} lists {listed}, not {expected}"
        commit = self.chance.choice(listed)
        compare(graph.snapshot(commit=commit), self.state_of(commit), f"commit {commit}")

    def look_at_feed(self, graph: Graph, branch: str) -> None:
        """Replay the feed from a listed commit to the head."""
        listed = [commit.id for commit in graph.commits.list(branch)]
        start = self.chance.choice(listed)
        chain = self.history.first_parents(self.history.heads[branch])
        between = chain[: chain.index(start)]
        states = [self.state_of(commit) for commit in [*between, start]]
        if any(state.schema != states[0].schema for state in states):
            return
        try:
            page = graph.changes.drain(branch, start=f"after:{start}").to_dict()
        except omnigraph.ChangeGapError:
            assert not set(between) <= set(listed), "a gap where every commit is listed"
            return
        rows = wanted(states[-1])
        for block in page["blocks"]:
            for change in block["changes"]:
                name, before, after = change["type"]["name"], image(change.get("before")), image(change.get("after"))
                assert rows[name].get(change["id"]) == before, f"the feed replaces {before} in {name} {change['id']}"
                rows[name].pop(change["id"], None)
                if after is not None:
                    rows[name][change["id"]] = after
        assert rows == wanted(states[0]), f"the feed of {branch} from {start} gives another state"


def contents(snapshot: omnigraph.Snapshot) -> Contents:
    """Return every row of a snapshot by type and id."""
    found: Contents = {}
    for key in snapshot.table_versions:
        name = key.split(":")[1]
        rows = [row for batch in snapshot.export_arrow(key) for row in batch.to_pylist()]
        held = {row["id"]: {cell: value for cell, value in row.items() if cell != "id"} for row in rows}
        assert len(held) == len(rows), f"{name} has an id twice"
        found[name] = held
    return found


def compare(snapshot: omnigraph.Snapshot, state: State, where: str) -> None:
    """Hold the content of a snapshot against a state of the model.

    Raises:
        AssertionError: they differ; the message lists the rows.
    """
    found, expected = contents(snapshot), wanted(state)
    assert found.keys() == expected.keys(), f"{where} has the types {sorted(found)}, not {sorted(expected)}"
    wrong = [
        f"{name} {row_id}: {found[name].get(row_id)}, not {expected[name].get(row_id)}"
        for name in found
        for row_id in sorted(found[name].keys() | expected[name].keys())
        if found[name].get(row_id) != expected[name].get(row_id)
    ]
    assert not wrong, f"{where}: {wrong}"


def wanted(state: State) -> Contents:
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
