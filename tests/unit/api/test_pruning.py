"""Pruning, sweeping, cleanup and leases as callers meet them."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Unpack

import pytest
from tests.support.interleaving import once
from tests.support.where import Where

import omnigraph
from omnigraph import (
    Graph,
    InvalidRequestError,
    NotFoundError,
    OpenOptions,
    PermissionDeniedError,
    ReclaimedError,
)
from omnigraph.api.prune import CleanupReport, PruneReport, SweepReport
from omnigraph.api.snapshot import Snapshot
from omnigraph.branch.sweep.files import Candidate, FileKind, Item, Swept, Verdict
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import CountingStore, FaultyStore

SCHEMA = """
node Person { name: String @key  age: I32? }
node Company { name: String @key }
"""
FAST = OpenOptions(durability="process", auto_compact=False)
EAGER = OpenOptions(durability="process", auto_compact=False, protection_s=0)
SET = "query set($n: String, $a: I32) { insert Person { name: $n, age: $a } }"
AGES = "query ages() { match { $p: Person } return { $p.name as name, $p.age as age } order { name } }"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def graph(tmp_path: Path, clock: ManualClock) -> Iterator[Graph]:
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=EAGER, clock=clock) as made:
        yield made


def set_age(graph: Graph, age: int, *, prune_previous: bool = False, branch: str = "main") -> str:
    done = graph.mutate(SET, {"n": "ada", "a": age}, prune_previous=prune_previous, branch=branch)
    assert done.commit is not None
    return done.commit


def age(graph: Graph, **where: Unpack[Where]) -> int:
    [row] = graph.query(AGES, **where).to_pylist()
    return int(row["age"])


def listed(graph: Graph, branch: str = "main") -> list[str]:
    return [commit.id for commit in graph.commits.list(branch)]


def test_after_a_pruning_write_one_commit_is_listed_and_two_have_data(graph: Graph) -> None:
    for each in range(5):
        set_age(graph, each)

    last = set_age(graph, 5, prune_previous=True)

    assert listed(graph) == [last]
    assert age(graph) == 5
    graph.sweep(older_than=0)
    manifests = list(Path(graph.uri).glob("nodes/*/_versions/d*"))
    assert len(manifests) == 2


def test_rows_can_be_written_with_pruning_too(graph: Graph) -> None:
    set_age(graph, 1)

    done = graph.write({"Person": [{"name": "ada", "age": 2}]}, mode="merge", prune_previous=True)

    assert listed(graph) == [done.commit]


def test_a_pruned_commit_cannot_be_read_by_id_or_number_though_its_data_is_there(graph: Graph) -> None:
    first = set_age(graph, 1)
    set_age(graph, 2)
    set_age(graph, 3)
    number = graph.commits.show(first).number

    report = graph.prune(commits=[first])

    assert report.marked == 1
    assert first not in listed(graph)
    with pytest.raises(ReclaimedError, match="was pruned"):
        graph.query(AGES, commit=first)
    with pytest.raises(ReclaimedError):
        graph.snapshot(branch="main", number=number)
    assert len(list(Path(graph.uri).glob("nodes/*/_versions/d*"))) == 3


def test_who_asks_for_a_pruned_commit_is_told_the_next_that_can_be_read(tmp_path: Path) -> None:
    clock = ManualClock()
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=FAST, clock=clock) as graph:
        began = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=clock.now_us())
        made = []
        for each in range(8):
            clock.advance(1)
            made.append(graph.commits.show(set_age(graph, each)))
        graph.prune(keep=4)
        graph.prune(commits=[made[5].id])

        def following(**where: Unpack[Where]) -> int:
            with pytest.raises(ReclaimedError, match="the next that can be read is number") as caught:
                graph.snapshot(**where)
            found = int(caught.value.details["next_number"])
            assert caught.value.message.endswith(f"is number {found}")
            assert graph.snapshot(branch="main", number=found).number == found
            return found

        # All of them have their data: it is about who may be read, not about what is still there.
        assert graph.commits.list()[-1].number == made[4].number
        assert following(branch="main", number=1) == made[4].number
        assert following(commit=made[2].id) == made[4].number
        assert following(commit=made[5].id) == made[6].number
        assert following(branch="main", at=began) == made[4].number

        clock.advance(10_000)
        graph.prune(keep=2)
        assert following(branch="main", at=began) == made[6].number


def test_only_commits_of_the_branch_can_be_pruned_by_name_and_never_the_newest(graph: Graph) -> None:
    set_age(graph, 1)
    graph.branches.create("side")
    aside = set_age(graph, 2, branch="side")
    newest = set_age(graph, 3)

    with pytest.raises(NotFoundError):
        graph.prune(commits=[aside])
    with pytest.raises(InvalidRequestError, match="is the newest"):
        graph.prune(commits=[newest])


def test_a_tag_keeps_a_pruned_commit_readable_until_it_goes(graph: Graph) -> None:
    second = set_age(graph, 2)
    graph.tags.create("named", commit=second)
    for each in range(3, 6):
        set_age(graph, each, prune_previous=True)
    graph.sweep(older_than=0)

    assert age(graph, tag="named") == 2
    graph.tags.delete("named")
    graph.sweep(older_than=0)
    with pytest.raises(NotFoundError):
        graph.query(AGES, tag="named")


def test_a_time_is_answered_by_a_tagged_commit_though_it_was_pruned(graph: Graph, clock: ManualClock) -> None:
    def now() -> datetime:
        return datetime.fromtimestamp(clock.now_us() / 1e6, UTC)

    clock.advance(10)
    first = set_age(graph, 1)
    at_first = now()
    graph.tags.create("first", commit=first)
    clock.advance(10)
    set_age(graph, 2, prune_previous=True)
    assert age(graph, at=at_first) == 1

    clock.advance(10)
    third = set_age(graph, 3)
    at_third = now() + timedelta(seconds=1)
    graph.tags.create("third", commit=third)
    clock.advance(10)
    set_age(graph, 4)
    graph.prune(commits=[third])
    assert age(graph, at=at_third) == 3, "the commit of that time, not an older one that is still listed"

    graph.prune(now=True)
    graph.sweep(older_than=0)
    assert (age(graph, at=at_first), age(graph, at=at_third)) == (1, 3)
    with pytest.raises(ReclaimedError):
        graph.query(AGES, at=at_first + timedelta(seconds=15))


def test_pruning_now_leaves_the_newest_alone(graph: Graph) -> None:
    for each in range(1, 6):
        set_age(graph, each)

    graph.prune(now=True)
    report = graph.sweep(older_than=0)

    assert report.bytes_by_kind["manifest"] > 0
    assert len(list(Path(graph.uri).glob("nodes/*/_versions/d*"))) == 1
    assert age(graph) == 5


def test_every_branch_is_pruned_unless_one_is_named(graph: Graph) -> None:
    graph.branches.create("side")
    for branch in ("main", "side"):
        for each in range(3):
            set_age(graph, each, branch=branch)

    planned = graph.prune(keep=1, dry_run=True)
    assert {each.branch for each in planned.branches} == {"main", "side"}
    assert len(listed(graph)) == 4
    report = graph.prune("side", keep=1)

    document = report.to_dict()["branches"]
    assert [(each["branch"], each["marked"]) for each in document] == [("side", 3)]
    assert len(listed(graph)) == 4
    assert len(listed(graph, "side")) == 1


def test_the_window_is_chosen_when_the_graph_is_opened(tmp_path: Path, clock: ManualClock) -> None:
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=FAST, clock=clock) as graph:
        for each in range(4):
            set_age(graph, each, prune_previous=True)
        graph.sweep(older_than=0)
        assert len(list(Path(graph.uri).glob("nodes/*/_versions/d*"))) == 4
        clock.advance(601)
        set_age(graph, 5, prune_previous=True)
        graph.sweep(older_than=0)
        assert len(list(Path(graph.uri).glob("nodes/*/_versions/d*"))) == 2


def test_ages_may_be_given_as_durations(graph: Graph, clock: ManualClock) -> None:
    set_age(graph, 1)
    clock.advance(7_200)
    newest = set_age(graph, 2)

    graph.prune(older_than=timedelta(hours=1))

    assert listed(graph) == [newest]


# -- cleanup ----------------------------------------------------------------------------------------------------------


def test_cleanup_wants_to_know_what_to_keep(graph: Graph) -> None:
    with pytest.raises(InvalidRequestError, match="cleanup requires at least one of --keep or --older-than"):
        graph.cleanup(confirm=True)


def test_cleanup_without_confirmation_only_looks(graph: Graph) -> None:
    for each in range(4):
        set_age(graph, each)

    report = graph.cleanup(keep=1)

    assert (report.pruned.marked, report.swept.swept.deleted) == (4, ())
    assert len(listed(graph)) == 5
    assert {each["bytes_removed"] for each in report.to_dict()["datasets"]} == {0}


@pytest.mark.parametrize(
    ("keep", "older_than", "left"), [(1, None, 1), (50, None, 11), (0, None, 1), (None, 0.0, 1), (3, 0.0, 3)]
)
def test_cleanup_leaves_exactly_what_was_to_be_kept_and_the_newest(
    keep: int | None, older_than: float | None, left: int, graph: Graph, clock: ManualClock
) -> None:
    for each in range(10):
        clock.advance(1)
        set_age(graph, each)
    clock.advance(1)

    report = graph.cleanup(keep=keep, older_than=older_than, confirm=True)

    assert len(listed(graph)) == left
    versions = len(list(Path(graph.uri).glob("nodes/*/_versions/d*")))
    assert versions == min(left, 10)
    document = report.to_dict()
    assert (document["keep_versions"], document["older_than_secs"]) == (keep, None if older_than is None else 0)
    by_type = {each["type_key"]: each for each in document["datasets"]}
    assert by_type["node:Person"]["old_versions_removed"] == 10 - versions
    assert by_type["node:Company"]["old_versions_removed"] == 0
    assert {each["error"] for each in document["datasets"]} == {None}
    assert age(graph) == 9


def test_cleanup_tells_what_it_could_not_delete_and_does_the_rest(tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path / "graph", durability=Durability.PROCESS))
    with omnigraph.init(store, SCHEMA, options=EAGER) as graph:
        for each in range(4):
            graph.write({"Person": [{"name": "ada", "age": each}], "Company": [{"name": f"c{each}"}]}, mode="merge")
        person = graph.snapshot().record.tables["node:Person"].table
        store.arm(Fault.FAIL_BEFORE, kind=RequestKind.DELETE, path_part=f"{person}/data/", times=9)

        report = graph.cleanup(keep=1, confirm=True)

        assert list(report.errors) == [person]
        by_type = {each["type_key"]: each for each in report.to_dict()["datasets"]}
        assert by_type["node:Person"]["error"] == report.errors[person]
        assert by_type["node:Company"]["error"] is None
        assert by_type["node:Company"]["old_versions_removed"] == 3
        store.disarm()
        assert graph.cleanup(keep=1, confirm=True).errors == {}
        assert len(list((tmp_path / "graph" / person / "data").iterdir())) == 1


def test_what_cleanup_is_in_doubt_about_is_an_error_of_its_table() -> None:
    doubtful = Candidate("nodes/T/data/x.lance", 1, 0, FileKind.DATA, "nodes/T")
    swept = Swept((Item(doubtful, Verdict.INDETERMINATE, "a version of its table could not be read"),), 0, 0)
    report = CleanupReport(
        "g", 1, None, PruneReport("g", (), dry_run=False), SweepReport("g", swept, dry_run=False), {}
    )

    assert [(each["type_key"], each["error"]) for each in report.to_dict()["datasets"]] == [
        ("nodes/T", "a version of its table could not be read")
    ]


def test_after_cleanup_the_graph_is_optimized_and_written_as_before(graph: Graph) -> None:
    for each in range(5):
        graph.mutate(SET, {"n": f"p{each}", "a": each})

    graph.cleanup(keep=1, confirm=True)
    graph.optimize()
    graph.mutate(SET, {"n": "new", "a": 1})

    assert graph.count("Person") == 6
    graph.cleanup(keep=1, confirm=True)
    assert len(graph.query(AGES)) == 6


# -- those who read meanwhile -----------------------------------------------------------------------------------------


def test_a_leased_commit_is_read_while_it_is_pruned_and_swept(graph: Graph) -> None:
    set_age(graph, 1)
    with graph.lease(branch="main", seconds=30) as snapshot:
        for each in (2, 3, 4):
            set_age(graph, each)
        graph.cleanup(keep=1, confirm=True)

        with omnigraph.open(graph.uri, options=EAGER) as another:
            assert another.snapshot(branch="main").number > snapshot.number
        [row] = snapshot.query(AGES)
        assert row["age"] == 1


def test_a_snapshot_whose_commit_was_pruned_and_swept_says_so(graph: Graph) -> None:
    set_age(graph, 1)
    with omnigraph.open(graph.uri, options=EAGER) as reader:
        snapshot = reader.snapshot()
        set_age(graph, 2)
        graph.cleanup(keep=1, confirm=True)

        with pytest.raises(ReclaimedError, match="was pruned") as caught:
            snapshot.query(AGES)
        assert caught.value.code == "version_reclaimed"
        assert age(reader) == 2


READS: dict[str, Callable[[Snapshot], object]] = {
    "query": lambda snapshot: snapshot.query(AGES).to_pylist(),
    "stream": lambda snapshot: list(snapshot.stream(AGES)),
    "count": lambda snapshot: snapshot.count("Person"),
    "export": lambda snapshot: snapshot.export_arrow("Person").read_all(),
    "neighbourhood": lambda snapshot: [node.id for node in snapshot.neighbourhood("Person", "ada").nodes],
    "lance": lambda snapshot: snapshot.lance_table("Person").to_table(columns=["age"]),
}


@pytest.mark.parametrize("read", READS)
def test_every_way_to_read_says_that_a_commit_was_pruned(graph: Graph, read: str) -> None:
    set_age(graph, 1)
    with omnigraph.open(graph.uri, options=EAGER) as reader:
        snapshot = reader.snapshot()
        set_age(graph, 2)
        graph.cleanup(keep=1, confirm=True)

        with pytest.raises(ReclaimedError, match="was pruned"):
            READS[read](snapshot)
        READS[read](reader.snapshot())


@pytest.mark.parametrize("read", READS)
def test_within_the_window_no_prune_or_sweep_disturbs_a_reader(tmp_path: Path, clock: ManualClock, read: str) -> None:
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=FAST, clock=clock) as graph:
        set_age(graph, 1)
        with omnigraph.open(graph.uri, options=FAST, clock=clock) as reader:
            snapshot = reader.snapshot()
            before = READS[read](graph.snapshot())
            for each in range(5):
                clock.advance(60)
                set_age(graph, each, prune_previous=True)
                graph.sweep(older_than=0)

            assert READS[read](snapshot) == before, "nothing of it was in memory"


def test_a_read_of_the_newest_that_loses_the_race_looks_again(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    set_age(graph, 1)

    def overtake() -> None:
        set_age(graph, 2)
        graph.cleanup(keep=1, confirm=True)

    with omnigraph.open(graph.uri, options=EAGER) as reader:
        look, act = reader._reader._head, once(overtake)

        def look_and_be_overtaken(branch: str | None) -> Snapshot:
            snapshot = look(branch)
            act()
            return snapshot

        monkeypatch.setattr(reader._reader, "_head", look_and_be_overtaken)
        assert age(reader) == 2


def test_reading_the_newest_costs_the_same_after_a_prune(tmp_path: Path, clock: ManualClock) -> None:
    omnigraph.init(tmp_path, SCHEMA, options=EAGER, clock=clock).close()
    counted = CountingStore(LocalStore(tmp_path, durability=Durability.PROCESS))
    with omnigraph.open(counted, options=EAGER, clock=clock) as graph:
        costs = []
        for prune_previous in (False, True):
            set_age(graph, 1, prune_previous=prune_previous)
            counted.reset()
            graph.snapshot()
            costs.append(counted.reset())
        assert costs[0] == costs[1]


def test_a_graph_opened_for_reading_cannot_be_pruned_swept_or_leased(graph: Graph) -> None:
    set_age(graph, 1)
    with omnigraph.open(graph.uri, read_only=True) as reader:
        for act in (
            lambda: reader.prune(keep=1),
            reader.sweep,
            lambda: reader.cleanup(keep=1, confirm=True),
            lambda: reader.lease().__enter__(),
        ):
            with pytest.raises(PermissionDeniedError):
                act()
        set_age(graph, 2)
        graph.prune(now=True)
        planned = reader.sweep(older_than=0, dry_run=True)
        done = graph.sweep(older_than=0)
    assert planned.deleted_files == done.deleted_files > 0, "looking is no sweeping: all of it is still there"


def test_the_report_of_a_sweep_says_how_much_of_what_and_why(graph: Graph) -> None:
    for each in range(4):
        set_age(graph, each)
    graph.prune(now=True)

    planned = graph.sweep(older_than=0, dry_run=True).to_dict()
    done = graph.sweep(older_than=0).to_dict()

    assert planned["worklist"] == [each for each in planned["worklist"] if each["reason"]]
    assert done["bytes_removed"] == sum(done["bytes_by_kind"].values()) > 0
    assert done["files_removed"] == sum(done["files_by_kind"].values())
    assert (done["errors"], done["indeterminate"]) == ({}, [])


def test_a_sweep_of_a_graph_in_memory_leaves_other_graphs_in_memory_alone() -> None:
    with (
        omnigraph.init("memory://", SCHEMA, options=EAGER) as graph,
        omnigraph.init("memory://", SCHEMA, options=EAGER) as other,
    ):
        set_age(other, 36)
        set_age(graph, 41)

        swept = graph.sweep(older_than=0)

        files = {file.path.split("/")[1] for file in swept.swept.deleted if file.path.startswith("nodes/")}
        assert files <= {pin.table.split("/")[1] for pin in graph.snapshot().record.tables.values()}
        assert other.verify().is_whole
