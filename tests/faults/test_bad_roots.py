"""Places that are no graph, a damaged one, one of a newer release, or not to be written: it is said what and where."""

import json
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.operations import COMPANY, PERSON, rows_of
from tests.support.write_kinds import KINDS, NOTED, SETTINGS, Kind, next_write, opened

from omnigraph.errors import (
    FormatError,
    GraphError,
    NotFoundError,
    OutcomeUnknownError,
    PermissionDeniedError,
    UnavailableError,
)
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_store import StoreRefused
from omnigraph.storage.object_stores.forwarding import ReadOnlyStore
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.records.read import FORMAT
from omnigraph.testing.invariants import check_graph, observed
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

MODES = pytest.mark.parametrize("read_only", [False, True], ids=["read_write", "read_only"])


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- no graph ----------------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("what", ["nothing", "an_empty_folder", "a_file", "another_folder", "below_a_file"])
def test_a_place_that_is_no_graph_is_named_and_left_as_it_is(folder: Path, what: str, read_only: bool) -> None:
    place = folder / "place"
    match what:
        case "an_empty_folder":
            place.mkdir()
        case "a_file":
            place.write_text("a file")
        case "another_folder":
            place.mkdir()
            (place / "notes.txt").write_text("mine")
        case "below_a_file":
            place.write_text("a file")
            place = place / "graph"
    before = everything_in(folder)
    with pytest.raises(NotFoundError, match="no graph at") as refused:
        open_root(str(place), read_only=read_only, settings=SETTINGS)
    assert str(place) in str(refused.value)
    assert refused.value.code == "graph_not_found"
    assert everything_in(folder) == before


def test_a_graph_cannot_be_made_where_a_file_stands_in_the_way(folder: Path) -> None:
    (folder / "place").write_text("a file")
    for place in (folder / "place", folder / "place" / "graph"):
        with pytest.raises(UnavailableError) as refused:
            op.new_graph(str(place), settings=SETTINGS)
        assert str(folder / "place") in str(refused.value)
    assert (folder / "place").read_text() == "a file"


@MODES
def test_an_address_of_an_unknown_kind_is_refused_by_name(read_only: bool) -> None:
    with pytest.raises(StoreRefused, match="ftp://"):
        open_root("ftp://host/graph", read_only=read_only)


# -- stamps ------------------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("body", [b"", b"abc", b"{}", b'{"format": "abc"}', b'{"format": 1}'])
def test_a_graph_with_an_unreadable_stamp_is_refused_by_name_and_left_as_it_is(
    root: Path, body: bytes, read_only: bool
) -> None:
    (root / paths.STAMP).write_bytes(body)
    before = everything_in(root)
    with pytest.raises(FormatError, match=paths.STAMP):
        open_root(str(root), read_only=read_only, settings=SETTINGS)
    assert everything_in(root) == before


@MODES
def test_a_graph_of_a_newer_release_is_refused_before_anything_else_is_read(root: Path, read_only: bool) -> None:
    (root / paths.STAMP).write_text(json.dumps({"format": FORMAT + 1, "graph": "01G", "later": True}))
    for entry in (root / paths.LOGS).rglob("*.json"):
        entry.write_text("in a later form")
    before = everything_in(root)
    with pytest.raises(
        FormatError, match=rf"format {FORMAT + 1}, newer than the maximum {FORMAT} .*upgrade omnigraph first"
    ):
        open_root(str(root), read_only=read_only, settings=SETTINGS)
    with pytest.raises(FormatError, match="upgrade omnigraph first"):
        op.new_graph(str(root), settings=SETTINGS)
    assert everything_in(root) == before


@MODES
def test_a_graph_without_its_stamp_is_no_graph_and_nobody_is_told_to_delete_anything(
    root: Path, read_only: bool
) -> None:
    (root / paths.STAMP).unlink()
    with pytest.raises(NotFoundError) as refused:
        open_root(str(root), read_only=read_only, settings=SETTINGS)
    assert "delete" not in str(refused.value)


