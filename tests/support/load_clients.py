"""Many clients at once on one branch of a served graph, each of whose writes can be told from every other.

A write is one node of a type without a key, which holds who wrote it and which of their writes it is: one that is lost
is missing afterwards, one that is done twice is there twice. While they run, clients also look whether everything that
was acknowledged to them can be read.
"""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from omnigraph.client.connect import connect
from omnigraph.client.graph import RemoteGraph
from omnigraph.clock import Clock, SystemClock
from omnigraph.testing.server import RunningServer, served

GRAPH = "load"
SCHEMA = """\
node Item { name: String @key  rank: I32 @index }
node Mark { client: I32 @index  serial: I32 }
edge Next: Item -> Item
"""
ITEMS = 500
WRITE_EVERY = 10
_MARK = "query mark($client: I32, $serial: I32) { insert Mark { client: $client, serial: $serial } }"
_MINE = "query mine($client: I32) { match { $m: Mark { client: $client } } return { $m.serial } }"
_ALL = "query all() { match { $m: Mark } return { $m.client as client, $m.serial as serial } }"
_ITEM = "query item($name: String) { match { $i: Item { name: $name } } return { $i.rank } }"
_NEXT = "query next($name: String) { match { $i: Item { name: $name } $i next $n } return { $n.name } }"
_PATIENCE_S = 300.0
# What every client needs: reading and changing, and nothing else.
_POLICY = """\
version: 1
groups: {{ clients: [{actors}] }}
rules:
  - id: data
    allow: {{ actors: {{ group: clients }}, actions: [read, change], branch_scope: any }}
"""


@dataclass(slots=True)
class LoadRun:
    """What clients did.

    Attributes:
        acknowledged: client and number of every write that was acknowledged.
        read_s: how long each read took, its repetitions included.
        write_s: likewise each write.
        unseen: reads that did not show what had been acknowledged to the same client.
        faults: what clients met that they could not go on after.
    """

    acknowledged: list[tuple[int, int]] = field(default_factory=list)
    read_s: list[float] = field(default_factory=list)
    write_s: list[float] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _running: int = 0

    @property
    def operations(self) -> int:
        """How many were answered."""
        return len(self.read_s) + len(self.write_s)

    def wait_for(self, operations: int) -> None:
        """Wait until so many were answered, or all clients have ended."""
        with self._changed:
            self._changed.wait_for(lambda: self.operations >= operations or not self._running)

    def _noted(self, note: Callable[[], None]) -> None:
        with self._changed:
            note()
            self._changed.notify_all()


def items() -> bytes:
    """What is read: items in a ring, as JSON lines."""
    nodes = [{"type": "Item", "data": {"name": f"item {each}", "rank": each}} for each in range(ITEMS)]
    edges = [
        {"edge": "Next", "from": f"item {each}", "to": f"item {(each + 1) % ITEMS}", "data": {}}
        for each in range(ITEMS)
    ]
    return b"".join(json.dumps(each).encode() + b"\n" for each in [*nodes, *edges])


def tokens(clients: int) -> dict[str, str]:
    """A token for every client."""
    return {f"client-{each}": f"token-of-client-{each}" for each in range(clients)}


@contextmanager
def load_server(address: str, folder: Path, *words: str, clients: int, port: int) -> Iterator[RunningServer]:
    """A server for so many clients, each somebody of their own, at a port of its own."""
    known = tokens(clients)
    policy = folder / "policy.yaml"
    policy.write_text(_POLICY.format(actors=", ".join(known)))
    environment = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(known)}
    bind = ("--bind", f"127.0.0.1:{port}")
    named = ("--store", address, "--graph-id", GRAPH, "--policy", str(policy))
    with served(*named, *bind, *words, environment=environment) as server:
        yield server


