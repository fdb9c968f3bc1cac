"""Verification in rounds: however little each may look at, together they see what one whole look sees."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.needed_files import AT_ONCE

import omnigraph
from omnigraph import Graph, OpenOptions, limits
from omnigraph.api.schemas import Schemas
from omnigraph.api.verify import FindingKind, VerifyReport, verify_part
from omnigraph.storage import derived, paths
from omnigraph.storage.object_store import StoreTransient
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.log import Log
from omnigraph.transaction.root import open_root
from omnigraph.verification import verify as rounds
from omnigraph.verification.tables import TableCheck

SCHEMA = "node Person { name: String @key }\nnode Place { name: String @key }"


def opened(store: Path | FaultyStore) -> Graph:
    """A graph with which nothing has to grow old before it goes."""
    parts = open_root(str(store) if isinstance(store, Path) else store, settings=AT_ONCE)
    return Graph(parts, Schemas(parts))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two branches of several entries, one that was deleted, a tag below what is kept."""
    root = tmp_path_factory.mktemp("template") / "graph"
    omnigraph.init(root, SCHEMA, options=OpenOptions(durability="process")).close()
    with opened(root) as graph:
        for number in range(3):
            graph.write({"Person": [{"name": f"p{number}"}], "Place": [{"name": f"p{number}"}]})
        graph.tags.create("old", number=2)
        graph.branches.create("side")
        graph.branches.create("gone")
        graph.branches.delete("gone")
        for number in range(3):
            graph.write({"Person": [{"name": f"s{number}"}]}, branch="side")
            graph.write({"Place": [{"name": f"m{number}"}]})
        graph.prune("main", keep=3, now=True)
        graph.sweep(older_than=0)
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "graph"))


@pytest.fixture
def graph(root: Path) -> Iterator[Graph]:
    with opened(root) as made:
        yield made


def all_rounds(graph: Graph, reads_max: int) -> list[VerifyReport]:
    """Rounds until the next would begin anew."""
    reports = []
    while True:
        report, stopped = verify_part(graph._open(), reads_max=reads_max)
        reports.append(report)
        assert len(reports) < 200
        if stopped is None:
            return reports


def told(reports: list[VerifyReport]) -> dict[tuple[str, str], set[tuple[str, int, str]]]:
    """What was found, with the commits that need it."""
    found: dict[tuple[str, str], set[tuple[str, int, str]]] = {}
    for each in (finding for report in reports for finding in report.findings):
        at = found.setdefault((each.kind.value, each.path), set())
        at |= {(one.branch, one.number, one.type_key) for one in each.affected}
    return found


def damage_everything(root: Path) -> None:
    for path in sorted(root.glob("nodes/*/data/*.lance")):
        path.unlink()


def damage_versions(root: Path) -> None:
    for path in sorted(root.glob("nodes/*/_versions/d*.manifest")):
        path.write_bytes(path.read_bytes()[:20])


def damage_an_entry(root: Path) -> None:
    (root / paths.entry("side", 3)).write_text("{")


def damage_the_newest(root: Path) -> None:
    newest = sorted((root / paths.log_folder("side")).glob("*.json"))[0]
    newest.write_text("{")


def damage_beside_the_logs(root: Path) -> None:
    (root / paths.RECOVERY).mkdir(exist_ok=True)
    (root / paths.RECOVERY / "01KDVDNA00AAAAAAAAAAAAAAAA.json").write_text("{")
    (root / paths.LEASES).mkdir(exist_ok=True, parents=True)
    (root / paths.LEASES / "01KDVDNA00AAAAAAAAAAAAAAAA.json").write_text("{")
    (root / paths.tag_entry("old", 1)).write_text("{")


def damage_nothing(_: Path) -> None:
    """Leave everything as it is."""


DAMAGES = [
    damage_everything,
    damage_versions,
    damage_an_entry,
    damage_the_newest,
    damage_beside_the_logs,
    damage_nothing,
]


@pytest.mark.parametrize("reads_max", [1, 3, 1_000])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_rounds_see_what_one_whole_look_sees(
    damage: Callable[[Path], None], reads_max: int, root: Path, graph: Graph
) -> None:
    damage(root)
    whole = graph.verify()
    assert whole.is_whole == (damage is damage_nothing)

    reports = all_rounds(graph, reads_max)

    assert told(reports) == told([whole])
    assert (len(reports) == 1) == (reads_max == 1_000)


