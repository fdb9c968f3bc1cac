"""Blob columns, and columns of plain bytes as tables had them before."""

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import NotFoundError
from omnigraph.model.commit import Pin
from omnigraph.storage.layout import BLOB_MARK
from omnigraph.storage.tables.tables import RowsToStage, Tables

PLAIN = pa.schema([pa.field("id", pa.string(), nullable=False)]).append(pa.field("raw", pa.large_binary()))
MARKED = PLAIN.set(1, pa.field("raw", pa.large_binary(), metadata={BLOB_MARK: b"true"}))
LARGE = bytes(range(256)) * 500


def rows(schema: pa.Schema, **values: bytes | None) -> pa.Table:
    return pa.table([list(values), list(values.values())], schema=schema)


@pytest.fixture(params=[PLAIN, MARKED], ids=["plain", "marked"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Tables, Pin]:
    tables = Tables(str(tmp_path))
    pin = tables.create("nodes/T", request.param)
    for number in range(2):
        # Rows carry the mark of whoever made them, which need not be the table's.
        fresh = rows([PLAIN, MARKED][number], **{f"a{number}": LARGE, f"b{number}": b"", f"c{number}": None})
        pin = tables.stage_rows(pin, RowsToStage(appends=fresh)).pin
    return tables, pin


def test_both_kinds_of_column_give_the_same_bytes(made: tuple[Tables, Pin]) -> None:
    tables, pin = made
    for version in (pin, tables.stage_compaction(pin).pin):
        table = tables.open(version)
        assert table.schema.field("raw").type == pa.large_binary()
        found = table.blob("a1", "raw")
        assert found is not None
        assert (found.size, found.read(5, 10), found.read(found.size, 1)) == (len(LARGE), LARGE[5:15], b"")
        empty = table.blob("b0", "raw")
        assert empty is not None
        assert (empty.size, empty.read(0, 9), list(empty.chunks(0, 9))) == (0, b"", [])
        assert table.blob("c1", "raw") is None
        with pytest.raises(NotFoundError):
            table.blob("z", "raw")
        scanned = dict(zip(*(table.scan().column(name).to_pylist() for name in ("id", "raw")), strict=True))
        assert scanned == {"a0": LARGE, "b0": b"", "c0": None, "a1": LARGE, "b1": b"", "c1": None}


def test_rows_by_address_come_in_the_order_asked_for_without_the_deleted(made: tuple[Tables, Pin]) -> None:
    tables, pin = made
    addresses = [1 << 32, 2, 1, 0]
    assert tables.open(pin).rows_at(addresses).to_pylist() == [
        {"id": "a1", "raw": LARGE},
        {"id": "c0", "raw": None},
        {"id": "b0", "raw": b""},
        {"id": "a0", "raw": LARGE},
    ]
    less = tables.stage_rows(pin, RowsToStage(deleted_ids=("b0",))).pin
    assert tables.open(less).rows_at(addresses, columns=["raw"]).column("raw").to_pylist() == [LARGE, None, LARGE]
    assert tables.open(less).rows_at([]).num_rows == 0


def test_files_beside_a_data_file_are_files_of_the_version(tmp_path: Path) -> None:
    tables = Tables(str(tmp_path))
    staged = tables.stage_rows(tables.create("nodes/T", MARKED), RowsToStage(appends=rows(MARKED, a=LARGE)))
    beside = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.blob")]
    assert len(beside) == 1
    folder = beside[0].rpartition("/")[0] + "/"
    assert folder in staged.files, "made durable before the version is named"
    assert folder in tables.files(staged.pin)
    assert folder in tables.discard(staged.base, staged.pin)
