"""What one request, one actor and one stream may take; more is refused at once, in words."""

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.requests import ClientDisconnect
from starlette.types import Message
from tests.support.served_here import InProcess, refused

from omnigraph import limits
from omnigraph.server.errors import Refusal
from omnigraph.server.fair_scheduler import Admission, StreamSlots
from omnigraph.server.graph_call import AppState
from omnigraph.server.responses import ChunkedResponse

QUERY = "query q() { match { $b: Book } return { $b.isbn } }"
EVERYTHING = "query q() { match { $a: Author  $b: Book } return { $a.name, $b.title } order { $a.name } }"
INSERT = {"query": 'query q() { insert Author { name: "New" } }'}
LINES = {"content-type": "application/x-ndjson"}
JSON = {"content-type": "application/json"}


def state_of(client: TestClient) -> AppState:
    app: Any = client.app
    state = app.state.server
    assert isinstance(state, AppState)
    return state


def test_a_body_that_is_too_large_is_refused_before_it_is_read(shelf: TestClient) -> None:
    size = limits.SERVER_BODY_BYTES_MAX + 1

    answer = shelf.post("query", content=b" " * size, headers=JSON)

    body = refused(answer, 413, f"resource limit exceeded for request_body_bytes: actual {size}")
    assert body["resource_limit"] == {"resource": "request_body_bytes", "limit": 1_048_576, "actual": size}


def test_loads_may_be_larger_and_have_a_limit_of_their_own(serve: InProcess) -> None:
    client = serve(rows="")
    line = json.dumps({"type": "Book", "data": {"isbn": "1", "title": "x" * (2 * 1024**2)}})

    fits = client.post("load/ndjson", content=line, headers=LINES)
    too_large = client.post("load/ndjson", content=b" " * (32 * 1024**2 + 1), headers=LINES)

    assert fits.status_code == 200
    assert refused(too_large, 413, "")["resource_limit"]["resource"] == "graph_batch_request_bytes"


@pytest.mark.parametrize(
    "body",
    [
        b'{"query": ' + b"[" * 200 + b"]" * 200 + b"}",
        b"[" * 500_000,
        b'{"a":' * 100_000,
        b'{"query": "q", "params": {"x": NaN}}',
        b'{"query": "q", "params": {"x": "\\ud800"}}',
        b'{"query": "q", "params": {"\\udfff": 1}}',
        b'{"query": "q"',
        b"\xff\xfe",
        b"null",
        b"[]",
        b"",
    ],
)
def test_a_body_that_is_no_json_object_is_refused_in_words(shelf: TestClient, body: bytes) -> None:
    refused(shelf.post("query", content=body, headers=JSON), 400, "invalid request: ")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\xff\xfe", "invalid request: the body is not UTF-8"),
        (b'{"query": "q", "params": {"x": ' + b"9" * 5_000 + b"}}", "invalid request: a number has too many digits"),
    ],
)
def test_what_is_wrong_with_a_body_is_told_in_words_of_ours(shelf: TestClient, body: bytes, message: str) -> None:
    told = refused(shelf.post("query", content=body, headers=JSON), 400, message)

    assert told["error"] == message


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
def test_a_body_of_another_media_type_is_refused(shelf: TestClient, content_type: str) -> None:
    answer = shelf.post("query", content=json.dumps({"query": QUERY}), headers={"content-type": content_type})

    refused(answer, 415, "Content-Type: application/json")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "GZIP", "x-unheard-of"])
def test_a_compressed_body_is_refused_before_it_is_read(shelf: TestClient, encoding: str) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < limits.SERVER_BODY_BYTES_MAX
    compressed = {"content-encoding": encoding}

    for route, media in (("query", JSON), ("mutate", JSON), ("load", JSON), ("load/ndjson", LINES)):
        answer = shelf.post(route, content=bomb, headers={**media, **compressed})
        refused(answer, 415, "compressed bodies are not supported")
    plain = shelf.post("query", json={"query": QUERY}, headers={"content-encoding": "identity"})
    assert plain.status_code == 200


def test_a_body_of_pieces_without_a_length_is_bounded_too(shelf: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"query": "'
        for _ in range(1_100):
            yield b"x" * 1_000

    refused(shelf.post("query", content=pieces(), headers=JSON), 413, "request_body_bytes")


@pytest.mark.parametrize(
    "body",
    [
        b'{"query": "q", "params": ' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}",
        b'{"query": "q", "params": {"x": ' + b"[" * 70 + b"]" * 70 + b"}}",
        b'{"query": {"query": "q"}}',
        b'{"query": "q", "params": {"x": 1e999}}',
    ],
)
def test_values_that_are_too_deep_or_of_no_meaning_are_refused(shelf: TestClient, body: bytes) -> None:
    assert shelf.post("query", content=body, headers=JSON).status_code == 400


