"""Graphs damaged by hand: a verification names what is lost and on which commits; quarantine makes the rest usable."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Unpack

import pytest
from tests.support.damage import change_a_letter, cut, data_file, empty, flip, log_entry, manifest
from tests.support.where import Where

import omnigraph
from omnigraph import Graph, OpenOptions, PermissionDeniedError, limits
from omnigraph.api.verify import FindingKind, Loss
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import FormatError, GraphError, NotFoundError
from omnigraph.model.commit import CommitKind
from omnigraph.storage import paths
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write

QUIET = OpenOptions(durability="process", auto_compact=False)
SCHEMA = """
node Person { name: String @key  age: I32? }
node Place { name: String @key }
edge LivesIn: Person -> Place
"""
AGES = "query ages() { match { $p: Person } return { $p.name as name, $p.age as age } order { name } }"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Entries: 1 init, 2 ada and a place, 3 bob, 4 ada older, 5 cy; a branch made from 3 with dan."""
    root = tmp_path_factory.mktemp("template") / "graph"
    with omnigraph.init(root, SCHEMA, options=QUIET) as graph:
        graph.write({"Person": [{"name": "ada", "age": 1}], "Place": [{"name": "x"}]}, {"LivesIn": [edge("ada")]})
        graph.write({"Person": [{"name": "bob", "age": 2}]})
        graph.branches.create("side")
        graph.write({"Person": [{"name": "dan", "age": 4}]}, branch="side")
        graph.write({"Person": [{"name": "ada", "age": 10}]}, mode="merge")
        graph.write({"Person": [{"name": "cy", "age": 3}]})
    return root


def edge(name: str) -> dict[str, str]:
    return {"from": name, "to": "x"}


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "graph"))


@pytest.fixture
def graph(root: Path) -> Iterator[Graph]:
    with omnigraph.open(root, options=QUIET) as opened:
        yield opened


def ages(graph: Graph, **where: Unpack[Where]) -> dict[str, int]:
    return {row["name"]: row["age"] for row in graph.query(AGES, **where)}


EVERYONE = {"ada": 10, "bob": 2, "cy": 3}


def reopened(root: Path) -> Graph:
    return omnigraph.open(root, options=QUIET)


def readable(root: Path) -> set[tuple[str, int]]:
    """The commits whose people can be read, tried one by one."""
    found = set()
    with reopened(root) as graph:
        for branch, last in (("main", 5), ("side", 2)):
            for number in range(1, last + 1):
                try:
                    graph.snapshot(branch=branch, number=number)._pinned.table("node:Person").scan()
                except GraphError:
                    continue
                found.add((branch, number))
    return found


EVERYWHERE = {("main", number) for number in range(1, 6)} | {("side", 1), ("side", 2)}


def test_a_graph_that_nobody_touched_is_whole(graph: Graph) -> None:
    for deep in (False, True):
        report = graph.verify(deep=deep)
        assert report.findings == ()
        assert report.is_whole
    document = report.to_dict()
    assert {each["classification"] for each in document["datasets"]} == {"no_drift"}
    assert {each["action"] for each in document["datasets"]} == {"no_op"}
    assert document["graph_manifest_version"] == 5
    assert document["checked"]["commits"] == 7
    assert document["checked"]["files"] > 10


@pytest.mark.parametrize(
    ("letters", "others"), [(b"string", b"strijg"), (b"int32", b"imt32")], ids=["of texts", "of numbers"]
)
def test_a_version_at_which_lance_panics_is_damage_to_readers_and_to_a_verification(
    root: Path, graph: Graph, letters: bytes, others: bytes
) -> None:
    version = root / manifest(graph, 5)
    version.write_bytes(version.read_bytes().replace(letters, others))
    with reopened(root) as again:
        with pytest.raises(GraphError):
            ages(again)
        with pytest.raises(GraphError):
            again.write({"Person": [{"name": "eve", "age": 5}]})
        found = again.verify(deep=True, quarantine=True)
        assert [(each.kind, each.path) for each in found.findings] == [(FindingKind.VERSION, manifest(graph, 5))]
        assert ages(again) == {"ada": 10, "bob": 2}


