"""What a change of schema costs: the same requests and files at any number of rows."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import OpenOptions
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.stores import CountingStore

BEFORE = """\
node Person { name: String @key  age: I32?  mood: enum(good, bad)?  gone: String? }
edge Knows: Person -> Person { since: I32? }
"""
STEPS = {
    "add a property": BEFORE.replace("gone: String?", "gone: String?  note: String?"),
    "add a blob": BEFORE.replace("gone: String?", "gone: String?  face: Blob?"),
    "drop a property": BEFORE.replace("  gone: String?", ""),
    "rename a property": BEFORE.replace("age: I32?", 'years: I32? @rename_from("age")'),
    "rename a type": BEFORE.replace("node Person", 'node Human @rename_from("Person")').replace(
        "Person -> Person", "Human -> Human"
    ),
    "grow an enum": BEFORE.replace("good, bad", "good, bad, fine"),
    "describe": BEFORE.replace("node Person", 'node Person @description("one of us")'),
    "want an index": BEFORE.replace("age: I32?", "age: I32? @index"),
    "drop a type": BEFORE.splitlines(keepends=True)[0],
    "add a type": BEFORE + "node Place { name: String @key }\n",
}


def cost(root: Path, after: str, rows: int) -> tuple[Counter[str], Counter[str], int]:
    """Requests by kind, new files by folder, and bytes of new data files."""
    store = CountingStore(LocalStore(root, durability=Durability.PROCESS))
    graph = omnigraph.init(store, BEFORE, options=OpenOptions(durability="process", auto_compact=False))
    for start in range(0, rows, 250_000):
        names = [f"p{number}" for number in range(start, min(rows, start + 250_000))]
        graph.write(nodes={"Person": pa.table({"name": names, "age": pa.array(range(len(names)), pa.int32())})})
    files = {path for path in root.rglob("*") if path.is_file()}
    asked = len(store.requests())

    assert graph.schema_apply(after).applied

    requests = Counter(str(kind) for kind, _ in store.requests()[asked:])
    fresh = {path for path in root.rglob("*") if path.is_file()} - files
    data = sum(path.stat().st_size for path in fresh if path.parent.name == "data")
    assert graph.count("Human" if "Human" in after else "Person") == rows
    return requests, Counter(path.parent.name for path in fresh), data


@pytest.mark.parametrize("rows", [5_000, pytest.param(1_000_000, marks=pytest.mark.torture)])
def test_an_apply_costs_the_same_at_any_number_of_rows(tmp_path: Path, rows: int) -> None:
    for number, (step, after) in enumerate(STEPS.items()):
        few = cost(tmp_path / f"few-{number}", after, 3)
        many = cost(tmp_path / f"many-{number}", after, rows)
        assert many == few, step
        assert many[2] == 0, f"{step}: no row is written"
