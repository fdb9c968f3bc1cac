"""Whoever keeps track of rows tells exactly what a search of the very same version finds."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph import limits
from omnigraph.api.options import OpenOptions
from omnigraph.execution.cache import ByteCache
from omnigraph.execution.row_index import CachedRowIndex
from omnigraph.execution.versions import Versions
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.table import ADDRESS
from omnigraph.storage.tables.tables import (
    IndexKind,
    IndexSpec,
    RowAddresses,
    RowsToStage,
    StagedVersion,
    Table,
    Tables,
)
from omnigraph.transaction.write_set.committed import FoundEdge

EDGES = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("id", "src", "dst")])
PLENTY = 64 * 1024**2
NODES = ("n0", "n1", "n2", "")


class Tracked:
    """A table of edges, and somebody who keeps track of it."""

    def __init__(self, root: Path, *, bytes_max: int = PLENTY) -> None:
        self.tables = Tables(str(root))
        self.row_index = CachedRowIndex(Versions(self.tables, ByteCache(PLENTY)), bytes_max=bytes_max)
        self.first = self.tables.create("edges/01X", EDGES)

    def write(
        self, base: Pin, edges: Sequence[tuple[str, str, str]] = (), *, gone: Sequence[str] = (), told: bool = True
    ) -> Pin:
        rows = (
            pa.table(dict(zip(EDGES.names, map(list, zip(*edges, strict=True)), strict=True)), EDGES) if edges else None
        )
        staged = self.tables.stage_rows(base, RowsToStage(upserts=rows, deleted_ids=tuple(gone)))
        if told:
            self.row_index.learn(staged)
        return staged.pin

    def known(self, pin: Pin) -> Pin:
        """The version, with its columns in memory from the second question on."""
        assert self.row_index.places(pin, ["nobody"]) is None
        assert self.row_index.places(pin, ["nobody"]) == {}
        return pin

    def agrees(self, pin: Pin, ids: Sequence[str], nodes: Sequence[str] = NODES) -> None:
        """Compare every answer with a search."""
        table = self.tables.open(pin)
        assert self.row_index.places(pin, ids) == searched_places(table, ids)
        for column in ("src", "dst"):
            found = self.row_index.edges(pin, column, nodes)
            assert found is not None
            assert sorted(found, key=lambda each: each.id) == searched_edges(table, column, nodes)


def searched_places(table: Table, ids: Sequence[str]) -> dict[str, int]:
    found = table.rows_with_ids(ids, columns=["id"], with_addresses=True)
    return {str(row["id"]): int(row[ADDRESS]) for row in found.to_pylist()}


def searched_edges(table: Table, column: str, nodes: Sequence[str]) -> list[FoundEdge]:
    rows = table.scan(with_addresses=True).to_pylist()
    found = [FoundEdge(row["id"], row["src"], row["dst"], row[ADDRESS]) for row in rows if row[column] in nodes]
    return sorted(found, key=lambda each: each.id)


@pytest.fixture
def tracked(tmp_path: Path) -> Tracked:
    return Tracked(tmp_path)


def test_the_first_question_about_a_version_is_left_to_the_table(tracked: Tracked) -> None:
    pin = tracked.write(tracked.first, [("e1", "n0", "n1")])

    assert tracked.row_index.places(pin, ["e1"]) is None
    assert tracked.row_index.places(pin, ["e1", "e2"]) == searched_places(tracked.tables.open(pin), ["e1"])


def test_a_version_made_by_a_small_write_is_known_without_reading_it(tracked: Tracked) -> None:
    base = tracked.known(tracked.write(tracked.first, [("e1", "n0", "n1"), ("e2", "n1", "n1")]))

    made = tracked.write(base, [("e2", "n2", "n0"), ("e3", "n0", "n0")], gone=["e1"])

    tracked.agrees(made, ["e1", "e2", "e3", "e4"])
    tracked.agrees(base, ["e1", "e2", "e3", "e4"])  # as it was


def test_a_row_that_goes_and_comes_back_is_where_it_came_back(tracked: Tracked) -> None:
    pins = [tracked.known(tracked.write(tracked.first, [("e1", "n0", "n1")]))]
    pins.append(tracked.write(pins[-1], gone=["e1"]))
    pins.append(tracked.write(pins[-1], [("e1", "n2", "n1")]))
    pins.append(tracked.write(pins[-1], [("e1", "n1", "n0")]))

    for pin in pins:
        tracked.agrees(pin, ["e1"])


def test_two_versions_made_from_one_know_nothing_of_each_other(tracked: Tracked) -> None:
    base = tracked.known(tracked.write(tracked.first, [("e1", "n0", "n1")]))
    middle = tracked.write(base, [("e2", "n0", "n2")])
    left = tracked.write(middle, [("e3", "n0", "n0")], gone=["e1"])
    right = tracked.write(middle, [("e1", "n2", "n2"), ("e4", "n0", "n0")])
    further = tracked.write(left, gone=["e2"])

    for pin in (base, middle, left, right, further):
        tracked.agrees(pin, ["e1", "e2", "e3", "e4"])


def test_a_version_nobody_told_of_is_not_guessed_at(tracked: Tracked) -> None:
    base = tracked.known(tracked.write(tracked.first, [("e1", "n0", "n1")]))
    elsewhere = tracked.write(base, [("e2", "n0", "n2")], gone=["e1"], told=False)

    assert tracked.row_index.places(elsewhere, ["e1"]) is None
    assert tracked.row_index.edges(elsewhere, "src", ["n0"]) is not None
    tracked.agrees(elsewhere, ["e1", "e2"])
    tracked.agrees(base, ["e1", "e2"])


def test_a_compaction_in_between_moves_rows_and_no_answer_is_stale(tracked: Tracked) -> None:
    base = tracked.known(tracked.write(tracked.first, [("e1", "n0", "n1"), ("e2", "n0", "n1")]))
    for number in range(3, 7):
        base = tracked.write(base, [(f"e{number}", "n1", "n2")], gone=[f"e{number - 2}"])
    staged = tracked.tables.stage_compaction(base)
    assert staged.pin != base
    tracked.row_index.learn(staged)

    ids = [f"e{number}" for number in range(9)]
    assert tracked.row_index.places(staged.pin, ids) is None
    after = tracked.write(staged.pin, [("e7", "n0", "n0")], gone=["e5"])
    for pin in (base, staged.pin, after):
        tracked.agrees(pin, ids)


def test_a_write_too_large_to_follow_starts_over(tracked: Tracked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FINDER_CHANGES_MAX", 5)
    pin = tracked.known(tracked.write(tracked.first, [("e0", "n0", "n1")]))
    for number in range(1, 12):
        pin = tracked.write(pin, [(f"e{number}", "n0", "n1")], gone=[f"e{number - 3}"])
        tracked.agrees(pin, [f"e{each}" for each in range(12)])


def test_a_column_too_large_for_the_memory_is_left_to_the_table(tmp_path: Path) -> None:
    tracked = Tracked(tmp_path, bytes_max=50)
    pin = tracked.write(tracked.first, [("e1", "n0", "n1"), ("e2", "n0", "n1")])

    assert [tracked.row_index.places(pin, ["e1"]) for _ in range(3)] == [None] * 3
    assert tracked.row_index.edges(pin, "src", ["n0"]) is None


def test_where_the_table_has_an_index_of_its_own_few_questions_go_there(tracked: Tracked) -> None:
    pin = tracked.write(tracked.first, [("e1", "n0", "n1")])
    pin = tracked.tables.stage_index(pin, IndexSpec("by_id", "id", IndexKind.BTREE)).pin

    tracked.known(pin)  # small tables are read whole all the same

    tracked.agrees(pin, ["e1"])


def test_a_version_whose_files_are_gone_is_forgotten(tmp_path: Path) -> None:
    tracked = Tracked(tmp_path)
    pin = tracked.write(tracked.first, [("e1", "n0", "n1")])
    assert tracked.row_index.places(pin, ["e1"]) is None
    for file in (tmp_path / "edges/01X/data").iterdir():
        file.unlink()

    assert tracked.row_index.places(pin, ["e1"]) is None


def test_only_so_many_lines_of_a_table_are_kept(tracked: Tracked) -> None:
    pins = [tracked.write(tracked.first, [(f"e{number}", "n0", "n1")], told=False) for number in range(8)]
    for pin in pins:
        tracked.known(pin)

    assert [len(chains) for chains in tracked.row_index._chains.values()] == [limits.FINDER_LINES_MAX]


def test_places_of_one_version_are_not_used_on_another(tracked: Tracked) -> None:
    one = tracked.write(tracked.first, [("e1", "n0", "n1"), ("e2", "n0", "n1")])
    other = tracked.write(tracked.write(one, gone=["e1"]), [("e1", "n2", "n2")])
    known = RowAddresses(one.version, searched_places(tracked.tables.open(one), ["e1", "e2"]))

    staged: StagedVersion = tracked.tables.stage_rows(other, RowsToStage(deleted_ids=("e1",), known_addresses=known))

    assert staged.deleted_ids == ("e1",)
    assert tracked.tables.open(staged.pin).scan().column("id").to_pylist() == ["e2"]


_IDS = [f"e{number}" for number in range(6)]
_STEPS = st.lists(
    st.tuples(
        st.integers(0, 30),  # which version to write on
        st.lists(st.tuples(st.sampled_from(_IDS), st.sampled_from(NODES), st.sampled_from(NODES)), max_size=3),
        st.lists(st.sampled_from(_IDS), max_size=2),
        st.sampled_from(["told", "told", "told", "untold", "compacted"]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=12)
@given(steps=_STEPS)
def test_any_tree_of_versions_is_answered_like_a_search(
    steps: list[tuple[int, list[tuple[str, str, str]], list[str], str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    tracked = Tracked(tmp_path_factory.mktemp("tree"))
    pins = [tracked.write(tracked.first, [("e0", "n0", "n1"), ("e1", "n1", "")])]
    for where, edges, gone, how in steps:
        base = pins[where % len(pins)]
        tracked.row_index.places(base, _IDS)
        by_id = {edge[0]: edge for edge in edges if edge[0] not in gone}
        made = tracked.write(base, list(by_id.values()), gone=sorted(set(gone)), told=how == "told")
        if how == "compacted":
            made = tracked.tables.stage_compaction(made).pin
        pins.append(made)
        for pin in {base, made}:
            if tracked.row_index.places(pin, _IDS) is not None or tracked.row_index.places(pin, _IDS) is not None:
                tracked.agrees(pin, _IDS)


SCHEMA = "node Person { name: String @key  age: I32? } edge Knows: Person -> Person { since: I32? }"


def test_a_graph_with_many_small_writes_and_deletes_holds_what_a_dictionary_holds(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA, options=OpenOptions(durability="process")) as graph:
        for number in range(8):
            graph.mutate("query a($n: String) { insert Person { name: $n } }", {"n": f"p{number}"})
        for number in range(16):
            ends = {"f": f"p{number % 8}", "t": f"p{number * 3 % 8}"}
            graph.mutate("query a($f: String, $t: String) { insert Knows { from: $f, to: $t } }", ends)
        graph.mutate('query u() { update Person set { age: 7 } where name = "p3" }')
        left = [(f"p{number % 8}", f"p{number * 3 % 8}") for number in range(16)]
        for gone in ("p1", "p4", "p3", "p9"):
            done = graph.mutate("query d($n: String) { delete Person where name = $n }", {"n": gone})
            before, left = left, [ends for ends in left if gone not in ends]
            assert (done.affected_nodes, done.affected_edges) == (gone != "p9", len(before) - len(left))

        rows = graph.export_arrow("Knows", columns=["src", "dst"]).read_all().to_pylist()
        assert sorted((row["src"], row["dst"]) for row in rows) == sorted(left)
        assert graph.count("Person") == 5


@pytest.mark.parametrize("one_by_one", [0, 3, 64], ids=["in passes", "some of both", "one by one"])
def test_the_answer_is_the_same_however_many_rows_are_looked_at_one_by_one(
    tracked: Tracked, one_by_one: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FOUND_ONE_BY_ONE_MAX", one_by_one)
    edges = [(f"e{number}", f"n{number % 3}", f"n{number % 2}") for number in range(20)]
    pin = tracked.known(tracked.write(tracked.first, edges[:12], told=False))
    tracked.agrees(pin, ["e0", "e11", "nobody"])
    # Rows that are gone when the columns are read, and rows in several fragments.
    other = tracked.write(pin, edges[12:], gone=["e1", "e2"], told=False)
    tracked.agrees(tracked.known(other), ["e1", "e3", "e19"])


def test_ids_that_are_asked_for_are_found_whoever_knows_of_them(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", "node N { name: String @key }", options=OpenOptions())
    graph.mutate('query q() { insert N { name: "a" } insert N { name: "b" } insert N { name: "c" } }')
    delete = "query d($k: String) { delete N where name = $k }"
    # The first is searched for, the others are told; the last is not there any more.
    assert [graph.mutate(delete, {"k": each}).affected_nodes for each in ("a", "b", "c", "c")] == [1, 1, 1, 0]
    # Of what the same mutation has put or deleted before, nobody else knows.
    both = 'query q() @ordered { insert N { name: "d" } delete N where name = "d" delete N where name = "d" }'
    assert graph.mutate(both).affected_nodes == 2
    assert graph.count("N") == 0
    graph.close()
