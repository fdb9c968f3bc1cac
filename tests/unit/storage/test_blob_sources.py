"""Bytes that lie elsewhere: what was seen is what is read, and no source leads to another place."""

import os
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from unittest.mock import patch

import pytest

from omnigraph import AllowedBase, BlobSourceError, ExternalBlobPolicy, limits
from omnigraph.errors import LimitError
from omnigraph.storage.blob_sources import source_at
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.storage.object_stores.s3 import S3Store

BUCKET = "omnigraph-tests"
CONTENT = bytes(range(256)) * 40


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "a.bin").write_bytes(CONTENT)
    return tmp_path / "a.bin"


@pytest.fixture(autouse=True)
def small_pieces() -> Iterator[None]:
    with patch.object(limits, "BLOB_RANGE_BYTES_MAX", 1_000):
        yield


# --- on disk ----------------------------------------------------------------------------------------------------------


def test_a_file_is_read_in_pieces_of_a_bounded_size(file: Path) -> None:
    source = source_at(f"file://{file}")
    assert source.size == len(CONTENT)
    pieces = list(source.pieces(300, 2_021))
    assert [len(piece) for piece in pieces] == [1_000, 1_000, 21]
    assert b"".join(pieces) == CONTENT[300:2_321]
    assert source.whole() == CONTENT
    assert list(source.pieces(len(CONTENT), 0)) == []


@pytest.mark.parametrize("change", ["shorter", "longer", "other bytes", "another file"])
def test_a_file_that_changes_while_it_is_read_is_a_fault_and_never_half_of_each(file: Path, change: str) -> None:
    pieces = source_at(f"file://{file}").pieces(0, len(CONTENT))
    assert next(pieces) == CONTENT[:1_000]
    before = file.stat()
    if change == "another file":
        file.with_name("b").write_bytes(CONTENT[::-1])
        file.with_name("b").replace(file)
        # Whoever has a file open keeps it.
        assert next(pieces) == CONTENT[1_000:2_000]
        pieces = source_at(f"file://{file}").pieces(0, 10)
        assert next(pieces) == CONTENT[::-1][:10]
        return
    file.write_bytes({"shorter": CONTENT[:1_500], "longer": CONTENT * 2, "other bytes": CONTENT[::-1]}[change])
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(BlobSourceError, match="it changed while it was read"):
        next(pieces)


def test_a_file_that_was_replaced_since_it_was_seen_is_not_read(file: Path) -> None:
    source = source_at(f"file://{file}")
    file.with_name("b").write_bytes(CONTENT[::-1])
    file.with_name("b").replace(file)
    with pytest.raises(BlobSourceError, match="it changed while it was read"):
        source.whole()


def test_what_is_no_file_is_nothing_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "missing", "folder/missing", "pipe/below"):
        with pytest.raises(BlobSourceError, match="there is nothing at that place"):
            source_at(f"file://{tmp_path}/{name}")


# --- on web servers ---------------------------------------------------------------------------------------------------


class Web:
    """What a web server has by path, and what it was asked for."""

    def __init__(self) -> None:
        self.url = ""
        self.tag = '"one"'
        self.asked: list[str] = []


