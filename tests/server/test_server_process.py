"""The process itself: how it starts and stops, what it writes down, and how it treats those who are slow."""

import json
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest
from tests.support.served_here import LIBRARY, ROWS

import omnigraph
from omnigraph.server.serving import open_listener
from omnigraph.testing.server import RunningServer, served

ALL_BOOKS = "query q() { match { $b: Book } return { $b.isbn } order { $b.isbn } }"
INSERT = "query q($n: String) { insert Author { name: $n } }"
TOKEN, WRONG_TOKEN = "the-right-secret", "some-wrong-secret"
JSON = "Content-Type: application/json"
POLICY = """
version: 1
groups: { team: [act-a] }
rules:
  - id: all
    allow: { actors: { group: team }, actions: [read, export, change] }
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with a token and a policy, that waits a second for bodies and for readers, and logs all it can."""
    folder = tmp_path_factory.mktemp("guarded")
    with omnigraph.init(str(folder / "library"), LIBRARY) as graph:
        graph.load(ROWS.encode(), mode="append", engine="local", format="jsonl")
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"act-a": TOKEN})}
    words = (
        "--policy",
        str(policy),
        "--body-timeout",
        "1s",
        "--send-timeout",
        "1s",
        "--log-level",
        "debug",
        "--maintain-every",
        "1h",
    )
    with served("--store", str(folder / "library"), *words, environment=tokens) as server:
        yield server
        assert server.stop(signal.SIGINT) == 0


@pytest.fixture
def caller(guarded: RunningServer) -> Iterator[httpx.Client]:
    with guarded.client(TOKEN) as made:
        made.base_url = made.base_url.join("/graphs/library/")
        yield made


def raw(server: RunningServer, path: str, *, headers: str) -> socket.socket:
    """A connection with the head of a request sent, and no more."""
    host, port = server.url.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)), timeout=60)
    head = f"POST /graphs/library/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n{headers}\r\n\r\n"
    made.sendall(head.encode())
    return made


def received(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65_536), b""))


def inserted(client: httpx.Client, name: str) -> None:
    answer = client.post("mutate", json={"query": INSERT, "params": {"n": name}})
    assert answer.status_code == 200, answer.text


def test_health_and_readiness_need_no_token_and_numbers_do(guarded: RunningServer) -> None:
    with guarded.client() as anybody:
        assert anybody.get("/healthz").json() == {"status": "ok", "version": "0.1.0", "internal_schema_version": 6}
        assert anybody.get("/readyz").json() == {"status": "ready", "graphs": {}}
        assert anybody.get("/openapi.json").json()["openapi"] == "3.1.0"
        assert anybody.get("/metrics").status_code == 401


def test_a_body_that_comes_too_slowly_is_given_up_and_holds_no_writer(
    guarded: RunningServer, caller: httpx.Client
) -> None:
    with raw(guarded, "mutate", headers=f"{JSON}\r\nConnection: close\r\nContent-Length: 500") as slow:
        slow.sendall(b'{"query":')
        inserted(caller, "beside a slow body")

        assert received(slow).startswith(b"HTTP/1.1 408 ")


def test_a_head_that_never_ends_is_given_up(guarded: RunningServer, caller: httpx.Client) -> None:
    host, port = guarded.url.removeprefix("http://").split(":")
    with (
        socket.create_connection((host, int(port)), timeout=60) as slow,
        socket.create_connection((host, int(port)), timeout=60) as mute,
    ):
        slow.sendall(b"POST /graphs/library/query HTTP/1.1\r\nHost: x\r\nX-Slow: ")

        assert received(slow) == b""
        assert received(mute) == b""
    inserted(caller, "after a head that never ended")


def test_a_head_without_end_that_comes_fast_is_refused(guarded: RunningServer, caller: httpx.Client) -> None:
    host, port = guarded.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as endless:
        endless.sendall(b"POST /graphs/library/query HTTP/1.1\r\nHost: x\r\nX-Long: ")
        with suppress(ConnectionError):
            for _ in range(64):
                endless.sendall(b"x" * 65_536)

        with suppress(ConnectionError):
            assert received(endless)[:12] in (b"HTTP/1.1 400", b"")
    inserted(caller, "after a head without end")


def test_answers_are_not_held_back_for_more_to_send() -> None:
    with open_listener("127.0.0.1:0") as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_a_body_that_does_not_say_its_size_is_counted_while_it_comes(guarded: RunningServer) -> None:
    with raw(guarded, "query", headers=f"{JSON}\r\nTransfer-Encoding: chunked") as large:
        piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
        for _ in range(17):
            large.sendall(piece)

        assert large.recv(65_536).startswith(b"HTTP/1.1 413 ")


def test_a_reader_that_stops_reading_holds_no_writer(guarded: RunningServer, caller: httpx.Client) -> None:
    lines = "".join(
        json.dumps({"type": "Book", "data": {"isbn": f"9-{number}", "title": "x" * 2_000}}) + "\n"
        for number in range(8_000)
    )
    loaded = caller.post("load/ndjson", content=lines, headers={"content-type": "application/x-ndjson"})
    assert loaded.status_code == 200, loaded.text
    with raw(guarded, "export", headers=f"{JSON}\r\nContent-Length: 2") as slow:
        slow.sendall(b"{}")
        assert slow.recv(64).startswith(b"HTTP/1.1 200 ")

        inserted(caller, "beside a slow reader")
        assert caller.post("query", json={"query": ALL_BOOKS}).status_code == 200
        # Its place is given back though it neither reads nor leaves.
        while (other := caller.post("export", json={"type_names": ["Author"]})).status_code == 413:
            assert other.json()["resource_limit"]["resource"] == "stream_export_slots"
        assert other.status_code == 200


