"""A literal or parameter takes the width of the column it meets: in filters, bindings, lists, keys and mutations."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph

SCHEMA = """
node M { name: String @key  f: F32?  d: F64?  fs: [F32]?  @index(f) }
node K { f: F32 @key }
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder: Path = tmp_path_factory.mktemp("floats")
    graph = omnigraph.init(str(folder / "g"), SCHEMA)
    rows = [{"name": name, "f": value, "d": value, "fs": [value]} for name, value in (("a", 0.1), ("b", -0.1))]
    graph.write({"M": [*rows, {"name": "c", "f": 0.25, "d": 0.25, "fs": []}], "K": [{"f": 0.1}, {"f": 0.5}]})
    return graph


def names(graph: Graph, pattern: str, parameter: str = "$x: F64", **params: object) -> list[object]:
    text = f"query q({parameter}) {{ match {{ {pattern} }} return {{ $m.name as n }} order {{ n }} }}"
    return [row["n"] for row in graph.query(text, {"x": 0.1, **params})]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("$m.f = 0.1", ["a"]),
        ("0.1 = $m.f", ["a"]),
        ("$m.f = -0.1", ["b"]),
        ("$m.f != 0.1", ["b", "c"]),
        ("$m.f <= 0.1", ["a", "b"]),
        ("$m.f > 0.1", ["c"]),
        ("$m.f >= 0.1", ["a", "c"]),
        ("$m.f = $x", ["a"]),
        ("$m.f in [0.1, 7]", ["a"]),
        ("$m.f not in [0.1, -0.1]", ["c"]),
        ("$m.fs contains 0.1", ["a"]),
        ("$m.fs contains $x", ["a"]),
        ("not ($m.f = 0.1)", ["b", "c"]),
        # Two columns of different widths meet in the wider one, and what is computed is of 64 bits.
        ("$m.f = $m.d", ["c"]),
        ("$m.f + 0.0 = 0.1", []),
        ("$m.d = 0.1", ["a"]),
    ],
)
def test_a_filter_on_32_bits(graph: Graph, condition: str, found: list[str]) -> None:
    assert names(graph, f"$m: M {condition}") == found


def test_a_parameter_of_32_bits_meets_a_column_of_64(graph: Graph) -> None:
    assert names(graph, "$m: M $m.d = $x", "$x: F32") == ["a"]
    assert names(graph, "$m: M $m.f = $x", "$x: F32") == ["a"]
    assert names(graph, "$m: M $m.f < $x", x=1e300) == ["a", "b", "c"]
    assert names(graph, "$m: M $m.f = $x", x=1e300) == []
    assert names(graph, "$m: M $m.f in $l", "$x: F64, $l: [F64]", l=[0.1]) == ["a"]
    assert names(graph, "$m: M $m.d in $l", "$x: F64, $l: [F32]", l=[0.1]) == ["a"]


def test_a_binding_and_a_key_on_32_bits(graph: Graph) -> None:
    assert names(graph, "$m: M { f: 0.1 }") == ["a"]
    assert names(graph, "$m: M { f: $x }") == ["a"]
    assert names(graph, "$m: M { fs: 0.1 }") == ["a"]
    for pattern in ("$k: K { f: 0.1 }", "$k: K { f: $x }", "$k: K $k.f = $x"):
        text = f"query q($x: F64) {{ match {{ {pattern} }} return {{ count(*) as n }} }}"
        assert [row["n"] for row in graph.query(text, {"x": 0.1})] == [1], pattern


@pytest.mark.parametrize("condition", ["f = 0.1", "f = $x", "f in [0.1]", "fs contains 0.1", "f <= 0.1 and f >= 0.1"])
def test_a_mutation_on_32_bits(graph: Graph, condition: str) -> None:
    graph.branches.create("side")
    text = f"query q($x: F64) {{ delete M where {condition} }}"
    assert graph.mutate(text, {"x": 0.1}, branch="side").affected_nodes == 1
    graph.branches.delete("side")
