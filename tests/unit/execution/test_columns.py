"""Numbered rows and columns in memory: read once, grown by what is new, shared between versions."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.graphs import StoredGraph, small_schema, store_graph

from omnigraph import limits
from omnigraph.errors import LimitError
from omnigraph.execution.arrays import NONE, to_numpy
from omnigraph.execution.cache import ByteCache
from omnigraph.execution.columns import Columns
from omnigraph.execution.encoder import Encoder, RowEncoder
from omnigraph.execution.id_index import build_id_index, hash_text, hash_texts
from omnigraph.execution.versions import Versions
from omnigraph.storage.tables import fragments
from omnigraph.storage.tables.fragments import StoredFragment
from omnigraph.storage.tables.tables import Table

QUICK = settings(derandomize=True)
SCHEMA = small_schema()
PERSON = "node:Person"


def people(graph: StoredGraph, *names: str, age: int = 1) -> pa.Table:
    return graph.rows(PERSON, [{"id": name, "name": name, "age": age, "city": name[:1]} for name in names])


class Watched:
    """A graph and its columns, and how often fragments are read."""

    def __init__(self, folder: Path) -> None:
        self.graph = store_graph(str(folder), SCHEMA)
        self.cache = ByteCache(10**9)
        self.versions = Versions(self.graph.parts.tables, self.cache)
        self.reads: list[int] = []

    def now(self) -> Columns:
        return self.versions.at(self.graph.snapshot().record.tables[PERSON])

    def ids(self, columns: Columns) -> list[str]:
        return [str(each) for each in columns.take("id", columns.numbering.live).to_pylist()]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched = Watched(tmp_path)

    def counted(table: Table, some: Sequence[StoredFragment], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        watched.reads.append(len(some))
        return fragments.fragment_rows(table, some, columns)

    monkeypatch.setattr("omnigraph.execution.column.fragment_rows", counted)
    return watched


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_rows_of_new_fragments_are_numbered_behind_those_there_were(watched: Watched) -> None:
    watched.graph.add({PERSON: people(watched.graph, "a", "b")})
    before = watched.now()
    watched.graph.add({PERSON: people(watched.graph, "c")})
    after = watched.now()

    assert after.numbering.is_compatible(before.numbering)
    assert after.numbering.added_since(before.numbering).tolist() == [2]
    assert before.numbering.removed_since(after.numbering).tolist() == [2]
    assert watched.ids(after) == ["a", "b", "c"]


def test_a_deleted_row_leaves_a_hole(watched: Watched) -> None:
    watched.graph.add({PERSON: people(watched.graph, "a", "b", "c")})
    before = watched.now()
    watched.graph.change({}, {PERSON: ["b"]})
    after = watched.now()

    assert after.numbering.is_compatible(before.numbering)
    assert after.numbering.removed_since(before.numbering).tolist() == [1]
    assert before.numbering.added_since(after.numbering).tolist() == [1]
    assert after.numbering.live.tolist() == [0, 2]
    assert after.numbering.count == 2
    assert watched.ids(before) == ["a", "b", "c"]


def test_a_row_that_is_written_again_gets_a_new_number(watched: Watched) -> None:
    watched.graph.add({PERSON: people(watched.graph, "a", "b")})
    watched.now()
    watched.graph.change({PERSON: people(watched.graph, "a", age=2)}, {})
    after = watched.now()

    assert after.numbering.live.tolist() == [1, 2]
    assert after.find(["a"]).tolist() == [2]
    assert after.take("age", after.find(["a"])).to_pylist() == [2]


def test_numbers_and_addresses_lead_to_each_other(watched: Watched) -> None:
    for names in ("ab", "c", "def"):
        watched.graph.add({PERSON: people(watched.graph, *names)})
    watched.graph.change({}, {PERSON: ["c"]})
    columns = watched.now()
    scanned = columns.table.scan(columns=["id"], with_addresses=True)
    addresses: Any = scanned.column("_rowaddr").to_numpy()

    ordinals = columns.numbering.ordinals_at(addresses.astype(np.uint64))

    assert columns.take("id", ordinals).to_pylist() == scanned.column("id").to_pylist()
    assert columns.numbering.addresses(ordinals).tolist() == addresses.tolist()


def test_numbering_starts_over_when_most_numbers_stand_for_nothing(watched: Watched) -> None:
    with patch.object(limits, "ORDINAL_HOLES_ALLOWED", 0):
        watched.graph.add({PERSON: people(watched.graph, "a", "b", "c")})
        before = watched.now()
        watched.graph.change({PERSON: people(watched.graph, "a", age=2)}, {})
        one_hole = watched.now()
        watched.graph.change({PERSON: people(watched.graph, "a", "b", "c", age=3)}, {})
        many_holes = watched.now()
    assert one_hole.numbering.is_compatible(before.numbering)
    assert one_hole.numbering.size == 4
    # The fragments that are gone have no numbers any more.
    assert not many_holes.numbering.is_compatible(one_hole.numbering)
    assert many_holes.numbering.size == 3
    assert sorted(watched.ids(many_holes)) == ["a", "b", "c"]
    assert many_holes.take("age", many_holes.find(["a", "b", "c"])).to_pylist() == [3, 3, 3]


def test_rows_deleted_in_fragments_that_stay_do_not_start_numbering_over(watched: Watched) -> None:
    """Another numbering would have the same holes."""
    with patch.object(limits, "ORDINAL_HOLES_ALLOWED", 0):
        watched.graph.add({PERSON: people(watched.graph, *"abcde")})
        before = watched.now()
        watched.graph.change({}, {PERSON: list("abcd")})
        after = watched.now()
    assert after.numbering.is_compatible(before.numbering)
    assert watched.ids(after) == ["e"]


def test_branches_that_have_little_in_common_keep_their_numbers(watched: Watched) -> None:
    with patch.object(limits, "ORDINAL_HOLES_ALLOWED", 0):
        watched.graph.add({PERSON: people(watched.graph, *"abc")})
        one = watched.graph.snapshot().record.tables[PERSON]
        first = watched.versions.at(one)
        watched.graph.change({PERSON: people(watched.graph, *"xyz")}, {PERSON: list("abc")})
        other = watched.now()
        assert not other.numbering.is_compatible(first.numbering)
        watched.cache.drop(("rows", one.table, one.version))
        assert watched.versions.at(one).numbering.is_compatible(first.numbering)
        watched.graph.add({PERSON: people(watched.graph, "w")})
        assert watched.now().numbering.is_compatible(other.numbering)


def test_a_version_that_was_numbered_before_numbering_started_over_reads_its_own_rows(watched: Watched) -> None:
    with patch.object(limits, "ORDINAL_HOLES_ALLOWED", 5):
        watched.graph.add({PERSON: people(watched.graph, *"abcde")})
        watched.now()
        watched.graph.change({PERSON: people(watched.graph, *"pqrstuvwxyz")}, {PERSON: list("abcde")})
        before = watched.now()
        watched.graph.change({PERSON: people(watched.graph, "k", "l", "m")}, {PERSON: list("pqrstuvwxyz")})
        after = watched.now()
    assert (before.numbering.size, after.numbering.size) == (16, 3)
    assert after.take("city", after.numbering.live).to_pylist() == ["k", "l", "m"]
    assert before.take("city", before.numbering.live).to_pylist() == list("pqrstuvwxyz")


def test_a_version_that_is_opened_again_uses_nothing_of_its_old_numbers(watched: Watched) -> None:
    """The cache may let go of a version's numbers and keep its columns; numbered again, its rows may lie elsewhere."""
    watched.graph.add({PERSON: people(watched.graph, "a", "b")})
    pin = watched.graph.snapshot().record.tables[PERSON]
    first = watched.now()
    assert first.take("city", first.find(["a"])).to_pylist() == ["a"]
    with patch.multiple(limits, ORDINAL_HOLES_ALLOWED=0, ORDINAL_SPACES_MAX=1):
        watched.graph.change({PERSON: people(watched.graph, "x", "y", "z")}, {PERSON: ["a", "b"]})
        watched.now()
    watched.cache.drop(("rows", pin.table, pin.version))
    with patch.object(limits, "ORDINAL_HOLES_ALLOWED", 0):
        again = watched.versions.at(pin)
    assert not again.numbering.is_compatible(first.numbering)
    assert again.find(["x"]).tolist() == []
    assert again.take("city", again.find(["a", "b"])).to_pylist() == ["a", "b"]
    assert first.take("city", first.find(["a", "b"])).to_pylist() == ["a", "b"]


