"""Simulated hosts: machines with clocks, processes, a network and a spelling of the root of their own."""

import random  # noqa: TID251  (a universe is a function of its seed)
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from tests.support.simulator.fence import Fence
from tests.support.simulator.model import Model, Request
from tests.support.simulator.time import BEGIN_S, EPOCH_US, HostClock, Scheduler, SeededIds
from tests.support.simulator.trouble import INTENT_PREFIX, LOG_PREFIX, Trouble, Weather

from omnigraph.failpoints import Crash
from omnigraph.model.intent import Writer
from omnigraph.storage.external_store import ExternalEntry
from omnigraph.storage.object_store import Listed, ObjectExists, ObjectStore, OutcomeUnknown, StoreTransient
from omnigraph.storage.object_stores import ExternallyFencedStore
from omnigraph.storage.object_stores.forwarding import DURABLE_REQUESTS, RequestKind, T
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.stores import PagingStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.liveness import Heartbeat
from omnigraph.transaction.root import open_root

SETTINGS = Settings(durability="process", auto_compact=False)
CHECKER = "checker"


class World(Protocol):
    """What hosts know of the universe around them."""

    seed: int
    chance: random.Random
    weather: Weather
    scheduler: Scheduler
    folder: Path
    root: Path
    model: Model
    births: dict[str, float]
    late: list[tuple[float, Callable[[], object]]]
    trace: list[str]
    hosts: "dict[str, Host]"
    roots: int
    sweeping: int
    acting: int
    standing_still: int

    def deliver(self) -> None:
        """Let requests arrive that were on their way for long."""
        ...


class FenceOfHost(Fence):
    """One host's way to a fence."""

    def __init__(self, fence: Fence, host: "Host") -> None:
        self.locations = fence.locations
        self._host = host

    def get(self, root: str, path: str) -> ExternalEntry | None:
        """Return the entry of an object, or None."""
        return self._host.request(RequestKind.GET, path, lambda: Fence.get(self, root, path))

    def put_if_absent(self, root: str, path: str, staged: str) -> None:
        """Create an entry that names a staged object."""
        self._host.request(RequestKind.PUT_IF_ABSENT, path, lambda: Fence.put_if_absent(self, root, path, staged))

    def replace(self, root: str, path: str, *, expected: str, location: str) -> bool:
        """Let an entry name another location, if it still names the expected one."""
        send = partial(Fence.replace, self, root, path, expected=expected, location=location)
        return self._host.request(RequestKind.PUT, path, send)

    def unfinished(self, root: str, prefix: str) -> Sequence[ExternalEntry]:
        """Return the entries below a folder that still name a staged object."""
        return self._host.request(RequestKind.LIST, prefix, lambda: Fence.unfinished(self, root, prefix))

    def delete(self, root: str, path: str, *, expected: str | None = None) -> ExternalEntry | None:
        """Remove an entry, if it names the expected location."""
        return self._host.request(RequestKind.DELETE, path, partial(Fence.delete, self, root, path, expected=expected))

    def delete_prefix(self, root: str, prefix: str) -> None:
        """Remove every entry below a folder."""
        self._host.request(RequestKind.DELETE_PREFIX, prefix, lambda: Fence.delete_prefix(self, root, prefix))


class SimulatedStore(PagingStore):
    """One host's way to the store."""

    def __init__(self, inner: ObjectStore, host: "Host") -> None:
        super().__init__(inner)
        self._host = host
        self._universe = host.universe

    @property
    def uri(self) -> str:
        """Return this host's own spelling of the root."""
        return str(self._host.link)

    @property
    def is_near(self) -> bool:
        """Return what the weather says."""
        return not self._universe.weather.remote

    def identity(self, path: str) -> tuple[int, ...] | None:
        """Return nothing where the store is remote: only a request could tell."""
        return None if self._universe.weather.remote else self._inner.identity(path)

    def put_if_absent(self, path: str, body: bytes) -> None:
        """Create an object."""
        self._host.note_body(path, body)
        super().put_if_absent(path, body)

    def put(self, path: str, body: bytes) -> None:
        """Create or replace an object."""
        self._host.note_body(path, body)
        super().put(path, body)

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        """List objects with the times of the simulated store."""
        births, now_s = self._universe.births, self._universe.scheduler.now_s
        for listed in super().list(prefix, limit=limit):
            yield replace(listed, modified_us=EPOCH_US + int(births.setdefault(listed.path, now_s) * 1_000_000))

    def prove_put_if_absent(self) -> int:
        """Return what time the simulated store has."""
        scheduler = self._universe.scheduler
        return self._forward(RequestKind.PROVE, "", lambda: EPOCH_US + int(scheduler.now_s * 1_000_000))

    def leftovers(self, *, before_us: int, delete: bool) -> Sequence[Listed]:
        """Find none: temporary files are written within one turn."""
        return ()

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        return self._host.request(kind, path, send)