class _Pages(BaseHTTPRequestHandler):
    web: Web

    def do_HEAD(self) -> None:
        self._answer(has_body=False)

    def do_GET(self) -> None:
        self._answer(has_body=True)

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _answer(self, *, has_body: bool) -> None:
        self.web.asked.append(f"{self.command} {self.path}")
        name = self.path.removeprefix("/open/")
        asked = None if name == "whole" else re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        status = {"a.bin": 200, "huge": 200, "whole": 200, "short": 200, "closed": 403, "gone": 410, "away": 302}.get(
            name, 404
        )
        body = CONTENT if asked is None else CONTENT[int(asked[1]) : int(asked[2]) + 1]
        if asked is not None and status == 200:
            status = 206
        self.send_response(status)
        if status == 206 and asked is not None:
            self.send_header("Content-Range", f"bytes {asked[1]}-{asked[2]}/{len(CONTENT)}")
        if status == 302:
            self.send_header("Location", self.web.url.replace("/open/", "/secret"))
        body = body if status < 300 else b""
        size = {"huge": 10**18}.get(name, len(body))
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", self.web.tag)
        self.end_headers()
        if has_body:
            self.wfile.write(body[: len(body) // 2] if name == "short" else body)
            self.close_connection = True


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web()
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Pages", (_Pages,), {"web": made})) as server:
        made.url = f"http://127.0.0.1:{server.server_port}/open/"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        server.shutdown()
        thread.join()


def test_what_lies_on_a_web_server_is_read_in_ranges_and_copied(web: Web) -> None:
    policy = ExternalBlobPolicy((AllowedBase(web.url),))
    source = source_at(policy.approved(f"{web.url}a.bin"))
    assert source.size == len(CONTENT)
    assert b"".join(source.pieces(300, 2_021)) == CONTENT[300:2_321]
    assert BlobIngress(policy).cells([f"{web.url}a.bin"]) == [CONTENT]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing", "there is nothing at that place"),
        ("gone", "there is nothing at that place"),
        ("closed", "the server answers with status 403"),
        ("away", "it redirects to http://127.0.0.1:[0-9]+/secret, which is not followed"),
    ],
)
@pytest.mark.parametrize("keeps_references", [False, True])
def test_a_web_server_that_has_it_not_or_has_it_elsewhere_is_a_fault(
    web: Web, name: str, why: str, *, keeps_references: bool
) -> None:
    policy = ExternalBlobPolicy((AllowedBase(web.url),))
    with pytest.raises(BlobSourceError, match=why):
        BlobIngress(policy, keeps_references=keeps_references).cells([f"{web.url}{name}"])
    assert web.asked == [f"HEAD /open/{name}"], "and nothing is asked of any other place"


def test_a_redirect_that_comes_after_it_was_seen_is_not_followed_either(web: Web) -> None:
    source = source_at(f"{web.url}a.bin")
    source.uri = f"{web.url}away"
    with pytest.raises(BlobSourceError, match="which is not followed"):
        source.whole()
    assert not [each for each in web.asked if "secret" in each]


def test_more_than_may_be_copied_is_refused_before_a_byte_is_asked_for(web: Web) -> None:
    policy = ExternalBlobPolicy((AllowedBase(web.url),))
    with pytest.raises(LimitError) as refused:
        BlobIngress(policy).cells([f"{web.url}huge"])
    assert refused.value.details["actual"] == 10**18
    assert web.asked == ["HEAD /open/huge"]


def test_a_server_that_promises_more_than_it_has_is_a_fault(web: Web) -> None:
    pieces = source_at(f"{web.url}huge").pieces(10**17, 10**6)
    with pytest.raises(BlobSourceError, match="it broke off while it was read"):
        next(pieces)
    with pytest.raises(BlobSourceError, match="it broke off while it was read"):
        source_at(f"{web.url}short").whole()


def test_a_page_that_is_another_one_by_now_is_a_fault(web: Web) -> None:
    source = source_at(f"{web.url}a.bin")
    web.tag = '"two"'
    with pytest.raises(BlobSourceError, match="it changed while it was read"):
        source.whole()


def test_a_server_that_gives_no_parts_gives_the_whole(web: Web) -> None:
    source = source_at(f"{web.url}whole")
    assert source.whole() == CONTENT
    assert b"".join(source.pieces(0, 10)) == CONTENT[:10]
    with pytest.raises(BlobSourceError, match="the server gives no parts of it"):
        next(source.pieces(5, 10))


def test_a_server_that_is_not_there_is_a_fault() -> None:
    with pytest.raises(BlobSourceError, match="is unavailable: "):
        source_at("http://127.0.0.1:1/open/a.bin")


# --- in object stores -------------------------------------------------------------------------------------------------


@pytest.mark.s3
@pytest.mark.usefixtures("s3_environment")
def test_an_object_is_read_as_it_was_seen_or_not_at_all(s3_store: S3Store, s3_prefix: str) -> None:
    s3_store.put("elsewhere/a", CONTENT)
    source = source_at(f"s3://{BUCKET}/{s3_prefix}/elsewhere/a")
    assert source.whole() == CONTENT
    pieces = source.pieces(0, len(CONTENT))
    assert next(pieces) == CONTENT[:1_000]
    s3_store.put("elsewhere/a", CONTENT[::-1])
    with pytest.raises(BlobSourceError, match="it changed while it was read"):
        next(pieces)
    pieces = source_at(f"s3://{BUCKET}/{s3_prefix}/elsewhere/a").pieces(0, len(CONTENT))
    s3_store.delete("elsewhere/a")
    with pytest.raises(BlobSourceError, match="it changed while it was read"):
        next(pieces)
    with pytest.raises(BlobSourceError, match="there is nothing at that place"):
        source_at(f"s3://{BUCKET}/{s3_prefix}/elsewhere/a")
