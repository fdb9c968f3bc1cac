"""Intents and stamps on disk."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import FormatError
from omnigraph.model.change import Changes, TypeChange
from omnigraph.model.commit import CommitKind, Pin
from omnigraph.model.footprint import Footprint, TypeFootprint
from omnigraph.model.intent import Completed, Intent, Writer
from omnigraph.storage.records.read import (
    FORMAT,
    Stamp,
    completed_bytes,
    intent_bytes,
    read_completed,
    read_intent,
    read_stamp,
    stamp_bytes,
)
from omnigraph.transaction.options import NO_OPTIONS, WriteOptions, options_document, read_options

NOTE = Intent(
    id="01KDVDNA00AAAAAAAAAAAAAAAA",
    kind=CommitKind.MERGE,
    branch="a/b ü",
    base_number=2**40,
    base_commit="01KDVDNA00AAAAAAAAAAAAAAA0",
    actor=None,
    writer=Writer("host", 4711, "12345"),
    tables={"node:Person": Pin("nodes/p", 2**64 - 1, 3, 4)},
    created_at_us=1_767_225_600_000_000,
    adopts=("01KDVDNA00AAAAAAAAAAAAAAA1",),
)
STAGED = Completed(
    intent=NOTE.id,
    schema="digest",
    tables={"node:Person": Pin("nodes/p", 2**63 + 1, 4, 5)},
    removed=("node:Gone",),
    footprint=Footprint({"node:Person": TypeFootprint(frozenset({1}), frozenset({2**64 - 1}), reads_whole=True)}),
    changes=Changes({"node:Person": TypeChange(1, 0, 0, ("a",), (), ())}),
    merged_parent="01KDVDNA00AAAAAAAAAAAAAAA1",
    notes={"resolved": ["a", {"b": 1}]},
    options=options_document(
        WriteOptions(
            message="both",
            idempotency_key="once",
            if_commit="01KDVDNA00AAAAAAAAAAAAAAA0",
            expected_table_versions={"node:Person": 2**64 - 1},
            prune_previous=True,
        )
    ),
)


@pytest.mark.parametrize("note", [NOTE, replace(NOTE, actor="ada", tables={}, adopts=())])
def test_a_note_is_read_back_as_it_was_written(note: Intent) -> None:
    assert read_intent(intent_bytes(note), path="") == note


@pytest.mark.parametrize(
    "staged",
    [
        STAGED,
        replace(STAGED, footprint=Footprint(file="f"), changes=Changes({"node:Person": TypeChange(1, 2, 3)}, "c")),
        replace(STAGED, merged_parent=None, removed=(), notes={}, options=options_document(NO_OPTIONS)),
    ],
)
def test_a_staged_note_is_read_back_as_it_was_written(staged: Completed) -> None:
    assert read_completed(completed_bytes(staged), path="") == staged


def test_a_staged_note_without_conditions_is_one_that_has_none() -> None:
    document = json.loads(completed_bytes(replace(STAGED, options=options_document(NO_OPTIONS))))
    del document["if_commit"], document["expected_table_versions"]
    found = read_completed(json.dumps(document).encode(), path="")
    options = read_options(found.options)
    assert (options.if_commit, options.expected_table_versions) == (None, {})


_anything = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)


@given(st.data(), _anything)
def test_a_note_with_one_member_spoilt_is_read_or_refused_by_name(data: st.DataObject, spoilt: object) -> None:
    for body, read in ((intent_bytes(NOTE), read_intent), (completed_bytes(STAGED), read_completed)):
        document = json.loads(body)
        document[data.draw(st.sampled_from(sorted(document)))] = spoilt
        try:
            read(json.dumps(document).encode(), path="some/where")
        except FormatError as refused:
            assert "some/where" in str(refused)


@pytest.mark.parametrize(
    ("body", "read"), [(intent_bytes(NOTE), read_intent), (completed_bytes(STAGED), read_completed)]
)
def test_a_note_with_a_flipped_bit_is_refused(body: bytes, read: Callable[..., object]) -> None:
    checksum = len(b',"sum":"0123456789abcdef"}')
    for at in range(len(body) - checksum):
        for bit in (1, 4, 32):
            with pytest.raises(FormatError):
                read(body[:at] + bytes([body[at] ^ bit]) + body[at + 1 :], path="some/where")


def test_notes_of_releases_without_checksums_are_read() -> None:
    for body, read, note in (
        (intent_bytes(NOTE), read_intent, NOTE),
        (completed_bytes(STAGED), read_completed, STAGED),
    ):
        document = json.loads(body)
        del document["sum"]
        assert read(json.dumps(document).encode(), path="") == note


# -- the stamp ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stamp",
    [Stamp(1, "01G"), Stamp(1, "01G", fenced_externally=True), Stamp(0, ""), Stamp(1, "01G", ends_announced=True)],
)
def test_a_stamp_is_read_back_as_it_was_written(stamp: Stamp) -> None:
    assert read_stamp(stamp_bytes(stamp), path="") == stamp


def test_a_stamp_of_a_newer_release_is_refused_with_both_numbers() -> None:
    with pytest.raises(FormatError, match=rf"format 9, newer than the maximum {FORMAT} .*upgrade") as refused:
        read_stamp(b'{"format": 9, "graph": "01G"}', path="some/where")
    assert refused.value.code == "format_newer"
    assert (refused.value.details["found"], refused.value.details["maximum"]) == (9, FORMAT)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"abc",
        b"[]",
        b"{}",
        b'{"format": "abc"}',
        b'{"format": true, "graph": "01G"}',
        b'{"format": 1}',
        b'{"format": 1, "graph": 3}',
        b'{"format": 1, "graph": ""}',
    ],
)
def test_an_unreadable_stamp_is_refused_by_name_and_nobody_is_told_to_delete_anything(body: bytes) -> None:
    with pytest.raises(FormatError, match="some/where") as refused:
        read_stamp(body, path="some/where")
    assert "delete" not in str(refused.value)


def test_the_value_that_could_not_be_read_is_named() -> None:
    with pytest.raises(FormatError, match="'abc'"):
        read_stamp(b'{"format": "abc"}', path="")