def test_a_table_with_more_rows_than_numbers_is_refused(watched: Watched) -> None:
    watched.graph.add({PERSON: people(watched.graph, "a", "b", "c")})
    with patch.object(limits, "ORDINALS_MAX", 2), pytest.raises(LimitError) as refused:
        watched.now()
    assert refused.value.code == "table_too_large"


def test_an_older_version_read_after_a_newer_one_has_its_own_rows(watched: Watched) -> None:
    watched.graph.add({PERSON: people(watched.graph, "a", "b")})
    old = watched.graph.snapshot().record.tables[PERSON]
    watched.graph.change({PERSON: people(watched.graph, "a", age=2)}, {PERSON: ["b"]})
    assert sorted(watched.ids(watched.now())) == ["a"]

    before = watched.versions.at(old)

    assert sorted(watched.ids(before)) == ["a", "b"]
    assert before.take("age", before.find(["a"])).to_pylist() == [1]


def test_after_a_compaction_every_row_is_there_once(watched: Watched) -> None:
    for names in ("ab", "c", "d"):
        watched.graph.add({PERSON: people(watched.graph, *names)})
    watched.graph.change({}, {PERSON: ["c"]})
    before = watched.now()
    watched.graph.compact(PERSON)
    after = watched.now()

    assert sorted(watched.ids(after)) == sorted(watched.ids(before)) == ["a", "b", "d"]
    assert after.pin.version != before.pin.version


