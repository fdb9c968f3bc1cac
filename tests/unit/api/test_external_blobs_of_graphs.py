"""Blobs that lie elsewhere, through every way into a graph and out of it."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

import pytest
from tests.support.s3_server import S3Server
from tests.support.where import Where

import omnigraph
from omnigraph import AllowedBase, BlobScope, BlobSourceError, ExternalBlobPolicy, Graph, OpenOptions
from omnigraph.errors import InvalidRequestError
from omnigraph.storage.blob_values import reference
from omnigraph.storage.object_stores import S3Store

SCHEMA = "node Photo { name: String @key  note: String?  raw: Blob? }"
BUCKET = "omnigraph-tests"
BYTES = b"bytes that lie elsewhere"


class Place:
    """A folder beside the graph."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.base = f"file://{folder}/"

    def put(self, name: str, data: bytes) -> str:
        (self._folder / name).write_bytes(data)
        return f"{self.base}{name}"

    @property
    def options(self) -> OpenOptions:
        return OpenOptions(external_blobs=ExternalBlobPolicy((AllowedBase(self.base),)))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "elsewhere")


@pytest.fixture
def graph(tmp_path: Path, place: Place) -> Iterator[Graph]:
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=place.options) as graph:
        yield graph


def stat(graph: Graph, id: str, **where: Unpack[Where]) -> tuple[str, str | None]:
    blob = graph.blob("node", "Photo", id, "raw", **where)
    return blob.kind, blob.uri


def raw(graph: Graph, id: str, **where: Unpack[Where]) -> bytes:
    return graph.blob("node", "Photo", id, "raw", **where).read()


def lines(*rows: dict[str, object]) -> io.BytesIO:
    return io.BytesIO("".join(json.dumps({"type": "Photo", "data": row}) + "\n" for row in rows).encode())


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_rows_that_are_added_copy_what_lies_elsewhere(graph: Graph, place: Place, mode: str) -> None:
    uri = place.put("a", BYTES)

    graph.write({"Photo": [{"name": "a", "raw": uri}]}, mode=mode)
    graph.load(lines({"name": "b", "raw": uri}), mode=mode, engine="local")
    graph.load(lines({"name": "c", "raw": uri}), mode=mode, engine="local", strict=False)
    place.put("a", b"something else")

    for id in "abc":
        assert stat(graph, id) == ("managed", None)
        assert raw(graph, id) == BYTES


def test_statements_copy_what_lies_elsewhere(graph: Graph, place: Place) -> None:
    uri = place.put("a", BYTES)

    graph.mutate('query q($u: Blob) { insert Photo { name: "a", raw: $u } insert Photo { name: "b" } }', {"u": uri})
    graph.mutate(f'query q() {{ update Photo set {{ raw: "{uri}" }} where name = "b" }}')

    assert [(*stat(graph, id), raw(graph, id)) for id in "ab"] == [("managed", None, BYTES)] * 2


@pytest.fixture
def kept(graph: Graph, place: Place) -> str:
    """Content that names what lies elsewhere; one row has bytes of its own."""
    uri = place.put("kept", BYTES)
    graph.write({"Photo": [{"name": "far", "raw": uri}, {"name": "near", "raw": b"near"}]}, mode="overwrite")
    return uri


def test_content_that_is_replaced_whole_keeps_what_it_names(graph: Graph, kept: str) -> None:
    blob = graph.blob("node", "Photo", "far", "raw")

    assert (blob.kind, blob.uri, blob.size, blob.etag) == ("external", kept, None, None)
    assert blob.to_dict()["kind"] == "external"
    assert blob.read() == BYTES
    assert blob.read(6, 4) == BYTES[6:10]
    assert b"".join(blob.stream(offset=6)) == BYTES[6:]
    with pytest.raises(InvalidRequestError) as outside:
        blob.read(len(BYTES) + 1)
    assert outside.value.code == "blob_range"
    assert raw(graph, "near") == b"near"

    graph.load(lines({"name": "loaded", "raw": kept}), mode="overwrite", engine="local")
    assert stat(graph, "loaded") == ("external", kept)


def test_a_graph_opened_without_the_place_tells_the_address_and_reads_nothing(
    graph: Graph, kept: str, tmp_path: Path
) -> None:
    with omnigraph.open(tmp_path / "graph") as other:
        assert stat(other, "far") == ("external", kept)
        with pytest.raises(InvalidRequestError, match="the blob is external") as refused:
            raw(other, "far")
        assert refused.value.code == "external_blob"
        with pytest.raises(InvalidRequestError) as denied:
            other.write({"Photo": [{"name": "b", "raw": kept}]})
        assert denied.value.code == "external_blob_ingress_default_deny"


def test_what_is_gone_from_its_place_is_a_fault_of_the_source(graph: Graph, kept: str, place: Place) -> None:
    Path(kept.removeprefix("file://")).unlink()

    assert stat(graph, "far") == ("external", kept), "looking it up asks nobody"
    with pytest.raises(BlobSourceError, match="is unavailable"):
        raw(graph, "far")
    with pytest.raises(BlobSourceError, match="is unavailable"):
        graph.write({"Photo": [{"name": "b", "raw": kept}]}, mode="merge")
    with pytest.raises(BlobSourceError, match=r"line 2: external blob source .* is unavailable"):
        graph.load(lines({"name": "b"}, {"name": "c", "raw": kept}), mode="merge", engine="local")
    assert graph.query("query q() { match { $p: Photo } return { $p.name } }").to_arrow().num_rows == 2


