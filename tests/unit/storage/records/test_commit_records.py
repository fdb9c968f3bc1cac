"""Log entries on disk: what is written is read back, by this release and by later ones."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import FormatError
from omnigraph.model.change import NO_CHANGES, Changes, TypeChange
from omnigraph.model.commit import UNKNOWN, CommitKind, Pin, Record, Recovery, RecoveryKind, TableOutcome
from omnigraph.model.footprint import Footprint, TokenKind, TypeFootprint, tokens
from omnigraph.model.retention import Pruned
from omnigraph.storage.records.read import (
    footprint_bytes,
    read_footprint,
    read_record,
    record_bytes,
)

PLAIN = Record(
    commit="01KDVDNA00AAAAAAAAAAAAAAAA",
    branch="main",
    number=7,
    kind=CommitKind.MUTATION,
    parent="01KDVDNA00AAAAAAAAAAAAAAA0",
    schema="digest",
    tables={"node:Person": Pin("nodes/p", 2**64 - 1, 10, 2**40)},
    created_at_us=1_767_225_600_000_000,
)

_texts = st.text(st.characters(), max_size=12)
_versions = st.integers(1, 2**64 - 1)
_pins = st.builds(Pin, _texts, _versions, st.integers(UNKNOWN, 2**50), st.integers(UNKNOWN, 2**60))
_tokens = st.frozensets(st.integers(0, 2**64 - 1), max_size=4)
_parts = st.builds(TypeFootprint, _tokens, _tokens, st.booleans(), st.booleans(), st.booleans()).filter(
    lambda part: part != TypeFootprint()
)
_some_ids = st.lists(_texts, max_size=3).map(tuple)
_inline = st.builds(
    lambda ids: TypeChange(len(ids[0]), len(ids[1]), len(ids[2]), *ids), st.tuples(_some_ids, _some_ids, _some_ids)
)
_counted = st.builds(TypeChange, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
_changes = st.one_of(
    st.just(NO_CHANGES),
    st.dictionaries(_texts, _inline, min_size=1, max_size=3).map(Changes),
    st.builds(Changes, st.dictionaries(_texts, _counted, max_size=3), _texts),
)
_outcomes = st.builds(TableOutcome, _texts, _versions, _versions)
_recoveries = st.builds(
    Recovery,
    st.sampled_from(RecoveryKind),
    _texts,
    st.sampled_from(CommitKind),
    st.none() | _texts,
    st.lists(_outcomes, max_size=3).map(tuple),
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=5,
)
_numbers = st.integers(1, 2**63)
records = st.builds(
    Record,
    commit=_texts,
    branch=_texts,
    number=st.integers(1, 2**63),
    kind=st.sampled_from(CommitKind),
    parent=st.none() | _texts,
    schema=_texts,
    tables=st.dictionaries(_texts, _pins, max_size=4),
    created_at_us=st.integers(0, 2**53),
    merged_parent=st.none() | _texts,
    actor=st.none() | _texts,
    message=st.none() | _texts,
    intent=st.none() | _texts,
    idempotency_key=st.none() | _texts,
    changes=_changes,
    footprint=st.one_of(
        st.dictionaries(_texts, _parts, max_size=3).map(Footprint), _texts.map(lambda path: Footprint(file=path))
    ),
    aborted=st.lists(_texts, max_size=3).map(tuple),
    recovery=st.none() | _recoveries,
    fork_of=st.none() | _texts,
    fork_number=st.none() | st.integers(1, 2**63),
    notes=st.dictionaries(_texts, _json, max_size=3),
    born=st.none() | st.integers(1, 2**63),
    pruned=st.builds(
        Pruned,
        _numbers,
        _numbers,
        st.lists(_numbers, max_size=3).map(tuple),
        st.lists(st.tuples(_numbers, st.integers(0, 2**53)), max_size=3).map(tuple),
        _numbers,
        st.lists(_numbers, max_size=3).map(tuple),
    ),
)


@given(records)
def test_a_record_is_read_back_as_it_was_written(record: Record) -> None:
    assert read_record(record_bytes(record), path="") == record


@given(records, st.dictionaries(_texts, _pins, max_size=4))
def test_a_record_that_counts_from_an_earlier_map_is_read_back_whole(record: Record, known: dict[str, Pin]) -> None:
    record = replace(record, number=record.number + 1)
    asked = []

    def whole_map(number: int) -> dict[str, Pin]:
        asked.append(number)
        return known

    body = record_bytes(record, since=(1, known))
    assert read_record(body, path="", whole_map=whole_map) == record
    assert asked == [1]


def test_table_versions_are_texts_on_disk_because_they_exceed_what_readers_of_json_keep() -> None:
    document = json.loads(record_bytes(PLAIN))
    assert document["tables"]["node:Person"]["version"] == str(2**64 - 1)


def test_members_that_say_nothing_are_left_out() -> None:
    assert json.loads(record_bytes(PLAIN)).keys() == {
        "format", "commit", "branch", "number", "kind", "parent", "created_at", "schema", "tables", "sum"
    }  # fmt: skip


def test_members_a_later_release_may_add_are_passed_over() -> None:
    document = {**json.loads(record_bytes(PLAIN)), "later": {"a": 1}}
    assert read_record(json.dumps(document).encode(), path="") == PLAIN


@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_whatever_lies_there_is_read_or_refused_by_name(body: bytes) -> None:
    with pytest.raises(FormatError, match="some/where"):
        read_record(body, path="some/where")


@given(records, st.data())
def test_a_record_with_any_bit_flipped_is_refused_or_says_the_same(record: Record, data: st.DataObject) -> None:
    body = bytearray(record_bytes(record))
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = read_record(bytes(body), path="some/where")
    except FormatError as refused:
        assert "some/where" in str(refused)
        assert refused.code != "format_newer"
    else:
        assert found == record  # it was the name of the checksum


def test_a_record_written_before_there_were_checksums_is_read_as_it_is() -> None:
    body = record_bytes(PLAIN)
    without = body[: body.rindex(b',"sum"')] + b"}"
    assert read_record(without, path="") == PLAIN


@given(st.sampled_from(sorted(json.loads(record_bytes(PLAIN)))), _json)
def test_a_record_with_one_member_spoilt_is_read_or_refused_by_name(member: str, spoilt: object) -> None:
    document = {**json.loads(record_bytes(PLAIN)), member: spoilt}
    try:
        read_record(json.dumps(document).encode(), path="some/where")
    except FormatError as refused:
        assert "some/where" in str(refused)


# -- footprints --------------------------------------------------------------------------------------------------------


@given(st.dictionaries(_texts, _parts, max_size=3).map(Footprint))
def test_a_footprint_of_its_own_is_read_back_as_it_was_written(footprint: Footprint) -> None:
    assert read_footprint(footprint_bytes(footprint), path="") == footprint


def test_tokens_never_change_because_they_are_on_disk() -> None:
    frozen = {kind: next(iter(tokens(kind, ["ada"]))) for kind in TokenKind}
    assert frozen == {
        TokenKind.ID: 11614489378548658289,
        TokenKind.EXISTS: 14375704727527307436,
        TokenKind.UNIQUE: 17027834599499716174,
        TokenKind.FROM: 11150798671378785695,
        TokenKind.TO: 5911585796242044970,
    }


# -- the first format --------------------------------------------------------------------------------------------------

OLD = {
    "format": 0,
    "commit": "01KDVDNA00AAAAAAAAAAAAAAAA",
    "branch": "main",
    "number": 3,
    "kind": "load",
    "parent": "01KDVDNA00AAAAAAAAAAAAAAA0",
    "actor": "ada",
    "created_at_ms": 1_700_000_000_123,
    "tables": {"node:Person": {"path": "nodes/people", "version": "17449416128370022556"}},
}


def test_a_record_of_the_first_format_says_nothing_about_sizes_and_counts_as_a_change_of_everything() -> None:
    record = read_record(json.dumps(OLD).encode(), path="")
    assert record.created_at_us == 1_700_000_000_123_000
    assert record.tables == {"node:Person": Pin("nodes/people", 17449416128370022556, UNKNOWN, UNKNOWN)}
    assert record.footprint.of("node:Person").writes_whole
    assert (record.kind, record.actor, record.changes) == (CommitKind.LOAD, "ada", NO_CHANGES)


def test_a_record_of_the_first_format_written_anew_says_the_same() -> None:
    record = read_record(json.dumps(OLD).encode(), path="")
    assert read_record(record_bytes(record), path="") == record


def test_maps_of_entries_written_in_turn_are_their_own() -> None:
    first = {"node:Person": Pin("a", 1, 1, 1), "node:Book": Pin("b", 2, 1, 1)}
    records = [
        Record("c1", "main", 1, CommitKind.INIT, None, "s", first, 0),
        Record("c2", "side", 1, CommitKind.FORK, "c1", "s", dict(first), 0),
        Record("c3", "main", 2, CommitKind.MUTATION, "c1", "s", first | {"node:Book": Pin("b", 3, 2, 2)}, 0),
        Record("c4", "main", 3, CommitKind.MUTATION, "c3", "s", {}, 0),
        Record("c5", "side", 2, CommitKind.MUTATION, "c2", "s", first, 0),
    ]
    written = [record_bytes(each) for each in records]
    # A map that somebody changes in place later is written as it is by then.
    first["node:Person"] = Pin("a", 9, 1, 1)
    again = record_bytes(records[0])

    assert [read_record(body, path="x").tables for body in written[1:4]] == [each.tables for each in records[1:4]]
    assert read_record(written[4], path="x").tables["node:Person"].version == 1
    assert read_record(again, path="x").tables["node:Person"].version == 9
