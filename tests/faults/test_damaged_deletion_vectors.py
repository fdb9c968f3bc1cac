"""A damaged deletion vector costs no row: the change sets name what was deleted."""

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph

SCHEMA = """\
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""


def content(graph: Graph, branch: str) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    people = "query q() { match { $p: Person } return { $p.name as name, $p.age as age } order { $p.name } }"
    known = "query q() { match { $a: Person  $a knows $b } return { $a.name as a, $b.name as b } order { $a.name } }"
    return graph.query(people, branch=branch).to_pylist(), graph.query(known, branch=branch).to_pylist()


def flip(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 4
    path.write_bytes(bytes(body))


@pytest.mark.parametrize("damage", [flip, Path.unlink, lambda path: path.write_bytes(b"x" * 40)])
def test_deletion_vectors_are_made_again(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        graph.write(
            {"Person": [{"name": f"p{number}", "age": number} for number in range(40)]},
            edges={"Knows": [{"src": f"p{number}", "dst": f"p{number * 7 % 40}"} for number in range(40)]},
        )
        graph.mutate("query q() { delete Person where age < 5 }")
        graph.branches.create("side")
        graph.mutate('query q() { update Person set { age: 99 } where name = "p9" }', branch="side")
        graph.mutate("query q() { delete Person where age = 30 }", branch="side")
        graph.write({"Person": [{"name": "p1", "age": 1}]})
        before = {branch: content(graph, branch) for branch in ("main", "side")}
    vectors = sorted((tmp_path / "graph").glob("*/*/_deletions/*"))
    assert len(vectors) > 3
    for vector in vectors:
        damage(vector)

    with omnigraph.open(tmp_path / "graph") as graph:
        assert len(graph.verify(deep=True).findings) >= len(vectors)
        done = graph.verify(deep=True, quarantine=True).quarantined
        assert len([each for each in done if "rebuilt from the changes" in each]) == len(vectors)

    with omnigraph.open(tmp_path / "graph") as graph:
        assert graph.verify(deep=True).findings == ()
        assert {branch: content(graph, branch) for branch in ("main", "side")} == before
