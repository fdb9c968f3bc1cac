"""Multi-host simulator: several hosts work on one graph, and clocks, networks and machines misbehave.

Each host runs in a thread of its own, but only one moves at a time: at every request to the store a seeded scheduler
decides which host goes on, how much time passes, and what goes wrong. Every host has a wall clock, a monotonic clock
and a spelling of the root of its own. A universe is a function of its seed.

The oracle is a list of inserted ids: what was acknowledged is in the graph exactly once, what was refused is not, and
whatever happened, the graph can be opened, read, written and swept.
"""

import random  # noqa: TID251  (a walk is a function of its seed)
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.api.open import open as open_graph
from omnigraph.failpoints import Crash
from omnigraph.storage.object_store import Listed, ObjectStore, OutcomeUnknown, StoreTransient
from omnigraph.storage.object_stores.forwarding import DURABLE_REQUESTS, RequestKind, T
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.fast_folder import new_fast_folder
from omnigraph.testing.paging import PagingStore

SCHEMA = "node P { name: String @key  n: I32? }"
OPTIONS = OpenOptions(durability="process", auto_compact=False)
START_US = 1_767_225_600_000_000
LOG_PREFIX = "__manifest/log/"


@dataclass(frozen=True)
class Weather:
    """How often something goes wrong, per request."""

    pause: float = 0.004
    kill: float = 0.003
    lost_answer: float = 0.01
    transient: float = 0.01
    replaces_root: bool = False
    restores_backup: bool = False
    remote: bool = True

    @staticmethod
    def drawn(chance: random.Random) -> "Weather":
        """Draw a weather: calm, rough, or with a root that changes under the hosts."""
        rough = chance.choice([0.3, 1.0, 3.0])
        kind = chance.random()
        return Weather(
            pause=0.004 * rough,
            kill=0.003 * rough,
            lost_answer=0.01 * rough,
            transient=0.01 * rough,
            replaces_root=kind < 0.1,
            restores_backup=0.1 <= kind < 0.2,
            remote=chance.random() < 0.7,
        )


class Scheduler:
    """Gives the turn to one host at a time; simulated time passes between turns."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.now_s = 0.0
        self._wakes: dict[str, float] = {}
        self._turn = ""
        self._changed = threading.Condition()

    def run(self, works: dict[str, Callable[[], None]]) -> None:
        """Run all works to their ends."""
        failed: list[BaseException] = []

        def one(name: str, work: Callable[[], None]) -> None:
            self._wait(name)
            try:
                work()
            except BaseException as fault:  # noqa: BLE001  (reported by the thread that waits)
                failed.append(fault)
            with self._changed:
                del self._wakes[name]
                self._choose()

        threads = [threading.Thread(target=one, args=item, name=item[0], daemon=True) for item in works.items()]
        self._wakes = dict.fromkeys(works, 0.0)
        with self._changed:
            self._choose()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]

    def switch(self, name: str, delay_s: float = 0.0) -> None:
        """Let others go first; return when it is this host's turn again, `delay_s` later at the earliest."""
        with self._changed:
            self._wakes[name] = self.now_s + delay_s
            self._choose()
        self._wait(name)

    def _wait(self, name: str) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._turn == name, timeout=120):
                raise TimeoutError(f"{name} never got its turn: {self._turn} holds it")

    def _choose(self) -> None:
        if self._wakes:
            earliest = min(self._wakes.values())
            self.now_s = max(self.now_s + self.chance.random() * 0.05, earliest)
            ready = sorted(name for name, wake in self._wakes.items() if wake <= self.now_s)
            self._turn = self.chance.choice(ready)
        self._changed.notify_all()


class HostClock:
    """A host's own clocks: its wall time is off by some seconds, its monotonic clock stands still while suspended."""

    def __init__(self, scheduler: Scheduler, name: str, skew_s: float) -> None:
        self._scheduler = scheduler
        self._name = name
        self._skew_s = skew_s
        self.suspended_s = 0.0

    def now_us(self) -> int:
        """Wall time."""
        return START_US + int((self._scheduler.now_s + self._skew_s) * 1_000_000)

    def monotonic(self) -> float:
        """Seconds since the universe began, less those this host was suspended for."""
        return self._scheduler.now_s - self.suspended_s

    def sleep(self, seconds: float) -> None:
        """Let others go on meanwhile."""
        if threading.current_thread().name == self._name:
            self._scheduler.switch(self._name, seconds)