class Host:
    """One machine with its clocks, its processes and its spelling of the root."""

    def __init__(self, universe: World, name: str, *, skew_s: float = 0.0, fence: Fence | None = None) -> None:
        self.universe = universe
        self.name = name
        self.fence = fence
        self.link = universe.folder / name
        self.link.symlink_to(universe.root, target_is_directory=True)
        self.clock = HostClock(universe.scheduler, name, skew_s)
        self.ids = SeededIds(self.clock, random.Random(f"{universe.seed} {name}"))
        self.writing: Request | None = None
        self.trouble = Trouble()
        self.cut_off_until_s = 0.0
        self.disturbed = False
        self._before = ""
        self._pid = 0
        self._beating = False
        self.start_process()

    def start_process(self) -> None:
        """Begin anew, knowing nothing of the process before."""
        self._pid += 1
        token = f"{self.name} {self._pid}"
        self.writer = Writer("localhost", self._pid, f"start of {token}", f"boot of {self.name}", "pid:[1]", token)
        self.live: set[str] = set()
        self.hearts: dict[Heartbeat, float] = {}
        self.healing = threading.Lock()
        self.writing = None

    def open(self) -> GraphContext:
        """Open the graph by this host's spelling of the root."""
        store: ObjectStore = SimulatedStore(LocalStore(self.link, durability=Durability.PROCESS), self)
        if self.fence is not None:
            store = ExternallyFencedStore(store, FenceOfHost(self.fence, self), ids=self.ids)
        return open_root(store, settings=SETTINGS, clock=self.clock, ids=self.ids)

    @contextmanager
    def acts(self) -> Iterator[None]:
        """Count this host among those in the middle of an act."""
        self.universe.acting += 1
        try:
            yield
        finally:
            self.universe.acting -= 1

    def note_body(self, path: str, body: bytes) -> None:
        """Tell the model of an entry or an intent that is about to be put, here or as a staged object."""
        if path.removeprefix("__staged/").startswith(LOG_PREFIX) and body.startswith(b'{"format"'):
            self.universe.model.note_entry(body, self.writing)
        elif INTENT_PREFIX in path and self.writing is not None:
            name = path.rsplit("/", 1)[-1]
            self.universe.model.by_intent[name.partition(".")[0]] = self.writing

    def request(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        """Send one request, in its turn, through whatever goes wrong."""
        if threading.current_thread().name != self.name or self.name == CHECKER:
            return self._sent(kind, path, send)
        universe = self.universe
        chance, scheduler = universe.chance, universe.scheduler
        if chance.random() < 0.4:
            scheduler.switch(self.name)
        self._beat()
        if self.trouble.is_due(kind, path, self._before):
            answer_lost = self._happen(kind, path)
            if answer_lost:
                return self._lose(kind, path, send)
        self._before = path if kind in DURABLE_REQUESTS else ""
        if scheduler.now_s < self.cut_off_until_s:
            scheduler.switch(self.name, 5.0)
        if scheduler.now_s < self.cut_off_until_s or chance.random() < universe.weather.transient:
            self.disturbed = True
            raise StoreTransient(f"the network of {self.name} is down", path=path)
        return self._sent(kind, path, send)

    def _sent(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        self.universe.deliver()
        result = send()
        if kind is RequestKind.PUT_IF_ABSENT and path.startswith(LOG_PREFIX) and self.writing is not None:
            self.writing.root = self.universe.roots
        if kind in {RequestKind.PUT, RequestKind.PUT_IF_ABSENT, RequestKind.COPY}:
            self.universe.births[path] = self.universe.scheduler.now_s
        return result

    def _happen(self, kind: RequestKind, path: str) -> bool:
        """Let the trouble of this act happen; True where it is that an answer gets lost."""
        trouble, scheduler = self.trouble, self.universe.scheduler
        self.disturbed = True
        self.say(f"{trouble.kind} {trouble.seconds} s at {kind} {path}")
        match trouble.kind:
            case "pause" | "suspend":
                self.universe.standing_still += 1
                scheduler.switch(self.name, trouble.seconds)
                self.universe.standing_still -= 1
                self.clock.suspended_s += trouble.seconds if trouble.kind == "suspend" else 0.0
            case "cut off":
                self.cut_off_until_s = scheduler.now_s + trouble.seconds
            case "kill":
                raise Crash(f"death of {self.name}")
        return trouble.kind == "lose" and kind in DURABLE_REQUESTS

    def _lose(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        """Send a request, or not, or let it arrive late, and do not say which."""
        match self.universe.chance.choice(["sent", "not sent", "late"]):
            case "sent":
                with suppress(ObjectExists):
                    self._sent(kind, path, send)
            case "late":
                due_s = self.universe.scheduler.now_s + self.trouble.seconds
                if self.writing is not None and path.startswith(LOG_PREFIX):
                    self.writing.root = self.universe.roots
                self.universe.late.append((due_s, send))
        if kind is RequestKind.PUT_IF_ABSENT:
            raise OutcomeUnknown("the answer was lost", path=path)
        raise StoreTransient("the answer was lost", path=path)

    def _beat(self) -> None:
        """Send the heartbeats that are due."""
        if self._beating:
            return
        self._beating = True
        try:
            for heart, due_s in list(self.hearts.items()):
                if self.clock.monotonic() >= due_s and heart in self.hearts:
                    self.hearts[heart] = self.clock.monotonic() + heart.every_s
                    with suppress(StoreTransient, OutcomeUnknown):
                        heart._beat()
        finally:
            self._beating = False

    def say(self, text: str) -> None:
        """Add a line to the trace, without what differs from run to run."""
        text = text.replace(f"{self.universe.folder}/", "")
        self.universe.trace.append(f"{self.universe.scheduler.now_s - BEGIN_S:.1f} {self.name}: {text}")


class OfEachHost:
    """Stands for what a process keeps to itself: every host's thread finds its own."""

    def __init__(self, universe: World) -> None:
        self._universe = universe

    @property
    def host(self) -> Host:
        """Return the host whose thread asks."""
        hosts = self._universe.hosts
        return hosts.get(threading.current_thread().name, hosts[CHECKER])

    # Of the intents that live in this process.
    def add(self, intent_id: str) -> None:
        """Add one."""
        self.host.live.add(intent_id)

    def discard(self, intent_id: str) -> None:
        """Remove one."""
        self.host.live.discard(intent_id)

    def __contains__(self, intent_id: str) -> bool:
        return intent_id in self.host.live

    def __rsub__(self, others: set[str]) -> set[str]:
        return others - self.host.live

    # Of the lock that healers hold.
    def acquire(self, *, blocking: bool = True) -> bool:
        """Take it."""
        return self.host.healing.acquire(blocking=blocking)

    def release(self) -> None:
        """Give it back."""
        self.host.healing.release()

    # Of the hearts that have yet to beat.
    def await_that_of(self, heart: Heartbeat) -> None:
        """Let it beat while its host sends requests."""
        self.host.hearts[heart] = self.host.clock.monotonic() + heart.every_s

    def forget(self, heart: Heartbeat) -> None:
        """Let it beat no longer."""
        self.host.hearts.pop(heart, None)

    # Of the process table.
    def this_writer(self) -> Writer:
        """Return the process of the host that asks."""
        return self.host.writer

    def process_started(self, pid: int) -> str | None:
        """Return when a process of the host that asks has started."""
        writer = self.host.writer
        return writer.started if writer.pid == pid else None
