"""Settings that stand in the stamp, so that all processes of a graph agree in them."""

import json
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.operations import PERSON

import omnigraph
from omnigraph import OpenOptions, limits
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_stores import sync
from omnigraph.storage.object_stores.local import LocalStore
from omnigraph.storage.records.read import FORMAT
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write


def stamp_of(root: Path) -> dict[str, object]:
    found = json.loads((root / paths.STAMP).read_text())
    assert isinstance(found, dict)
    return found


def test_the_stamp_of_a_new_graph_names_its_format_durability_and_how_long_entries_stay(tmp_path: Path) -> None:
    op.new_graph(str(tmp_path), settings=Settings(durability="process", log_cut_s=5))
    stamp = stamp_of(tmp_path)

    assert (stamp["format"], stamp["durability"], stamp["log_cut_s"]) == (FORMAT, "process", 5)


def test_a_process_takes_from_the_stamp_how_long_entries_stay(tmp_path: Path) -> None:
    op.new_graph(str(tmp_path), settings=Settings(log_cut_s=5))

    assert open_root(str(tmp_path)).log_cut_s == 5
    assert open_root(str(tmp_path), read_only=True).log_cut_s == 5
    op.new_graph(str(tmp_path / "other"))
    assert open_root(str(tmp_path / "other")).log_cut_s == limits.LOG_CUT_S


@pytest.mark.parametrize(
    ("made", "asked", "holds"),
    [("power", "process", "power"), ("process", "power", "power"), ("process", "process", "process")],
)
def test_no_process_promises_less_than_the_stamp_or_than_it_was_asked_for(
    tmp_path: Path, made: str, asked: str, holds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with omnigraph.init(tmp_path / "g", "node P { name: String @key }", options=OpenOptions(durability=made)):
        pass
    monkeypatch.setattr(sync, "keeps_order", lambda _: True)
    synced: list[Path] = []
    monkeypatch.setattr(sync, "sync_file", lambda file: synced.append(Path(file)))
    with omnigraph.open(tmp_path / "g", options=OpenOptions(durability=asked)) as graph:
        graph.write({"P": [{"name": "first"}]})
        synced.clear()
        graph.write({"P": [{"name": "ada"}]})

    assert ((tmp_path / "g" / paths.log_folder(MAIN)) in synced) == (holds == "power")


def test_the_first_writer_of_an_older_graph_puts_its_settings_into_the_stamp(tmp_path: Path) -> None:
    parts = op.new_graph(str(tmp_path))
    (tmp_path / paths.STAMP).write_text(json.dumps({"format": 1, "graph": parts.graph, "branch_ends": "announced"}))

    assert open_root(str(tmp_path), read_only=True).log_cut_s == limits.LOG_CUT_S
    assert stamp_of(tmp_path)["format"] == 1
    migrated = open_root(LocalStore(tmp_path, durability="process"), settings=Settings(durability="process"))

    stamp = stamp_of(tmp_path)
    assert (stamp["format"], stamp["durability"], stamp["log_cut_s"]) == (FORMAT, "process", limits.LOG_CUT_S)
    write(migrated, MAIN, op.insert(PERSON, {"ada": 36}))