def test_what_is_logged_is_json_with_request_ids_and_never_a_token(
    guarded: RunningServer, caller: httpx.Client
) -> None:
    caller.post("query", json={"query": ALL_BOOKS}, headers={"X-Request-Id": "mine-1"})
    caller.get("nothing", params={"token": TOKEN})
    caller.get(f"queries/{TOKEN}")
    caller.get(f"{guarded.url}/graphs/{TOKEN}/schema")
    caller.post("query", json={"query": TOKEN, "branch": TOKEN, "params": {TOKEN: TOKEN}})
    caller.get("schema", headers={"X-Request-Id": TOKEN})
    caller.get("schema", headers={"X-Request-Id": f"{TOKEN} {TOKEN}", "Cookie": TOKEN, "Proxy-Authorization": TOKEN})
    for variant in (f"bearer   {TOKEN}", f"Token {TOKEN}", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}, Bearer {TOKEN}"):
        assert caller.get("schema", headers={"Authorization": variant}).status_code in (200, 401)
    with guarded.client(WRONG_TOKEN) as stranger:
        assert stranger.get("/graphs/library/schema").status_code == 401
        assert stranger.post("/graphs/library/query", json={"query": WRONG_TOKEN}).status_code == 401

    lines = [json.loads(line) for line in guarded.logs.splitlines()]

    requests = {line["request_id"]: line for line in lines if line["event"] == "request"}
    assert requests["mine-1"]["status"] == 200
    assert requests["mine-1"]["actor"] == "act-a"
    assert {401, 404} <= {line["status"] for line in requests.values()}
    assert TOKEN not in guarded.logs
    assert WRONG_TOKEN not in guarded.logs


def test_numbers_tell_of_requests_commits_store_and_caches(guarded: RunningServer, caller: httpx.Client) -> None:
    inserted(caller, "counted")

    maintained = 'omnigraph_maintenance_passes_total{graph="library"}'
    numbers: dict[str, str] = {}
    while maintained not in numbers:  # the first pass begins with the server, and takes its time
        text = caller.get(f"{guarded.url}/metrics").text
        numbers = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))

    assert float(numbers['omnigraph_commits_total{graph="library"}']) >= 1
    assert 'omnigraph_requests_total{method="POST",route="/graphs/{graph_id}/mutate",status="200"}' in numbers
    assert 'omnigraph_store_requests_total{graph="library",kind="put_if_absent",outcome="ok"}' in numbers
    for name in (
        "omnigraph_request_seconds_bucket",
        "omnigraph_cache_bytes",
        "omnigraph_maintenance_passes_total",
        "omnigraph_swept_files_total",
    ):
        assert name in text
    for name in ("conflicts", "rebases", "redos", "intents_noted", "intents_cleared"):
        assert f"# TYPE omnigraph_{name}_total counter" in text or f"# TYPE omnigraph_{name} counter" in text


def test_a_server_that_stops_finishes_what_is_under_way(library: str) -> None:
    rows = "".join(json.dumps({"type": "Author", "data": {"name": f"{n:06}"}}) + "\n" for n in range(30_000))
    answers = []
    with served("--store", library, "--unauthenticated") as server:

        def load() -> None:
            with server.client() as writer:
                path = "/graphs/library/load/ndjson?mode=append"
                answers.append(writer.post(path, content=rows, headers={"content-type": "application/x-ndjson"}))

        writing = threading.Thread(target=load)
        with server.client() as watcher:
            writing.start()
            # The one that asks is under way itself; with a second one the load has begun.
            while "omnigraph_requests_under_way 2.0" not in watcher.get("/metrics").text and not answers:
                pass
        assert server.stop(signal.SIGTERM) == 0
        writing.join()

    [answer] = answers
    assert answer.status_code == 200
    with omnigraph.open(library, read_only=True) as graph:
        assert graph.count("Author") == 30_002


def test_several_workers_serve_one_graph_and_no_write_is_lost_or_doubled(library: str) -> None:
    words = ("--workers", "2", "--unauthenticated", "--maintain-every", "1s")
    with served("--store", library, *words) as server:

        def write(number: int) -> None:
            with server.client(timeout_s=240) as writer:
                for turn in range(5):
                    body = {"query": INSERT, "params": {"n": f"{number}-{turn}"}}
                    answer = writer.post(
                        "/graphs/library/mutate", json=body, headers={"Idempotency-Key": f"{number}-{turn}"}
                    )
                    assert answer.status_code == 200, answer.text

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        with server.client(timeout_s=240) as reader:
            numbers = reader.get("/metrics").text
        assert server.stop(signal.SIGINT) == 0

    answered = 'omnigraph_requests_total{method="POST",route="/graphs/{graph_id}/mutate",status="200"} 20.0'
    assert answered in numbers
    with omnigraph.open(library, read_only=True) as graph:
        names = [row["a.name"] for row in graph.query("query q() { match { $a: Author } return { $a.name } }")]
    assert sorted(names) == sorted(["Butler", "Le Guin", *(f"{n}-{t}" for n in range(4) for t in range(5))])
