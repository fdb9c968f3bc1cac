"""What operators need of a server: its start line, TLS, tokens that change while it runs, the audit of recoveries."""

import json
import ssl
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support import command_line
from tests.support.interrupted_writes import die_in
from tests.support.served_here import LIBRARY, InProcess, refused

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.limits import INTENT_ROWS_MIN
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import TOKENS_FILE, TokenSource, load_tokens
from omnigraph.testing.server import served


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine and its key, as PEM files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.fromtimestamp(SystemClock().now_us() // 1_000_000, UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_file, key_file


def test_a_server_with_a_certificate_speaks_https_and_tells_where_it_is(library: str, tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    tls = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with served("--store", library, "--unauthenticated", *tls) as server:
        url = server.url.replace("http://", "https://")
        found = httpx.get(f"{url}/graphs/library/branches", verify=ssl.create_default_context(cafile=str(certificate)))
        assert found.json() == {"branches": ["main"]}
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{server.url}/healthz")
        [started] = [line for line in map(json.loads, server.logs.splitlines()) if line["event"] == "serving"]
        assert (started["url"], started["graphs"]) == (url, ["library"])
        assert started["authentication"] == "none: every request is allowed"


def test_a_certificate_without_its_key_is_refused_at_the_start(library: str, tmp_path: Path) -> None:
    words = ("--store", library, "--unauthenticated", "--tls-cert", str(tmp_path / "cert.pem"))
    with pytest.raises(RuntimeError, match="--tls-cert and --tls-key belong together"), served(*words):
        pass


def test_tokens_are_made_listed_and_revoked_while_the_server_runs(serve: InProcess, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"

    def token(*words: str) -> str:
        ended = command_line.run("token", *words, "--file", str(file))
        assert ended.code == 0, ended.err
        return ended.out.strip()

    first = token("create", "ann")
    assert first not in file.read_text(), "only a digest is stored"
    assert file.stat().st_mode & 0o077 == 0
    environment = {TOKENS_FILE: str(file)}
    with omnigraph.init(f"memory://{tmp_path.name}", LIBRARY) as graph:
        address = graph.uri
    client = serve.at(
        ServerSettings(
            store=address, graph_id="library", tokens=load_tokens(environment), token_environment=environment
        ),
        token=first,
    )
    assert client.get("branches").status_code == 200

    second = token("create", "bob")
    assert token("list").splitlines() == ["ann", "bob"]
    assert client.get("branches", headers={"Authorization": f"Bearer {second}"}).status_code == 200
    again = command_line.run("token", "create", "ann", "--file", str(file), "--json")
    assert (again.code, json.loads(again.err)["code"]) == (1, "token_exists")

    token("revoke", "ann")
    refused(client.get("branches"), 401, "invalid bearer token", "unauthorized")
    file.write_text("{ broken")
    assert client.get("branches", headers={"Authorization": f"Bearer {second}"}).status_code == 200, (
        "the last good ones"
    )
    file.write_text("{}")
    refused(client.get("branches"), 401, "invalid bearer token", "unauthorized")  # never open because all are gone


def test_a_token_file_with_a_wrong_digest_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text('{"ann": "sha256:12"}')
    with pytest.raises(omnigraph.InvalidRequestError, match="64 hexadecimal digits"):
        load_tokens({TOKENS_FILE: str(file)})


def test_tokens_without_a_file_stay_as_they_were_loaded() -> None:
    environment = {"OMNIGRAPH_SERVER_BEARER_TOKEN": "one"}
    tokens = load_tokens(environment)
    assert TokenSource(tokens, environment).current() is tokens


def test_how_an_interrupted_write_ended_is_read_from_http_the_client_and_the_command_line(
    serve: InProcess, tmp_path: Path
) -> None:
    address = str(tmp_path / "library")
    with omnigraph.init(address, LIBRARY) as graph:
        rows = "".join(f'{{"type":"Author","data":{{"name":"{number}"}}}}\n' for number in range(INTENT_ROWS_MIN))
        load = partial(graph.load, mode="append", engine="local", format="jsonl", actor="ada")
        intent = die_in(graph._open(), lambda: load(rows.encode()))
        graph.mutate('query q() { insert Author { name: "after" } }')
        [commit] = [found for found in graph.commits.list() if found.recovery is not None]
        assert commit.recovery is not None
    client = serve.at(ServerSettings(store=address, graph_id="library", unauthenticated=True))

    audit = client.get(f"commits/{commit.id}").json()["recovery"]

    assert audit == {
        "recovery_kind": "RolledForward",
        "operation_id": intent,
        "operation": "load",
        "recovery_for_actor": "ada",
        "tables": [
            {"table_key": table.type_key, "from_version": str(table.from_version), "to_version": str(table.to_version)}
            for table in commit.recovery.tables
        ],
    }
    shown = command_line.run("commit", "show", commit.id, "--store", address).out
    assert f"recovery: RolledForward of load {intent} by ada\n  " in shown
    document = json.loads(command_line.run("commit", "show", commit.id, "--store", address, "--json").out)
    assert document["recovery"] == audit


@pytest.mark.parametrize("path", ["changes", "commits/{commit}/changes"])
def test_a_query_parameter_of_changes_that_is_unknown_or_repeated_is_refused(serve: InProcess, path: str) -> None:
    client = serve()
    commit = client.get("commits").json()["commits"][0]["graph_commit_id"]
    path = path.format(commit=commit)
    assert client.get(path, params=[("kind", "node"), ("kind", "edge"), ("limit", "1")]).status_code == 200
    refused(client.get(path, params={"kinds": "node"}), 400, "unknown query parameter 'kinds'")
    refused(client.get(path, params=[("limit", "1"), ("limit", "2")]), 400, "'limit' must be given once")