def test_any_flipped_bit_of_what_a_commit_has_added_is_noticed_before_any_upkeep(root: Path, graph: Graph) -> None:
    graph.write({"Person": [{"name": name, "age": 5} for name in ("eve", "flo")]})
    graph.write({"Person": [{"name": "flo", "age": 6}]}, mode="merge")
    added = graph.snapshot().record.digests
    assert {path.split("/")[2] for path in added} == {"data", "_deletions", "_versions"}
    for path in added:
        whole = (root / path).read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 20)):
            flip(root / path, at=at)
            assert path in {each.path for each in graph.verify(deep=True).findings}, f"{path}, byte {at}"
            (root / path).write_bytes(whole)
    assert graph.verify(deep=True).is_whole


def test_upkeep_does_not_note_damage_as_what_was_written(root: Path, graph: Graph) -> None:
    path = data_file(graph, 5)
    flip(root / path, at=20)
    with reopened(root) as again:
        again.optimize()
        assert path in {each.path for each in again.verify(deep=True).findings}


def everything_in(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("spoil", [Path.unlink, cut], ids=["removed", "truncated"])
def test_a_stamp_that_cannot_be_read_is_named_and_nothing_else_is_missed(
    root: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(root / paths.STAMP)
    before = everything_in(root)
    for quarantine in (False, True):
        report = omnigraph.verify(root, quarantine=quarantine, options=QUIET)
        (finding,) = report.findings
        assert (finding.kind, finding.path, finding.loss) == (FindingKind.STAMP, paths.STAMP, Loss.CONTENT)
        assert report.to_dict()["checked"]["commits"] == 7
        assert report.quarantined == ()
    assert everything_in(root) == before


@pytest.mark.parametrize("newer", ["stamp", "entry"])
def test_what_a_newer_release_wrote_is_not_taken_for_damage(root: Path, newer: str) -> None:
    path, member = (root / paths.STAMP, "format") if newer == "stamp" else (log_entry(root, 5), "format")
    path.write_text(json.dumps({**json.loads(path.read_text()), member: 99}))
    before = everything_in(root)
    for quarantine in (False, True):
        with pytest.raises(FormatError, match="upgrade omnigraph first") as refused:
            omnigraph.verify(root, quarantine=quarantine, options=QUIET)
        assert refused.value.code == "format_newer"
    assert everything_in(root) == before


@pytest.mark.parametrize("spoil", [Path.unlink, cut], ids=["removed", "truncated"])
def test_a_data_file_is_lost_on_exactly_the_commits_that_need_it(
    root: Path, graph: Graph, spoil: Callable[[Path], None]
) -> None:
    path = data_file(graph, 3)  # bob
    spoil(root / path)
    report = graph.verify()
    (finding,) = report.findings
    assert (finding.kind, finding.path, finding.rows, finding.loss) == (FindingKind.DATA, path, 1, Loss.CONTENT)
    expected = {("main", number) for number in (3, 4, 5)} | {("side", 1), ("side", 2)}
    assert report.lost == {key: frozenset({"node:Person"}) for key in expected}
    assert readable(root) == EVERYWHERE - expected
    person = next(each for each in report.to_dict()["datasets"] if each["type_key"] == "node:Person")
    assert (person["classification"], person["action"]) == ("suspicious", "preview")


def test_quarantine_of_a_data_file_keeps_every_other_row_on_every_branch(root: Path, graph: Graph) -> None:
    path = data_file(graph, 3)
    cut(root / path)
    report = graph.verify(quarantine=True)
    assert len(report.quarantined) == 2
    with reopened(root) as mended:
        assert ages(mended) == {"ada": 10, "cy": 3}
        assert ages(mended, branch="side") == {"ada": 1, "dan": 4}
        assert ages(mended, commit=mended.snapshot(number=2).commit) == {"ada": 1}
        assert (root / path).exists()
        assert mended.snapshot().record.notes["quarantined"] == {"node:Person": "does without 1 rows in damaged files"}
        # What is old stays as damaged as it was; the heads are whole, and can be written to.
        assert ("main", 6) not in mended.verify(deep=True).lost
        (note,) = mended.verify().to_dict()["notes"]
        assert f"data file {path}, 1 rows" in note
        mended.write({"Person": [{"name": "bob", "age": 2}]})
        assert ages(mended) == EVERYONE


def deletion_vector(root: Path, graph: Graph) -> Path:
    """Delete one of two new rows; the file that says so."""
    graph.write({"Person": [{"name": "eve", "age": 5}, {"name": "fay", "age": 6}]})
    graph.mutate('query gone() { delete Person where name = "eve" }')
    (path,) = (root / graph.snapshot().record.tables["node:Person"].table / "_deletions").glob("*")
    return path


@pytest.mark.parametrize("spoil", [Path.unlink, cut, empty], ids=["removed", "truncated", "emptied"])
@pytest.mark.parametrize("deep", [False, True], ids=["sizes", "deep"])
def test_a_deletion_vector_that_cannot_be_read_is_named(
    root: Path, graph: Graph, spoil: Callable[[Path], None], deep: bool
) -> None:
    path = deletion_vector(root, graph)
    spoil(path)
    with reopened(root) as fresh, pytest.raises(GraphError):
        fresh.snapshot()._pinned.table("node:Person").scan()
    (finding,) = graph.verify(deep=deep).findings
    assert (finding.kind, finding.path) == (FindingKind.DELETIONS, path.relative_to(root).as_posix())
    assert [(each.branch, each.number) for each in finding.affected] == [("main", 7)]


def test_a_deletion_vector_with_a_changed_byte_is_named_by_its_checksum(root: Path, graph: Graph) -> None:
    path = deletion_vector(root, graph)
    flip(path)
    (finding,) = graph.verify(deep=True).findings
    assert (finding.kind, finding.path) == (FindingKind.DELETIONS, path.relative_to(root).as_posix())
    assert [(each.branch, each.number) for each in finding.affected] == [("main", 7)]


@pytest.mark.parametrize("spoil", [Path.unlink, cut], ids=["removed", "truncated"])
def test_a_version_that_cannot_be_read_is_lost_on_its_commit_and_the_head_goes_back(
    root: Path, graph: Graph, spoil: Callable[[Path], None]
) -> None:
    path = manifest(graph, 5)
    spoil(root / path)
    report = graph.verify(quarantine=True)
    findings = [each for each in report.findings if each.loss is Loss.CONTENT]
    assert {each.kind for each in findings} == {FindingKind.VERSION}
    assert report.lost == {("main", 5): frozenset({"node:Person"})}
    with reopened(root) as mended:
        assert ages(mended) == {"ada": 10, "bob": 2}
        assert mended.verify(deep=True).lost == {("main", 5): frozenset({"node:Person"})}


def test_a_version_that_holds_other_than_its_commit_says_is_named(root: Path, graph: Graph) -> None:
    path = log_entry(root, 5)
    document = json.loads(path.read_text())
    document["tables"]["node:Person"]["rows"] = 7
    del document["sum"]
    path.write_text(json.dumps(document))
    report = omnigraph.verify(root, options=QUIET)
    (finding,) = report.findings
    assert (finding.kind, finding.path) == (FindingKind.VERSION, manifest(graph, 5))
    assert finding.problem.startswith("holds 3 rows in ")
    assert report.lost == {("main", 5): frozenset({"node:Person"})}


def test_a_flipped_bit_is_found_by_its_checksum(root: Path, graph: Graph) -> None:
    graph.optimize()
    path = root / data_file(graph, 6)
    for deep in (False, True):
        assert graph.verify(deep=deep).findings == ()
    flip(path, at=1)
    assert graph.verify().findings == ()  # the size is right; nobody has read it
    (finding,) = graph.verify(deep=True).findings
    assert (finding.kind, finding.problem) == (
        FindingKind.DATA,
        "its content is not what was written: the checksum differs",
    )
    assert finding.rows == 3


def test_a_flipped_bit_in_a_version_is_not_blamed_on_the_files_it_names(root: Path, graph: Graph) -> None:
    graph.optimize()
    path = root / manifest(graph, 6)
    body = path.read_bytes()
    for at in range(len(body) // 10, len(body), len(body) // 10):
        flip(path, at=at)
        report = graph.verify(deep=True)
        assert [(each.kind, each.path) for each in report.findings] == [
            (FindingKind.VERSION, path.relative_to(root).as_posix())
        ], at
        assert report.lost == {("main", 6): frozenset({"node:Person"})}
        path.write_bytes(body)
    assert graph.verify(deep=True).is_whole


def test_a_file_that_only_a_damaged_version_cannot_read_is_lost_on_no_other_commit(root: Path, graph: Graph) -> None:
    path = root / manifest(graph, 2)
    size = (root / data_file(graph, 2)).stat().st_size
    body = path.read_bytes()
    said, wrong = (b"\x30" + bytes([each % 128 | 128, each // 128]) for each in (size, size + 1))
    assert said in body  # nobody has noted a checksum yet
    path.write_bytes(body.replace(said, wrong))
    report = graph.verify()
    assert [(each.kind, each.path) for each in report.findings] == [
        (FindingKind.VERSION, path.relative_to(root).as_posix())
    ]
    assert report.lost == {("main", 2): frozenset({"node:Person"})}


def test_an_index_of_which_one_file_is_gone_is_missed_without_reading_any(root: Path, graph: Graph) -> None:
    graph.optimize()
    folder = root / graph.snapshot().record.tables["node:Person"].table / "_indices"
    gone = next(folder.rglob("page_lookup.lance"))
    assert len(list(gone.parent.iterdir())) > 1
    gone.unlink()
    (finding,) = graph.verify().findings
    assert (finding.kind, finding.path) == (FindingKind.INDEX, f"{gone.parent.relative_to(root).as_posix()}/")
    assert finding.problem.endswith(f"is missing, {gone.name} of it")


def test_a_cut_index_loses_nothing_and_is_left_out_by_quarantine(root: Path, graph: Graph) -> None:
    graph.optimize()
    folder = root / graph.snapshot().record.tables["node:Person"].table / "_indices"
    for file in folder.rglob("*"):
        if file.is_file():
            cut(file)
    report = graph.verify(deep=True, quarantine=True)
    assert {each.kind for each in report.findings} == {FindingKind.INDEX}
    assert {each.loss for each in report.findings} == {Loss.NOTHING}
    assert report.lost == {}
    with reopened(root) as mended:
        assert ages(mended) == EVERYONE
        assert mended.snapshot()._pinned.table("node:Person").indexes() == ()
        mended.optimize()
        assert mended.snapshot()._pinned.table("node:Person").indexes()
        assert mended.verify(deep=True, branch="main").lost == {}


@pytest.mark.parametrize("spoil", [Path.unlink, cut, change_a_letter], ids=["removed", "truncated", "flipped"])
def test_a_log_entry_between_others_is_lost_alone(root: Path, graph: Graph, spoil: Callable[[Path], None]) -> None:
    commits = [graph.snapshot(number=number).commit for number in range(1, 6)]
    spoil(log_entry(root, 4))
    report = graph.verify(quarantine=True)
    (finding,) = report.findings
    assert (finding.kind, finding.loss) == (FindingKind.ENTRY, Loss.CONTENT)
    assert report.lost == {("main", 4): frozenset()}
    with reopened(root) as mended:
        assert ages(mended) == EVERYONE
        assert ages(mended, commit=commits[2]) == {"ada": 1, "bob": 2}
        stand_in = mended.snapshot(number=4)
        assert stand_in.record.parent == commits[2]
        assert commits[2] < stand_in.commit < commits[3]
        assert stand_in.record.notes == {"quarantined": True, "lost_commit": commits[3]}
        with pytest.raises(NotFoundError):
            mended.snapshot(commit=commits[3])
        assert mended.merge("side").outcome == "merged"
        for _ in range(2):
            again = mended.verify(deep=True)
            assert again.is_whole
            (note,) = again.to_dict()["notes"]
            assert "main #4" in note


def test_what_was_built_on_an_entry_that_another_has_replaced_is_no_entry_of_the_log(root: Path) -> None:
    with reopened(root) as graph:
        graph.write({"Person": [{"name": "eve", "age": 5}]})
    log_entry(root, 5).unlink()
    (finding,) = omnigraph.verify(root, options=QUIET).findings
    assert finding.problem.endswith("some take the entry before it for the newest")
    with reopened(root) as graph:  # takes the entry before for the newest
        graph.write({"Person": [{"name": "new", "age": 5}]})
    with reopened(root) as graph:
        assert {"new"} <= ages(graph).keys()
        (finding,) = graph.verify(quarantine=True).findings
        assert (finding.kind, finding.loss) == (FindingKind.STRAY, Loss.NOTHING)
        assert [(each.branch, each.number) for each in finding.affected] == [("main", 6)]
        graph.write({"Person": [{"name": "newer", "age": 5}]})
        assert {"new", "newer"} <= ages(graph).keys()
    with reopened(root) as graph:
        assert {"new", "newer"} <= ages(graph).keys()


def test_the_newest_entry_cut_stops_readers_until_quarantine_shows_the_state_before(root: Path) -> None:
    cut(log_entry(root, 5))
    with pytest.raises(omnigraph.FormatError):
        omnigraph.open(root, options=QUIET)
    report = omnigraph.verify(root, quarantine=True)
    assert report.lost == {("main", 5): frozenset()}
    (aside,) = (root / paths.QUARANTINE).rglob("log/**/*.json")
    assert aside.stat().st_size > 0
    with reopened(root) as mended:
        assert ages(mended) == {"ada": 10, "bob": 2}
        mended.write({"Person": [{"name": "cy", "age": 3}]})
        assert ages(mended) == EVERYONE
        assert mended.verify(deep=True).is_whole


def test_a_cut_entry_comes_back_from_its_checkpoint(root: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)
    graph.optimize()
    whole = log_entry(root, 3).read_bytes()
    cut(log_entry(root, 3))
    report = graph.verify(quarantine=True)
    (finding,) = report.findings
    assert (finding.kind, finding.loss) == (FindingKind.ENTRY, Loss.NOTHING)
    assert log_entry(root, 3).read_bytes() == whole
    assert reopened(root).verify().is_whole


def test_a_cut_checkpoint_loses_nothing(root: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)
    graph.optimize()
    (path,) = (root / paths.CHECKPOINTS).rglob("*.json")
    cut(path)
    report = graph.verify(quarantine=True)
    assert [(each.kind, each.loss) for each in report.findings] == [(FindingKind.CHECKPOINT, Loss.NOTHING)]
    assert graph.optimize().checkpoints == 1
    assert graph.verify().is_whole


def test_a_change_file_gone_loses_the_story_and_no_row(
    root: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "INLINE_CHANGE_IDS_MAX", 1)
    graph.write({"Person": [{"name": "eve", "age": 5}, {"name": "fay", "age": 6}]})
    (path,) = (root / paths.CHANGES).glob("*.arrow")
    path.unlink()
    report = graph.verify()
    (finding,) = report.findings
    assert (finding.kind, finding.loss) == (FindingKind.CHANGES, Loss.HISTORY)
    assert [(each.branch, each.number) for each in finding.affected] == [("main", 6)]
    assert report.lost == {}
    assert len(ages(graph)) == 5


def test_an_intent_that_cannot_be_read_is_put_aside_by_quarantine_or_the_next_write(root: Path, graph: Graph) -> None:
    name = f"{graph._parts.ids.new()}.json"
    (root / paths.RECOVERY).mkdir(exist_ok=True)
    (root / paths.RECOVERY / name).write_text("{")
    report = graph.verify(quarantine=True)
    assert [each.kind for each in report.findings] == [FindingKind.INTENT]
    assert [path.name for path in (root / paths.QUARANTINE).rglob("*.json")] == [name]
    (root / paths.RECOVERY / name).write_text("{")
    graph.write({"Person": [{"name": "eve"}]})
    assert [path.name for path in (root / paths.QUARANTINE).rglob("*.json")] == [name, name]
    assert graph.verify().is_whole


def test_rows_that_break_a_rule_are_named(graph: Graph) -> None:
    places = frozenset({"node:Place"})
    # Beside every check, as a mistake in this product would.
    operation = Operation(CommitKind.LOAD, places, lambda staging: staging.delete("node:Place", ["x"]), redoable=False)
    write(graph._parts, "main", operation)
    (finding,) = graph.verify(deep=True).findings
    assert finding.kind is FindingKind.ROWS
    assert "x" in finding.problem
    assert [(each.number, each.type_key) for each in finding.affected] == [(6, "edge:LivesIn")]
    assert graph.verify().is_whole


def test_a_reader_may_verify_and_may_not_quarantine(root: Path) -> None:
    with omnigraph.open(root, read_only=True) as reader:
        assert reader.verify(deep=True).is_whole
        with pytest.raises(PermissionDeniedError):
            reader.verify(quarantine=True)


def test_entries_that_a_sweep_has_cut_away_are_not_missed(root: Path) -> None:
    parts = open_root(str(root), settings=Settings(durability="process", protection_s=0, log_cut_s=0, stale_s=0))
    prune(parts, "main", Policy(keep=1, now=True))
    assert sweep(parts, older_than_s=0).deleted
    assert parts.log.read("main", 2) is None, "an entry was cut away"

    report = omnigraph.verify(root, deep=True)

    assert report.findings == ()
    assert report.is_whole


def test_a_place_where_there_is_no_graph_is_not_called_whole(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no graph at"):
        omnigraph.verify(tmp_path / "nowhere")


# -- tags --------------------------------------------------------------------------------------------------------------


def tag_entry(root: Path, name: str) -> Path:
    return root / paths.tag_entry(name, 1)


@pytest.mark.parametrize("damage", [b"", b"{", b"{}", b'{"format": 1, "commit": 7}'])
def test_a_tag_that_cannot_be_read_is_named_and_quarantine_frees_its_name(
    root: Path, graph: Graph, damage: bytes
) -> None:
    graph.tags.create("release", number=3)
    graph.tags.create("other", number=3)
    tag_entry(root, "release").write_bytes(damage)

    (finding,) = graph.verify().findings

    assert (finding.kind, finding.path) == (FindingKind.TAG, paths.tag_entry("release", 1))
    assert (finding.loss, finding.certain) == (Loss.HISTORY, True)
    with pytest.raises(GraphError, match="release"):
        graph.sweep(older_than=0)  # nobody can say what the tag holds
    report = graph.verify(quarantine=True)
    assert len(report.quarantined) == 1
    (aside,) = (root / paths.QUARANTINE).rglob("*.json")
    assert aside.read_bytes() == damage
    assert graph.verify().is_whole
    assert graph.tags.list() == ["other"]
    graph.sweep(older_than=0)
    graph.tags.create("release", number=4)
    assert graph.snapshot(tag="release").number == 4


def test_what_a_tag_alone_holds_is_verified_like_everything_that_is_kept(root: Path, graph: Graph) -> None:
    graph.tags.create("release", number=2)
    lost = root / manifest(graph, 2)
    graph.prune(keep=1, now=True)
    graph.sweep(older_than=0)
    assert graph.verify(deep=True).is_whole
    assert graph.snapshot(tag="release").count("Person") == 1
    lost.unlink()

    report = graph.verify()

    assert report.lost == {("main", 2): frozenset({"node:Person"})}
    assert [each.kind for each in report.findings] == [FindingKind.VERSION]
    assert graph.count("Person") == 3


def test_a_tag_whose_commit_is_gone_is_named(root: Path, graph: Graph) -> None:
    tagged = graph.tags.create("release", number=2)
    graph.prune(keep=1, now=True)
    graph.sweep(older_than=0)
    log_entry(root, 2).unlink()

    of_the_log, finding = graph.verify().findings

    assert (of_the_log.kind, finding.kind, finding.loss) == (FindingKind.ENTRY, FindingKind.TAG, Loss.CONTENT)
    assert [(each.branch, each.number, each.commit) for each in finding.affected] == [("main", 2, tagged.commit)]


def test_a_tag_that_names_another_commit_than_is_there_loses_no_commit(root: Path, graph: Graph) -> None:
    tagged = graph.tags.create("release", number=2)
    (path,) = (root / paths.TAGS).rglob("*.json")
    path.write_text(path.read_text().replace(tagged.commit, tagged.commit[:-1] + "!"))

    report = graph.verify()

    (finding,) = report.findings
    assert (finding.kind, finding.loss) == (FindingKind.TAG, Loss.HISTORY)
    assert report.lost == {}
    assert ages(graph, commit=graph.snapshot(number=2).commit) == {"ada": 1}