# --- columns ----------------------------------------------------------------------------------------------------------


def test_a_newer_version_reads_only_its_new_fragments(watched: Watched) -> None:
    watched.graph.add({PERSON: people(watched.graph, "a", "b")})
    watched.now().column("city")
    watched.graph.add({PERSON: people(watched.graph, "c")})
    grown = watched.now().column("city")

    assert grown.array.to_pylist() == ["a", "b", "c"]
    assert watched.reads == [1, 1]


def test_a_version_that_only_deletes_reads_nothing(watched: Watched) -> None:
    watched.graph.add({PERSON: people(watched.graph, "a", "b")})
    before = watched.now().column("city")
    watched.graph.change({}, {PERSON: ["a"]})
    after = watched.now().column("city")

    assert after.array is before.array
    assert watched.reads == [1]
    assert watched.cache.stats().values == 3  # two versions of the rows, one column


def test_absent_ordinals_have_null(watched: Watched) -> None:
    watched.graph.add({PERSON: people(watched.graph, "a", "b")})
    columns = watched.now()
    taken = columns.take("city", np.array([1, NONE, 0, 1], dtype=np.int32), absent=True)
    assert taken.to_pylist() == ["b", None, "a", "b"]


def test_codes_of_old_values_stay_when_rows_come(watched: Watched) -> None:
    watched.graph.add({PERSON: people(watched.graph, "a1", "b1", "a2")})
    before = watched.now().encoded("city")
    watched.graph.add({PERSON: people(watched.graph, "b2", "c1")})
    after = watched.now().encoded("city")

    assert before.codes.tolist() == [0, 1, 0]
    assert after.codes.tolist() == [0, 1, 0, 1, 2]
    assert after.values.to_pylist() == ["a", "b", "c"]


def test_both_zeros_have_one_code(watched: Watched) -> None:
    rows = [{"id": name, "name": name, "score": score} for name, score in (("a", 0.0), ("b", -0.0), ("c", None))]
    watched.graph.add({PERSON: watched.graph.rows(PERSON, rows)})
    assert watched.now().encoded("score").codes.tolist() == [0, 0, NONE]


def test_a_column_dropped_and_added_again_is_another_one(watched: Watched) -> None:
    watched.graph.add({PERSON: people(watched.graph, "a")})
    tables = watched.graph.parts.tables
    pin = watched.graph.snapshot().record.tables[PERSON]
    assert watched.versions.at(pin).take("city", np.array([0], dtype=np.int32)).to_pylist() == ["a"]
    dropped = tables.stage_drop_column(pin, "city")
    added = tables.stage_add_column(dropped.pin, pa.field("city", pa.string()))
    assert watched.versions.at(added.pin).column("city").array.to_pylist() == [None]


def test_few_rows_of_a_large_table_are_looked_up_until_that_costs_more_than_reading_it(watched: Watched) -> None:
    watched.graph.add({PERSON: people(watched.graph, "a", "b", "c")})
    columns = watched.now()
    with (
        patch.object(limits, "READ_WHOLE_ROWS_MAX", 2),
        patch("omnigraph.execution.versions._BYTES_PER_SECOND_READ", 1.0),
    ):
        # Reading is so slow that looking up is always cheaper.
        assert columns.take("city", np.array([2, NONE, 2], dtype=np.int32), absent=True).to_pylist() == ["c", None, "c"]
        assert columns.find(["b", "nobody"]).tolist() == [1]
        assert columns.locate(pa.array(["c", "nobody", "a"])).tolist() == [2, NONE, 0]
        assert watched.reads == []
    with (
        patch.object(limits, "READ_WHOLE_ROWS_MAX", 2),
        patch("omnigraph.execution.versions._BYTES_PER_SECOND_READ", 1e30),
    ):
        assert columns.take("city", np.array([2], dtype=np.int32)).to_pylist() == ["c"]
        assert watched.reads == [1]


