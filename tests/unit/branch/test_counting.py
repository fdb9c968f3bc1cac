"""How much differs is counted without reading all of what differs, and comes to the same."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, OpenOptions, limits
from omnigraph.branch.diff import compared_here, counted_here
from omnigraph.branch.history_values import DiffStats
from omnigraph.storage.tables.table import Table

SCHEMA = """
node Person { name: String @key  age: I32?  city: String?  tags: [String]?  picture: Blob? }
edge Knows: Person -> Person { since: I32? }
"""
FAST = OpenOptions(durability="process", auto_compact=False)
PEOPLE = 120


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    # The name says that a folder is no address: nothing of it is taken apart.
    with omnigraph.init(tmp_path / "100% of it, é #1?", SCHEMA, options=FAST) as made:
        people = [person(number) for number in range(PEOPLE)]
        friends = [{"id": f"k{each}", "from": "p0", "to": f"p{each}"} for each in range(40)]
        made.write({"Person": people}, {"Knows": friends})
        made.branches.create("side")
        yield made


def person(number: int, **other: object) -> dict[str, object]:
    usual = {"age": number % 7, "city": f"c{number % 3}", "tags": ["a", str(number)], "picture": b"%d" % number}
    return {"name": f"p{number}", **usual, **other}


def same(graph: Graph) -> dict[str, DiffStats]:
    """What is counted from main to side, once it is what a comparison of the whole rows tells."""
    counts = {}
    for older, newer in (("side", "main"), ("main", "side")):
        states = [graph.snapshot(branch=branch).record.tables for branch in (older, newer)]
        for key in {*states[0], *states[1]}:
            pins = [state.get(key) for state in states]
            if pins[0] == pins[1]:
                continue
            rows = compared_here(graph._parts.tables, *pins)
            whole = DiffStats(rows.inserted.num_rows, rows.after.num_rows, rows.deleted.num_rows)
            assert counted_here(graph._parts.tables, *pins) == whole
            counts[key] = whole
    return {key: each for key, each in counts.items() if each.total}


def merge(graph: Graph, *people: dict[str, object]) -> None:
    graph.write({"Person": list(people)}, mode="merge", branch="side")


def test_rows_that_changed_in_one_property_each_are_counted(graph: Graph) -> None:
    merge(
        graph,
        *(person(each, age=99) for each in range(0, 60, 3)),
        *(person(each, city="Rome") for each in range(1, 60, 3)),
        *(person(each, tags=["b"]) for each in range(2, 60, 3)),
        *(person(each, picture=b"another") for each in range(60, 70)),
    )
    assert same(graph) == {"node:Person": DiffStats(updated=70)}


def test_rows_written_again_as_they_were_are_not_counted(graph: Graph) -> None:
    merge(graph, *(person(each) for each in range(50)), person(50, age=None), person(900))
    assert same(graph) == {"node:Person": DiffStats(inserted=1, updated=1)}


def test_edges_and_rows_that_are_gone_are_counted(graph: Graph) -> None:
    graph.mutate('query q() { delete Person where name = "p3" }', branch="side")
    graph.write({}, {"Knows": [{"id": "k5", "from": "p0", "to": "p9"}]}, mode="merge", branch="side")
    assert same(graph) == {"node:Person": DiffStats(deleted=1), "edge:Knows": DiffStats(updated=1, deleted=1)}


def test_a_layout_that_is_another_is_no_difference(graph: Graph) -> None:
    merge(graph, *(person(each, age=each % 7) for each in range(0, PEOPLE, 2)))
    graph.optimize(branch="side")
    assert same(graph) == {}


def test_columns_that_only_one_side_has_are_compared_as_what_they_are(graph: Graph) -> None:
    wider = SCHEMA.replace("age: I32?", "age: I64?  mail: String?").replace("city: String?  ", "")
    graph.schema_apply(wider, branch="side", allow_data_loss=True, validated=True)
    graph.write(
        {"Person": [{"name": "p1", "mail": "a@b.c"}, {"name": "p2"}, {"name": "new", "mail": "n"}]},
        mode="merge",
        branch="side",
    )
    assert same(graph)["node:Person"].inserted == 1


def test_types_that_only_one_side_has_are_counted_without_reading_them(graph: Graph, reads: list[str]) -> None:
    graph.schema_apply(f"{SCHEMA}node City {{ name: String @key }}\n", branch="side")
    graph.write({"City": [{"name": "Rome"}, {"name": "Oslo"}]}, branch="side")
    reads.clear()
    found = graph.diff("main", "side")
    assert found.stats == {"node:City": DiffStats(inserted=2)}
    assert reads == []


def test_of_rows_that_differ_no_more_columns_are_fetched_than_it_takes_to_know(graph: Graph, reads: list[str]) -> None:
    merge(graph, *(person(each, age=99, city="Rome") for each in range(40)))
    reads.clear()
    found = graph.diff("main", "side")
    assert (len(found), bool(found), found.types) == (40, True, ("node:Person",))
    assert reads == ["id", "age"]
    assert len(list(found)) == 40
    assert reads == ["id", "age", "id age city name picture tags"]
    assert found.stats["node:Person"].updated == 40
    assert len(reads) == 3


def test_what_was_read_whole_is_counted_from_that(graph: Graph, reads: list[str]) -> None:
    merge(graph, person(1, age=99))
    found = graph.diff("main", "side")
    assert len(list(found)) == 1
    reads.clear()
    assert len(found) == 1
    assert reads == []


def test_many_rows_are_read_whole(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    merge(graph, *(person(each, age=99) for each in range(40)))
    monkeypatch.setattr(limits, "COUNTED_ROWS_MAX", 39)
    pins = [graph.snapshot(branch=branch).record.tables["node:Person"] for branch in ("main", "side")]
    assert counted_here(graph._parts.tables, *pins) is None
    assert graph.diff("main", "side").stats == {"node:Person": DiffStats(updated=40)}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns that are fetched by address, request by request."""
    found: list[str] = []
    fetch: Callable[..., object] = Table.rows_at

    def noted(table: Table, addresses: list[int], *, columns: list[str] | None = None) -> object:
        found.append(" ".join(table.schema.names if columns is None else columns))
        return fetch(table, addresses, columns=columns)

    monkeypatch.setattr(Table, "rows_at", noted)
    return found
