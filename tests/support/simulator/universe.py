"""Universes: several hosts work on one graph, and clocks, networks and machines misbehave.

Each host runs in a thread of its own, but only one moves at a time: at every request to the store a seeded scheduler
decides which host goes on, how much time passes, and what goes wrong. A universe is a function of its seed.
"""

import atexit
import os
import random  # noqa: TID251  (a universe is a function of its seed)
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

from tests.support import operations as op
from tests.support.fast_folder import new_fast_folder
from tests.support.operations import PERSON
from tests.support.simulator.acts import work
from tests.support.simulator.fence import Fence
from tests.support.simulator.host import CHECKER, SETTINGS, Host, OfEachHost
from tests.support.simulator.model import Ledger, Model, Request, check_endings, check_log, check_tags
from tests.support.simulator.time import BEGIN_S, HostClock, Scheduler, SeededIds
from tests.support.simulator.trouble import LOG_PREFIX, Weather

import omnigraph
from omnigraph import OpenOptions
from omnigraph.branch import branches
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.ids import encode
from omnigraph.model.commit import MAIN
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores import ExternallyFencedStore
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.transaction import intent, liveness, recovery
from omnigraph.transaction import write as write_module
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write
from omnigraph.verification.verify import verify

SCHEMA = "node Person { v: I64? }"


