"""Rows by the values of a column, with what is pending laid over what is committed."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.operations import PERSON, new_graph, table_of

from omnigraph import limits
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.model.footprint import TokenKind, tokens
from omnigraph.storage.tables.tables import RowsToStage, Table, Tables
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet
from omnigraph.transaction.write_set.committed import rows_with

COLUMNS: "list[tuple[str, pa.DataType, list[Any]]]" = [
    ("camelCase", pa.string(), ["it's", "`x`"]),
    ("select", pa.int64(), [-(2**63), 2**63 - 1]),
    ("u", pa.uint64(), [2**64 - 1, 0]),
    ("i", pa.int32(), [-(2**31), 2**31 - 1]),
    ("yes", pa.bool_(), [True, False]),
    ("f", pa.float64(), [0.1, 5e-324]),
    ("g", pa.float32(), [0.5, -0.0]),
    ("day", pa.date32(), [date.min, date.max]),
    (
        "at",
        pa.timestamp("ms", tz="UTC"),
        [datetime(1, 1, 1, 0, 0, 0, 1_000, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)],
    ),
]


def table_with(folder: Path, name: str, column: "pa.Array[Any]") -> Table:
    columns = pa.schema([pa.field("id", pa.string(), nullable=False)]).append(pa.field(name, column.type))
    tables = Tables(str(folder))
    rows = pa.table({"id": list("abc"[: len(column)]), name: column}, schema=columns)
    return tables.open(tables.stage_rows(tables.create("nodes/x", columns), RowsToStage(appends=rows)).pin)


@pytest.mark.parametrize(("name", "type_", "values"), COLUMNS, ids=[each[0] for each in COLUMNS])
def test_values_of_every_type_find_exactly_their_rows(
    name: str, type_: pa.DataType, values: list[Any], tmp_path: Path
) -> None:
    table = table_with(tmp_path, name, pa.array([*values, None], type_))
    for value, id_ in zip(values, ("a", "b"), strict=True):
        for wanted in ([value], [value, None], [value] * 3):
            found = rows_with(table, name, pa.array(wanted, type_), columns=["id"])
            assert found.column("id").to_pylist() == [id_]
    assert rows_with(table, name, pa.array([None], type_)).num_rows == 0


def test_both_zeros_are_looked_for(tmp_path: Path) -> None:
    table = table_with(tmp_path, "f", pa.array([0.0, -0.0]))
    for zero in (0.0, -0.0):
        assert rows_with(table, "f", pa.array([zero])).num_rows == 2


@pytest.fixture
def parts() -> GraphContext:
    made = new_graph("memory://", settings=Settings(durability="process"))
    rows = table_of({"a": 1, "b": 2, "c": 2})
    start = Operation(CommitKind.LOAD, frozenset({PERSON}), lambda staging: staging.upsert(PERSON, rows), redoable=True)
    write(made, MAIN, start)
    return made


@pytest.fixture
def staging(parts: GraphContext) -> WriteSet:
    return WriteSet(parts.snapshot(parts.log.live_head(MAIN)))


def found(staging: WriteSet, *values: int) -> dict[str, int]:
    rows = staging.rows_where(PERSON, "v", pa.array(values, pa.int64()))
    return {str(row["id"]): int(row["v"]) for row in rows.to_pylist()}


def test_pending_rows_hide_and_join_the_committed(staging: WriteSet) -> None:
    assert found(staging, 2) == {"b": 2, "c": 2}
    staging.upsert(PERSON, table_of({"b": 3, "d": 2}))
    assert found(staging, 2) == {"c": 2, "d": 2}
    staging.delete(PERSON, ["c"])
    assert found(staging, 2, 3) == {"b": 3, "d": 2}
    staging.overwrite(PERSON, table_of({"x": 2}))
    assert found(staging, 1, 2, 3) == {"x": 2}


def test_looking_rows_up_notes_nothing(staging: WriteSet) -> None:
    found(staging, 1)
    assert not staging.footprint_of(PERSON).reads
    assert not staging.footprint_of(PERSON).reads_whole


def test_many_values_are_found_in_one_pass(staging: WriteSet) -> None:
    many = range(2, limits.ID_FILTER_IDS_MAX + 10)
    assert found(staging, *many) == {"b": 2, "c": 2}


def test_the_rows_a_write_replaces_are_those_the_base_has(staging: WriteSet) -> None:
    assert staging.replaced(PERSON, columns=["v"]).num_rows == 0
    staging.upsert(PERSON, table_of({"a": 9, "new": 1}))
    staging.delete(PERSON, ["b", "nobody"])
    replaced = {row["id"]: row["v"] for row in staging.replaced(PERSON, columns=["v"]).to_pylist()}
    assert replaced == {"a": 1, "b": 2}
    staging.overwrite(PERSON, table_of({"x": 2}))
    assert staging.replaced(PERSON, columns=["v"]).num_rows == 3


def test_rows_that_were_looked_for_in_vain_are_staged_without_another_look(
    parts: GraphContext, staging: WriteSet
) -> None:
    staging.upsert(PERSON, table_of({"a": 9, "new": 1}))
    staging.replaced(PERSON, columns=["v"])
    effect = staging.pending[PERSON].effect()
    assert effect.appends is not None
    assert effect.upserts is not None
    assert (effect.appends["id"].to_pylist(), effect.upserts["id"].to_pylist()) == (["new"], ["a"])


def test_a_row_deleted_and_put_again_is_looked_for(staging: WriteSet) -> None:
    staging.delete(PERSON, ["a"])
    staging.upsert(PERSON, table_of({"a": 9}))
    staging.replaced(PERSON, columns=["v"])
    effect = staging.pending[PERSON].effect()
    assert effect.upserts is not None
    assert effect.upserts["id"].to_pylist() == ["a"]
    assert effect.appends is None


def test_a_claim_is_read_and_written(staging: WriteSet) -> None:
    staging.claim_tokens(PERSON, TokenKind.UNIQUE, ["x"])
    noted = staging.footprint_of(PERSON)
    assert noted.reads == noted.writes == tokens(TokenKind.UNIQUE, ["x"])