@contextmanager
def run_clients(
    urls: list[str],
    *,
    clients: int,
    more: Callable[[int], bool],
    writes: bool = True,
    clock: Clock | None = None,
) -> Iterator[LoadRun]:
    """Clients that go on until each has had enough; at the end of the block they have.

    Args:
        urls (list[str]): of servers; clients are spread over them.
        clients (int): how many.
        more (Callable[[int], bool]): whether a client that has done so many operations goes on.
        writes (bool): whether one of ten operations is a write; else all of them are reads.
        clock (Clock | None): measures how long things take.

    Yields:
        LoadRun: what they did so far.
    """
    clock = clock or SystemClock()
    load = LoadRun(_running=clients)
    known = tokens(clients)
    threads = [
        threading.Thread(
            target=_client,
            args=(load, urls[each % len(urls)], each, known[f"client-{each}"]),
            kwargs={"more": more, "writes": writes, "clock": clock},
        )
        for each in range(clients)
    ]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        for thread in threads:
            thread.join()


def _client(
    load: LoadRun, url: str, number: int, token: str, *, more: Callable[[int], bool], writes: bool, clock: Clock
) -> None:
    try:
        with connect(url, graph=GRAPH, token=token, patience_s=_PATIENCE_S) as graph:
            done = serial = 0
            while more(done):
                # Some begin with a write and some with reads, so that writes come at all times.
                is_write = writes and (done + number) % WRITE_EVERY == 0
                began = clock.monotonic()
                if is_write:
                    _write(load, graph, number, serial)
                    serial += 1
                else:
                    _read(load, graph, number, done, serial)
                took = (load.write_s if is_write else load.read_s, clock.monotonic() - began)
                load._noted(lambda took=took: took[0].append(took[1]))  # type: ignore[misc]  # bound in this round
                done += 1
    except Exception as fault:  # noqa: BLE001  (told to the test, which fails on any)
        message = f"client {number}: {type(fault).__name__}: {fault}"
        load._noted(lambda: load.faults.append(message))
    finally:
        load._noted(lambda: _ended(load))


def _ended(load: LoadRun) -> None:
    load._running -= 1


def _write(load: LoadRun, graph: RemoteGraph, number: int, serial: int) -> None:
    done = graph.mutate(_MARK, {"client": number, "serial": serial}, idempotency_key=f"{number}-{serial}")
    if done.affected_nodes != 1:
        load.faults.append(f"client {number}: write {serial} changed {done.affected_nodes} nodes")
    load.acknowledged.append((number, serial))


def _read(load: LoadRun, graph: RemoteGraph, number: int, done: int, acknowledged: int) -> None:
    name = f"item {(number * 7 + done) % ITEMS}"
    match done % 3:
        case 0:
            found = graph.query(_ITEM, {"name": name}).to_pylist()
            expected: list[Mapping[str, object]] = [{"i.rank": (number * 7 + done) % ITEMS}]
        case 1:
            found = graph.query(_NEXT, {"name": name}).to_pylist()
            expected = [{"n.name": f"item {((number * 7 + done) % ITEMS + 1) % ITEMS}"}]
        case _:
            found = sorted(graph.query(_MINE, {"client": number}).to_pylist(), key=lambda row: row["m.serial"])
            expected = [{"m.serial": each} for each in range(acknowledged)]
    if found != expected:
        load.unseen.append(f"client {number}: {found} instead of {expected}")


def marks(graph: RemoteGraph) -> Counter[tuple[int, int]]:
    """Every write that is there, and how often."""
    return Counter((row["client"], row["serial"]) for row in graph.query(_ALL))


def statuses(logs: str) -> Counter[int]:
    """How many requests a server answered with which status, by its logs."""
    found: Counter[int] = Counter()
    for line in logs.splitlines():
        if line.startswith("{") and line.endswith("}"):  # the last line of one that was killed may be cut
            document = json.loads(line)
            if document["event"] == "request":
                found[document["status"]] += 1
    return found


def resident_bytes(process: int) -> int:
    """How much memory a process has."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {process} has ended")
