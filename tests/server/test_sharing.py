"""What callers share, threads and memory, is shared fairly: nobody takes all of it, and nobody is forgotten."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from fastapi.testclient import TestClient
from pyarrow import ipc
from starlette.types import Message, Receive, Scope, Send
from tests.support.served_here import InProcess, refused

from omnigraph.api.query_result import Result
from omnigraph.server.errors import Refusal
from omnigraph.server.fair_scheduler import FairScheduler
from omnigraph.server.graph_call import AppState
from omnigraph.server.memory_budget import MemoryBudget, Reservation
from omnigraph.server.responses import ARROW
from omnigraph.server.tokens import load_tokens

TOKENS = load_tokens({"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"act-a": "alpha", "act-b": "beta"})})
ALICE, BOB = ({"Authorization": f"Bearer {token}"} for token in ("alpha", "beta"))
BOOKS = {"query": "query q() { match { $b: Book } return { $b.isbn } }"}
SLOW = {"query": "query slow() { match { $b: Book } return { $b.isbn } }"}
AUTHORS = 2_000
MANY = {"query": "query slow() { match { $a: Author } return { $a.name } order { $a.name } }"}
FEW = {"query": 'query q() { match { $a: Author { name: "000001" } } return { $a.name } }'}
_PATIENCE_S = 120.0


class Held:
    """Queries called `slow` have their rows and keep them until they are let go."""

    def __init__(self, client: TestClient) -> None:
        self.state = state_of(client)
        self.arrived = 0
        self._go = threading.Event()
        graph: Any = self.state.graphs.get("library").graph
        self._query: Callable[..., Result] = graph.query
        graph.query = self._held

    def _held(self, text: str, *args: Any, **named: Any) -> Result:  # noqa: ANN401  (as they came)
        found = self._query(text, *args, **named)
        if "slow" in text:
            self.arrived += 1
            assert self._go.wait(_PATIENCE_S), "nobody let it go"
        return found

    def until(self, reached: Callable[[AppState], bool]) -> None:
        """Wait for something to be so."""
        while not reached(self.state):
            pass

    def let_go(self) -> None:
        """Let all of them go, now and later."""
        self._go.set()


@contextmanager
def held(client: TestClient) -> Iterator[tuple[Held, ThreadPoolExecutor]]:
    """Slow queries, and threads to ask them from."""
    slow = Held(client)
    with ThreadPoolExecutor(16) as pool:
        try:
            yield slow, pool
        finally:
            slow.let_go()


def state_of(client: TestClient) -> AppState:
    app: Any = client.app
    state = app.state.server
    assert isinstance(state, AppState)
    return state


def asked(
    pool: ThreadPoolExecutor, client: TestClient, body: dict[str, str], who: dict[str, str]
) -> "Future[tuple[int, dict[str, Any]]]":
    def ask() -> tuple[int, dict[str, Any]]:
        answer = client.post("query", json=body, headers=who)
        return answer.status_code, answer.json()

    return pool.submit(ask)


def authors() -> str:
    return "".join(json.dumps({"type": "Author", "data": {"name": f"{n:06}"}}) + "\n" for n in range(AUTHORS))


def test_reads_of_an_actor_are_counted_and_more_is_refused_while_others_are_answered(serve: InProcess) -> None:
    client = serve(tokens=TOKENS, threads=4, actor_calls_max=6)
    with held(client) as (slow, pool):
        begun = [asked(pool, client, SLOW, ALICE) for _ in range(6)]
        slow.until(lambda state: (state.scheduler.running, state.scheduler.waiting) == (3, 3))

        full = client.post("query", json=BOOKS, headers=ALICE)
        other = client.post("query", json=BOOKS, headers=BOB)
        written = client.post("mutate", json=BOOKS, headers=ALICE)
        slow.let_go()

    for answer in (full, written):
        refused(answer, 429, "actor in-flight count cap 6 exceeded", "too_many_requests")
        assert answer.headers["retry-after"] == "60"
    assert other.status_code == 200
    assert [each.result()[0] for each in begun] == [200] * 6
    assert (slow.state.scheduler.running, slow.state.scheduler.actors) == (0, 0)


def test_where_there_are_no_actors_to_tell_apart_all_threads_are_everybodys(serve: InProcess) -> None:
    client = serve(threads=3, actor_calls_max=4)
    with held(client) as (slow, pool):
        begun = [asked(pool, client, SLOW, {}) for _ in range(4)]
        slow.until(lambda state: (state.scheduler.running, state.scheduler.waiting) == (3, 1))

        assert client.get("http://testserver/healthz").status_code == 200
        slow.let_go()

    assert [each.result()[0] for each in begun] == [200] * 4


def test_a_slow_body_and_a_slow_reader_take_no_turn(serve: InProcess) -> None:
    client = serve(threads=1, rows=authors())
    seen = []

    def slowly() -> Iterator[bytes]:
        seen.append(state_of(client).scheduler.running)
        yield b'{"type":"Book","data":{"isbn":"9","title":"x"}}\n'

    lines = {"content-type": "application/x-ndjson"}
    assert client.post("load/ndjson", content=slowly(), headers=lines).status_code == 200
    assert seen == [0]
    # The client of these tests has the whole answer before it shows any: the pieces are looked at on their way.
    transport: Any = client._transport
    app, pieces = transport.app, []

    async def looked_at(scope: Scope, receive: Receive, send: Send) -> None:
        async def noted(message: Message) -> None:
            if message["type"] == "http.response.body":
                pieces.append(state_of(client).scheduler.running)
            await send(message)

        await app(scope, receive, noted)

    transport.app = looked_at
    with patch("omnigraph.limits.SERVER_ROWS_AT_ONCE", 100):
        assert client.post("query", json={"query": MANY["query"].replace("slow", "q")}).status_code == 200

    assert len(pieces) > 10
    assert set(pieces) == {0}


def test_queries_that_run_at_once_share_their_memory_and_the_one_too_many_is_told_to_come_again(
    serve: InProcess,
) -> None:
    client = serve(rows=authors(), queries_bytes_max=60_000)
    with held(client) as (slow, pool):
        first = asked(pool, client, MANY, {})
        slow.until(lambda _: slow.arrived == 1)

        crowded = [asked(pool, client, MANY, {}) for _ in range(4)]
        slow.until(lambda _: sum(each.done() for each in crowded) >= 3)
        small = client.post("query", json=FEW)
        slow.let_go()

    answers = [each.result() for each in crowded]
    assert first.result()[0] == 200
    refusals = [body for status, body in answers if status != 200]
    assert len(refusals) >= 3
    for body in refusals:
        assert body["code"] == "too_many_requests"
        assert "the server has no room left for queries" in body["error"]
    assert small.status_code == 200
    assert slow.state.query_memory.held == 0
    assert client.post("query", json=MANY).json()["row_count"] == AUTHORS


def test_one_actor_does_not_take_all_the_memory_of_queries(serve: InProcess) -> None:
    client = serve(rows=authors(), tokens=TOKENS, queries_bytes_max=100_000)
    with held(client) as (slow, pool):
        first = asked(pool, client, MANY, ALICE)
        slow.until(lambda _: slow.arrived == 1)
        state_of(client).query_memory.take(75_000 - slow.state.query_memory.held, "act-a")

        hers = client.post("query", json=FEW, headers=ALICE)
        his = client.post("query", json=FEW, headers=BOB)
        slow.let_go()

    refused(hers, 429, "no room left for queries of one actor: 75000 of 75000", "too_many_requests")
    assert hers.headers["retry-after"] == "1"
    assert (his.status_code, first.result()[0]) == (200, 200)


def test_a_query_that_could_never_fit_is_told_so_and_not_to_come_again(serve: InProcess) -> None:
    client = serve(rows=authors(), queries_bytes_max=1_000)

    body = refused(client.post("query", json=MANY), 413, "more than the 1,000 bytes of memory")

    assert body["resource_limit"]["resource"] == "query_memory"
    assert state_of(client).query_memory.held == 0


def test_a_query_that_fails_gives_back_what_it_held(serve: InProcess) -> None:
    client = serve(rows=authors(), queries_bytes_max=100_000, query_bytes_max=10_000)

    for _ in range(20):
        refused(client.post("query", json=MANY), 413, "more than the 10,000 bytes of memory")

    assert state_of(client).query_memory.held == 0


def test_large_rows_are_made_into_json_few_at_a_time(serve: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.limits.SERVER_ROWS_BYTES_AT_ONCE", 10_000)
    rows = "".join(json.dumps({"type": "Author", "data": {"name": f"{n}" * 6_000}}) + "\n" for n in range(5))
    client = serve(rows=rows)

    answer = client.post("query", json=MANY)

    assert "content-length" not in answer.headers
    assert [row["a.name"] for row in answer.json()["rows"]] == [f"{n}" * 6_000 for n in range(5)]


def test_few_rows_of_arrow_are_one_answer_and_many_come_in_pieces(
    serve: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve(rows="".join(json.dumps({"type": "Author", "data": {"name": f"{n}"}}) + "\n" for n in range(9)))

    def asked(rows_at_once: int) -> tuple[Mapping[str, str], bytes]:
        monkeypatch.setattr("omnigraph.limits.SERVER_ROWS_AT_ONCE", rows_at_once)
        answer = client.post("query", json=MANY, headers={"Accept": ARROW})
        return answer.headers, answer.content

    whole, pieces = asked(9), asked(8)

    assert int(whole[0]["content-length"]) == len(whole[1])
    assert "content-length" not in pieces[0]
    for headers, content in (whole, pieces):
        assert headers["content-type"] == ARROW
        assert ipc.open_stream(content).read_all().to_pylist() == [{"a.name": f"{n}"} for n in range(9)]
    assert state_of(client).result_memory.held == 0


# --- turns and rooms themselves ---------------------------------------------------------------------------------------


def test_of_those_who_wait_the_actor_with_the_fewest_running_is_next() -> None:
    scheduler = FairScheduler(running_max=2, actor_running_max=2, actor_max=10)
    order: list[str] = []

    async def call(who: str, done: asyncio.Event) -> None:
        async with scheduler.slot(who):
            order.append(who)
            await done.wait()

    async def scene() -> None:
        ends = [asyncio.Event() for _ in range(7)]
        tasks = []
        for who, end in zip(["a", "a", "a", "a", "b", "b", "c"], ends, strict=True):
            tasks.append(asyncio.create_task(call(who, end)))
            await asyncio.sleep(0)
        for end in ends:
            end.set()
            await asyncio.sleep(0.001)
        await asyncio.gather(*tasks)

    asyncio.run(scene())

    assert order[:5] == ["a", "a", "b", "a", "c"], "who has nothing running comes first, then who waits longest"
    assert sorted(order) == ["a"] * 4 + ["b"] * 2 + ["c"]
    assert (scheduler.running, scheduler.actors) == (0, 0)


def test_a_turn_that_nobody_waits_for_any_more_goes_to_the_next() -> None:
    scheduler = FairScheduler(running_max=1, actor_running_max=1, actor_max=10)

    async def wait() -> str:
        async with scheduler.slot("a"):
            return "had it"

    async def scene() -> tuple[object, ...]:
        async with scheduler.slot("b"):
            given, left, last = (asyncio.create_task(wait()) for _ in range(3))
            await asyncio.sleep(0)
            left.cancel()
            await asyncio.sleep(0)
        given.cancel()  # the turn is its own already, and it has not begun
        return await asyncio.gather(given, left, last, return_exceptions=True)

    given, left, last = asyncio.run(scene())

    assert isinstance(given, asyncio.CancelledError)
    assert isinstance(left, asyncio.CancelledError)
    assert last == "had it"
    assert (scheduler.running, scheduler.actors) == (0, 0)


def test_an_actor_who_was_refused_is_forgotten() -> None:
    scheduler = FairScheduler(running_max=1, actor_running_max=1, actor_max=0)

    async def scene() -> None:
        async with scheduler.slot("a"):
            pass

    with pytest.raises(Refusal):
        asyncio.run(scene())
    assert scheduler.actors == 0


def test_a_room_counts_by_actor_and_forgets_those_who_have_nothing() -> None:
    budget = MemoryBudget(100, "things", actor_bytes_max=60)
    first, second = Reservation(budget, "a"), Reservation(budget, "b")

    first.take(60)
    with pytest.raises(Refusal, match="of one actor"):
        first.take(1)
    second.take(40)
    with pytest.raises(Refusal, match="100 of 100 bytes are taken"):
        second.take(1)
    first.give_back(10)
    first.close()
    first.close()

    assert (budget.held, first.held, second.held) == (40, 0, 40)
    second.close()
    assert (budget.held, budget.actors) == (0, 0)