def test_an_actor_with_too_much_under_way_waits_and_others_do_not(serve: InProcess) -> None:
    client = serve(actor_requests_max=1)

    with state_of(client).admission.admit(None, 0):
        full = client.post("mutate", json=INSERT)
        reading = client.post("query", json={"query": QUERY})
    after = client.post("mutate", json=INSERT)

    refused(full, 429, "actor in-flight count cap 1 exceeded", "too_many_requests")
    assert full.headers["retry-after"] == "60"
    assert (reading.status_code, after.status_code) == (200, 200)


def test_the_bytes_of_an_actors_bodies_are_bounded_together(serve: InProcess) -> None:
    client = serve(actor_bytes_max=100)
    size = len(json.dumps(INSERT, separators=(",", ":")))

    with state_of(client).admission.admit(None, 90):
        answer = client.post("mutate", json=INSERT)

    refused(answer, 429, f"would use {90 + size} bytes against cap 100", "too_many_requests")
    assert client.post("mutate", json=INSERT).status_code == 200


def test_actors_that_have_nothing_under_way_are_forgotten() -> None:
    admission = Admission(requests_max=2, bytes_max=10)

    with admission.admit("a", 5), admission.admit("a", 5), admission.admit("b", 10):
        assert admission.actors == 2
        with pytest.raises(Refusal, match="in-flight"), admission.admit("a", 0):
            pass
        with pytest.raises(Refusal, match="byte budget"), admission.admit("b", 1):
            pass
    assert admission.actors == 0


def test_bodies_and_results_of_all_callers_have_bounded_room_and_give_it_back(serve: InProcess) -> None:
    rows = "".join(json.dumps({"type": "Author", "data": {"name": f"{n:06}"}}) + "\n" for n in range(5_000))
    every = {"query": "query q() { match { $a: Author } return { $a.name } }"}
    client = serve(rows=rows, bodies_bytes_max=1_000, results_bytes_max=100_000)
    state = state_of(client)

    too_much = client.post("load/ndjson", content=rows[:2_000], headers=LINES)
    state.result_memory.take(90_000, "anonymous")
    crowded = client.post("query", json=every)
    state.result_memory.give_back(90_000, "anonymous")
    sent = client.post("query", json=every)

    refused(too_much, 429, "no room left for bodies of requests", "too_many_requests")
    refused(crowded, 429, "no room left for results", "too_many_requests")
    assert sent.json()["row_count"] == 5_000
    assert (state.body_memory.held, state.result_memory.held) == (0, 0)


def test_a_graph_is_exported_once_at_a_time(serve: InProcess) -> None:
    client = serve()
    give_back = state_of(client).streams.take("library")

    busy = client.post("export", json={})
    give_back()
    free = client.post("export", json={})

    assert refused(busy, 413, "stream_export_slots")["resource_limit"] == {
        "resource": "stream_export_slots",
        "limit": 1,
        "actual": 2,
    }
    assert free.status_code == 200
    assert state_of(client).streams.taken == 0


def test_an_export_that_fails_gives_its_place_back(serve: InProcess) -> None:
    client = serve()

    for _ in range(2):
        assert client.post("export", json={"type_names": ["Nothing"]}).status_code == 400
    assert state_of(client).streams.taken == 0


def test_a_process_has_eight_streams_and_the_ninth_is_refused() -> None:
    slots = StreamSlots()
    given = [slots.take(f"graph-{number}") for number in range(8)]

    with pytest.raises(Refusal) as full:
        slots.take("graph-9")
    for give_back in given:
        give_back()
        give_back()

    assert full.value.details["resource_limit"]["resource"] == "stream_export_transport_bytes"
    assert slots.taken == 0
    slots.take("graph-9")()


def test_a_reader_that_stops_reading_is_left_and_its_place_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVER_STREAM_STALL_S", 0.01)
    given_back = []
    stream = ChunkedResponse(iter([b"x" * 200_000]), media_type="text/plain", on_close=lambda: given_back.append(True))
    sent = []

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)
        if len(sent) > 2:
            await asyncio.Event().wait()

    scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
    with pytest.raises(ClientDisconnect):
        asyncio.run(stream(scope, receive, send))

    assert [len(each.get("body", b"")) for each in sent] == [0, 65_536, 65_536]
    assert given_back == [True]


def test_a_query_that_needs_too_much_memory_is_refused(serve: InProcess) -> None:
    client = serve(query_bytes_max=100)

    body = refused(client.post("query", json={"query": EVERYTHING}), 413, "memory")

    assert body["resource_limit"]["resource"] == "query_memory"


def test_a_server_without_spark_runs_no_query_on_it(serve: InProcess) -> None:
    client = serve()

    refused(client.post("query", json={"query": EVERYTHING, "engine": "spark"}), 400, "--spark MASTER")
    assert "engine" not in client.post("query", json={"query": EVERYTHING, "engine": "local"}).json()


def test_a_query_that_takes_too_long_is_refused(serve: InProcess) -> None:
    client = serve(query_s_max=0.0)

    body = refused(client.post("query", json={"query": EVERYTHING}), 413, "query_seconds")

    assert body["resource_limit"]["limit"] == 0
