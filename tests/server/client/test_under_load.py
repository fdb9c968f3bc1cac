"""Many clients at once, servers that die under them, and several servers of one graph."""

import os
import signal
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.load_clients import (
    GRAPH,
    SCHEMA,
    LoadRun,
    items,
    load_server,
    marks,
    resident_bytes,
    run_clients,
    statuses,
    tokens,
)

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.testing.server import RunningServer

CLIENTS = 64
TORTURE_S = 120.0
# What reads may keep of every state they saw. By default it is so much that a short run would never come to its bound.
CACHE_BYTES = 16 * 1024**2
# What a server may grow by once all of it is warm. Far below what keeping anything of every request would come to.
GROWTH = 1.25


@pytest.fixture
def address(tmp_path: Path) -> str:
    """A graph with something to read."""
    where = str(tmp_path / "graph")
    with omnigraph.init(where, SCHEMA) as graph:
        graph.load(items(), mode="append", engine="local", format="jsonl")
    return where


def free_port() -> int:
    """A port that nobody listens at, for a server that comes back to where it was."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def check_once(url: str, load: LoadRun) -> None:
    """Every acknowledged write is there, once, and nothing else is."""
    [(_, token), *_] = tokens(1).items()
    with omnigraph.connect(url, graph=GRAPH, token=token) as graph:
        assert load.faults == []
        assert load.unseen == []
        assert marks(graph) == Counter(load.acknowledged)
        commits = Counter(each.actor for each in graph.commits.list(kind="mutation"))
    assert commits == Counter(f"client-{client}" for client, _ in load.acknowledged)


def check_answers(logs: str) -> None:
    """Nothing was answered but answers."""
    found = statuses(logs)
    assert found, "something was asked"
    assert [status for status in found if status >= 400] == []


def calm(address: str, folder: Path, *, more: Callable[[int], bool], warm: Callable[[LoadRun], None]) -> None:
    """64 clients, and a server that lives; its memory is measured once it is warm, and at the end."""
    small = ("--cache-memory", str(CACHE_BYTES))
    with load_server(address, folder, *small, clients=CLIENTS, port=free_port()) as server:
        with run_clients([server.url], clients=CLIENTS, more=more) as load:
            warm(load)
            before = resident_bytes(server.process.pid)
        after = resident_bytes(server.process.pid)
        check_once(server.url, load)
    check_answers(server.logs)
    assert len(load.write_s) * 5 < load.operations, "most of them were reads"
    assert after < before * GROWTH


def deadly(address: str, folder: Path, *, clients: int, more: Callable[[int], bool], at: list[int]) -> None:
    """A server that is killed each time so many operations were answered, and started again."""
    port = free_port()
    logs: list[str] = []

    def killed(server: RunningServer, load: LoadRun, operations: int) -> None:
        load.wait_for(operations)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        logs.append(server.logs)

    url = f"http://127.0.0.1:{port}"
    with run_clients([url], clients=clients, more=more) as load:
        for operations in at:
            with load_server(address, folder, clients=clients, port=port) as server:
                killed(server, load, operations)
        with load_server(address, folder, clients=clients, port=port) as server:
            load.wait_for(1_000_000_000)
            check_once(server.url, load)
        logs.append(server.logs)
    check_answers("\n".join(logs))


def test_many_clients_lose_nothing_and_memory_stays(address: str, tmp_path: Path) -> None:
    calm(address, tmp_path, more=lambda done: done < 10, warm=lambda load: load.wait_for(CLIENTS * 5))


def test_each_write_is_there_once_though_the_server_was_killed(address: str, tmp_path: Path) -> None:
    deadly(address, tmp_path, clients=16, more=lambda done: done < 20, at=[120])


def test_two_servers_one_of_them_with_workers_are_one_graph(address: str, tmp_path: Path) -> None:
    clients = 8
    with (
        load_server(address, tmp_path, clients=clients, port=0) as first,
        load_server(address, tmp_path, "--workers", "2", clients=clients, port=0) as second,
    ):
        with run_clients([first.url, second.url], clients=clients, more=lambda done: done < 20) as load:
            pass
        for server in (first, second):
            check_once(server.url, load)
    for server in (first, second):
        check_answers(server.logs)


@pytest.mark.torture
def test_two_minutes_of_many_clients(address: str, tmp_path: Path) -> None:
    deadline = SystemClock().monotonic() + TORTURE_S
    calm(
        address,
        tmp_path,
        more=lambda _: SystemClock().monotonic() < deadline,
        warm=lambda _: SystemClock().sleep(TORTURE_S / 2),
    )


@pytest.mark.torture
def test_two_minutes_of_many_clients_and_a_server_killed_three_times(address: str, tmp_path: Path) -> None:
    deadline = SystemClock().monotonic() + TORTURE_S
    deadly(
        address,
        tmp_path,
        clients=CLIENTS,
        more=lambda _: SystemClock().monotonic() < deadline,
        at=[CLIENTS * 5, CLIENTS * 15, CLIENTS * 25],
    )


@pytest.mark.torture
def test_two_minutes_of_many_clients_on_two_servers_with_workers(address: str, tmp_path: Path) -> None:
    workers = str(max(2, os.cpu_count() or 2))
    with (
        load_server(address, tmp_path, "--workers", workers, clients=CLIENTS, port=0) as first,
        load_server(address, tmp_path, "--workers", workers, clients=CLIENTS, port=0) as second,
    ):
        urls = [first.url, second.url]
        deadline = SystemClock().monotonic() + TORTURE_S
        with run_clients(urls, clients=CLIENTS, more=lambda _: SystemClock().monotonic() < deadline) as load:
            pass
        check_once(first.url, load)
