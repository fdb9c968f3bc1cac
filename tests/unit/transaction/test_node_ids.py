"""Ids of whole columns are the same as ids made one by one."""

from datetime import UTC
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.clock import SystemClock
from omnigraph.errors import InvalidRequestError
from omnigraph.ids import UlidSource, decode, is_ulid
from omnigraph.language.schema import accept
from omnigraph.model.keys import derive_id
from omnigraph.model.schema import NodeType
from omnigraph.storage.conform import from_python
from omnigraph.transaction.incoming import derived_ids, fresh_ids

QUICK = settings(derandomize=True, max_examples=60)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "String": st.text(st.characters(codec="utf-8")),
    "Bool": st.booleans(),
    "I32": st.integers(-(2**31), 2**31 - 1),
    "U64": st.integers(0, 2**64 - 1),
    "F32": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "F64": st.floats(allow_nan=False, allow_infinity=False),
    "Date": st.dates(),
    "DateTime": st.datetimes(timezones=st.just(UTC)),
}


def node(body: str) -> NodeType:
    found = accept(f"node A {{ {body} }}").node("A")
    assert found is not None
    return found


@QUICK
@given(st.data())
def test_a_column_of_keys_has_the_ids_its_values_have(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    names = [f"p{number}" for number in range(len(chosen))]
    properties = " ".join(f"{name}: {type_}" for name, type_ in zip(names, chosen, strict=True))
    type_ = node(f"{properties} @key({', '.join(names)})")
    rows = data.draw(st.lists(st.tuples(*(VALUES[each] for each in chosen)), max_size=4))
    columns = {
        each.name: from_python([row[names.index(each.name)] for row in rows], each.type, each.name)
        for each in type_.properties
    }
    one_by_one = [derive_id(type_, dict(zip(names, row, strict=True))) for row in rows]
    assert derived_ids(type_, columns).to_pylist() == one_by_one


def test_a_key_without_a_value_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="node A is missing a non-null @key value"):
        derived_ids(node("n: I32 @key"), {"n": pa.array([1, None], pa.int32())})


@pytest.mark.parametrize("count", [0, 1, 8, 9, 1_000])
def test_fresh_ids_are_ulids_in_rising_order(count: int) -> None:
    source = UlidSource()
    made = fresh_ids(source, count)
    made.validate(full=True)
    ids = [str(each) for each in made.to_pylist()]
    assert len(set(ids)) == count
    assert ids == sorted(ids)
    assert all(map(is_ulid, ids))
    assert not set(ids) & set(map(str, fresh_ids(source, count).to_pylist()))


def test_many_fresh_ids_count_up_and_are_none_that_the_source_gives_in_the_same_millisecond() -> None:
    class Frozen(SystemClock):
        def now_us(self) -> int:
            return 1_700_000_000_000_000

    source = UlidSource(Frozen())
    before = {source.new() for _ in range(100)}
    ids = [str(row_id) for row_id in fresh_ids(source, 1_000).to_pylist()]
    after = {source.new() for _ in range(1_000)}

    assert [decode(row_id) - decode(ids[0]) for row_id in ids] == list(range(1_000))
    assert not set(ids) & (before | after)
    assert {row_id[:10] for row_id in ids} == {row_id[:10] for row_id in before}


@pytest.mark.parametrize("chance", [b"\x00" * 10, b"\xff" * 10, b"\x00\x01" + b"\xff" * 8])
def test_counting_up_never_leaves_the_millisecond(chance: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    class Chance:
        def digest(self, _length: int) -> bytes:
            return chance

    monkeypatch.setattr("hashlib.shake_256", lambda _seed: Chance())

    ids = [str(row_id) for row_id in fresh_ids(UlidSource(), 1_000).to_pylist()]

    assert all(map(is_ulid, ids))
    assert [decode(row_id) - decode(ids[0]) for row_id in ids] == list(range(1_000))
    assert len({row_id[:10] for row_id in ids}) == 1


def test_fresh_ids_come_from_their_source_alone() -> None:
    class Fixed:
        def new(self) -> str:
            return "01ARZ3NDEKTSV4RRFFQ69G5FAV"

    assert fresh_ids(Fixed(), 100).equals(fresh_ids(Fixed(), 100))
