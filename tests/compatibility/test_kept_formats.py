"""Graphs of formats 1 and 2, as they were written when these were new: every later release must read all of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import operations as op
from tests.support.interrupted_writes import let_it_grow_old, open_and_heal, recovered
from tests.support.operations import COMPANY, KNOWS, PERSON, rows_of

from omnigraph import limits
from omnigraph.branch import branches, tags
from omnigraph.model.commit import MAIN, RecoveryKind
from omnigraph.storage import paths
from omnigraph.storage.records.change_file import read_change_file
from omnigraph.testing.invariants import check_graph, entries
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write
from omnigraph.transaction.write_set.stage import at_hand

Root = Callable[[str], Path]
SETTINGS = Settings(durability="process")


@pytest.fixture(params=["format-1", "format-2"])
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def expected(name: str) -> dict[str, Any]:
    text = Path(__file__).with_name(f"{name}.expected.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.fixture
def kept_parts(kept: Root, name: str) -> GraphContext:
    return open_root(str(kept(name)), read_only=True)


def test_every_row_of_every_commit_of_every_branch_is_read_and_nothing_is_changed_by_that(
    kept: Root, name: str, kept_parts: GraphContext, expected: dict[str, Any]
) -> None:
    root = kept(name)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert kept_parts.log.branch_names() == sorted(expected["branches"])
    for branch, log in expected["branches"].items():
        found = entries(kept_parts, branch)
        assert [entry.number for entry in found] == [each["number"] for each in log]
        for entry, each in zip(found, log, strict=True):
            rows = {key: kept_parts.snapshot(entry).scan(key).sort_by("id").to_pylist() for key in sorted(entry.tables)}
            assert rows == each["rows"], (branch, entry.number)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_every_entry_says_what_it_said(kept_parts: GraphContext, expected: dict[str, Any]) -> None:
    for branch, log in expected["branches"].items():
        for entry, each in zip(entries(kept_parts, branch), log, strict=True):
            assert (entry.commit, entry.kind.value, entry.parent) == (each["commit"], each["kind"], each["parent"])
            assert (entry.actor, entry.message, entry.idempotency_key) == (each["actor"], each["message"], each["key"])
            assert (entry.created_at_us, entry.schema) == (each["created_at"], each["schema"])
            assert list(entry.aborted) == each["aborted"]
            assert (entry.recovery and entry.recovery.kind.value) == each["recovery"]
            assert {
                key: [change.inserted, change.updated, change.deleted] for key, change in entry.changes.types.items()
            } == each["changes"]
    assert {name: tags.read(kept_parts, name).commit for name in tags.names(kept_parts)} == expected["tags"]
    assert branches.names(kept_parts) == sorted(expected["branches"])


def test_changes_and_footprints_in_files_of_their_own_are_read(kept_parts: GraphContext) -> None:
    [entry] = [each for each in entries(kept_parts) if each.changes.file is not None]
    assert entry.changes.file is not None
    told = read_change_file(kept_parts.store.get(entry.changes.file), path="")
    assert (told[COMPANY].inserted_ids, told[COMPANY].updated_ids) == (("initech",), ("acme",))
    assert at_hand(kept_parts, entry.footprint).of(COMPANY).changes_content


def test_an_entry_that_counts_from_an_earlier_map_is_among_them(kept_parts: GraphContext) -> None:
    documents = [
        json.loads(kept_parts.store.get(paths.entry(MAIN, entry.number)))["kind"]
        for entry in entries(kept_parts)
        if "tables_since" in json.loads(kept_parts.store.get(paths.entry(MAIN, entry.number)))
    ]
    assert documents == ["mutation"]


def test_history_comes_from_its_checkpoint_as_well(
    kept_parts: GraphContext, monkeypatch: pytest.MonkeyPatch, expected: dict[str, Any]
) -> None:
    from_entries = entries(kept_parts)
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 8)
    assert kept_parts.log.between(MAIN, 1, 16) == from_entries[:16]
    assert len(from_entries) == len(expected["branches"][MAIN])


def test_a_key_used_then_is_known_now(copied: Root, name: str, expected: dict[str, Any]) -> None:
    parts = open_root(str(copied(name)), settings=SETTINGS)
    receipt = write(parts, MAIN, op.append(KNOWS, {"k3": 3}), WriteOptions(idempotency_key="once"))
    assert receipt.replayed
    [first] = [each["commit"] for each in expected["branches"][MAIN] if each["key"] == "once"]
    assert receipt.entry is not None
    assert receipt.entry.commit == first


def test_writes_interrupted_then_are_ended_now(copied: Root, name: str, expected: dict[str, Any]) -> None:
    root = str(copied(name))
    looking = open_root(root, read_only=True)
    # Files of a fresh checkout are young, and their writers were on another host.
    for intent in (expected["begun"], expected["staged"]):
        let_it_grow_old(looking, intent)
    parts, healed = open_and_heal(root, settings=SETTINGS)
    assert healed.ended == (expected["begun"], expected["staged"])
    assert rows_of(parts, KNOWS) == {"k1": 1, "k2": 2, "staged": 1}
    assert "begun" not in rows_of(parts, PERSON)
    audits = [entry.recovery for entry in recovered(parts)[-2:] if entry.recovery is not None]
    assert [(audit.intent, audit.kind) for audit in audits] == [
        (expected["begun"], RecoveryKind.UNDONE),
        (expected["staged"], RecoveryKind.FINISHED),
    ]
    check_graph(parts)


def test_writing_goes_on_on_every_branch(copied: Root, name: str, expected: dict[str, Any]) -> None:
    root = str(copied(name))
    looking = open_root(root, read_only=True)
    for intent in (expected["begun"], expected["staged"]):
        let_it_grow_old(looking, intent)
    parts = open_root(root, settings=SETTINGS)
    before = {path: Path(root, path).read_bytes() for path in log_files(parts)}
    for branch in branches.names(parts):
        write(parts, branch, op.upsert(PERSON, {"new": 1}))
        write(parts, branch, op.compact(parts, PERSON))
        assert rows_of(parts, PERSON, branch)["new"] == 1
    branches.create(parts, "later", source="again")
    assert {path: Path(root, path).read_bytes() for path in before} == before
    check_graph(parts)


def test_entries_of_format_2_name_their_graph_and_the_entry_before_them(kept: Root) -> None:
    parts = open_root(str(kept("format-2")), read_only=True)
    for name in parts.log.branch_names():
        found = entries(parts, name)
        assert {entry.graph for entry in found} == {parts.graph}
        assert [entry.previous for entry in found[1:]] == [entry.link for entry in found[:-1]]


def log_files(parts: GraphContext) -> list[str]:
    return [listed.path for listed in parts.store.list(paths.LOGS) if listed.path.endswith(".json")]
