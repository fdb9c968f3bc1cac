"""Writes of a walk: mutations, frames of rows and loads, in every mode, with ids that are repeated."""

import json
from dataclasses import replace
from typing import Any

from tests.support.whole_system.base import WalkBase, given, key_of_ends

from omnigraph.testing import model as model
from omnigraph.testing.model import Row, State, Type

Rows = dict[str, dict[str, Row]]


class Writes(WalkBase):
    """What changes rows of one branch."""

    def some_rows(self, state: State) -> list[tuple[Type, str, Row]]:
        """Make up rows of one to three types, whose edges may name the new nodes."""
        found = []
        known = state
        kinds = self.chance.sample(state.schema.types, self.chance.randint(1, 3))
        for kind in sorted(kinds, key=lambda kind: kind.is_edge):
            for _ in range(self.chance.randint(1, 3)):
                made = self.random_row(kind, known)
                if made is not None:
                    found.append((kind, *made))
                    known = model.with_rows(known, {kind.uid: {made[0]: made[1]}})
        return found

    def write_rows(self) -> str | None:
        """Write rows in one of the three modes; no id is repeated."""
        branch = self.a_branch()
        state = self.history.state(branch)
        unique = {(kind.uid, row_id): (kind, row_id, row) for kind, row_id, row in self.some_rows(state)}
        if not unique:
            return None
        mode = self.chance.choice(["append", "merge", "merge", "overwrite"])
        prune = self.chance.random() < 0.05
        frames: dict[bool, dict[str, list[dict[str, Any]]]] = {False: {}, True: {}}
        for kind, row_id, row in unique.values():
            frames[kind.is_edge].setdefault(kind.name, []).append(given(kind, row_id, row))
        outcome = self.attempt(
            branch,
            lambda: written(state, list(unique.values()), mode),
            lambda: self.graph.write(frames[False], frames[True], mode=mode, branch=branch, prune_previous=prune),
        )
        self.pruned |= prune
        return f"{mode} on {branch} {frames[False]} {frames[True]} prune={prune}: {outcome}"

    def load_rows(self) -> str | None:
        """Load JSON lines in which ids may be repeated."""
        branch = self.a_branch()
        state = self.history.state(branch)
        rows = [*self.some_rows(state), *self.some_rows(state)]
        if not rows:
            return None
        mode = self.chance.choice(["append", "merge", "merge", "merge", "overwrite"])
        lines = []
        for kind, row_id, row in rows:
            data = given(kind, row_id, row)
            if kind.is_edge:
                lines.append({"edge": kind.name, "from": data.pop("from"), "to": data.pop("to"), "data": data})
            else:
                lines.append({"type": kind.name, "data": data})
        body = "\n".join(json.dumps(line) for line in lines).encode()
        outcome = self.attempt(
            branch,
            lambda: written(state, rows, mode),
            lambda: self.graph.load(body, mode=mode, branch=branch, engine="local"),
        )
        return f"{mode} on {branch} {lines}: {outcome}"

    def insert_row(self) -> str | None:
        """Insert a node, or an edge with a key: either takes the place of the one that is there."""
        branch = self.a_branch()
        state = self.history.state(branch)
        kind = self.chance.choice([kind for kind in state.schema.types if not kind.is_edge or kind.keyed])
        made = self.random_row(kind, state)
        if made is None:
            return None
        row_id, row = made
        values = given(kind, row_id, row)
        types = {prop.name: prop.type for prop in kind.properties} | {"from": "String", "to": "String"}
        params = ", ".join(f"${name}: {types[name]}" for name in values)
        cells = ", ".join(f"{name}: ${name}" for name in values)
        text = f"query q({params}) {{ insert {kind.name} {{ {cells} }} }}"
        outcome = self.attempt(
            branch,
            lambda: model.checked(model.with_rows(state, {kind.uid: {row_id: row}})),
            lambda: self.graph.mutate(text, values, branch=branch),
        )
        return f"{kind.name} {values} on {branch}: {outcome}"

    def update_row(self) -> str | None:
        """Update one property of one node."""
        branch = self.a_branch()
        state = self.history.state(branch)
        kind, key = self.a_node_type(state)
        free = [prop for prop in kind.properties if not prop.key]
        if not free:
            return None
        prop = self.chance.choice(free)
        row_id, value = self.random_id(kind), self.random_value(prop)
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

    def delete_node(self) -> str | None:
        """Delete one node, with its edges."""
        branch = self.a_branch()
        state = self.history.state(branch)
        kind, key = self.a_node_type(state)
        row_id = self.random_id(kind)
        text = f"query q($id: String) {{ delete {kind.name} where {key.name} = $id }}"
        outcome = self.attempt(
            branch,
            lambda: model.with_rows(state, {kind.uid: {row_id: None}}),
            lambda: self.graph.mutate(text, {"id": row_id}, branch=branch),
        )
        return f"{kind.name} {row_id} on {branch}: {outcome}"

    def delete_edges(self) -> str | None:
        """Delete the edges of a type that leave a node."""
        branch = self.a_branch()
        state = self.history.state(branch)
        kind = self.chance.choice([kind for kind in state.schema.types if kind.ends is not None])
        assert kind.ends is not None
        start = self.chance.choice(sorted(state.rows[kind.ends[0]]) or ["nobody"])
        gone: dict[str, Row | None] = {
            row_id: None for row_id, row in state.rows[kind.uid].items() if row["src"] == start
        }
        text = f"query q($from: String) {{ delete {kind.name} where from = $from }}"
        outcome = self.attempt(
            branch,
            lambda: model.with_rows(state, {kind.uid: gone}),
            lambda: self.graph.mutate(text, {"from": start}, branch=branch),
        )
        return f"{kind.name} from {start} on {branch}: {outcome}"


def written(state: State, rows: list[tuple[Type, str, Row]], mode: str) -> State:
    """Return what a write or load should leave.

    Raises:
        ConflictingRowsError: a key of nodes is repeated; an id is repeated or taken, and rows are not to be replaced.
        BrokenRuleError: the result breaks a rule.
    """
    changed: Rows = {kind.uid: {} for kind, _, _ in rows}
    refused = set()
    for kind, row_id, row in rows:
        is_repeated = row_id in changed[kind.uid] and (mode != "merge" or not kind.is_edge)
        if is_repeated or (mode == "append" and row_id in state.rows[kind.uid]):
            refused.add((kind.uid, row_id))
        assert not kind.keyed or row_id == key_of_ends(row["src"], row["dst"])
        changed[kind.uid][row_id] = row
    if refused:
        raise model.ConflictingRowsError(refused)
    ground = {uid: {} if mode == "overwrite" and uid in changed else held for uid, held in state.rows.items()}
    return model.checked(replace(state, rows={uid: {**held, **changed.get(uid, {})} for uid, held in ground.items()}))