@dataclass
class Write:
    """One inserted id and what became of it."""

    row: str
    branch: str
    outcome: str = "running"
    world: int | None = None


@dataclass
class Universe:
    """One graph, its hosts, and everything they were promised."""

    seed: int
    hosts: int = 3
    ops: int = 5
    writes: list[Write] = field(default_factory=list)
    gone_branches: set[str] = field(default_factory=set)
    trace: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.scheduler = Scheduler(self.chance)
        self.weather = Weather.drawn(self.chance)
        self.folder = new_fast_folder()
        self.world = 0
        self.advances: list[tuple[int, float]] = []
        self.sweeping = 0

    @property
    def root(self) -> Path:
        """Where the graph really is."""
        return self.folder / "graph"

    def run(self) -> None:
        """Run the universe, then check every promise.

        Raises:
            AssertionError: a promise was broken; the note has the seed and what happened.
        """
        random.seed(self.seed)
        try:
            self._fill(self.root)
            hosts = [Host(self, f"host{number}") for number in range(self.hosts)]
            works: dict[str, Callable[[], None]] = {host.name: host.work for host in hosts}
            if self.weather.replaces_root or self.weather.restores_backup:
                works["world"] = self._change_the_root
            self.scheduler.run(works)
            self._check()
        except BaseException as fault:
            fault.add_note(f"universe {self.seed} ({self.weather}):\n" + "\n".join(self.trace[-80:]))
            raise
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def counted(self, act: str) -> Iterator[None]:
        """Count the sweeps that run."""
        weight = int(act in {"sweep", "cleanup"})
        self.sweeping += weight
        try:
            yield
        finally:
            self.sweeping -= weight

    def _fill(self, folder: Path) -> None:
        clock = HostClock(self.scheduler, "main", 0.0)
        store = LocalStore(folder, durability=Durability.PROCESS)
        with omnigraph.init(store, SCHEMA, options=OPTIONS, clock=clock) as graph:
            graph.write({"P": [{"name": "first"}]})

    def _change_the_root(self) -> None:
        """Restore a backup, or make another graph, in the place of the one the hosts have open."""
        backup = self.folder / "backup"
        self.scheduler.switch("world", self.chance.uniform(0, 2))
        if self.weather.restores_backup:
            shutil.copytree(self.root, backup)
        else:
            self._fill(backup)
        self.scheduler.switch("world", self.chance.uniform(0, 3))
        while self.sweeping:  # sweeps are stopped before a root is replaced: nothing could fence their deletes
            self.scheduler.switch("world", 1.0)
        shutil.rmtree(self.root)
        backup.rename(self.root)
        self.world += 1
        self.trace.append(f"{self.scheduler.now_s:.1f} world: root replaced")

    def _check(self) -> None:
        clock = HostClock(self.scheduler, "main", 0.0)
        self.scheduler.now_s += 7_200
        store = SimulatedStore(LocalStore(self.root, durability=Durability.PROCESS), self, None)
        with open_graph(store, options=OPTIONS, clock=clock) as graph:
            live = graph.branches.list()
            for branch in live:
                graph.write({"P": [{"name": f"last-{branch}"}]}, branch=branch)
            self._compare(graph, live)
            graph.sweep()
            graph.sweep(older_than=0)
            left = [file.path for file in store.list("__recovery/")]
            assert not left, f"intents that nothing ends: {left}"
            self._compare(graph, live)
            report = graph.verify()
            if not (self.weather.replaces_root or self.weather.restores_backup):
                assert report.is_whole, f"not whole: {report.findings}"

    def _compare(self, graph: Graph, live: Sequence[str]) -> None:
        for branch in live:
            snapshot = graph.snapshot(branch=branch)
            names = [row["name"] for batch in snapshot.export_arrow("P") for row in batch.to_pylist()]
            assert len(names) == len(set(names)), f"a row twice on {branch}"
            for write in self.writes:
                if write.branch != branch or branch in self.gone_branches:
                    continue
                if write.outcome == "done" and write.world == self.world:
                    assert write.row in names, f"acknowledged {write.row} is not on {branch}"
                if write.outcome == "refused" and branch == "main":
                    assert write.row not in names, f"refused {write.row} is on {branch}"


