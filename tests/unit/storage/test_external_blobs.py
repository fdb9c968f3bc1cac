"""Which places blobs may lie at, and how addresses become cells."""

import pickle
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from omnigraph import AllowedBase, BlobScope, BlobSourceError, ExternalBlobPolicy, limits
from omnigraph.errors import InvalidRequestError, LimitError
from omnigraph.storage.blob_values import HEAD_BYTES, cell_head, reference
from omnigraph.storage.external_blobs import BlobIngress, source_pieces, source_size

POLICY = ExternalBlobPolicy(
    (
        AllowedBase("s3://Media/photos/", BlobScope.SERVER_SAFE),
        AllowedBase("https://example.org/", BlobScope.EMBEDDED_ONLY),
    )
)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("s3://media/photos/a.png", "s3://media/photos/a.png"),
        ("S3://MEDIA/photos/sub/A.png", "s3://media/photos/sub/A.png"),
        ("s3://media/photos/caf%C3%A9.png", "s3://media/photos/caf%C3%A9.png"),
        ("HTTPS://Example.org/a", "https://example.org/a"),
    ],
)
def test_an_allowed_address_is_stored_in_its_one_spelling(given: str, stored: str) -> None:
    assert POLICY.approved(given) == stored
    assert POLICY.lets_read(stored)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("s3://media/other/a.png", "it lies below no approved place"),
        ("s3://media/photosets/a.png", "it lies below no approved place"),
        ("s3://elsewhere/photos/a.png", "it lies below no approved place"),
        ("s3://media/photos/", "it names a folder"),
        ("s3://media/photos/../secret", "it has steps up, or empty ones"),
        ("s3://media/photos/./a", "it has steps up, or empty ones"),
        ("s3://media/photos//a", "it has steps up, or empty ones"),
        ("s3://media/photos/%2e%2e/secret", "it hides characters that change its meaning"),
        ("s3://media/photos/..%2Fsecret", "it hides characters that change its meaning"),
        ("s3://media/photos/%252e", "it hides characters that change its meaning"),
        ("s3://key:secret@media/photos/a", "it has credentials"),
        ("s3://media/photos/a?versionId=1", "it has a query or a fragment"),
        ("s3://media/photos/a#b", "it has a query or a fragment"),
        ("s3://media/photos/a b", "it has blanks, control characters or backslashes"),
        ("s3://media/photos/..\\a", "it has blanks, control characters or backslashes"),
        ("file:///etc/passwd", "it lies below no approved place"),
        ("file://host/etc/passwd", "it names a host"),
        ("s3:///photos/a", "it names no host"),
        ("ftp://media/photos/a", "ftp:// is not a place blobs can lie at"),
        ("photos/a.png", "it is no address with a scheme, like s3://bucket/key"),
        ("/etc/passwd", "it is no address with a scheme, like s3://bucket/key"),
        ("", "it is no address with a scheme, like s3://bucket/key"),
    ],
)
def test_every_other_address_is_refused_with_its_reason(given: str, why: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        POLICY.approved(given)

    assert str(refused.value) == f"external blob URI '{given}' is not allowed: {why}"
    assert refused.value.code == "external_blob_not_allowed"
    assert not POLICY.lets_read(given)


def test_without_a_policy_nothing_is_allowed() -> None:
    with pytest.raises(InvalidRequestError) as refused:
        ExternalBlobPolicy().approved("s3://media/photos/a.png")

    assert refused.value.code == "external_blob_ingress_default_deny"
    assert "is not allowed: no place is approved for blobs" in str(refused.value)


def test_a_server_uses_only_what_is_safe_for_servers() -> None:
    served = POLICY.for_servers()

    assert served.approved("s3://media/photos/a.png")
    with pytest.raises(InvalidRequestError, match="below no approved place"):
        served.approved("https://example.org/a")


@pytest.mark.parametrize(
    ("base", "scope", "why"),
    [
        ("s3://media/photos", BlobScope.SERVER_SAFE, "it must end with a slash"),
        ("file:///srv/photos/", BlobScope.SERVER_SAFE, "file:// is never server_safe"),
        ("https://example.org/", BlobScope.SERVER_SAFE, "https:// is never server_safe"),
        ("s3://media/../", BlobScope.SERVER_SAFE, "it has steps up"),
        ("photos/", BlobScope.EMBEDDED_ONLY, "no address with a scheme"),
        ("s3://media/", "everybody", "everybody"),
    ],
)
def test_a_base_that_is_no_place_is_refused_when_the_policy_is_made(base: str, scope: BlobScope, why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why) as refused:
        AllowedBase(base, scope)
    assert refused.value.code == "invalid_external_blob_base"


def test_a_policy_is_the_same_after_it_was_written_down() -> None:
    assert ExternalBlobPolicy.from_document(POLICY.to_document()) == POLICY
    assert ExternalBlobPolicy.from_document({}) == ExternalBlobPolicy()
    assert pickle.loads(pickle.dumps(POLICY)) == POLICY, "tasks on other machines have it too"


@pytest.mark.parametrize(
    "document",
    [
        {"deny": []},
        {"allow": "s3://media/"},
        {"allow": ["s3://media/"]},
        {"allow": [{"base": "s3://media/"}]},
        {"allow": [{"base": "s3://media/", "scope": "server_safe", "also": 1}]},
        {"allow": [{"base": "s3://media/", "scope": "everybody"}]},
    ],
)
def test_a_policy_written_down_in_another_way_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        ExternalBlobPolicy.from_document(document)
    assert refused.value.code == "invalid_external_blob_policy"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "a.bin").write_bytes(b"bytes of a")
    (tmp_path / "secret").write_bytes(b"secret")
    return tmp_path