# -- logs --------------------------------------------------------------------------------------------------------------


@MODES
def test_a_damaged_head_of_main_is_refused_by_name(root: Path, parts: GraphContext, read_only: bool) -> None:
    entry = root / paths.entry(MAIN, parts.log.live_head(MAIN).number)
    entry.write_bytes(entry.read_bytes()[:100])
    with pytest.raises(FormatError, match=entry.name):
        open_root(str(root), read_only=read_only, settings=SETTINGS)


def test_a_damaged_entry_of_one_branch_leaves_the_others_alone(root: Path, parts: GraphContext) -> None:
    for entry in (root / paths.log_folder("side/line")).glob("*.json"):
        entry.write_bytes(b"{}")
    fresh = opened(parts.store)
    write(fresh, MAIN, op.insert(PERSON, {"n": 1}))
    assert rows_of(fresh, PERSON)["n"] == 1
    with pytest.raises(FormatError, match="side%2Fline"):
        write(fresh, "side/line", op.insert(PERSON, {"n": 1}))


def test_an_old_entry_that_is_damaged_leaves_the_head_readable_and_writable(root: Path, parts: GraphContext) -> None:
    (root / paths.entry(MAIN, 2)).write_bytes(b"{}")
    fresh = opened(parts.store)
    next_write(fresh)
    assert rows_of(fresh, PERSON)["a"] == 10


def test_a_table_whose_file_is_gone_is_told_as_such_and_other_types_go_on(root: Path, parts: GraphContext) -> None:
    table = parts.log.live_head(MAIN).tables[PERSON].table
    for data in (root / table / "data").iterdir():
        data.unlink()
    fresh = opened(parts.store)
    with pytest.raises(FormatError, match=table):
        rows_of(fresh, PERSON)
    with pytest.raises(GraphError):
        write(fresh, MAIN, op.update_where(PERSON, "v > 0", 1))
    write(fresh, MAIN, op.insert(COMPANY, {"n": 1}))
    assert rows_of(fresh, COMPANY)["n"] == 1


# -- places that cannot be written -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_graph_opened_for_reading_is_not_changed_by_any_kind_of_write(root: Path, kind: Kind) -> None:
    before = everything_in(root)
    looking = open_root(str(root), read_only=True, settings=NOTED)
    with pytest.raises(PermissionDeniedError, match="read-only") as refused:
        kind.act(looking)
    assert refused.value.code == "read_only"
    assert everything_in(root) == before


def test_a_store_that_takes_no_writes_is_told_as_such_by_open_and_init(root: Path, folder: Path) -> None:
    before = everything_in(root)
    store = ReadOnlyStore(LocalStore(root, durability=Durability.PROCESS))
    with pytest.raises(UnavailableError, match="read-only"):
        opened(store)
    seen = observed(open_root(store, read_only=True))
    with pytest.raises(UnavailableError, match="read-only"):
        op.new_graph(ReadOnlyStore(LocalStore(folder / "new")), settings=SETTINGS)
    assert everything_in(root) == before
    assert not (folder / "new").exists()
    assert seen == observed(opened(LocalStore(root)))  # last: whoever may write tidies up as they look


IN_THE_WAY = {
    paths.RECOVERY: "upsert",
    paths.CHANGES: "large_insert",
    paths.KEYS: "write_with_a_key",
}


@pytest.mark.parametrize("place", IN_THE_WAY)
def test_a_file_where_a_folder_should_be_is_told_as_such_and_changes_nothing(
    root: Path, parts: GraphContext, place: str
) -> None:
    before = observed(parts)
    file = root / place.rstrip("/")
    file.write_text("in the way")
    [kind] = [kind for kind in KINDS if kind.name == IN_THE_WAY[place]]
    with pytest.raises(UnavailableError) as refused:
        kind.act(opened(parts.store, settings=NOTED))
    assert not isinstance(refused.value, OutcomeUnknownError)
    assert file.name in str(refused.value)
    assert observed(parts) == before
    file.unlink()
    next_write(parts)
    check_graph(parts)
