"""Blobs: read in parts, named by strong tags, and the same after everything that happens to rows."""

import base64
import io
from hashlib import shake_256
from pathlib import Path
from typing import Unpack

import pytest
from tests.support.where import Where

import omnigraph
from omnigraph import Graph, limits
from omnigraph.errors import InvalidRequestError, NotFoundError, ReclaimedError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.storage.blob_values import HEAD_BYTES, managed, reference

SCHEMA = """\
node Photo { name: String @key  note: String?  raw: Blob?  thumb: Blob? }
edge Shows: Photo -> Photo { scan: Blob? }
"""
SMALL = b"\x89PNG small"
# Larger than what Lance keeps inside a data file, and than one read.
LARGE = shake_256(b"a large one").digest(limits.BLOB_RANGE_BYTES_MAX + 12_345)


def text(data: bytes) -> str:
    return "base64:" + base64.b64encode(data).decode()


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.write(
        nodes={
            "Photo": [
                {"name": "small", "raw": text(SMALL)},
                {"name": "large", "raw": LARGE, "thumb": text(b"")},
                {"name": "none"},
            ]
        },
        edges={"Shows": [{"id": "e1", "src": "small", "dst": "large", "scan": text(b"scan")}]},
    )
    return graph


def raw(graph: Graph, id: str, **where: Unpack[Where]) -> bytes:
    return graph.blob("node", "Photo", id, "raw", **where).read()


def all_there(graph: Graph, **where: Unpack[Where]) -> None:
    assert raw(graph, "small", **where) == SMALL
    assert raw(graph, "large", **where) == LARGE
    assert graph.blob("node", "Photo", "large", "thumb", **where).read() == b""
    with pytest.raises(NotFoundError, match="has no 'raw'"):
        raw(graph, "none", **where)


def test_a_blob_tells_its_size_and_gives_any_part_of_itself(graph: Graph) -> None:
    blob = graph.blob("node", "Photo", "large", "raw")

    assert (blob.size, blob.kind, blob.uri, blob.branch) == (len(LARGE), "managed", None, "main")
    assert blob.commit == graph.snapshot().commit
    for offset, length in [(0, 1), (10, 20), (len(LARGE) - 3, 100), (len(LARGE), 5), (7, 0)]:
        assert blob.read(offset, length) == LARGE[offset : offset + length]
    assert blob.read(len(LARGE) - 5) == LARGE[-5:]
    pieces = list(blob.stream())
    assert [len(piece) for piece in pieces] == [limits.BLOB_RANGE_BYTES_MAX, 12_345]
    assert b"".join(pieces) == LARGE
    all_there(graph)
    assert graph.blob("edge", "Shows", "e1", "scan").read() == b"scan"


@pytest.mark.parametrize(("offset", "length"), [(-1, 3), (len(SMALL) + 1, 1), (0, -1)])
def test_a_range_that_begins_outside_is_refused_with_its_numbers(graph: Graph, offset: int, length: int) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        graph.blob("node", "Photo", "small", "raw").read(offset, length)
    assert refused.value.code == "blob_range"
    assert refused.value.details == {"start": offset, "end": offset + length, "length": len(SMALL)}


def test_a_part_of_a_large_blob_is_read_without_the_rest(tmp_path: Path, graph: Graph) -> None:
    blob = graph.blob("node", "Photo", "large", "raw")
    beside = [path for path in (tmp_path / "graph").rglob("*.blob") if path.stat().st_size >= len(LARGE)]
    assert len(beside) == 1, "a large blob has a file of its own"
    with beside[0].open("r+b") as file:
        file.truncate(1000)
    assert blob.read(100, 200) == LARGE[100:300], "what lies behind the range was not needed"