@pytest.fixture
def policy(folder: Path) -> ExternalBlobPolicy:
    return ExternalBlobPolicy((AllowedBase(f"file://{folder}/open/"),))


def test_a_link_that_leads_out_of_its_folder_is_refused(folder: Path, policy: ExternalBlobPolicy) -> None:
    (folder / "open" / "link").symlink_to(folder / "secret")

    with pytest.raises(InvalidRequestError, match="it leads out of its approved place"):
        policy.approved(f"file://{folder}/open/link")


def test_bytes_are_copied_or_left_where_they_are(folder: Path, policy: ExternalBlobPolicy) -> None:
    uri = f"file://{folder}/open/a.bin"

    assert BlobIngress(policy).cells([uri, uri]) == [b"bytes of a"] * 2
    kept = BlobIngress(policy, keeps_references=True).cells([uri.replace("file://", "file://localhost")])
    assert kept == [reference(uri)]
    assert cell_head(kept[0][:HEAD_BYTES]).is_reference


def test_an_operation_that_runs_again_has_the_same_bytes(folder: Path, policy: ExternalBlobPolicy) -> None:
    ingress, uri = BlobIngress(policy), f"file://{folder}/open/a.bin"
    first = ingress.cells([uri])

    (folder / "open" / "a.bin").write_bytes(b"others now")

    assert ingress.cells([uri]) == first
    assert ingress.another().cells([uri]) == [b"others now"]


@pytest.mark.parametrize("keeps_references", [False, True])
def test_an_allowed_place_with_nothing_there_is_told_as_a_fault_of_the_source(
    folder: Path, policy: ExternalBlobPolicy, *, keeps_references: bool
) -> None:
    uri = f"file://{folder}/open/missing"

    with pytest.raises(BlobSourceError) as failed:
        BlobIngress(policy, keeps_references=keeps_references).cells([uri])

    assert failed.value.code == "external_blob_source"
    assert failed.value.details == {"uri": uri, "reason": "there is nothing at that place"}
    assert str(failed.value) == f"external blob source '{uri}' is unavailable: there is nothing at that place"


def test_a_source_that_gets_shorter_meanwhile_is_a_fault_and_not_fewer_bytes(
    folder: Path, policy: ExternalBlobPolicy
) -> None:
    uri = policy.approved(f"file://{folder}/open/a.bin")

    with pytest.raises(BlobSourceError, match="it became shorter while it was read"):
        list(source_pieces(uri, 0, 1_000))


@pytest.mark.parametrize(
    ("resource", "most"),
    [
        ("external Blob URI bytes", "BLOB_URI_BYTES_MAX"),
        ("external Blob reference cells", "BLOB_REFERENCES_MAX"),
        ("materialized blob payload bytes", "BLOB_INPUT_BYTES_MAX"),
    ],
)
def test_more_than_one_operation_may_bring_is_refused_by_the_name_of_the_bound(
    folder: Path, policy: ExternalBlobPolicy, monkeypatch: pytest.MonkeyPatch, resource: str, most: str
) -> None:
    monkeypatch.setattr(limits, most, 1)
    uri = f"file://{folder}/open/a.bin"

    with pytest.raises(LimitError) as refused:
        BlobIngress(policy).cells([uri, uri])

    assert refused.value.code == "resource_limit"
    assert refused.value.details["resource"] == resource
    assert refused.value.details["limit"] == 1


def test_nothing_is_read_before_every_address_is_allowed(folder: Path, policy: ExternalBlobPolicy) -> None:
    with pytest.raises(InvalidRequestError, match="passwd"):
        BlobIngress(policy).cells([f"file://{folder}/open/missing", "file:///etc/passwd"])


CONTENT = bytes(range(256)) * 40


class _Pages(BaseHTTPRequestHandler):
    """One file that can be read in ranges, and one that nobody may read."""

    def do_HEAD(self) -> None:
        self._answer(has_body=False)

    def do_GET(self) -> None:
        self._answer(has_body=True)

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _answer(self, *, has_body: bool) -> None:
        asked = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        body = CONTENT if asked is None else CONTENT[int(asked[1]) : int(asked[2]) + 1]
        status = {"/open/a.bin": 200 if asked is None else 206, "/open/closed": 403}.get(self.path, 404)
        self.send_response(status)
        if status == 206 and asked is not None:
            self.send_header("Content-Range", f"bytes {asked[1]}-{asked[2]}/{len(CONTENT)}")
        body = body if status < 300 else b""
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Mon, 16 Nov 2026 05:00:00 GMT")
        self.end_headers()
        if has_body:
            self.wfile.write(body)


@pytest.fixture
def pages() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/open/"
        server.shutdown()
        thread.join()


def test_what_lies_on_a_web_server_is_read_in_ranges_and_copied(pages: str) -> None:
    policy = ExternalBlobPolicy((AllowedBase(pages),))
    uri = policy.approved(f"{pages}a.bin")

    assert source_size(uri) == len(CONTENT)
    assert b"".join(source_pieces(uri, 300, 21)) == CONTENT[300:321]
    assert BlobIngress(policy).cells([uri]) == [CONTENT]
    for name, why in (("missing", "there is nothing at that place"), ("closed", "403")):
        with pytest.raises(BlobSourceError, match=why):
            BlobIngress(policy).cells([f"{pages}{name}"])