class Universe:
    """One graph, its hosts, and everything they were promised."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.weather = Weather.drawn(self.chance)
        self.folder = new_fast_folder()
        self.root = self.folder / "graph"
        self.births: dict[str, float] = {}
        self.late: list[tuple[float, Callable[[], object]]] = []
        self.trace: list[str] = []
        self.roots = 0
        self.sweeping = 0
        self.acting = 0
        self.standing_still = 0
        self.backup_s = 0.0
        self.scheduler = Scheduler(self.chance, self.note_births)
        self.model = Model()
        self.hosts: dict[str, Host] = {}

    def run(self) -> None:
        """Run the universe, then check every promise.

        Raises:
            AssertionError: a promise was broken; the note has the seed and what happened.
        """
        random.seed(self.seed)
        try:
            with self._processes_of_their_own():
                self._run()
        except BaseException as fault:
            fault.add_note(
                f"universe {self.seed} ({self.weather}); again: python -m tests.support.simulator {self.seed}\n"
                + "\n".join(self.trace[-100:])
            )
            raise
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self) -> None:
        fence, other = (Fence(), Fence()) if self.weather.is_fenced else (None, None)
        checker = self.hosts[CHECKER] = Host(self, CHECKER, fence=fence)
        self.model = fill(self.root, self.chance.choice([False, True]), fence)
        for number in range(self.chance.choice([2, 3])):
            names_other = self.weather.has_other_fence and number == 1
            skew_s = self.chance.choice([0.0, 0.0, -200.0, 200.0])
            host = Host(self, f"host{number}", skew_s=skew_s, fence=other if names_other else fence)
            self.hosts[host.name] = host
        acts: dict[str, Callable[[], None]] = {
            name: partial(work, host) for name, host in self.hosts.items() if host is not checker
        }
        if self.weather.root != "stays":
            acts["world"] = lambda: self._replace_the_root(fence)
        self.scheduler.run(acts)
        self._check(checker)

    @contextmanager
    def _processes_of_their_own(self) -> Iterator[None]:
        """Let every host's thread find the state of a process of its own in the product's modules."""
        own = OfEachHost(self)
        with ExitStack() as patches:
            for module, name, value in (
                (intent, "_live", own),
                (intent, "this_writer", own.this_writer),
                (write_module, "this_writer", own.this_writer),
                (liveness, "_process_started", own.process_started),
                (liveness, "_first_beats", own),
                (recovery, "_healing", own),
            ):
                patches.enter_context(patch.object(module, name, value))
            yield

    # -- the world ----------------------------------------------------------------------------------------------------

    def note_births(self) -> None:
        """Remember when the files of the tables were made: some are made by Lance, without a request."""
        above = len(f"{self.root}/")
        for folder, _, files in os.walk(self.root / "nodes"):
            for file in files:
                self.births.setdefault(f"{folder[above:]}/{file}", self.scheduler.now_s)

    def deliver(self) -> None:
        """Let requests arrive that were on their way for long."""
        due = [item for item in self.late if item[0] <= self.scheduler.now_s]
        for item in due:
            self.late.remove(item)
            with suppress(omnigraph.GraphError):
                item[1]()

    def _replace_the_root(self, fence: Fence | None) -> None:
        """Restore a backup, or make another graph, in the place of the one the hosts have open."""
        backup = self.folder / "backup"
        self.scheduler.switch("world", self.chance.choice([0.1, 2.0, 100.0]))
        births, model = dict(self.births), None
        locations = {} if fence is None else dict(fence.locations)
        if self.weather.root == "restored":
            shutil.copytree(self.root, backup)
            self.backup_s = self.scheduler.now_s
        else:
            model, births = fill(backup, is_pruned=False, fence=fence), {}
        self.scheduler.switch("world", self.chance.choice([0.1, 2.0, 300.0]))
        # Sweeps are stopped before a root is replaced, and all writes before a backup is restored: nothing on the store
        # could fence deletes, or tell a backup from what it is a copy of.
        wait_s = 1.0
        while self.sweeping or (self.acting and self.weather.root == "restored"):
            self.scheduler.switch("world", wait_s)
            wait_s *= 4
        shutil.rmtree(self.root)
        backup.rename(self.root)
        if fence is not None and self.weather.root == "restored":
            fence.locations.clear()
            fence.locations.update(locations)  # the external store is part of the backup
        self.births = births
        self.late.clear()
        if model is not None:
            self.model.entries |= model.entries
            self.model.by_commit |= model.by_commit
        self.model.tags.clear()
        self.roots += 1
        self.trace.append(f"{self.scheduler.now_s - BEGIN_S:.1f} world: root {self.weather.root}")

    # -- the oracle ---------------------------------------------------------------------------------------------------

    def _check(self, checker: Host) -> None:
        """See that the graph can be opened, read, written, swept and verified, and that every promise was kept."""
        self.scheduler.jump(300_000)
        self.deliver()
        parts = checker.open()
        self.scheduler.jump(7_200)
        live = branches.names(parts)
        for branch in {MAIN, self.chance.choice(live)}:
            checker.writing = Request({f"last on {branch}": 1}, branch)
            assert write(parts, branch, op.append(PERSON, checker.writing.rows)).entry is not None
        checker.writing = None
        swept = sweep(parts, older_than_s=0)
        assert not swept.errors, f"the sweep could not delete: {swept.errors}"
        left = sorted(file.name for file in (self.root / "__recovery").glob("*.json"))
        assert not left, f"intents that nothing ends: {left}"
        ledger, heads = Ledger(self.root), []
        for branch in live:
            head = parts.log.live_head(branch)
            entry = ledger.entry(branch, head.number)
            assert entry is not None
            assert entry["commit"] == head.commit
            heads.append(entry)
            check_log(self.model, ledger, entry, root=self.roots, backup_s=self.backup_s)
        check_endings(ledger, heads)
        check_tags(self.model, ledger, root=self.roots)
        if self.weather.root == "stays" and self.chance.random() < 0.3:
            findings = verify(parts, lambda _: None).findings  # type: ignore[arg-type,return-value]  # not deep: not asked
            assert not findings, f"not whole: {findings}"


def fill(folder: Path, is_pruned: bool, fence: Fence | None) -> Model:
    """Make a small graph with a branch, perhaps with commits that were pruned, and return what it holds."""
    template, model, locations = _template(is_pruned, fence is not None, folder.name)
    shutil.copytree(template, folder)
    if fence is not None:
        fence.locations.update(locations)
    return model.copy()


@cache
def _template(is_pruned: bool, is_fenced: bool, name: str) -> tuple[Path, Model, dict[tuple[str, str], str]]:
    """Make such a graph once per process; graphs of different names have different ids."""
    folder = new_fast_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    scheduler = Scheduler(random.Random(name), lambda: None)
    scheduler.now_s = 0.0
    clock = HostClock(scheduler, "", 0.0)
    ids = SeededIds(clock, scheduler.chance)
    fence = Fence()
    fence.locations["", "fence"] = encode(1)
    store: ObjectStore = LocalStore(folder / name, durability=Durability.PROCESS)
    if is_fenced:
        store = ExternallyFencedStore(store, fence, ids=ids)
    model = Model()
    omnigraph.init(store, SCHEMA, options=OpenOptions(durability="process"), clock=clock, ids=ids).close()
    parts = open_root(store, settings=SETTINGS, clock=clock, ids=ids)
    for branch, rows in ((MAIN, {"shared": 0}), (MAIN, {"first": 1}), ("b", {"on b": 1}), (MAIN, {"second": 2})):
        if branch != MAIN:
            branches.create(parts, branch)
        entry = write(parts, branch, op.append(PERSON, rows)).entry
        assert entry is not None
        model.requests.append(Request(dict(rows), branch, "done", entry.commit, entry.number))
        model.by_commit[entry.commit] = model.requests[-1]
    if is_pruned:
        scheduler.now_s = BEGIN_S / 2
        prune(parts, MAIN, Policy(keep=1, now=True))
    for file in (folder / name / LOG_PREFIX).glob("*/*.json"):
        model.note_entry(file.read_bytes(), None)
    return folder / name, model, {key: value for key, value in fence.locations.items() if is_fenced}
