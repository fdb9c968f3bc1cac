"""A real HTTP server that speaks the protocols of embedding providers, and misbehaves when told to."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from omnigraph.embedding.provider import MockProvider, Purpose

_OK = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that arrived."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass(slots=True)
class Misbehaviour:
    """What the next requests get instead of a vector, first to last.

    Attributes:
        statuses: a status with an empty document, for each of the next requests.
        retry_after: what answers with such a status carry as `Retry-After`; nothing where it is empty.
        location: what they carry as `Location`; likewise.
        cut: how many of the requests after those get half of an answer, and the connection closed.
        bodies: a body as it is, for each of the requests after those.
        silent: how many requests after those get no answer for as long as the server lives.
    """

    statuses: list[int] = field(default_factory=list)
    retry_after: str = ""
    location: str = ""
    cut: int = 0
    bodies: list[bytes] = field(default_factory=list)
    silent: int = 0


class EmbeddingServer:
    """Answers with the mock provider's vectors, and remembers what it was asked."""

    def __init__(self, url: str, stopping: threading.Event) -> None:
        self.url = url
        self.asked: list[Asked] = []
        self.next = Misbehaviour()
        self.stopping = stopping

    def answer(self, asked: Asked) -> tuple[int, bytes]:
        """The status and body of the answer."""
        self.asked.append(asked)
        if self.next.statuses:
            return self.next.statuses.pop(0), b'{"error": "as told"}'
        if self.next.bodies:
            return 200, self.next.bodies.pop(0)
        if self.next.silent:
            self.next.silent -= 1
            self.stopping.wait()
        if asked.path.endswith("/embeddings"):
            vector = self._vector(asked.body["input"][0], asked.body["dimensions"])
            return 200, json.dumps({"data": [{"index": 0, "embedding": vector}]}).encode()
        text = asked.body["content"]["parts"][0]["text"]
        return 200, json.dumps(
            {"embedding": {"values": self._vector(text, asked.body["outputDimensionality"])}}
        ).encode()

    @staticmethod
    def _vector(text: str, dimension: int) -> Sequence[float]:
        # Not of length one: whoever asks has to see to that.
        return [3.0 * float(each) for each in MockProvider().embed(text, dimension, Purpose.QUERY)]


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    """A server on a free port of this machine, until the block ends."""
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # as the base class looks for it
            """Answer."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = server.answer(
                Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            )
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            told = {"Retry-After": server.next.retry_after, "Location": server.next.location}
            for name, value in told.items():
                if status != _OK and value:
                    self.send_header(name, value)
            self.end_headers()
            if status == _OK and server.next.cut:
                server.next.cut -= 1
                self.close_connection = True
                answer = answer[: len(answer) // 2]
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    server = EmbeddingServer(f"http://127.0.0.1:{httpd.server_address[1]}", stopping)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        stopping.set()
        httpd.shutdown()
        thread.join()
        httpd.server_close()
