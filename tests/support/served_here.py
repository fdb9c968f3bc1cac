"""Servers in this process, over libraries in memory: everything but the sockets and the signals."""

from typing import Any, Protocol

from fastapi.testclient import TestClient

from omnigraph.api.open import init
from omnigraph.ids import UlidSource
from omnigraph.server.app import create_app
from omnigraph.server.settings import ServerSettings

LIBRARY = """
node Author { name: String @key  born: Date? }
node Book { isbn: String @key  title: String @index  pages: I32?  cover: Blob? }
edge Wrote: Author -> Book { year: I32? }
"""
ROWS = """\
{"type":"Author","data":{"name":"Le Guin","born":"1929-10-21"}}
{"type":"Author","data":{"name":"Butler"}}
{"type":"Book","data":{"isbn":"0-1","title":"The Dispossessed","pages":341}}
{"type":"Book","data":{"isbn":"0-2","title":"Kindred","pages":264}}
{"edge":"Wrote","from":"Le Guin","to":"0-1","data":{"year":1974}}
"""


class Answered(Protocol):
    """An answer, whichever client got it."""

    @property
    def status_code(self) -> int:
        """Its status."""
        ...

    @property
    def text(self) -> str:
        """Its body."""
        ...

    def json(self) -> Any:  # noqa: ANN401  (whatever it holds)
        """The same as JSON."""
        ...


def refused(answer: Answered, status: int, message: str, code: str | None = "bad_request") -> dict[str, Any]:
    """Make sure that an answer is a refusal, and which; its body."""
    body = answer.json()
    assert (answer.status_code, body.get("code")) == (status, code), answer.text
    assert message in body["error"], answer.text
    return dict(body)


class InProcess:
    """Makes servers, each with a client at its graph `library`."""

    def __init__(self) -> None:
        self._ids = UlidSource()
        self._clients: list[TestClient] = []

    def __call__(
        self,
        *,
        schema: str = LIBRARY,
        rows: str = ROWS,
        token: str | None = None,
        **said: Any,  # noqa: ANN401  (as the settings have it)
    ) -> TestClient:
        """A client at a library of its own.

        Args:
            schema: of the graph.
            rows: what it holds at first.
            token: which the client sends.
            said: settings of the server; without tokens everybody may do everything.
        """
        address = f"memory://{self._ids.new()}"
        with init(address, schema) as graph:
            if rows:
                graph.load(rows.encode(), mode="append", engine="local", format="jsonl")
        said.setdefault("unauthenticated", "tokens" not in said)
        return self.at(ServerSettings(store=address, graph_id="library", **said), token=token)

    def at(self, settings: ServerSettings, *, token: str | None = None) -> TestClient:
        """A client at the graph `library` of any server."""
        made = TestClient(
            create_app(settings), base_url="http://testserver/graphs/library/", raise_server_exceptions=False
        )
        if token is not None:
            made.headers["Authorization"] = f"Bearer {token}"
        self._clients.append(made)
        return made.__enter__()

    def close(self) -> None:
        """End them all."""
        while self._clients:
            self._clients.pop().__exit__(None, None, None)
