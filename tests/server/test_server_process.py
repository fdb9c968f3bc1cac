"""The process itself: how it starts, refuses to start, and stops."""

import signal

import httpx
import pytest

from omnigraph.testing.served import RunningServer, served

ALL_BOOKS = "query q() { match { $b: Book } return { $b.isbn } order { $b.isbn } }"


def test_a_query_is_answered_with_the_commit_it_saw(client: httpx.Client) -> None:
    answer = client.post("query", json={"query": ALL_BOOKS})

    assert answer.status_code == 200
    document = answer.json()
    assert {"b.isbn": "0-1"} in document["rows"]
    assert document["target"] == {"branch": "main", "snapshot": None}
    assert len(document["graph_commit_id"]) == 26


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_told_to_stop_ends_well(library: str, how: signal.Signals) -> None:
    with served("--store", library, "--unauthenticated") as server, server.client() as anybody:
        assert anybody.get("/healthz").json()["status"] == "ok"

        assert server.stop(how) == 0


def test_a_server_refuses_to_start_when_nobody_said_who_may_come_in(library: str) -> None:
    with pytest.raises(RuntimeError, match="no bearer tokens and there is no policy"), served("--store", library):
        pass


def test_health_and_readiness_need_no_token(library_server: RunningServer) -> None:
    with library_server.client() as anybody:
        assert anybody.get("/healthz").json() == {"status": "ok", "version": "0.1.0", "internal_schema_version": 6}
        assert anybody.get("/readyz").json() == {"status": "ready", "graphs": {"library": "ready"}}
