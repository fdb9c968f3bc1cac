"""A small cluster in a folder, and the commands run in it."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from omnigraph.cluster.apply import apply
from omnigraph.cluster.commands import approve, force_unlock, import_, plan, refresh, status
from omnigraph.cluster.desired import validate
from omnigraph.cluster.diagnostics import Outcome
from omnigraph.cluster.graphs import Stores
from omnigraph.cluster.session import Environment
from omnigraph.ids import UlidSource
from omnigraph.storage.object_stores.open import open_store
from omnigraph.testing.clock import ManualClock

SCHEMA = "node Person { name: String @key }\n"
QUERIES = "query find($n: String) { match { $p: Person { name: $n } } return { $p.name } }\n"
POLICY = """\
version: 1
groups: { team: [act-a] }
rules: [ { id: r, allow: { actors: { group: team }, actions: [read] } } ]
"""
CONFIG: dict[str, Any] = {
    "version": 1,
    "graphs": {"people": {"schema": "people.pg", "queries": ["people.gq"]}},
    "policies": {"base": {"file": "base.policy.yaml", "applies_to": ["people"]}},
}


class Cluster:
    """A folder with a cluster.yaml, and the commands run in it."""

    def __init__(self, folder: Path, stores: Stores | None = None) -> None:
        """Declare a cluster of one graph with one query and one policy, unless the folder has one already.

        Args:
            folder (Path): where.
            stores (Stores | None): from an address to a store; by default on disk, in a hurry.
        """
        self.folder = folder
        self.clock = ManualClock()
        opened: Stores = partial(open_store, durability="process")
        self.environment = Environment(stores or opened, self.clock, UlidSource(self.clock))
        if (folder / "cluster.yaml").exists():
            return
        for name, text in (("people.pg", SCHEMA), ("people.gq", QUERIES), ("base.policy.yaml", POLICY)):
            self.write(name, text)
        self.declare()

    def write(self, name: str, text: str) -> None:
        """Put a file beside the configuration."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def declare(self, **members: object) -> None:
        """Write cluster.yaml: the usual one, with some members another way."""
        self.write("cluster.yaml", json.dumps({**CONFIG, **members}))  # JSON is YAML

    def validate(self) -> Outcome:
        """`cluster validate`: check the configuration."""
        return validate(self.folder)

    def plan(self) -> Outcome:
        """`cluster plan`: show what an apply would do."""
        return plan(self.folder, environment=self.environment)

    def apply(self) -> Outcome:
        """`cluster apply`: make it so."""
        return apply(self.folder, actor="act-op", environment=self.environment)

    def status(self) -> Outcome:
        """`cluster status`: look at the ledger."""
        return status(self.folder, environment=self.environment)

    def refresh(self) -> Outcome:
        """`cluster refresh`: look at the graphs."""
        return refresh(self.folder, environment=self.environment)

    def begin(self) -> Outcome:
        """`cluster import`."""
        return import_(self.folder, environment=self.environment)

    def approve(self, resource: str) -> Outcome:
        """`cluster approve`."""
        return approve(self.folder, resource, actor="act-boss", environment=self.environment)

    def force_unlock(self, lock_id: str) -> Outcome:
        """`cluster force-unlock`."""
        return force_unlock(self.folder, lock_id, environment=self.environment)

    def state(self) -> dict[str, Any]:
        """The ledger as people see it."""
        found: dict[str, Any] = json.loads((self.folder / "__cluster" / "state.json").read_bytes())
        return found

    def files(self, part: str) -> list[Path]:
        """The files below a folder of the cluster's own."""
        return sorted(each for each in (self.folder / "__cluster" / part).rglob("*") if each.is_file())


def codes(outcome: Outcome, severity: str | None = None) -> set[str]:
    """The codes of what was said."""
    return {each.code for each in outcome.diagnostics if severity in (None, each.severity)}


def made_of(outcome: Outcome) -> dict[str, str]:
    """What becomes of each change."""
    return {each["resource"]: each["disposition"] for each in outcome.document["changes"]}
