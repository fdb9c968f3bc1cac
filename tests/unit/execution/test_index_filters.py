"""Every index that is built is read by some query: named by `explain`, and with the answer there is without it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import omnigraph
from omnigraph import Graph, OpenOptions, limits
from omnigraph.storage.tables.declared import declared_indexes

pytestmark = pytest.mark.usefixtures("parts_of_few_texts_are_indexed")

SCHEMA = """
node Thing {
    name: String @key
    i32: I32? @index   i64: I64? @index   u32: U32? @index   u64: U64? @index
    f32: F32? @index   f64: F64? @index   day: Date? @index  at: DateTime? @index
    yes: Bool? @index  kind: enum(a, b)? @index  text: String? @index  code: String? @unique
}
edge Next: Thing -> Thing
"""
COUNT = 240
# What indexes and arithmetic like to disagree about: both zeros, fractions that a column rounds, ends of ranges.
FRACTIONS = (0.0, -0.0, 0.1, -0.1, 1e-30, 5e-324, 1.5, -1.5, 3.4e38, -3.4e38, 16777217.0)
WHOLE = (0, -1, 1, 7, 2**31 - 1, -(2**31))
LARGE = (*WHOLE, 2**63 - 1, -(2**63), 2**53 + 1)
START = datetime(1969, 12, 31, 23, 59, 59, 990_000, tzinfo=UTC)


def thing(number: int) -> dict[str, Any]:
    at = START + timedelta(milliseconds=number)
    return {
        "name": f"t{number:03}",
        "i32": WHOLE[number % 6],
        "i64": LARGE[number % 9],
        "u32": abs(WHOLE[number % 6]),
        "u64": abs(LARGE[number % 9]) % 2**63,
        "f32": FRACTIONS[number % 11],
        "f64": FRACTIONS[number % 11],
        "day": (START + timedelta(days=number % 9)).date().isoformat(),
        "at": at.isoformat().replace("+00:00", "Z"),
        "yes": number % 3 == 0,
        "kind": "ab"[number % 2],
        "text": f"the text of {number}, it's",
        "code": f"c{number}",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("indexed") / "graph"
    with omnigraph.init(where, SCHEMA, options=OpenOptions(durability="process", auto_compact=False)) as graph:
        graph.write({"Thing": [thing(number) for number in range(COUNT)]})
        graph.write(edges={"Next": [{"from": f"t{each:03}", "to": f"t{each + 1:03}"} for each in range(COUNT - 1)]})
        graph.optimize()
        # Rows that no index knows, one of them in another's place, and one with nothing.
        graph.write({"Thing": [thing(5) | {"i32": 7, "text": "elsewhere"}, {"name": "empty"}]}, mode="merge")
    return where


@contextmanager
def scarce(folder: Path) -> Iterator[Graph]:
    """The graph as a process sees it for which its types are too large to be read at once."""
    with (
        patch.object(limits, "READ_WHOLE_ROWS_MAX", 10),
        patch("omnigraph.execution.versions._BYTES_PER_SECOND_READ", 1.0),
        omnigraph.open(folder, read_only=True) as graph,
    ):
        yield graph


ASKED: list[tuple[str, str, list[object]]] = [
    ("i32", "I32", [*WHOLE, 3]),
    ("i64", "I64", [*WHOLE, 2**63 - 1, -(2**63) + 1, 2**53 + 1]),
    ("u32", "U32", [0, 1, 7, 2**31]),
    ("u64", "U64", [0, 1, 2**53 + 1, 2**63 - 1]),
    ("f32", "F64", [*FRACTIONS, 0.10000000149011612]),
    ("f32", "I64", [0, 16777216, 16777217]),
    ("f64", "F64", [*FRACTIONS, 0.10000000149011612, 1e300]),
    ("f64", "I64", [0, 2, -1]),
    ("day", "Date", ["1969-12-31", "1970-01-04", "0001-01-01", "9999-12-31"]),
    ("at", "DateTime", ["1969-12-31T23:59:59.995Z", "1970-01-01T00:00:00Z", "1970-01-01T01:00:00.050+01:00"]),
    ("text", "String", ["the text of 7, it's", "", "z"]),
    ("code", "String", ["c17"]),
]


@pytest.mark.parametrize(("name", "kind", "values"), ASKED, ids=lambda each: each if isinstance(each, str) else "")
def test_comparisons_of_every_type_go_through_its_index_and_find_the_same(
    folder: Path, name: str, kind: str, values: list[object]
) -> None:
    with omnigraph.open(folder, read_only=True) as ample, scarce(folder) as graph:
        for sign in ("=", "<", "<=", ">", ">="):
            text = (
                f"query q($v: {kind}) {{ match {{ $t: Thing  $t.{name} {sign} $v }} "
                "return { $t.name as n } order { $t.name } }"
            )
            assert f"$t.{name}: nodes are found through the index {name}_btree (BTREE)" in graph.explain(text)
            for value in values:
                found = graph.query(text, {"v": value}).to_pylist()
                assert found == ample.query(text, {"v": value}).to_pylist(), (sign, value)


@pytest.mark.parametrize(
    ("name", "kind", "value"), [("i32", "I64", 2**40), ("i64", "I64", -(2**63)), ("f32", "F64", 1e300)]
)
def test_a_comparison_with_what_no_index_can_be_asked_for_finds_the_same(
    folder: Path, name: str, kind: str, value: object
) -> None:
    with omnigraph.open(folder, read_only=True) as ample, scarce(folder) as graph:
        for sign in ("=", "<", ">="):
            text = f"query q($v: {kind}) {{ match {{ $t: Thing  $t.{name} {sign} $v }} return {{ count(*) as n }} }}"
            assert graph.query(text, {"v": value}).to_pylist() == ample.query(text, {"v": value}).to_pylist()


def test_edges_of_few_nodes_are_found_through_the_indexes_on_their_ends(folder: Path) -> None:
    way = 'query q() { match { $t: Thing { name: "t007" }  %s } return { $o.name as n } order { $o.name } }'
    ways = {
        "$t next $o": ("src_btree (BTREE)", ["t008"]),
        "$o next $t": ("dst_btree (BTREE)", ["t006"]),
        "$t <next> $o": ("src_btree (BTREE) and dst_btree (BTREE)", ["t006", "t008"]),
    }
    for pattern, (named, expected) in ways.items():
        with scarce(folder) as graph, patch("omnigraph.execution.adjacency_cache._SECONDS_PER_EDGE_MADE", 1.0):
            said = graph.explain(way % pattern)
            found = [row["n"] for row in graph.query(way % pattern)]
            looked_up = graph.stats().adjacency.looked_up
        assert f"Next: edges of few nodes are found through {named}, of many" in said
        assert (found, looked_up) == (expected, 1)


def test_a_node_of_a_large_type_is_found_by_its_key_through_the_index_on_ids(folder: Path) -> None:
    text = 'query q() { match { $t: Thing { name: "t007" } } return { $t.text as t } }'
    with scarce(folder) as graph:
        assert "$t is found by its key through the index id_btree (BTREE)" in graph.explain(text)
        assert graph.query(text).to_pylist() == [{"t": "the text of 7, it's"}]


def test_no_kind_of_index_is_declared_that_nothing_reads(folder: Path) -> None:
    with omnigraph.open(folder, read_only=True) as graph:
        kinds = {spec.kind.value for each in graph.schema().entities for spec in declared_indexes(each)}
    # Here and in `test_stored_search.py`, each of these is asked; those over vectors are IVF_FLAT.
    assert kinds == {"BTREE", "BITMAP", "NGRAM"}
