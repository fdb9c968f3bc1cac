"""What each failure of a remote store tells the caller: every status a server can answer, over a real connection."""

import dataclasses
import inspect
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from obstore import exceptions
from tests.support.s3_server import options_for

from omnigraph import limits
from omnigraph.storage.object_store import (
    ObjectExists,
    ObjectNotFound,
    OutcomeUnknown,
    StoreError,
    StoreRefused,
    StoreTransient,
)
from omnigraph.storage.object_stores import RequestKind, S3Store
from omnigraph.storage.object_stores.obstore_backed import FOREIGN_ERRORS, mapped

REQUESTS: dict[RequestKind, Callable[[S3Store], object]] = {
    RequestKind.GET: lambda store: store.get("a"),
    RequestKind.LIST: lambda store: list(store.list("")),
    RequestKind.PUT: lambda store: store.put("a", b""),
    RequestKind.PUT_IF_ABSENT: lambda store: store.put_if_absent("a", b""),
    RequestKind.COPY: lambda store: store.copy("a", "b"),
    RequestKind.DELETE: lambda store: store.delete("a"),
}
OTHERS = frozenset(REQUESTS) - {RequestKind.PUT_IF_ABSENT}

# status, code → what a conditional put means, what all others mean
TRANSIENT = (StoreTransient, StoreTransient)
REFUSED = (StoreRefused, StoreRefused)
PERHAPS_DONE = (OutcomeUnknown, StoreTransient)
ANSWERS = {
    (400, "InvalidRequest"): REFUSED,
    (400, "RequestTimeout"): TRANSIENT,
    (401, "Unauthorized"): REFUSED,
    (403, "AccessDenied"): REFUSED,
    (403, "SignatureDoesNotMatch"): REFUSED,
    (404, "NoSuchBucket"): REFUSED,
    (408, "Timeout"): PERHAPS_DONE,
    (409, "ConditionalRequestConflict"): TRANSIENT,
    (412, "PreconditionFailed"): (ObjectExists, StoreRefused),
    (429, "SlowDown"): TRANSIENT,
    (500, "InternalError"): PERHAPS_DONE,
    (501, "NotImplemented"): REFUSED,
    (502, "BadGateway"): PERHAPS_DONE,
    (503, "SlowDown"): TRANSIENT,
    (503, "ServiceUnavailable"): PERHAPS_DONE,
    (504, "GatewayTimeout"): PERHAPS_DONE,
    (507, "InsufficientStorage"): REFUSED,
    (301, "PermanentRedirect"): REFUSED,
}


@dataclass(slots=True)
class Answer:
    """What the server says to everybody, and how often it was asked."""

    status: int = 200
    body: bytes = b""
    asked: int = 0


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    answer: Answer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = self.server.answer
        answer.asked += 1
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815  (the name the server looks for)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def answering_server() -> Iterator[tuple[S3Store, Answer]]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.answer = Answer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield S3Store("bucket", "prefix", options=options_for(f"http://127.0.0.1:{server.server_port}")), server.answer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[S3Store, Answer]]:
    with answering_server() as running:
        yield running


def error_of(kind: RequestKind, store: S3Store) -> StoreError:
    with pytest.raises(StoreError) as raised:
        REQUESTS[kind](store)
    return raised.value


@pytest.mark.parametrize(("status", "code"), ANSWERS)
@pytest.mark.parametrize("kind", REQUESTS)
def test_every_answer_means_one_thing(
    server: tuple[S3Store, Answer], status: int, code: str, kind: RequestKind
) -> None:
    store, answer = server
    answer.status, answer.body, answer.asked = status, f"<Error><Code>{code}</Code></Error>".encode(), 0
    for_conditional_puts, for_others = ANSWERS[status, code]
    error = error_of(kind, store)
    assert type(error) is (for_others if kind in OTHERS else for_conditional_puts)
    assert store.uri in str(error)
    assert "\n" not in str(error)
    assert answer.asked == 1, "nothing is repeated behind the caller's back"


def test_a_missing_object_is_an_answer_only_where_one_was_asked_for(server: tuple[S3Store, Answer]) -> None:
    store, answer = server
    answer.status, answer.body = 404, b"<Error><Code>NoSuchKey</Code></Error>"
    assert type(error_of(RequestKind.GET, store)) is ObjectNotFound
    assert type(error_of(RequestKind.COPY, store)) is ObjectNotFound
    assert type(error_of(RequestKind.PUT, store)) is StoreRefused
    assert type(error_of(RequestKind.LIST, store)) is StoreRefused
    store.delete("a")


@pytest.mark.parametrize("kind", REQUESTS)
def test_where_nobody_listens_nothing_was_done(kind: RequestKind) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert type(error_of(kind, S3Store("bucket", options=options_for(f"http://127.0.0.1:{port}")))) is StoreTransient


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_server_that_never_answers_leaves_a_conditional_put_unknown(
    kind: RequestKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STORE_REQUEST_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = S3Store("bucket", options=options_for(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        assert type(error_of(kind, store)) is (StoreTransient if kind in OTHERS else OutcomeUnknown)


def test_without_keys_the_store_is_refused_and_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{port}")
    options = dataclasses.replace(options_for(f"http://127.0.0.1:{port}"), access_key_id=None, secret_access_key=None)
    with pytest.raises(StoreRefused, match="no keys"):
        S3Store("bucket", options=options).get("a")


def test_every_class_of_obstore_is_mapped_for_every_request() -> None:
    classes = [found for _, found in inspect.getmembers(exceptions, inspect.isclass)]
    assert exceptions.BaseError in classes
    for found in [*classes, OSError, FileNotFoundError, ValueError]:
        assert issubclass(found, FOREIGN_ERRORS)
        for kind in RequestKind:
            assert isinstance(mapped(found("reason"), kind, "a", uri="s3://bucket"), StoreError)
