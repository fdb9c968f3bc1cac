"""Bytes on disk after a load: ids that are made together take few, in tables and in change files."""

from pathlib import Path

import pyarrow as pa

import omnigraph

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { since: I32 }
"""
EDGES = 50_000


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_an_edge_takes_few_bytes_in_its_table_and_fewer_in_the_change_file(tmp_path: Path) -> None:
    names = [f"person-{number:05d}" for number in range(1_000)]
    edges = {
        "from": [names[number % 1_000] for number in range(EDGES)],
        "to": [names[number * 7_919 % 997] for number in range(EDGES)],
        "since": pa.array([2_000 + number % 25 for number in range(EDGES)], pa.int32()),
    }
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        graph.write(nodes={"Person": pa.table({"name": names})}, edges={"Knows": pa.table(edges)})

        assert graph.count("Knows") == EDGES
    data = sum(size(folder) for folder in (tmp_path / "graph" / "edges").glob("*/data"))
    changes = sum(file.stat().st_size for file in (tmp_path / "graph" / "__manifest" / "changes").glob("*.arrow"))
    assert data / EDGES < 20, "random ids alone took 20 bytes"
    assert changes / EDGES < 8, "without compression, a listed id took 35 bytes"
