"""Blobs over HTTP: whole, in ranges, under conditions, and those that lie elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.support.served_here import LIBRARY, InProcess, refused

import omnigraph
from omnigraph import OpenOptions
from omnigraph.server.settings import ServerSettings
from omnigraph.storage.external_blobs import ExternalBlobPolicy

ROWS = """\
{"type":"Book","data":{"isbn":"1","title":"x","cover":"base64:MDEyMzQ1Njc4OQ=="}}
{"type":"Book","data":{"isbn":"2","title":"y"}}
"""
WHOLE = b"0123456789"
COVER = {"entity": "node", "type": "Book", "id": "1", "property": "cover"}


@pytest.fixture(scope="module")
def covers() -> Iterator[TestClient]:
    made = InProcess()
    yield made(rows=ROWS)
    made.close()


def etag_of(client: TestClient) -> str:
    return client.head("blob", params=COVER).headers["etag"]


def test_a_blob_comes_whole_with_what_there_is_to_know_of_it(covers: TestClient) -> None:
    answer = covers.get("blob", params=COVER)

    assert (answer.status_code, answer.content) == (200, WHOLE)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-length"] == "10"
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["etag"].startswith('"')
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert len(answer.headers["omnigraph-snapshot-id"]) == 26


def test_the_head_of_a_blob_is_the_same_without_bytes_and_knows_no_ranges(covers: TestClient) -> None:
    whole = covers.get("blob", params=COVER).headers
    head = covers.head("blob", params=COVER, headers={"Range": "bytes=2-3"})

    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-length", "etag", "content-type", "accept-ranges", "omnigraph-snapshot-id"):
        assert head.headers[name] == whole[name]


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=2-5", 2, 6),
        ("bytes=7-", 7, 10),
        ("bytes=7-100", 7, 10),
        ("bytes=-3", 7, 10),
        ("bytes=-100", 0, 10),
        ("BYTES=1-1", 1, 2),
    ],
)
def test_a_range_is_answered_with_just_those_bytes(covers: TestClient, asked: str, start: int, end: int) -> None:
    answer = covers.get("blob", params=COVER, headers={"Range": asked})

    assert (answer.status_code, answer.content) == (206, WHOLE[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/10"
    assert answer.headers["content-length"] == str(end - start)


@pytest.mark.parametrize("asked", ["bytes=1-2,4-5", "lines=1-2", "bytes=x-y", "bytes=5-2", "bytes=-", "1-2", ""])
def test_a_range_that_cannot_be_understood_means_all_of_it(covers: TestClient, asked: str) -> None:
    answer = covers.get("blob", params=COVER, headers={"Range": asked})

    assert (answer.status_code, answer.content) == (200, WHOLE)


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=99-100", "bytes=-0"])
def test_a_range_outside_the_blob_is_refused_with_its_size(covers: TestClient, asked: str) -> None:
    answer = covers.get("blob", params=COVER, headers={"Range": asked})

    assert refused(answer, 416, "10 bytes")["blob_range"]["length"] == 10
    assert answer.headers["content-range"] == "bytes */10"


def test_conditions_are_judged_by_the_tag(covers: TestClient) -> None:
    tag = etag_of(covers)

    def asked(**headers: str) -> int:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return covers.get("blob", params=COVER, headers=names).status_code

    assert asked(If_Match=tag) == asked(If_Match="*") == asked(If_Match=f'"other", {tag}') == 200
    assert asked(If_Match='"other"') == asked(If_Match=f"W/{tag}") == 412
    assert asked(If_None_Match=tag) == asked(If_None_Match=f"W/{tag}") == asked(If_None_Match="*") == 304
    assert asked(If_None_Match='"other"') == 200
    assert asked(If_Match='"other"', If_None_Match=tag) == 412
    assert asked(Range="bytes=1-2", If_Range=tag) == 206
    assert asked(Range="bytes=1-2", If_Range='"other"') == asked(Range="bytes=1-2", If_Range=f"W/{tag}") == 200


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"id": "2"}, 404, "not_found"),
        ({"id": "none"}, 404, "not_found"),
        ({"property": "title"}, 400, "bad_request"),
        ({"property": "none"}, 400, "bad_request"),
        ({"type": "None"}, 400, "bad_request"),
        ({"entity": "thing"}, 400, "bad_request"),
        ({"branch": "none"}, 404, "not_found"),
        ({"branch": "main", "snapshot": "x"}, 400, "bad_request"),
    ],
)
def test_what_is_no_blob_is_refused(covers: TestClient, changed: dict[str, str], status: int, code: str) -> None:
    refused(covers.get("blob", params={**COVER, **changed}), status, "", code)


def test_a_blob_that_lies_elsewhere_sends_its_reader_there(serve: InProcess, tmp_path: Path) -> None:
    outside = tmp_path / "covers"
    outside.mkdir()
    (outside / "a.bin").write_bytes(WHOLE)
    address = str(tmp_path / "library")
    allowed = ExternalBlobPolicy.from_document({"allow": [{"base": f"{outside.as_uri()}/", "scope": "embedded_only"}]})
    uri = f"{outside.as_uri()}/a.bin"
    with omnigraph.init(address, LIBRARY, options=OpenOptions(external_blobs=allowed)) as graph:
        graph.write({"Book": [{"isbn": "1", "title": "x", "cover": uri}]}, mode="overwrite")
        kept = graph.blob("node", "Book", "1", "cover").uri
    client = serve.at(ServerSettings(store=address, graph_id="library", unauthenticated=True))

    answer = client.get("blob", params=COVER, follow_redirects=False)

    assert kept == uri
    assert (answer.status_code, answer.headers["location"]) == (302, uri)
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers
