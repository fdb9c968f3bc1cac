"""Random walks of several processes over one graph, beside one that prunes and sweeps without any patience.

Nobody knows the whole state, so the model is what was acknowledged: every process writes rows of its own, which nobody
else touches, and notes each in a ledger when its commit on `main` is acknowledged. From then on `main` has it, in every
process; the commit shows it for as long as it can be read.
"""

import json
import multiprocessing
import random  # noqa: TID251  (a walk is a function of its seed)
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.clock import SystemClock

SCHEMA = """
node P { name: String @key  value: I32?  note: String? }
edge Knows: P -> P { w: I32?  @key(src, dst) }
"""
OPTIONS = OpenOptions(durability="process", auto_compact=False, protection_s=0)
# What a race may end with; whoever loses one says so, and has changed nothing.
OVERTAKEN = (omnigraph.ConflictError, omnigraph.ReclaimedError, omnigraph.NotFoundError, omnigraph.AlreadyExistsError)
VALUES = "query q() { match { $p: P } return { $p.name as name, $p.value as value } }"


@dataclass(frozen=True, slots=True)
class Order:
    """What one process does: `steps` of a walk, or to sweep until the folder has a file `stop`."""

    uri: str
    folder: str
    name: str
    seed: int
    steps: int

    @property
    def ledger(self) -> Path:
        """The file of what was acknowledged: rows with their values and commits, in order."""
        return Path(self.folder) / f"{self.name}.ledger"

    @property
    def stop(self) -> Path:
        """The file that ends the sweeper."""
        return Path(self.folder) / "stop"

    def acknowledged(self) -> list[tuple[str, int, str]]:
        """Read the ledger."""
        lines = self.ledger.read_text(encoding="utf-8").splitlines() if self.ledger.exists() else []
        return [(row, value, commit) for row, value, commit in map(json.loads, lines)]

    def start(self, target: Callable[["Order"], None]) -> ForkServerProcess:
        """Start the process."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        process = context.Process(target=target, args=(self,), name=self.name)
        process.start()
        return process


class SharedWalk:
    """One process's walk."""

    def __init__(self, order: Order, graph: Graph) -> None:
        self.order = order
        self.graph = graph
        self.chance = random.Random(order.seed)
        self.values: dict[str, int] = {}
        self.commits: list[tuple[str, int, str]] = []
        self.branch: str | None = None
        self.on_branch: dict[str, int] = {}
        self.count = 0

    def step(self) -> None:
        """Do one thing; losing a race is no error. Then look whether everything acknowledged is there."""
        acts = [
            (6, self.write),
            (4, self.update),
            (4, self.work_on_branch),
            (3, self.bring_up_to_date),
            (4, self.merge),
            (2, self.tag),
            (1, self.optimize),
            (1, self.add_property),
            (2, self.revert_on_branch),
        ]
        act = self.chance.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        with suppress(*OVERTAKEN):
            act()
        self.look()

    def acknowledge(self, rows: dict[str, int], commit: str) -> None:
        """Note rows whose commit on `main` was acknowledged."""
        self.values |= rows
        found = [(row, value, commit) for row, value in rows.items()]
        self.commits += found
        with self.order.ledger.open("a", encoding="utf-8") as ledger:
            ledger.writelines(f"{json.dumps(each)}\n" for each in found)

    def new_row(self) -> tuple[str, int]:
        """Make up a row that nobody else has."""
        self.count += 1
        return f"{self.order.name}-{self.count}", self.chance.randrange(1_000)

    # -- acts ---------------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Write a row and an edge from it to itself, by a write or a load."""
        row, value = self.new_row()
        commit: str | None
        if self.chance.random() < 0.5:
            commit = self.graph.write(
                {"P": [{"name": row, "value": value}]},
                {"Knows": [{"from": row, "to": row, "w": value}]},
                prune_previous=self.chance.random() < 0.2,
            ).commit
        else:
            line = json.dumps({"type": "P", "data": {"name": row, "value": value}}).encode()
            commit = self.graph.load(line, mode="merge", engine="local").commit
        assert commit is not None
        self.acknowledge({row: value}, commit)

    def update(self) -> None:
        """Change a value that was acknowledged."""
        if not self.values:
            return
        row, value = self.chance.choice(sorted(self.values)), self.chance.randrange(1_000, 2_000)
        text = "query q($n: String, $v: I32) { update P set { value: $v } where name = $n }"
        done = self.graph.mutate(text, {"n": row, "v": value})
        assert done.affected_nodes == 1, f"{row} is gone"
        self.acknowledge({row: value}, done.head)

    def work_on_branch(self) -> None:
        """Write a row on a branch of one's own; make that where there is none, from `main` or somebody's branch."""
        if self.branch is None:
            source = self.chance.choice(["main", "main", *self.graph.branches.list()])
            name = f"branch-of-{self.order.name}"
            self.graph.branches.create(name, source=source)
            self.branch, self.on_branch = name, {}
        row, value = self.new_row()
        self.graph.write({"P": [{"name": row, "value": value}]}, branch=self.branch)
        self.on_branch[row] = value

    def bring_up_to_date(self) -> None:
        """Merge `main` into the branch."""
        if self.branch is not None:
            self.graph.merge("main", into=self.branch, prefer="target")

    def merge(self) -> None:
        """Merge the branch into `main`; delete it now and then, so that its name begins another life."""
        if self.branch is None:
            return
        result = self.graph.merge(self.branch, by=self.chance.choice(["row", "property"]), prefer="target")
        self.acknowledge(self.on_branch, result.head)
        self.on_branch = {}
        if self.chance.random() < 0.5:
            self.graph.branches.delete(self.branch)
            self.branch = None

    def revert_on_branch(self) -> None:
        """Write on the branch and undo it."""
        if self.branch is not None:
            row, value = self.new_row()
            commit = self.graph.write({"P": [{"name": row, "value": value}]}, branch=self.branch).commit
            self.on_branch[row] = value
            self.graph.revert(commit, branch=self.branch)
            del self.on_branch[row]

    def add_property(self) -> None:
        """Add a property on the branch: a schema of one's own, which a merge brings to `main`."""
        if self.branch is not None:
            schema = self.graph.schema_text(branch=self.branch)
            name = f"of_{self.order.name.replace('-', '_')}"
            if name not in schema:
                changed = schema.replace("value: I32?", f"value: I32?\n    {name}: String?", 1)
                self.graph.schema_apply(changed, branch=self.branch)

    def tag(self) -> None:
        """Tag the newest commit, read it through the tag, and take the name back."""
        name = f"tag-{self.order.name}"
        known = dict(self.values)
        tagged = self.graph.tags.create(name)
        snapshot = self.graph.snapshot(tag=name)
        assert snapshot.commit == tagged.commit
        self.compare({row["name"]: row["value"] for row in snapshot.query(VALUES)}, known, f"tag at {tagged.commit}")
        self.graph.tags.delete(name)

    def optimize(self) -> None:
        """Compact `main`."""
        self.graph.optimize()

    # -- looks --------------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Check that `main` has what was acknowledged, and what a commit shows that can be read."""
        found = {row["name"]: row["value"] for row in self.graph.query(VALUES)}
        self.compare(found, self.values, "main")
        if self.commits and self.chance.random() < 0.3:
            row, value, commit = self.chance.choice(self.commits)
            try:
                found = {each["name"]: each["value"] for each in self.graph.snapshot(commit=commit).query(VALUES)}
            except omnigraph.ReclaimedError:
                return  # pruned
            except omnigraph.NotFoundError:
                return  # pruned, and cut from the log
            self.compare(found, {row: value}, f"commit {commit}")

    def compare(self, found: dict[str, int], expected: dict[str, int], where: str) -> None:
        """Check that rows are there, with their values."""
        wrong = {row: (found.get(row), value) for row, value in expected.items() if found.get(row) != value}
        assert not wrong, f"{self.order.name}, seed {self.order.seed}, {where}: {wrong}"


def walk(order: Order) -> None:
    """Walk through one's own handle."""
    with omnigraph.open(order.uri, options=OPTIONS) as graph:
        steps = SharedWalk(order, graph)
        for _ in range(order.steps):
            steps.step()


def sweep(order: Order) -> None:
    """Prune and sweep until told to stop; nothing is too young to go."""
    chance = random.Random(order.seed)
    clock = SystemClock()
    with omnigraph.open(order.uri, options=OPTIONS) as graph:
        while not order.stop.exists():
            with suppress(*OVERTAKEN):
                if chance.random() < 0.3:
                    graph.cleanup(keep=chance.choice([1, 3]), confirm=True)
                else:
                    graph.prune(keep=chance.choice([1, 2, 5]), now=chance.random() < 0.5)
                    graph.sweep(older_than=0)
            clock.sleep(0.01)