def test_each_round_keeps_to_its_limit_and_another_process_goes_on(root: Path, graph: Graph) -> None:
    entries: list[int] = []
    while len(entries) < 200:
        with opened(root) as process:
            report, stopped = verify_part(process._open(), reads_max=1)
        entries.append(report.found.commits)
        assert report.found.commits <= 2
        assert (root / derived.VERIFIED).exists() == (stopped is not None)
        if stopped is None:
            break
    assert len(entries) > 5
    # The kept ones of two branches, what is left of a deleted one, and the tagged one; none twice.
    assert sum(entries) == sum(report.found.commits for report in all_rounds(graph, 1_000))


@pytest.mark.parametrize("note", ["", "{", "[]", '{"branch": 7, "number": 1}', '{"branch": "zzz", "number": true}'])
def test_a_note_of_the_last_round_that_says_nothing_is_no_hindrance(note: str, root: Path, graph: Graph) -> None:
    path = root / derived.VERIFIED
    path.parent.mkdir(exist_ok=True)
    path.write_text(note)

    assert rounds.read_place(graph._open()) is None
    [report] = all_rounds(graph, 1_000)

    assert set(report.found.heads) == {"main", "side"}, "it began anew"
    assert rounds.read_place(graph._open()) is None


def test_a_note_that_cannot_be_written_is_no_error(root: Path) -> None:
    store = FaultyStore(LocalStore(root, durability=Durability.PROCESS))
    with opened(store) as graph:
        store.arm(Fault.FAIL_BEFORE, kind=RequestKind.PUT, path_part=derived.VERIFIED)
        first = verify_part(graph._open(), reads_max=1)
        assert first[1] is not None
        assert rounds.read_place(graph._open()) is None


def test_a_branch_that_went_since_the_last_round_is_passed_over(root: Path, graph: Graph) -> None:
    rounds.note_place(graph._open(), rounds.Place("nobody", 7))

    reports = all_rounds(graph, 1_000)

    assert set(reports[0].found.heads) == {"side"}


@pytest.mark.parametrize("in_rounds", [True, False])
def test_what_is_pruned_and_swept_while_somebody_looks_is_no_damage(
    in_rounds: bool, root: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = TableCheck.look
    before = {path for path in (root / "nodes").rglob("*") if path.is_file()}

    def meanwhile(check: TableCheck, pins: object) -> None:
        monkeypatch.setattr(TableCheck, "look", look)
        with opened(root) as other:
            other.tags.delete("old")
            other.prune(keep=1, now=True)
            other.sweep(older_than=0)
        look(check, pins)  # type: ignore[arg-type]  # passed on as it is

    monkeypatch.setattr(TableCheck, "look", meanwhile)

    report = verify_part(graph._open(), reads_max=1_000)[0] if in_rounds else graph.verify()

    assert [each.path for each in report.findings] == []
    gone = {path.parent.name for path in before if not path.exists()}
    assert "_versions" in gone, "somebody swept what was about to be looked at"


@pytest.mark.parametrize("in_rounds", [True, False])
def test_a_hint_of_entries_that_came_while_somebody_looked_is_no_damage(
    in_rounds: bool, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HINT_EVERY_ENTRIES", 1)
    hinted = Log.hinted
    told_of: list[int | None] = []
    before = graph.snapshot(branch="side").number

    def meanwhile(log: Log, branch: str) -> int | None:
        if branch == "side" and not told_of:
            told_of.append(None)  # the write below looks for its head by the hint, too
            graph.write({"Person": [{"name": "late"}]}, branch=branch, mode="merge")
            told_of.append(hinted(log, branch))
        return hinted(log, branch)

    monkeypatch.setattr(Log, "hinted", meanwhile)

    report = verify_part(graph._open(), reads_max=1_000)[0] if in_rounds else graph.verify()

    assert report.is_whole
    assert before + 1 in told_of, "of an entry that was not there when the look began"


def test_a_hint_of_entries_that_are_lost_is_told(root: Path, graph: Graph) -> None:
    (root / paths.hint("side")).write_text("99")

    found = [each for report in all_rounds(graph, 1) for each in report.findings]

    assert {each.kind for each in found} == {FindingKind.HINT}


def test_a_store_that_does_not_answer_is_no_damage_that_is_certain(root: Path) -> None:
    store = FaultyStore(LocalStore(root, durability=Durability.PROCESS))
    with opened(store) as graph:
        store.arm(Fault.FAIL_BEFORE, times=1_000, kind=RequestKind.LIST)
        with pytest.raises(StoreTransient):
            verify_part(graph._open(), reads_max=1_000)
        store.disarm()
        assert verify_part(graph._open(), reads_max=1_000)[0].is_whole
