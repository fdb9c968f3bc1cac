"""A server under many clients: how much it answers, how fast, and how much of that time is the store's.

64 clients, each with connections of its own, read and write one branch in the ratio of nine to one; clients run in
this process and take their share of the machine from the server. The store is local disk, once as durable as it gets.
What the store takes is what its requests add up to while a request runs, tables of Lance not among them: those are
read and written by Lance itself. What a request takes of a processor, here and there, depends least on what else runs.
"""

import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from tests.support.load_clients import GRAPH, ITEMS, SCHEMA, LoadRun, items, load_server, run_clients, tokens

import omnigraph
from benchmarks.report import Figure, Scale, alone, compared, run
from omnigraph.testing.server import RunningServer

CLIENTS = 64
_TURNS = 6
_ITEM = "query item($name: String) { match { $i: Item { name: $name } } return { $i.rank } }"
_BARE = """
import socket, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def query(request):
    await request.json()
    return Response(b'{"rows":[{"i.rank":1}]}', media_type="application/json")

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
app = Starlette(routes=[Route("/graphs/{graph}/query", query, methods=["POST"])])
uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run(sockets=[listener])
"""


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    try:
        yield from _reads_alone(folder, scale.pick(full=3_000, quick=600))
        for clients in (1, 8, CLIENTS):
            address = str(folder / f"graph-{clients}")
            with omnigraph.init(address, SCHEMA) as graph:
                graph.load(items(), mode="append", engine="local", format="jsonl")
            yield from _measured(address, folder, clients, each=scale.pick(full=200, quick=10 if clients > 8 else 40))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _reads_alone(folder: Path, reads: int) -> Iterable[Figure]:
    """What one small read takes of a processor in the server, beside a bare server that answers with a constant."""
    address = str(folder / "reads")
    with omnigraph.init(address, SCHEMA) as graph:
        graph.load(items(), mode="append", engine="local", format="jsonl")
    with load_server(address, folder, clients=1, port=0) as ours, _bare_server() as bare:
        spent: dict[int, list[float]] = {ours.process.pid: [], bare.process.pid: []}
        for _ in range(_TURNS):
            for server in (ours, bare):
                before = _processor_s(server)
                _read(server, reads // _TURNS)
                spent[server.process.pid].append(_processor_s(server) - before)
        took, floor = (1_000 * sum(spent[server.process.pid][1:]) for server in (ours, bare))
        counted = (_TURNS - 1) * (reads // _TURNS)
    what = "1 client, reads alone: of a processor, the server"
    yield compared(
        what, took / counted, "ms/request", against="a bare Starlette server with a constant", other=floor / counted
    )
    yield alone(what, took / counted, "ms/request", at_most=0.5)


@contextmanager
def _bare_server() -> Iterator[RunningServer]:
    process = subprocess.Popen([sys.executable, "-c", _BARE], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield RunningServer(f"http://127.0.0.1:{process.stdout.readline().strip()}", process)
    finally:
        process.terminate()
        process.wait()


def _read(server: RunningServer, times: int) -> None:
    [(_, token), *_] = tokens(1).items()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
    for number in range(times):
        body = json.dumps({"query": _ITEM, "params": {"name": f"item {number % ITEMS}"}})
        connection.request("POST", f"/graphs/{GRAPH}/query", body, headers)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError(f"a read was answered with {response.status}")
    connection.close()


def _processor_s(server: RunningServer) -> float:
    """Seconds of a processor that a server has used; Linux only."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _measured(address: str, folder: Path, clients: int, *, each: int) -> Iterable[Figure]:
    with load_server(address, folder, clients=clients, port=0) as server:
        _run_load(server, clients, each=3, writes=False)  # so that plans are made and columns are in memory
        before = _numbers(server)
        began, worked = time.perf_counter(), time.process_time()
        load = _run_load(server, clients, each=each)
        took_s, worked_s = time.perf_counter() - began, time.process_time() - worked
        after = _numbers(server)
    what = f"{clients} clients, 90 % reads" if clients > 1 else "1 client, 90 % reads"
    yield alone(f"{what}: answered", load.operations / took_s, "requests/s")
    yield alone(f"{what}: a read, median", _at(load.read_s, 50), "ms")
    yield alone(f"{what}: a read, 99 of 100", _at(load.read_s, 99), "ms")
    yield alone(f"{what}: a write, median", _at(load.write_s, 50), "ms")
    yield alone(f"{what}: a write, 99 of 100", _at(load.write_s, 99), "ms")
    store_s, request_s, processor_s = (after[name] - before[name] for name in ("store", "request", "processor"))
    yield alone(f"{what}: of a processor, the server", 1_000 * processor_s / load.operations, "ms/request")
    yield alone(f"{what}: of a processor, the client", 1_000 * worked_s / load.operations, "ms/request")
    yield alone(f"{what}: share of the answering time spent in the store", 100 * store_s / request_s, "%")


def _run_load(server: RunningServer, clients: int, *, each: int, writes: bool = True) -> LoadRun:
    with run_clients([server.url], clients=clients, more=lambda done: done < each, writes=writes) as load:
        pass
    if load.faults or load.unseen:
        raise RuntimeError(f"clients met faults: {(load.faults + load.unseen)[:3]}")
    return load


def _at(seconds: Sequence[float], percentile: int) -> float:
    """A percentile, in milliseconds."""
    return statistics.quantiles(seconds, n=100, method="inclusive")[percentile - 1] * 1_000


def _numbers(server: RunningServer) -> dict[str, float]:
    """Seconds the server spent on requests to graphs, of those in the store, and how many of a processor it had."""
    [(_, token), *_] = tokens(1).items()
    answer = httpx.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {token}"}).raise_for_status()
    found = {"store": 0.0, "request": 0.0, "processor": 0.0}
    for line in answer.text.splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith("omnigraph_store_request_seconds_sum"):
            found["store"] += float(value)
        elif name.startswith("omnigraph_request_seconds_sum") and "/graphs/" in name:
            found["request"] += float(value)
        elif name == "process_cpu_seconds_total":
            found["processor"] = float(value)
    return found


if __name__ == "__main__":
    run("serve", measure)
