"""Which files are meant, and in which form they are."""

import gzip
from pathlib import Path

import pytest

from omnigraph.errors import NotFoundError
from omnigraph.pipeline.load.blocks import Piece, blocks_of
from omnigraph.pipeline.load.sources import Format, Packing, Partition, sources_of
from omnigraph.storage.object_stores import S3Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.jsonl", "a.ndjson.gz", "sub/c.csv", "_SUCCESS", ".hidden.jsonl", "notes.txt", "d.parquet"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    return tmp_path


def names(data: object, **how: str) -> list[tuple[str, Format, Packing]]:
    found = sources_of(data, format=how.get("format"), strict=True)
    return [(each.name, each.format, each.packing) for each in found]


def test_a_folder_means_the_files_in_it_that_can_be_loaded(folder: Path) -> None:
    assert names(folder) == [
        ("a.ndjson.gz", Format.JSONL, Packing.GZIP),
        ("b.jsonl", Format.JSONL, Packing.NONE),
        ("d.parquet", Format.PARQUET, Packing.NONE),
        ("c.csv", Format.CSV, Packing.NONE),
    ]


def test_patterns_lists_and_addresses_of_local_files(folder: Path) -> None:
    assert [name for name, _, _ in names(f"{folder}/**/*.csv")] == ["c.csv"]
    assert [name for name, _, _ in names([folder / "b.jsonl", f"file://{folder}/d.parquet"])] == [
        "b.jsonl",
        "d.parquet",
    ]
    assert names(str(folder / "notes.txt"), format="csv") == [("notes.txt", Format.CSV, Packing.NONE)]
    with pytest.raises(NotFoundError, match="no file to load at"):
        names(folder / "*.jsonl.zst")


def test_files_of_one_name_are_told_apart_by_their_paths(folder: Path) -> None:
    again = folder / "sub" / "b.jsonl"
    again.write_bytes(b"x")
    assert [name for name, _, _ in names([folder / "b.jsonl", folder / "d.parquet", again])] == [
        str(folder / "b.jsonl"),
        "d.parquet",
        str(again),
    ]


@pytest.mark.s3
@pytest.mark.usefixtures("s3_environment")
def test_objects_in_a_store_are_listed_and_read_by_range(s3_store: S3Store) -> None:
    body = b"".join(b'{"n":%d}\n' % number for number in range(1_000))
    s3_store.put("in/a.jsonl", body)
    s3_store.put("in/b.jsonl.gz", gzip.compress(body))
    s3_store.put("in/_SUCCESS", b"")
    for where in (f"{s3_store.uri}/in/", f"{s3_store.uri}/in/*.jsonl*"):
        found = sources_of(where, format=None, strict=True)
        assert [(each.name, each.size) for each in found] == [
            ("a.jsonl", len(body)),
            ("b.jsonl.gz", len(gzip.compress(body))),
        ]
        for source in found:
            assert b"".join(block.data for block in blocks_of(Piece(0, source), block_bytes=4_096)) == body
    one = sources_of(f"{s3_store.uri}/in/a.jsonl", format=None, strict=True)[0]
    halves = [Piece(0, one, 0, 4_000), Piece(1, one, 4_000, one.size)]
    assert b"".join(block.data for half in halves for block in blocks_of(half, block_bytes=512)) == body
    with pytest.raises(NotFoundError):
        sources_of(f"{s3_store.uri}/nowhere/", format=None, strict=True)
    s3_store.put("hive/age=3/first=a%20b/x.csv", b"name\nAda\n")
    for where, found_from in (
        ("hive/", 0),
        ("hive/*/*/x.csv", 0),
        ("hive/age=3/", 1),
        ("hive/age=3/first=a%20b/x.csv", 2),
    ):
        hive = sources_of(f"{s3_store.uri}/{where}", format=None, strict=True)[0].partitions
        assert hive == (Partition("age", "3", found_from < 1), Partition("first", "a b", found_from < 2)), where