def test_what_lies_elsewhere_survives_upkeep_branches_merges_and_changes(graph: Graph, kept: str) -> None:
    graph.branches.create("side")
    graph.mutate('query q() { update Photo set { note: "side" } where name = "far" }', branch="side")
    for number in range(4):
        graph.write({"Photo": [{"name": f"more{number}", "raw": b"x"}]})
    graph.merge("side")
    graph.schema_apply(SCHEMA.replace("note: String?", "note: String?  rating: I32?"))
    graph.optimize()

    assert stat(graph, "far") == ("external", kept)
    assert raw(graph, "far") == BYTES
    assert stat(graph, "far", branch="side") == ("external", kept)
    assert raw(graph, "near") == b"near"


def test_a_row_that_settles_a_conflict_may_name_what_a_side_names(graph: Graph, kept: str) -> None:
    graph.branches.create("side")
    graph.mutate('query q() { update Photo set { note: "side" } where name = "far" }', branch="side")
    graph.mutate('query q() { update Photo set { note: "main" } where name = "far" }')

    graph.merge("side", resolutions={"Photo": {"far": {"name": "far", "note": "both", "raw": kept}}})

    assert stat(graph, "far") == ("external", kept)
    with pytest.raises(InvalidRequestError, match="is not allowed"):
        graph.branches.create("other")
        graph.mutate('query q() { update Photo set { note: "a" } where name = "far" }', branch="other")
        graph.mutate('query q() { update Photo set { note: "b" } where name = "far" }')
        graph.merge("other", resolutions={"Photo": {"far": {"name": "far", "raw": "file:///etc/passwd"}}})


def test_what_lies_elsewhere_comes_back_from_an_export_by_its_address(
    graph: Graph, kept: str, place: Place, tmp_path: Path
) -> None:
    Path(kept.removeprefix("file://")).rename(tmp_path / "away")
    graph.export(tmp_path / "out.jsonl")
    (tmp_path / "away").rename(kept.removeprefix("file://"))
    records = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    said = {each["data"]["name"]: each["data"]["raw"] for each in records}
    assert said["far"] == kept, "an export opens nothing"

    with omnigraph.init(tmp_path / "copy", SCHEMA, options=place.options) as copy:
        copy.load(tmp_path / "out.jsonl", mode="overwrite", engine="local")
        assert stat(copy, "far") == ("external", kept)
        assert raw(copy, "near") == b"near"


def test_columns_of_bytes_have_the_bytes_of_blobs_and_refuse_what_lies_elsewhere(
    graph: Graph, kept: str, tmp_path: Path
) -> None:
    looks_like_one = reference("file:///etc/passwd")
    graph.write({"Photo": [{"name": "near", "raw": looks_like_one}]}, mode="merge")

    with pytest.raises(InvalidRequestError, match="blobs of property 'raw' lie elsewhere") as refused:
        graph.export_arrow("Photo").read_all()
    assert (refused.value.code, refused.value.details) == ("external_blob", {"uri": kept})
    with pytest.raises(InvalidRequestError, match="export as JSON lines"):
        graph.export(tmp_path / "refused", format="parquet")
    assert len(graph.export_arrow("Photo", columns=["id", "note"]).read_all()) == 2

    graph.mutate('query q() { delete Photo where name = "far" }')
    rows = graph.export_arrow("Photo").read_all()
    assert rows.column("raw").to_pylist() == [looks_like_one]
    graph.write({"Photo": rows}, mode="overwrite")
    assert (stat(graph, "near"), raw(graph, "near")) == (("managed", None), looks_like_one)
    graph.export(tmp_path / "out", format="parquet")
    [file] = (tmp_path / "out").rglob("*.parquet")
    graph.load(file, mode="overwrite", type_name="Photo", engine="local")
    assert (stat(graph, "near"), raw(graph, "near")) == (("managed", None), looks_like_one)


def test_a_record_that_names_another_place_is_told_by_its_line(graph: Graph) -> None:
    for strict, where in ((True, "line 2"), (False, "record 2")):
        with pytest.raises(InvalidRequestError, match=f"{where}: external blob URI .* it lies below no approved place"):
            graph.load(
                lines({"name": "a"}, {"name": "b", "raw": "file:///etc/passwd"}),
                mode="append",
                engine="local",
                strict=strict,
            )


@pytest.mark.s3
@pytest.mark.usefixtures("s3_environment")
def test_blobs_lie_on_s3_those_of_the_graph_and_those_of_others(
    s3_server: S3Server, s3_store: S3Store, s3_prefix: str
) -> None:
    options = s3_server.options
    base = f"s3://{BUCKET}/{s3_prefix}/elsewhere/"
    policy = ExternalBlobPolicy((AllowedBase(base, BlobScope.SERVER_SAFE),)).for_servers()
    large = bytes(range(256)) * 20_000
    s3_store.put("elsewhere/large", large)

    with omnigraph.init(
        f"s3://{BUCKET}/{s3_prefix}/graph", SCHEMA, options=OpenOptions(s3=options, external_blobs=policy)
    ) as graph:
        graph.write({"Photo": [{"name": "far", "raw": f"{base}large"}]}, mode="overwrite")
        graph.write({"Photo": [{"name": "copy", "raw": f"{base}large"}, {"name": "small", "raw": b"small"}]})
        graph.optimize()

        assert stat(graph, "far") == ("external", f"{base}large")
        assert graph.blob("node", "Photo", "far", "raw").read(300, 7) == large[300:307]
        for id in ("far", "copy"):
            assert raw(graph, id) == large
        assert graph.blob("node", "Photo", "copy", "raw").read(1_000_000, 9) == large[1_000_000:1_000_009]
        assert raw(graph, "small") == b"small"
        with pytest.raises(BlobSourceError, match="there is nothing at that place"):
            graph.write({"Photo": [{"name": "b", "raw": f"{base}missing"}]})
