"""Prunes, sweeps, upkeep and changes of the schema in a walk."""

from dataclasses import replace

from tests.support.whole_system.base import WalkBase, left_by_a_sweep

from omnigraph import Maintenance
from omnigraph.testing.model import Property, Row, Schema, Type

NEW_NAMES = ("extra", "more", "other")


class Upkeep(WalkBase):
    """What changes no row, or what rows are made of."""

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
        listed = self.listed(branch)
        now = self.chance.random() < 0.5
        if self.chance.random() < 0.4:
            own = [commit for commit in listed[1:] if commit in self.own[branch]]
            if not own:
                return None
            commits = self.chance.sample(own, min(len(own), self.chance.randint(1, 2)))
            self.pruned = True
            state = self.history.state(branch)
            self.graph.prune(branch, commits=commits, now=now)
            self.note_commit(branch, state, state)  # where the head shared files with them
            left = [commit for commit in self.listed(branch) if commit in listed]
            assert left == [commit for commit in listed if commit not in commits]
            return f"{commits} of {branch}, now={now}"
        keep = self.chance.choice([1, 2, 5, 100])
        self.pruned = True
        self.graph.prune(branch, keep=keep, now=now)
        left = self.listed(branch)
        assert left[:keep] == listed[:keep], f"prune of {branch} kept {left} of {listed}, not {keep}"
        return f"{branch} keep={keep}, now={now}"

    def sweep(self) -> str | None:
        """Delete what nothing needs; a second sweep finds nothing."""
        self.graph.sweep(older_than=0)
        self.check_swept()
        return "done"

    def cleanup(self) -> str | None:
        """Prune every branch and sweep."""
        keep = self.chance.choice([1, 2, 4])
        self.pruned = True
        self.graph.cleanup(keep=keep, confirm=True)
        self.check_swept()
        return f"keep={keep}"

    def maintain(self) -> str | None:
        """Run one pass of maintenance."""
        keep = self.chance.choice([None, None, 3])
        self.pruned |= keep is not None
        states = {branch: self.history.state(branch) for branch in self.history.heads}
        report = self.graph.maintain_once(Maintenance(keep=keep, sweep_older_than=0))
        assert not report.failures, report.failures
        for branch, state in states.items():
            self.note_commit(branch, state, state)
        self.check_swept()
        return f"keep={keep}"

    def check_swept(self) -> None:
        """Check that a sweep left nothing to the next, and took no file that a kept commit needs."""
        left = left_by_a_sweep(self.graph)
        assert not left, f"a second sweep deletes {left}"
        report = self.graph.verify(deep=self.chance.random() < 0.2)
        assert report.is_whole, f"not whole: {report.findings}"

    # -- schemas ------------------------------------------------------------------------------------------------------

    def change_schema(self) -> str | None:
        """Add, drop, rename or widen a property, or add or drop a type, on one branch."""
        branch = self.a_branch()
        state = self.history.state(branch)
        act = self.chance.choice(["add", "add", "drop", "rename", "widen", "add type", "drop type"])
        kind = self.chance.choice(state.schema.types)
        name = self.chance.choice(NEW_NAMES)
        renamed: dict[str, str] = {}
        if act == "add type":
            key = Property("X.name", "name", "String", key=True)
            changed = self.with_new_type(branch, Type("X", "X", (key, Property("X.n", "n", "I32"))))
        elif act == "drop type":
            types = tuple(known for known in state.schema.types if known.uid != "X")
            changed = Schema(types) if len(types) < len(state.schema.types) else None
        elif act == "add":
            changed = self.with_new_property(branch, kind, Property(f"{kind.uid}.{name}", name, "String"))
        else:
            free = [prop for prop in kind.properties if not prop.key]
            if not free:
                return None
            prop = self.chance.choice(free)
            renamed = {prop.uid: prop.name} if act == "rename" else {}
            changed = with_changed_property(state.schema, kind, prop, act, f"{name}_2")
        if changed is None:
            return None
        rows: dict[str, dict[str, Row]] = {}
        for known in changed.types:
            cells = {prop.uid for prop in known.properties} | {"src", "dst"}
            rows[known.uid] = {
                row_id: {cell: value for cell, value in row.items() if cell in cells}
                for row_id, row in state.rows.get(known.uid, {}).items()
            }
        after = replace(state, schema=changed, rows=rows)
        self.graph.schema_apply(changed.text(renamed), branch=branch, validated=True)
        self.note_commit(branch, replace(state, rows=rows), after)
        return f"{act} on {branch}: {kind.name} {name} {renamed}"

    def with_new_type(self, branch: str, added: Type) -> Schema | None:
        """Return a schema with one more type; None where the branch has, or had, one of this identity."""
        schemas = [self.state_of(commit).schema for commit in self.history.distances(self.history.heads[branch])]
        if any(kind.uid == added.uid for schema in schemas for kind in schema.types):
            return None
        return schemas[0].with_type(added)

    def with_new_property(self, branch: str, kind: Type, added: Property) -> Schema | None:
        """Return a schema with one more property; None where the branch has, or had, one of this identity.

        Added again after a drop it would be another one. Added alike on two branches it is one.
        """
        schemas = [self.state_of(commit).schema for commit in self.history.distances(self.history.heads[branch])]
        known = {prop.uid for schema in schemas for held in schema.types for prop in held.properties}
        if added.uid in known:
            return None
        return schemas[0].with_type(replace(kind, properties=(*kind.properties, added)))


def with_changed_property(schema: Schema, kind: Type, prop: Property, act: str, name: str) -> Schema | None:
    """Return a schema with a property dropped, renamed or made wider; None where that cannot be."""
    if act == "drop" and not prop.unique:
        changed: tuple[Property, ...] = tuple(known for known in kind.properties if known is not prop)
    elif act == "rename" and all(known.name != name for known in kind.properties):
        changed = tuple(replace(prop, name=name) if known is prop else known for known in kind.properties)
    elif act == "widen" and prop.type == "I32":
        changed = tuple(replace(prop, type="I64") if known is prop else known for known in kind.properties)
    else:
        return None
    return schema.with_type(replace(kind, properties=changed))