# --- ids --------------------------------------------------------------------------------------------------------------


@QUICK
@given(texts=st.lists(st.text(max_size=40), max_size=20), cut=st.integers(0, 20))
def test_one_text_and_many_have_the_same_hash(texts: list[str], cut: int) -> None:
    array = pa.array(["ahead", *texts], pa.string()).slice(min(cut, len(texts)))
    assert hash_texts(array).tolist() == [hash_text(str(each)) for each in array.to_pylist()]
    assert hash_texts(array.cast(pa.large_string())).tolist() == hash_texts(array).tolist()


@QUICK
@given(parts=st.lists(st.lists(st.text(max_size=9), min_size=1, max_size=5), min_size=1, max_size=6))
def test_an_index_finds_every_id_in_whichever_part_it_is(parts: list[list[str]]) -> None:
    ids = list(parts[0])
    index = build_id_index(pa.array(ids, pa.string()))
    for part in parts[1:]:
        ids += part
        index = index.extended(pa.array(ids, pa.string()))
    assert len(index.segments) <= len(ids).bit_length()
    for place, text in enumerate(ids):
        assert place in index.candidates(text)


def test_two_ids_with_one_hash_are_told_apart(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.execution.id_index.hash_text", lambda _: 7)
    monkeypatch.setattr(
        "omnigraph.execution.id_index.hash_texts", lambda texts: np.full(len(texts), 7, dtype=np.uint64)
    )
    watched.graph.add({PERSON: people(watched.graph, "a", "b", "c")})
    assert watched.now().find(["b", "d", "b", "a"]).tolist() == [1, 0]


def test_many_ids_are_found_in_one_pass(watched: Watched) -> None:
    names = [f"p{number:04d}" for number in range(1_200)]
    watched.graph.add({PERSON: people(watched.graph, *names)})
    watched.graph.change({}, {PERSON: ["p0003"]})
    columns = watched.now()
    wanted = [*names[::-1], "nobody"]
    located = columns.locate(pa.array(wanted))
    assert located[-1] == NONE
    assert located[wanted.index("p0003")] == NONE
    found = located[located != NONE]
    assert columns.take("id", found).to_pylist() == [each for each in wanted[:-1] if each != "p0003"]
    with patch.object(limits, "LOOKUP_ROWS_MAX", 10):
        assert sorted(columns.find(wanted).tolist()) == sorted(found.tolist())


# --- numbers for values -----------------------------------------------------------------------------------------------


@QUICK
@given(batches=st.lists(st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "c", ""])), max_size=6), max_size=5))
def test_equal_values_get_equal_numbers_in_every_batch(batches: list[list[str | None]]) -> None:
    encoder = Encoder()
    numbers: dict[str | None, int] = {}
    for batch in batches:
        codes = encoder.encode(pa.array(batch, pa.string())).tolist()
        for value, code in zip(batch, codes, strict=True):
            assert numbers.setdefault(value, code) == code
        assert encoder.decode(np.array(codes, dtype=np.int64)).to_pylist() == batch
    assert len(set(numbers.values())) == len(numbers)
    assert numbers.get(None, 0) == 0


def test_lists_and_both_zeros_are_numbered_by_value() -> None:
    lists = Encoder()
    assert lists.encode(pa.array([[1, 2], [], None, [1, 2]])).tolist() == [1, 2, 0, 1]
    assert lists.decode(np.array([2, 1, 0])).to_pylist() == [[], [1, 2], None]
    assert Encoder().encode(pa.array([0.0, -0.0, 1.0])).tolist() == [1, 1, 2]


@QUICK
@given(rows=st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(0, 2)), st.booleans()), max_size=12))
def test_equal_rows_get_equal_numbers(rows: list[tuple[int, int | None, bool]]) -> None:
    columns = [
        pa.array([row[at] for row in rows], type_) for at, type_ in enumerate((pa.int64(), pa.int32(), pa.bool_()))
    ]
    codes = RowEncoder(3).encode(list(columns), len(rows))
    for one, code in zip(rows, codes, strict=True):
        assert [other == one for other in rows] == (codes == code).tolist()


def test_a_numpy_view_of_dates_and_times_is_their_numbers() -> None:
    assert to_numpy(pa.array([3], pa.date32())).tolist() == [3]
    assert to_numpy(pa.array([5], pa.timestamp("ms", tz="UTC"))).tolist() == [5]
