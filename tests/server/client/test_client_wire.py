"""What is sent again, when, and what is told where nobody knows."""

import json
from collections.abc import Callable, Iterator

import httpx
import pytest

from omnigraph import errors
from omnigraph.client.graph import RemoteGraph
from omnigraph.client.wire import KEY, NDJSON, ServerRequest, Wire
from omnigraph.ids import UlidSource
from omnigraph.testing.clock import ManualClock

DONE = httpx.Response(200, json={"done": True})


class Script:
    """Answers one after the other; remembers what was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self._answers = iter(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def wire_to(script: Script, clock: ManualClock | None = None) -> Wire:
    """The way to a server that answers by a script."""
    clock = clock or ManualClock()
    client = httpx.Client(transport=httpx.MockTransport(script))
    return Wire(client, "http://host/graphs/g", clock=clock, ids=UlidSource(clock), patience_s=30)


def unavailable() -> httpx.Response:
    """A store that does not answer now."""
    body = {"error": "later", "kind": "UnavailableError", "reason": "unavailable"}
    return httpx.Response(503, json=body)


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("gone"),
        httpx.ReadTimeout("slow"),
        unavailable(),
        httpx.Response(502, text="<html>"),
    ],
    ids=lambda trouble: type(trouble).__name__,
)
def test_a_read_and_a_write_under_a_key_are_sent_again(trouble: httpx.Response | Exception) -> None:
    asks: tuple[Callable[[Wire], object], ...] = (
        lambda wire: wire.get("branches"),
        lambda wire: wire.write("mutate", {"query": "q"}, None),
    )
    for ask in asks:
        script = Script(trouble, trouble, DONE)
        with wire_to(script) as wire:
            assert ask(wire) == {"done": True}
        assert len({request.headers.get(KEY) for request in script.asked}) == 1
        assert len(script.asked) == 3


def test_every_write_has_a_key_of_its_own_or_the_callers() -> None:
    script = Script(DONE, DONE, DONE)
    with wire_to(script) as wire:
        wire.write("mutate", {}, None)
        wire.write("mutate", {}, None)
        wire.write("mutate", {}, "mine")

    first, second, third = (request.headers[KEY] for request in script.asked)
    assert first != second
    assert third == "mine"


def test_a_write_without_a_key_is_sent_again_only_if_it_did_not_arrive() -> None:
    script = Script(httpx.ConnectError("refused"), DONE)
    with wire_to(script) as wire:
        assert wire.act("POST", "branches", {"name": "r"}) == {"done": True}

    for lost in (httpx.ReadError("reset"), httpx.ReadTimeout("slow")):
        script = Script(lost, DONE)
        with (
            wire_to(script) as wire,
            pytest.raises(errors.OutcomeUnknownError, match="it is unknown whether the write was done"),
        ):
            wire.act("POST", "branches", {"name": "r"})
        assert len(script.asked) == 1


def test_patience_ends() -> None:
    clock = ManualClock()
    began = clock.monotonic()
    down = Script(*[httpx.ConnectError("refused")] * 500)
    with (
        wire_to(down, clock) as wire,
        pytest.raises(errors.UnavailableError, match="there is no answer at http://host"),
    ):
        wire.get("branches")
    assert clock.monotonic() - began <= 30
    assert len(down.asked) > 10

    lost = Script(*[httpx.ReadError("reset")] * 500)
    with wire_to(lost) as wire, pytest.raises(errors.OutcomeUnknownError):
        wire.write("mutate", {}, None)


def test_too_much_at_once_is_tried_again_when_the_server_says() -> None:
    clock = ManualClock()
    began = clock.monotonic()
    refused = httpx.Response(429, json={"error": "too many", "code": "too_many_requests"}, headers={"Retry-After": "7"})
    with wire_to(Script(refused, DONE), clock) as wire:
        assert wire.act("POST", "branches", {"name": "r"}) == {"done": True}
    assert clock.monotonic() - began == 7

    much_later = httpx.Response(429, json={"error": "too many"}, headers={"Retry-After": "60"})
    with wire_to(Script(much_later, DONE)) as wire, pytest.raises(errors.UnavailableError, match="too many"):
        wire.get("branches")


def test_what_is_wrong_is_not_sent_again() -> None:
    script = Script(httpx.Response(404, json={"error": "graph 'g' not found", "code": "not_found"}))
    with wire_to(script) as wire, pytest.raises(errors.NotFoundError, match="graph 'g' not found"):
        wire.get("branches")


def test_an_answer_that_is_no_json_is_not_taken_for_one() -> None:
    with (
        wire_to(Script(httpx.Response(200, text="<html>welcome</html>"))) as wire,
        pytest.raises(errors.InvalidRequestError, match="not from an omnigraph server"),
    ):
        wire.get("branches")


def test_a_stream_that_breaks_off_is_an_error() -> None:
    class Torn(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b'{"type":"A"}\n'
            raise httpx.ReadError("reset")

    graph = RemoteGraph(wire_to(Script(httpx.Response(200, stream=Torn(), headers={"Content-Type": NDJSON}))))

    with graph, pytest.raises(errors.UnavailableError, match="was lost"):
        list(graph.export_lines())


def test_names_cannot_leave_their_place_in_a_path() -> None:
    gone = httpx.Response(200, json={"name": "x"})
    script = Script(gone, gone, gone)
    with RemoteGraph(wire_to(script)) as graph:
        for name in ("..", "a/../../../other", "x?y#z %"):
            graph.branches.delete(name)
        with pytest.raises(errors.InvalidRequestError, match="a branch has a name"):
            graph.branches.delete(" ")

    assert [request.url.raw_path for request in script.asked] == [
        b"/graphs/g/branches/%2E%2E",
        b"/graphs/g/branches/a%2F..%2F..%2F..%2Fother",
        b"/graphs/g/branches/x%3Fy%23z%20%25",
    ]


def test_a_graph_that_was_closed_refuses_to_be_asked() -> None:
    graph = RemoteGraph(wire_to(Script()))
    graph.close()

    with pytest.raises(errors.InvalidRequestError, match="the graph was closed"):
        graph.query("query q() { match { $a: A } return { $a } }")


def test_nobody_writes_as_somebody_else() -> None:
    body = json.dumps({"branches": []})
    script = Script(httpx.Response(200, text=body, headers={"Omnigraph-Actor": "ann%20b"}))
    with RemoteGraph(wire_to(script)) as graph:
        assert (graph.actor, list(graph.branches), graph.actor) == (None, [], "ann b")
        with pytest.raises(errors.InvalidRequestError, match="the bearer token decides"):
            graph.mutate("query q() { delete A }", actor="bob")


def test_lines_that_a_server_would_refuse_are_not_sent() -> None:
    with RemoteGraph(wire_to(Script())) as graph:
        with pytest.raises(errors.LimitError) as large:
            graph.load(b" " * (32 * 1024**2 + 1), mode="append")
        with pytest.raises(errors.InvalidRequestError, match="a server takes JSON lines"):
            graph.load(b"name\nLem\n", mode="append", format="csv")
        with pytest.raises(errors.InvalidRequestError, match="`rejects` is for loads at the graph's storage"):
            graph.load(b"", mode="append", rejects="bad")
        with pytest.raises(errors.InvalidRequestError, match="'Book' has no rows"):
            graph.write({"Book": []}, mode="overwrite")
        with pytest.raises(errors.InvalidRequestError, match="must be a dictionary"):
            graph.write({"Book": ["Solaris"]})

    assert large.value.details["resource"] == "graph_batch_request_bytes"


def test_a_question_with_many_values_repeats_the_name() -> None:
    script = Script(httpx.Response(200, json={"blocks": []}))
    with RemoteGraph(wire_to(script)) as graph:
        graph.changes.poll(kinds=["node"], types=["A", "B"])

    assert script.asked[0].url.query == b"branch=main&kind=node&type=A&type=B"
    assert ServerRequest("GET", "x").headers is None
