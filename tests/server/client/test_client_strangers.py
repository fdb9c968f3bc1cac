"""Whatever else than an omnigraph server is at an address, or else than an address is given: told in words."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import omnigraph
from omnigraph import RemoteGraph, errors

QUERY = "query q() { match { $a: A } return { $a } }"
ASKED: dict[str, Callable[[Any], object]] = {
    "count": lambda graph: graph.count("A"),
    "query": lambda graph: graph.query(QUERY),
    "stream": lambda graph: list(graph.stream(QUERY)),
    "explain": lambda graph: graph.explain(QUERY),
    "mutate": lambda graph: graph.mutate(QUERY),
    "load": lambda graph: graph.load(b'{"type":"A","data":{}}', mode="append"),
    "write": lambda graph: graph.write(nodes={"A": [{"x": 1}]}),
    "schema": lambda graph: graph.schema(),
    "schema text": lambda graph: graph.schema_text(),
    "branches": lambda graph: list(graph.branches),
    "branch": lambda graph: "x" in graph.branches,
    "create": lambda graph: graph.branches.create("x"),
    "delete": lambda graph: graph.branches.delete("x"),
    "tags": lambda graph: graph.tags.list(),
    "commits": lambda graph: graph.commits.list(),
    "commit": lambda graph: graph.commits.show("01J9ZB6V3N4Q5R6S7T8V9W0X1Y"),
    "diff": lambda graph: graph.diff("main", "x"),
    "merge": lambda graph: graph.merge("x"),
    "revert": lambda graph: graph.revert("01J9ZB6V3N4Q5R6S7T8V9W0X1Y"),
    "poll": lambda graph: graph.changes.poll(),
    "neighbourhood": lambda graph: graph.neighbourhood("A", "b"),
    "blob": lambda graph: graph.blob("node", "A", "b", "c"),
    "lines": lambda graph: list(graph.export_lines()),
    "log": lambda graph: graph.log_of("A", "b"),
    "blame": lambda graph: graph.blame("A", "b"),
    "stored queries": lambda graph: graph.stored_queries(),
}


@contextmanager
def stranger(
    body: bytes = b"<html>hello</html>",
    *,
    status: int = 200,
    media: str = "text/html",
    tls: ssl.SSLContext | None = None,
) -> Iterator[str]:
    """Something that answers everything alike; its address."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(body)))
            if status == 301:
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_DELETE = do_GET  # noqa: N815  (as the library calls them)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Whoever does not trust us goes away in the middle."""

    with Quiet(("127.0.0.1", 0), Answer) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def graph_at(url: str) -> Iterator[RemoteGraph]:
    with omnigraph.connect(url, graph="library", patience_s=0) as graph:
        yield graph


@pytest.mark.parametrize(
    ("body", "status", "media"),
    [
        (b"<html>hello</html>", 200, "text/html"),
        (b"<html>hello</html>", 301, "text/html"),
        (b"<html>who are you?</html>", 401, "text/html"),
        (b"<html>hello</html>", 500, "text/html"),
        (b"{}", 200, "application/json"),
        (b"[]", 200, "application/json"),
        (b"null", 200, "application/json"),
        (b"", 200, "application/json"),
    ],
)
def test_whoever_is_no_omnigraph_server_is_told_as_such_whatever_is_asked(body: bytes, status: int, media: str) -> None:
    with stranger(body, status=status, media=media) as url:
        with pytest.raises(errors.InvalidRequestError, match="not from an omnigraph server") as told:
            omnigraph.connect(url, patience_s=0)
        assert told.value.code == "no_server"
        with graph_at(url) as graph:
            for name, ask in ASKED.items():
                with pytest.raises(errors.InvalidRequestError, match="not from an omnigraph server") as told:
                    ask(graph)
                assert told.value.code == "no_server", name


def test_nobody_at_all_is_told_as_such() -> None:
    for url in ("http://127.0.0.1:1", "http://no-such-host.invalid"):
        with graph_at(url) as graph, pytest.raises(errors.UnavailableError, match="there is no answer at") as told:
            graph.count("A")
        assert told.value.code == "no_answer"


# --- in private -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that nobody vouches for, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)  # noqa: TID251  (as whoever checks a certificate sees it)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def test_a_certificate_that_nobody_vouches_for_is_told_at_once_and_trusted_when_named(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certificate)
    with stranger(b'{"count": 7}', media="application/json", tls=own) as url:
        # With all the patience there is: no second try would end otherwise.
        with (
            omnigraph.connect(url, graph="library", patience_s=10**6) as graph,
            pytest.raises(errors.UnavailableError, match=r"is not trusted: .*SSL_CERT_FILE") as told,
        ):
            graph.count("A")
        assert told.value.code == "tls"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with graph_at(url) as graph:
            assert graph.count("A") == 7


def test_a_server_that_does_not_speak_in_private_is_told_as_such() -> None:
    with (
        stranger() as url,
        omnigraph.connect(url.replace("http:", "https:"), graph="library", patience_s=10**6) as graph,
        pytest.raises(errors.UnavailableError, match=r"does not speak TLS .*: is it http:// there\?"),
    ):
        graph.count("A")


# --- what is given ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [None, 5, b"http://host", "", "http://", "http://[::1", "http://host:port", "http://host:99999", "http://a b",
     "ftp://host", "http://host\x00", "localhost:8080", "http://me:secret@host:port"],
)  # fmt: skip
def test_what_is_no_address_is_refused_before_anybody_is_asked(url: Any) -> None:  # noqa: ANN401  (anything at all)
    with pytest.raises(errors.InvalidRequestError, match=r"address of a server|server address") as told:
        omnigraph.connect(url, graph="library")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    "said",
    [{"graph": 5}, {"token": 5}, {"timeout_s": "x"}, {"timeout_s": -1}, {"patience_s": None}, {"patience_s": -1}],
)
def test_what_is_of_the_wrong_kind_is_refused_before_anybody_is_asked(said: dict[str, Any]) -> None:
    with ExitStack() as closing, pytest.raises(errors.InvalidRequestError):
        closing.enter_context(omnigraph.connect("http://127.0.0.1:1", **{"graph": "library", **said}))
