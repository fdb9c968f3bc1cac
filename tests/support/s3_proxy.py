"""An HTTP proxy before an S3 server: it counts every request and can cut any one that changes something.

All traffic to the bucket goes through it, ours and the table library's own, so a test can stop a write at each of its
durable requests without knowing what they are.
"""

import http.client
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.s3_server import options_for

from omnigraph.storage.object_stores.s3 import S3Options

_HOST = "127.0.0.1"
_MUTATING = frozenset({"PUT", "POST", "DELETE"})
_UPSTREAM_TIMEOUT_S = 60
# Headers that belong to one connection, not to the message.
_OF_ONE_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"})
# The first part found in a path names what kind of file it is.
_KINDS = (
    ("/__manifest/log/", "log"),
    ("/__manifest/", "manifest"),
    ("/__recovery/", "recovery"),
    ("/__schema/", "schema"),
    ("/_transactions/", "transactions"),
    ("/_versions/", "versions"),
    ("/_deletions/", "deletions"),
    ("/_indices/", "indices"),
    ("/data/", "data"),
)


class Cut(StrEnum):
    """What happens to a chosen request."""

    BEFORE = "before"
    """The connection is reset and the server never sees the request."""
    ANSWER = "answer"
    """The server carries the request out and the connection is reset instead of answering."""
    NOTHING = "nothing"
    """The request passes; only the callback runs, before it."""


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """One request that came through.

    Attributes:
        method: GET, HEAD, PUT, POST or DELETE; LIST for a GET that lists, COPY for a PUT that copies.
        path: the object's path with its bucket, decoded.
        kind: what kind of file the path names: log, manifest, recovery, versions, data and so on, else other.
        conditional: whether the request was a put-if-absent.
        status: what the server answered; 0 when it was not asked.
    """

    method: str
    path: str
    kind: str
    conditional: bool
    status: int


@dataclass(frozen=True, slots=True)
class _Armed:
    at: int
    cut: Cut
    callback: Callable[[], None] | None


class S3Proxy:
    """Counts, records and cuts."""

    def __init__(self, endpoint: str, upstream: tuple[str, int]) -> None:
        self._endpoint = endpoint
        self._upstream = upstream
        self._lock = threading.Lock()
        self._seen: list[SeenRequest] = []
        self._mutations = 0
        self._armed: _Armed | None = None

    @property
    def endpoint(self) -> str:
        """The proxy's own address."""
        return self._endpoint

    @property
    def options(self) -> S3Options:
        """How a store reaches the server through this proxy."""
        return options_for(self._endpoint)

    @property
    def upstream(self) -> tuple[str, int]:
        """Host and port of the server."""
        return self._upstream

    @property
    def mutations(self) -> int:
        """How many requests that change something have arrived since the last reset."""
        with self._lock:
            return self._mutations

    def seen(self) -> tuple[SeenRequest, ...]:
        """Every request since the last reset, in order of completion."""
        with self._lock:
            return tuple(self._seen)

    def counts(self) -> Counter[tuple[str, str]]:
        """How many requests of each method and kind of path since the last reset."""
        return Counter((request.method, request.kind) for request in self.seen())

    def reset(self) -> None:
        """Forget what was seen and disarm."""
        with self._lock:
            self._seen.clear()
            self._mutations = 0
            self._armed = None

    def cut_at(self, mutation: int, cut: Cut, callback: Callable[[], None] | None = None) -> None:
        """Choose one future request: the `mutation`-th from now, counted from 1, that changes something.

        Args:
            mutation (int): which one.
            cut (Cut): what becomes of it.
            callback (Callable[[], None] | None): runs once, before the request is passed on or dropped; with
                `Cut.ANSWER` after the server has carried it out. May kill the client or wait for another thread.
        """
        with self._lock:
            self._armed = _Armed(self._mutations + mutation, cut, callback)

    def arrived(self, method: str) -> _Armed | None:
        """Note an arriving request; what is armed for it, if anything."""
        if method not in _MUTATING:
            return None
        with self._lock:
            self._mutations += 1
            if self._armed is None or self._armed.at != self._mutations:
                return None
            armed, self._armed = self._armed, None
            return armed

    def completed(self, request: SeenRequest) -> None:
        """Note what became of a request."""
        with self._lock:
            self._seen.append(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    proxy: S3Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  (values of any kind)
        """Nothing: a client that goes away, or is sent away, is what this proxy is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server
    _upstream: http.client.HTTPConnection | None = None

    def handle_any(self) -> None:
        """Pass one request on, unless a test has chosen it."""
        proxy = self.server.proxy
        armed = proxy.arrived(self.command)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if armed is not None and armed.cut is not Cut.ANSWER:
            if armed.callback is not None:
                armed.callback()
            if armed.cut is Cut.BEFORE:
                proxy.completed(self._described(0))
                self._reset_connection()
                return
        answer, content = self._ask(body)
        proxy.completed(self._described(answer.status))
        if armed is not None and armed.cut is Cut.ANSWER:
            if armed.callback is not None:
                armed.callback()
            self._reset_connection()
            return
        self._answer(answer, content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815  (the name the server looks for)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what was asked is in `S3Proxy.seen`."""

    def finish(self) -> None:
        """Close both sides."""
        super().finish()
        if self._upstream is not None:
            self._upstream.close()

    def _ask(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        if self._upstream is None:
            self._upstream = http.client.HTTPConnection(*self.server.proxy.upstream, timeout=_UPSTREAM_TIMEOUT_S)
        self._upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _OF_ONE_HOP:
                self._upstream.putheader(name, value)
        if body or self.command in _MUTATING:
            self._upstream.putheader("Content-Length", str(len(body)))
        self._upstream.endheaders(body or None)
        answer = self._upstream.getresponse()
        return answer, answer.read()

    def _answer(self, answer: http.client.HTTPResponse, content: bytes) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in _OF_ONE_HOP:
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(content)

    def _reset_connection(self) -> None:
        # Closing with nothing to linger for sends a reset, which no client takes for the end of an answer.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def _described(self, status: int) -> SeenRequest:
        address = urlsplit(self.path)
        path = unquote(address.path)
        method = self.command
        if method == "GET" and "list-type=" in address.query:
            method = "LIST"
        elif method == "PUT" and "x-amz-copy-source" in self.headers:
            method = "COPY"
        kind = next((kind for part, kind in _KINDS if part in path), "other")
        return SeenRequest(method, path, kind, self.headers.get("If-None-Match") == "*", status)


@contextmanager
def s3_proxy(upstream: tuple[str, int]) -> Iterator[S3Proxy]:
    """Run a proxy on a free port for as long as the block lasts.

    Args:
        upstream (tuple[str, int]): host and port of the server.

    Yields:
        S3Proxy: passes everything on until told otherwise.
    """
    server = _Server((_HOST, 0), _Handler)
    server.proxy = S3Proxy(f"http://{_HOST}:{server.server_address[1]}", upstream)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
