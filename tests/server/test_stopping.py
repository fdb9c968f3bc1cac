"""A stop in the middle of everything: whoever was answered was told the truth, and whoever was not meets an end."""

import json
import signal
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
import pytest

import omnigraph
from omnigraph.testing.server import RunningServer, served

INSERT = "query q($n: String) { insert Author { name: $n } }"
NAMES = "query q() { match { $a: Author } return { $a.name } }"
BOOKS = 3_000
LINES = {"content-type": "application/x-ndjson"}


@dataclass
class Seen:
    """What clients saw.

    Attributes:
        acknowledged: names that a server said it had written.
        asked: all that were asked for.
        statuses: of answers that came.
        streams: how many lines each export had that came to its end.
        ends: how many requests met no answer.
    """

    acknowledged: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    streams: list[int] = field(default_factory=list)
    ends: int = 0
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


def write(client: httpx.Client, seen: Seen, name: str) -> None:
    seen.asked.append(name)
    answer = client.post("mutate", json={"query": INSERT, "params": {"n": name}})
    seen.statuses[answer.status_code] += 1
    if answer.status_code == 200:
        seen.acknowledged.append(name)


def load(client: httpx.Client, seen: Seen, name: str) -> None:
    names = [f"{name}-{number}" for number in range(50)]
    seen.asked.extend(names)
    rows = "".join(json.dumps({"type": "Author", "data": {"name": each}}) + "\n" for each in names)
    answer = client.post("load/ndjson", params={"mode": "append"}, content=rows, headers=LINES)
    seen.statuses[answer.status_code] += 1
    if answer.status_code == 200:
        seen.acknowledged.extend(names)


def export(client: httpx.Client, seen: Seen, _: str) -> None:
    with client.stream("POST", "export", json={"type_names": ["Book"]}) as answer:
        lines = sum(1 for _ in answer.iter_lines())
    if answer.status_code == 200:
        seen.streams.append(lines)


def until_the_end(server: RunningServer, seen: Seen, who: int, work: Callable[[httpx.Client, Seen, str], None]) -> None:
    """Ask for one thing after the other until nobody answers any more."""
    with server.client() as client:
        client.base_url = client.base_url.join("/graphs/library/")
        turn = 0
        try:
            while True:
                work(client, seen, f"{who}-{turn}")
                seen.begun.release()
                turn += 1
        except httpx.TransportError:
            seen.ends += 1


@pytest.mark.parametrize(
    ("words", "signals"),
    [
        ((), [signal.SIGINT]),
        (("--workers", "2"), [signal.SIGTERM, signal.SIGTERM]),
    ],
    ids=["alone, by SIGINT", "workers, by SIGTERM and again"],
)
def test_nothing_that_was_acknowledged_is_lost_when_a_server_is_stopped(
    library: str, words: tuple[str, ...], signals: list[signal.Signals]
) -> None:
    with omnigraph.open(library) as graph:
        rows = [{"isbn": f"9-{number}", "title": "x" * 500} for number in range(BOOKS)]
        graph.write({"Book": rows})
    seen = Seen()
    with served("--store", library, "--unauthenticated", *words) as server:
        threads = [
            threading.Thread(target=until_the_end, args=(server, seen, who, work))
            for who, work in enumerate((write, write, write, load, load, export))
        ]
        for thread in threads:
            thread.start()
        for _ in range(12):
            seen.begun.acquire()
        for each in signals:
            server.process.send_signal(each)
        assert server.stop(signals[-1]) == 0
        for thread in threads:
            thread.join()

    assert seen.ends == len(threads)
    assert seen.acknowledged, "some were answered before the end"
    # A branch that is busy may refuse a write; nothing else is seen.
    assert set(seen.statuses) <= {200, 409}, seen.statuses
    assert set(seen.streams) <= {BOOKS + 2}
    with omnigraph.open(library, read_only=True) as graph:
        there = Counter(row["a.name"] for row in graph.query(NAMES))
        assert graph.verify().is_whole
    assert max(there.values()) == 1
    assert set(seen.acknowledged) <= set(there)
    assert set(there) - {"Le Guin", "Butler"} <= set(seen.asked)