@pytest.mark.parametrize(
    ("selector", "kind", "words"),
    [
        (("node", "Photo", "nobody", "raw"), NotFoundError, "there is no entity with id 'nobody'"),
        (("node", "Photo", "none", "raw"), NotFoundError, "node 'none' of type 'Photo' has no 'raw'"),
        (("node", "Video", "small", "raw"), InvalidRequestError, "unknown node type 'Video'"),
        (("edge", "Photo", "small", "raw"), InvalidRequestError, "unknown edge type 'Photo'"),
        (("node", "Photo", "small", "pixels"), InvalidRequestError, "has no property 'pixels'"),
        (("node", "Photo", "small", "note"), InvalidRequestError, "property 'Photo.note' is not a Blob"),
        (("thing", "Photo", "small", "raw"), InvalidRequestError, "not 'thing'"),
    ],
)
def test_what_is_no_blob_is_told_apart_from_what_is_not_there(
    graph: Graph, selector: tuple[str, str, str, str], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        graph.blob(*selector)


def test_a_tag_changes_with_the_bytes_and_stays_while_they_lie_where_they_are(graph: Graph) -> None:
    first = graph.blob("node", "Photo", "small", "raw")
    assert first.etag is not None
    assert first.etag.strip('"').isalnum()
    graph.mutate('query q() { insert Photo { name: "other" } }')
    assert graph.blob("node", "Photo", "small", "raw").etag == first.etag

    graph.mutate(f'query q() {{ update Photo set {{ raw: "{text(b"as long..")}" }} where name = "small" }}')

    changed = graph.blob("node", "Photo", "small", "raw")
    assert changed.etag != first.etag
    assert raw(graph, "small", commit=first.commit) == SMALL
    assert graph.blob("node", "Photo", "small", "raw", commit=first.commit).etag == first.etag
    assert first.read() == SMALL, "what was looked up before is read as it was"


def test_blobs_are_the_same_after_other_properties_of_their_rows_were_changed(graph: Graph) -> None:
    graph.mutate('query q() { update Photo set { note: "seen" } where name = "large" }')
    graph.mutate('query q() { update Photo set { note: "seen" } where name = "small" }')
    all_there(graph)


def test_blobs_are_the_same_after_compaction_and_a_sweep(graph: Graph) -> None:
    for number in range(3):
        graph.mutate(f'query q() {{ insert Photo {{ name: "p{number}", raw: "{text(bytes([number]) * 70_000)}" }} }}')
    graph.optimize()
    graph.prune(keep=1, now=True)
    graph.sweep(older_than=0)
    all_there(graph)
    assert [raw(graph, f"p{number}") for number in range(3)] == [bytes([number]) * 70_000 for number in range(3)]
    assert graph.verify(deep=True).is_whole


def test_large_blobs_that_no_commit_needs_are_swept(graph: Graph, tmp_path: Path) -> None:
    for name in ("large", "small", "none"):
        graph.mutate(f'query q() {{ delete Photo where name = "{name}" }}')
    graph.mutate('query q() { insert Photo { name: "last" } }')
    graph.prune(keep=1, now=True)
    graph.mutate('query q() { insert Photo { name: "later" } }')
    graph.prune(keep=1, now=True)
    assert list((tmp_path / "graph").rglob("*.blob"))
    graph.sweep(older_than=0)
    assert not list((tmp_path / "graph").rglob("*.blob"))


def test_a_write_with_blobs_is_rebased_with_them(graph: Graph) -> None:
    others = iter([graph.mutate])

    def come_first() -> None:
        for mutate in others:
            mutate(f'query q() {{ insert Photo {{ name: "theirs", raw: "{text(LARGE[:70_001])}" }} }}')

    with armed(Failpoint.WRITE_TABLES_STAGED, come_first):
        graph.mutate(f'query q() {{ insert Photo {{ name: "ours", raw: "{text(LARGE[:70_002])}" }} }}')

    assert (raw(graph, "theirs"), raw(graph, "ours")) == (LARGE[:70_001], LARGE[:70_002])
    all_there(graph)


def test_blobs_are_the_same_on_a_branch_and_after_both_sides_were_merged(graph: Graph) -> None:
    graph.branches.create("review")
    graph.mutate(f'query q() {{ insert Photo {{ name: "new", raw: "{text(LARGE[:80_000])}" }} }}', branch="review")
    graph.mutate('query q() { update Photo set { note: "kept" } where name = "large" }', branch="review")
    graph.mutate('query q() { insert Photo { name: "main" } }')
    all_there(graph, branch="review")

    graph.merge("review")

    all_there(graph)
    assert raw(graph, "new") == LARGE[:80_000]


def test_two_sides_with_blobs_of_the_same_length_differ(graph: Graph) -> None:
    graph.branches.create("review")
    graph.mutate(
        f'query q() {{ update Photo set {{ raw: "{text(b"A" * 9)}" }} where name = "small" }}', branch="review"
    )
    graph.mutate(f'query q() {{ update Photo set {{ raw: "{text(b"B" * 9)}" }} where name = "small" }}')
    with pytest.raises(omnigraph.MergeConflictError):
        graph.merge("review")


def test_blobs_come_back_from_an_export(graph: Graph, tmp_path: Path) -> None:
    graph.write(nodes={"Photo": [{"name": "odd", "raw": reference("s3://no/where")}]})
    out = io.BytesIO()
    graph.export(out)
    (tmp_path / "all.jsonl").write_bytes(out.getvalue())

    other = omnigraph.init(tmp_path / "other", SCHEMA)
    other.load(tmp_path / "all.jsonl", mode="overwrite", engine="local")

    all_there(other)
    assert raw(other, "odd") == reference("s3://no/where")
    assert other.blob("edge", "Shows", "e1", "scan").read() == b"scan"


def test_blobs_are_the_same_after_the_schema_has_changed(graph: Graph) -> None:
    before = graph.snapshot().commit
    graph.schema_apply(
        """\
node Picture @rename_from("Photo")
  { name: String @key  note: String?  bytes: Blob? @rename_from("raw")  more: Blob? }
edge Shows: Picture -> Picture { scan: Blob? }
"""
    )
    graph.mutate(f'query q() {{ update Picture set {{ more: "{text(LARGE[:99_999])}" }} where name = "small" }}')

    assert graph.blob("node", "Picture", "large", "bytes").read() == LARGE
    assert graph.blob("node", "Picture", "small", "bytes").read() == SMALL
    assert graph.blob("node", "Picture", "small", "more").read(99_990) == LARGE[99_990:99_999]
    with pytest.raises(NotFoundError):
        graph.blob("node", "Picture", "large", "more")
    all_there(graph, commit=before)
    graph.optimize()
    assert graph.blob("node", "Picture", "large", "bytes").read() == LARGE


def test_bytes_that_look_like_a_reference_stay_bytes(graph: Graph) -> None:
    forged = reference("file:///etc/passwd")
    graph.write(nodes={"Photo": [{"name": "forged", "raw": forged, "thumb": text(forged)}]})
    for property in ("raw", "thumb"):
        blob = graph.blob("node", "Photo", "forged", property)
        assert (blob.kind, blob.size, blob.uri) == ("managed", len(forged), None)
        assert blob.read() == forged
        assert blob.read(3, 4) == forged[3:7]
    assert managed(b"plain") == b"plain"
    assert len(managed(forged)) == len(forged) + HEAD_BYTES


def test_a_blob_of_a_pruned_commit_is_told_to_be_reclaimed(tmp_path: Path) -> None:
    options = omnigraph.OpenOptions(protection_s=0)
    graph = omnigraph.init(tmp_path / "graph", SCHEMA, options=options)
    graph.write(nodes={"Photo": [{"name": "small", "raw": SMALL}]})
    old = graph.snapshot().commit
    for note in "abc":
        graph.mutate(f'query q() {{ update Photo set {{ note: "{note}" }} where name = "small" }}')
    graph.prune(keep=1)
    with pytest.raises((ReclaimedError, NotFoundError)):
        raw(graph, "small", commit=old)
    assert raw(graph, "small") == SMALL