class SimulatedStore(PagingStore):
    """One host's way to the store; the last stretch of it is the weather's."""

    def __init__(self, inner: ObjectStore, universe: Universe, host: "Host | None") -> None:
        super().__init__(inner)
        self._universe = universe
        self._host = host

    @property
    def uri(self) -> str:
        """Return this host's own spelling of the root."""
        return self._inner.uri if self._host is None else str(self._host.link)

    def identity(self, path: str) -> tuple[int, ...] | None:
        """Return nothing where the store is remote: only a request could tell."""
        return None if self._universe.weather.remote else self._inner.identity(path)

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        """List objects with the times of the simulated store."""
        for listed in super().list(prefix, limit=limit):
            yield replace(listed, modified_us=self._universe_time(listed.modified_us))

    def leftovers(self, *, before_us: int, delete: bool) -> Sequence[Listed]:
        """Find none: temporary files are written within one turn."""
        return ()

    def _universe_time(self, modified_us: int) -> int:
        """Return when, in simulated time, something was written at a time of this machine."""
        at_s = 0.0
        for real_us, simulated_s in self._universe.advances:
            if real_us > modified_us:
                break
            at_s = simulated_s
        return START_US + int(at_s * 1_000_000)

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        host, universe = self._host, self._universe
        if host is None or threading.current_thread().name != host.name:
            return send()
        return host.request(kind, path, send, universe.weather)


