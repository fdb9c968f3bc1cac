"""Files with columns whose header or folders say something unusual: equal answers and typed errors on every engine."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.support.load_lines import ADA, refused, rows

from omnigraph import Graph, LoadResult
from omnigraph.errors import InvalidRequestError

Load = Callable[..., LoadResult]


def people(graph: Graph) -> list[tuple[str, int | None]]:
    return [(row["id"], row["age"]) for row in rows(graph, "Person")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name,age,age\nAda,1,2\n", "x.csv has the column 'age' twice"),
        ("name,name\n", "x.csv has the column 'name' twice"),
        ("name,hat,hat\nAda,1,2\n", "x.csv has the column 'hat' twice"),
        ('name,"a\nge"\nAda,1\n', "unknown input field 'a\nge'"),
    ],
)
def test_a_header_that_cannot_be_meant(graph: Graph, load: Load, tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    refused(graph, lambda: load(data=tmp_path / "x.csv", type_name="Person"), InvalidRequestError, told)


def test_two_columns_of_one_name_in_parquet_and_for_one_end(graph: Graph, load: Load, tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array(["Ada"]), pa.array([1]), pa.array([2])], names=["name", "age", "age"])
    pyarrow.parquet.write_table(twice, tmp_path / "x.parquet")
    told = "x.parquet has the column 'age' twice"
    refused(graph, lambda: load(data=tmp_path / "x.parquet", type_name="Person"), InvalidRequestError, told)
    (tmp_path / "x.csv").write_text("src,dst,from\nAda,Bob,Cid\n")
    told = "x.csv has two columns, 'from' and 'src', for the node that edges leave"
    refused(graph, lambda: load(data=tmp_path / "x.csv", edge="Knows"), InvalidRequestError, told)


@pytest.mark.parametrize("text", ["", "\n\r\n", "name,age\n", "name,age", "name,age\r\n\r\n"])
def test_no_rows_are_none_of_the_type_that_was_named(graph: Graph, load: Load, tmp_path: Path, text: str) -> None:
    load(ADA)
    (tmp_path / "x.csv").write_text(text)
    assert load(data=tmp_path / "x.csv", type_name="Person").nodes == {"Person": 0}
    assert load(data=tmp_path / "x.csv", type_name="Person", mode="overwrite").nodes == {"Person": 0}
    assert people(graph) == []


@pytest.mark.parametrize("text", ["\n\nname,age\nAda,1\n", "name,age\rAda,1\r", "name,age\r\n\r\nAda,1"])
def test_empty_lines_and_other_line_ends_lose_no_row(graph: Graph, load: Load, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_bytes(text.encode())
    load(data=tmp_path / "x.csv", type_name="Person")
    assert people(graph) == [("Ada", 1)]


def test_folders_that_name_a_column_and_its_value(graph: Graph, load: Load, tmp_path: Path) -> None:
    def put(folder: str, name: str) -> Path:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.csv").write_text(f"name\n{name}\n")
        pyarrow.parquet.write_table(pa.table({"name": [f"{name}2"]}), tmp_path / folder / "y.parquet")
        return tmp_path / folder

    put("in/age=3", "Ada")
    put("in/age=__HIVE_DEFAULT_PARTITION__", "Bob")
    put("in/first=a%20b%2Fc/age=5", "Cid")
    load(data=tmp_path / "in", type_name="Person")
    found = {row["id"]: (row["age"], row["first"]) for row in rows(graph, "Person")}
    assert found == {
        name: value
        for plain, value in {"Ada": (3, None), "Bob": (None, None), "Cid": (5, "a b/c")}.items()
        for name in (plain, f"{plain}2")
    }
    load(data=tmp_path / "in" / "age=3" / "x.csv", type_name="Person", mode="overwrite")
    assert people(graph) == [("Ada", 3)]
    load(data=f"{tmp_path}/in/*/x.csv", type_name="Person", mode="overwrite")
    assert people(graph) == [("Ada", 3), ("Bob", None)]

    def load_all(folder: Path) -> LoadResult:
        return load(data=folder, type_name="Person", mode="merge")

    def refuse(folder: Path, told: str) -> None:
        refused(graph, lambda: load_all(folder), InvalidRequestError, told)

    refuse(put("bad/age=old", "Dan").parent, "property 'age' expects Int32, got \"old\"")
    refuse(put("hat/hat=1", "Dan").parent, "unknown input field 'hat'")
    refuse(put("two/name=Eve", "Dan").parent, "x.csv has the column 'name' twice, in the file and in a folder's name")
    # Folders above the one that was asked for count only where they can.
    load_all(put("up/hat=1/name=Eve/age=7", "Dan"))
    assert {("Dan", 7), ("Dan2", 7)} <= set(people(graph))
