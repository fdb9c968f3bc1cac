"""Rows under way: every file that is named is whole, and what fails, dies or runs twice leaves nothing that counts."""

import errno
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark import TaskContext

from omnigraph import limits
from omnigraph.ids import UlidSource
from omnigraph.pipeline.load.sources import Format
from omnigraph.pipeline.spill import Spill, SpilledFile, spill_beside, write_part
from omnigraph.storage import paths
from omnigraph.storage.object_store import StoreRefused
from omnigraph.storage.tables.location import TablesLocation
from omnigraph.testing.clock import ManualClock

COLUMNS = pa.schema([("name", pa.string())]).append(pa.field("age", pa.int32()))
LINES = pa.schema([pa.field("value", pa.string())])


@pytest.fixture
def spill(tmp_path: Path) -> Spill:
    return spill_beside(TablesLocation(str(tmp_path)), UlidSource(ManualClock()))


@pytest.fixture
def tiny_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch in each file."""
    monkeypatch.setattr(limits, "SPILL_FILE_BYTES", 1)


def batches(*sizes: int) -> Iterator[pa.RecordBatch]:
    """As Spark gives them: its integers are longer than those of the table."""
    first = 0
    for size in sizes:
        rows = range(first, first + size)
        yield pa.RecordBatch.from_pydict(
            {"age": pa.array(rows, pa.int64()), "name": pa.array([f"p{row}" for row in rows])}
        )
        first += size


def lines(*sizes: int) -> Iterator[pa.RecordBatch]:
    for batch in batches(*sizes):
        yield pa.RecordBatch.from_arrays([batch.column("name")], schema=LINES)


def body(tmp_path: Path, spill: Spill, file: SpilledFile) -> bytes:
    found = (tmp_path / spill.folder / file.name).read_bytes()
    assert len(found) == file.size
    return found


def table(tmp_path: Path, spill: Spill, file: SpilledFile) -> pa.Table:
    return pyarrow.parquet.read_table(io.BytesIO(body(tmp_path, spill, file)))


def left(tmp_path: Path) -> list[str]:
    return sorted(each.name for each in tmp_path.rglob("*") if each.is_file())


@pytest.mark.usefixtures("tiny_files")
def test_every_row_is_in_one_file_in_order_and_in_its_types(tmp_path: Path, spill: Spill) -> None:
    files = write_part(batches(3, 0, 2), spill, "000", COLUMNS)

    assert [file.name for file in files] == ["000-00000-0-00000.parquet", "000-00000-0-00001.parquet"]
    found = [table(tmp_path, spill, file) for file in files]
    assert [each.schema for each in found] == [COLUMNS, COLUMNS]
    assert [each.column("age").to_pylist() for each in found] == [[0, 1, 2], [3, 4]]
    assert write_part(batches(), spill, "001", COLUMNS) == write_part(batches(0), spill, "002", COLUMNS) == []


@pytest.mark.usefixtures("tiny_files")
def test_every_line_is_in_one_file_in_order(tmp_path: Path, spill: Spill) -> None:
    files = write_part(lines(2, 1), spill, "lines", None)

    assert [body(tmp_path, spill, file) for file in files] == [b"p0\np1\n", b"p2\n"]


def test_few_rows_are_one_file_however_many_batches_they_come_in(tmp_path: Path, spill: Spill) -> None:
    [file] = write_part(batches(1, 1, 1), spill, "000", COLUMNS)
    [text] = write_part(lines(1, 1, 1), spill, "lines", None)

    assert table(tmp_path, spill, file).column("name").to_pylist() == ["p0", "p1", "p2"]
    assert body(tmp_path, spill, text) == b"p0\np1\np2\n"


@pytest.mark.usefixtures("tiny_files")
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_disk_that_is_full_in_the_middle_of_a_file_leaves_no_part_of_it(
    tmp_path: Path, spill: Spill, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, writes = os.write, 0

    def full(handle: int, body: bytes) -> int:
        nonlocal writes
        writes += 1
        if writes < at:
            return real(handle, body)
        real(handle, bytes(body)[:7])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched, pytest.raises(StoreRefused):
        patched.setattr(os, "write", full)
        write_part(batches(2, 2, 2), spill, "000", COLUMNS)

    assert left(tmp_path) == [f"000-00000-0-{number:05}.parquet" for number in range(at - 1)]
    for name in left(tmp_path):
        size = (tmp_path / spill.folder / name).stat().st_size
        assert table(tmp_path, spill, SpilledFile(name, size)).num_rows == 2
    spill.forget()
    assert left(tmp_path) == []


@dataclass(frozen=True)
class Task:
    """What a task of Spark's knows of itself."""

    part: int
    attempt: int

    def partitionId(self) -> int:  # noqa: N802  (as Spark calls it)
        return self.part

    def taskAttemptId(self) -> int:  # noqa: N802  (as Spark calls it)
        return self.attempt


def test_attempts_that_run_beside_each_other_write_files_of_their_own(
    tmp_path: Path, spill: Spill, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for task in (Task(7, 1), Task(7, 2), Task(8, 3)):
        monkeypatch.setattr(TaskContext, "get", lambda task=task: task)
        written += write_part(batches(1), spill, "000", COLUMNS)

    assert [file.name for file in written] == left(tmp_path)
    assert len({file.name for file in written}) == 3


def test_what_cannot_be_forgotten_is_left_to_a_sweep(tmp_path: Path, spill: Spill) -> None:
    spill.write("a", b"1")
    folder = tmp_path / spill.folder
    folder.rename(tmp_path / "kept")
    (tmp_path / paths.SPILL).rmdir()
    (tmp_path / paths.SPILL.rstrip("/")).write_bytes(b"in the way")

    spill.forget()

    with pytest.raises(StoreRefused, match="in its way"):
        spill.write("b", b"2")
    (tmp_path / paths.SPILL.rstrip("/")).unlink()
    spill.write("c", b"3")
    spill.forget()
    spill.forget()
    assert left(tmp_path) == ["a"]


def test_a_store_that_fails_to_forget_stops_nobody(
    tmp_path: Path, spill: Spill, monkeypatch: pytest.MonkeyPatch
) -> None:
    spill.write("a", b"1")

    def failing(*_: object) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", failing)
        spill.forget()

    assert left(tmp_path) == ["a"]


def test_two_spills_of_one_graph_have_folders_of_their_own(tmp_path: Path) -> None:
    ids = UlidSource(ManualClock())
    one, other = (spill_beside(TablesLocation(str(tmp_path)), ids) for _ in range(2))
    one.write("a", b"1")
    other.write("a", b"22")

    one.forget()

    assert one.folder != other.folder
    source = other.source(3, SpilledFile("a", 2), called="the frame", format=Format.JSONL)
    assert (source.index, source.size, Path(source.uri).read_bytes()) == (3, 2, b"22")