class Host:
    """One machine with its clocks, its spelling of the root, and a handle that it keeps."""

    def __init__(self, universe: Universe, name: str) -> None:
        self.universe = universe
        self.name = name
        self.link = universe.folder / name
        self.link.symlink_to(universe.root, target_is_directory=True)
        self.clock = HostClock(universe.scheduler, name, universe.chance.choice([0.0, 0.0, -200.0, 200.0]))
        self.writing: Write | None = None

    # -- the weather --------------------------------------------------------------------------------------------------

    def request(self, kind: RequestKind, path: str, send: Callable[[], T], weather: Weather) -> T:
        """Send one request, in its turn, through whatever the weather is."""
        universe = self.universe
        chance, scheduler = universe.chance, universe.scheduler
        if chance.random() < weather.pause:
            delay = chance.choice([30.0, 90.0, 250.0, 650.0, 2_000.0])
            suspended = chance.random() < 0.5
            self.say(f"{'suspended' if suspended else 'paused'} for {delay} before {kind} {path}")
            scheduler.switch(self.name, delay)
            if suspended:
                self.clock.suspended_s += delay
        elif chance.random() < 0.4:
            scheduler.switch(self.name)
        if chance.random() < weather.kill:
            self.say(f"dies before {kind} {path}")
            raise Crash(f"death of {self.name}")
        if chance.random() < weather.transient:
            raise StoreTransient(f"the network of {self.name} is down", path=path)
        self.note_time()
        if kind in DURABLE_REQUESTS and chance.random() < weather.lost_answer:
            return self.lose_answer(kind, path, send)
        result = send()
        if kind is RequestKind.PUT_IF_ABSENT and path.startswith(LOG_PREFIX) and self.writing is not None:
            self.writing.world = universe.world
        return result

    def lose_answer(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        """Send a request or not, and do not say which."""
        if self.universe.chance.random() < 0.5:
            self.say(f"answer lost: {kind} {path}")
            send()
            if self.writing is not None:
                self.writing.world = self.universe.world
        if kind is RequestKind.PUT_IF_ABSENT:
            raise OutcomeUnknown("the answer was lost", path=path)
        raise StoreTransient("the answer was lost", path=path)

    def note_time(self) -> None:
        """Remember which simulated time files of this moment have."""
        self.universe.advances.append((time.time_ns() // 1_000, self.universe.scheduler.now_s))

    def say(self, text: str) -> None:
        """Add a line to the trace."""
        self.universe.trace.append(f"{self.universe.scheduler.now_s:.1f} {self.name}: {text}")

    # -- what it does -------------------------------------------------------------------------------------------------

    def open(self) -> Graph:
        """Open the graph by this host's spelling of the root."""
        store = SimulatedStore(LocalStore(self.link, durability=Durability.PROCESS), self.universe, self)
        return open_graph(store, options=OPTIONS, clock=self.clock)

    def work(self) -> None:
        """Do some things; after a death or a replaced root, open the graph again."""
        chance = self.universe.chance
        graph: Graph | None = None
        acts: list[Callable[[Graph], Any]] = [
            self.insert, self.insert, self.insert, self.load, self.load, self.sweep, self.sweep, self.prune,
            self.optimize, self.cleanup, self.create_branch, self.delete_branch, self.merge,
        ]  # fmt: skip
        for _ in range(self.universe.ops):
            act = chance.choice(acts)
            try:
                graph = graph or self.open()
                self.say(f"{act.__name__} …")
                with self.universe.counted(act.__name__):
                    outcome = act(graph)
                self.say(f"{act.__name__}: {outcome}")
            except Crash:
                graph = None
                self.writing = None
            except omnigraph.GraphError as fault:
                self.say(f"{act.__name__} failed: {type(fault).__name__} {fault.code}: {str(fault)[:200]}")
                if fault.code in {"graph_replaced", "graph_not_found"}:
                    graph = None
                assert not isinstance(fault, omnigraph.InternalError), f"{self.name}: {fault!r}"
            self.writing = None

    def insert(self, graph: Graph) -> str:
        """Insert one row without an intent."""
        branch = self.a_branch(graph)
        return self.noted(branch, lambda row: graph.write({"P": [{"name": row}]}, branch=branch))

    def load(self, graph: Graph) -> str:
        """Insert one row as a load, which leaves an intent where it is large."""
        branch = self.a_branch(graph)
        return self.noted(
            branch,
            lambda row: graph.load(
                b'{"type": "P", "data": {"name": "%s"}}' % row.encode(), mode="merge", branch=branch, engine="local"
            ),
        )

    def noted(self, branch: str, act: Callable[[str], Any]) -> str:
        """Run a write and remember what was promised."""
        write = Write(f"row{len(self.universe.writes)}", branch)
        self.universe.writes.append(write)
        self.writing = write
        write.outcome = "unknown"
        try:
            act(write.row)
        except omnigraph.OutcomeUnknownError:
            raise
        except omnigraph.GraphError as fault:
            write.outcome = "unknown" if isinstance(fault, omnigraph.UnavailableError) else "refused"
            raise
        write.outcome = "done"
        return f"{write.row} on {branch}"

    def a_branch(self, graph: Graph) -> str:
        """Pick a live branch, main more often than not."""
        return self.universe.chance.choice(["main", "main", *graph.branches.list()])

    def sweep(self, graph: Graph) -> str:
        """Sweep, kindly or eagerly."""
        older_than = self.universe.chance.choice([None, 0, 60])
        return f"{older_than}: {graph.sweep(older_than=older_than).deleted_files} files"

    def prune(self, graph: Graph) -> str:
        """Drop old commits."""
        return str(graph.prune(keep=1, now=self.universe.chance.random() < 0.5) is not None)

    def cleanup(self, graph: Graph) -> str:
        """Prune and sweep."""
        return str(graph.cleanup(keep=2, confirm=True) is not None)

    def optimize(self, graph: Graph) -> str:
        """Compact main."""
        return str(graph.optimize().commit if hasattr(graph.optimize(), "commit") else None)

    def create_branch(self, graph: Graph) -> str:
        """Create a branch, perhaps under a name that was deleted before."""
        name = self.universe.chance.choice(["b", "c"])
        graph.branches.create(name)
        return name

    def delete_branch(self, graph: Graph) -> str:
        """Delete a branch; whatever was written there may go with it."""
        name = self.universe.chance.choice(["b", "c"])
        self.universe.gone_branches.add(name)
        graph.branches.delete(name)
        return name

    def merge(self, graph: Graph) -> str:
        """Merge a branch into main."""
        name = self.universe.chance.choice(["b", "c"])
        return str(graph.merge(name).outcome)
