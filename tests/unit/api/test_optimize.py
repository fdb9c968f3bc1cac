"""Upkeep of a graph: one commit or none, beside writers who never wait; and the tails that compact themselves."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

import pytest
from tests.support.interleaving import once
from tests.support.where import Where

import omnigraph
from omnigraph import ConflictError, Graph, GraphError, NotFoundError, OpenOptions, PermissionDeniedError, limits
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import UPKEEP_ACTOR, CommitKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.tables.fragments import stored_fragments
from omnigraph.storage.tables.table import Layout
from omnigraph.testing.stores import CountingStore

SCHEMA = """
node Person { name: String @key  age: I32? @index }
node Company { name: String @key }
edge Knows: Person -> Person
"""
QUIET = OpenOptions(durability="process", auto_compact=False)
EAGER = OpenOptions(durability="process", tail_fragments_max=6)
AGES = "query ages() { match { $p: Person } return { $p.name as name, $p.age as age } order { name } }"
OLDER = "query older($n: String) { update Person set { age: 99 } where name = $n }"
GONE = "query gone($n: String) { delete Person where name = $n }"


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=QUIET) as made:
        yield made


def add(graph: Graph, first: int, last: int, branch: str = "main") -> None:
    for number in range(first, last):
        graph.write({"Person": [{"name": f"p{number:03d}", "age": number}]}, branch=branch)


def ages(graph: Graph, **where: Unpack[Where]) -> dict[str, int]:
    return {row["name"]: row["age"] for row in graph.query(AGES, **where)}


def layout(graph: Graph, type_key: str = "node:Person") -> Layout:
    return graph.snapshot()._pinned.table(type_key).layout()


def kinds(graph: Graph) -> list[CommitKind]:
    log = graph._parts.log
    return [entry.kind for entry in log.between("main", 1, log.live_head("main").number)]


def test_several_tables_are_compacted_in_one_commit_and_the_next_call_makes_none(graph: Graph) -> None:
    add(graph, 0, 4)
    for name in ("a", "b"):
        graph.write({"Company": [{"name": name}]})
    before, seen = graph.snapshot(), ages(graph)
    report = graph.optimize(actor="keeper", message="nightly")
    head = graph.snapshot()
    assert head.number == before.number + 1
    assert (head.record.kind, head.record.actor, head.record.message) == (CommitKind.COMPACT, "keeper", "nightly")
    assert head.record.changes.types == {}
    done = {table.type_key: (table.fragments_removed, table.fragments_added) for table in report.tables}
    assert done == {"edge:Knows": (0, 0), "node:Company": (2, 1), "node:Person": (4, 1)}
    assert layout(graph).fragments == 1
    assert ages(graph) == seen == ages(graph, commit=before.commit)
    assert graph.optimize().commit is None
    assert graph.snapshot().number == head.number


def test_a_call_that_only_builds_indexes_makes_a_commit_of_that_kind(graph: Graph) -> None:
    add(graph, 0, 1)
    graph.optimize()
    assert graph.snapshot().record.kind is CommitKind.INDEX


def test_only_the_types_asked_for_are_looked_at(graph: Graph) -> None:
    add(graph, 0, 3)
    graph.write({"Company": [{"name": "a"}]})
    report = graph.optimize(types=["Person"])
    assert [table.type_key for table in report.tables] == ["node:Person"]
    with pytest.raises(NotFoundError, match="Persn"):
        graph.optimize(types=["Persn"])
    with pytest.raises(NotFoundError, match="nowhere"):
        graph.optimize("nowhere")


def test_the_report_is_the_document_scripts_read(graph: Graph) -> None:
    add(graph, 0, 2)
    document = graph.optimize().to_dict()
    assert document["uri"] == graph.uri
    names = [each["type_key"] for each in document["datasets"]]
    assert names == ["edge:Knows", "node:Company", "node:Person", "__manifest"]
    person = document["datasets"][2]
    version = graph.snapshot().record.tables["node:Person"].version
    assert person == {
        "type_key": "node:Person",
        "fragments_removed": 2,
        "fragments_added": 1,
        "committed": True,
        "skipped": None,
        "published_dataset_version": version,
        "lance_head_version": version,
        "pending_indexes": [],
    }
    assert {"property": "id", "reason": "the table is empty"} in document["datasets"][1]["pending_indexes"]


def test_full_blocks_of_the_log_are_folded(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)
    add(graph, 0, 8)
    assert graph.optimize().checkpoints == 2
    assert graph.optimize().checkpoints == 0


def test_a_graph_opened_for_reading_is_not_optimized(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "g", SCHEMA, options=QUIET).close()
    with omnigraph.open(tmp_path / "g", read_only=True) as reader, pytest.raises(PermissionDeniedError):
        reader.optimize()


@pytest.mark.parametrize("place", [Failpoint.WRITE_PREPARED, Failpoint.WRITE_TABLES_STAGED])
def test_writers_of_the_same_rows_land_while_it_works_and_nothing_is_lost(graph: Graph, place: Failpoint) -> None:
    add(graph, 0, 6)

    def others() -> None:
        add(graph, 6, 8)
        graph.mutate(OLDER, {"n": "p001"})
        graph.mutate(GONE, {"n": "p002"})

    with armed(place, once(others)):
        report = graph.optimize()
    assert report.commit == graph.snapshot().commit
    assert report.attempts == 1
    expected = {f"p{number:03d}": number for number in range(8)} | {"p001": 99}
    del expected["p002"]
    assert ages(graph) == expected
    index = {each.name: each for each in graph.snapshot()._pinned.table("node:Person").indexes()}["age_btree"]
    assert (index.rows, index.rows_missing) == (4, 3)


def test_a_writer_does_not_wait_for_it(graph: Graph) -> None:
    add(graph, 0, 4)

    def write_elsewhere() -> None:
        thread = threading.Thread(target=add, args=(graph, 4, 5))
        thread.start()
        thread.join()  # for ever, if it had to wait

    # In the midst of staging, when a writer would hold the queue of the table.
    with armed(Failpoint.WRITE_TABLES_STAGED, once(write_elsewhere)):
        graph.optimize()
    assert len(ages(graph)) == 5


def test_of_two_that_meet_the_second_plans_anew_and_finds_nothing_left(graph: Graph) -> None:
    add(graph, 0, 4)
    with armed(Failpoint.WRITE_TABLES_STAGED, once(graph.optimize)):
        report = graph.optimize()
    assert (report.commit, report.attempts) == (None, 2)
    assert kinds(graph).count(CommitKind.COMPACT) == 1
    assert layout(graph).fragments == 1


def test_upkeep_whose_commit_others_have_pruned_and_swept_at_once_was_done(tmp_path: Path) -> None:
    options = OpenOptions(durability="process", auto_compact=False, protection_s=0)
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=options) as graph:
        add(graph, 0, 4)

        def others() -> None:
            with omnigraph.open(tmp_path / "graph", options=options) as faster:
                add(faster, 4, 5)
                faster.optimize()
                add(faster, 5, 6)
                faster.prune(now=True)
                faster.sweep(older_than=0)

        with armed(Failpoint.PUBLISH_INTENT_CLEARED, once(others)):
            report = graph.optimize()

        assert report.commit is not None
        assert ages(graph) == {f"p{number:03d}": number for number in range(6)}


def test_an_update_prepared_before_it_still_lands(graph: Graph) -> None:
    add(graph, 0, 4)
    with armed(Failpoint.WRITE_PREPARED, once(graph.optimize)):
        graph.mutate(OLDER, {"n": "p001"})
    assert ages(graph)["p001"] == 99
    assert kinds(graph)[-2:] == [CommitKind.COMPACT, CommitKind.MUTATION]


def test_a_head_that_was_only_laid_out_anew_is_still_the_commit_a_caller_has_read(graph: Graph) -> None:
    add(graph, 0, 2)
    read = graph.snapshot().commit
    graph.optimize()
    graph.mutate(OLDER, {"n": "p001"}, if_commit=read)
    with pytest.raises(omnigraph.PreconditionError):
        graph.mutate(OLDER, {"n": "p000"}, if_commit=read)


def test_a_lookup_costs_fewer_requests_afterwards(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA, options=QUIET) as graph:
        add(graph, 0, 12)
        before = graph.snapshot()._pinned.table("node:Person")
        reads = before._handle.dataset.io_stats_incremental
        reads()
        assert before.rows_with_ids(["p003"]).num_rows == 1
        scattered = reads().read_iops
        graph.optimize()
        after = graph.snapshot()._pinned.table("node:Person")
        after.rows_with_ids(["p004"])  # the pages of the index are read once
        after._handle.dataset.io_stats_incremental()
        assert after.rows_with_ids(["p003"]).num_rows == 1
        assert after._handle.dataset.io_stats_incremental().read_iops < scattered


# -- tails ------------------------------------------------------------------------------------------------------------


def test_the_tail_of_a_hot_table_is_compacted_beside_its_writers() -> None:
    with omnigraph.init("memory://", SCHEMA, options=EAGER) as graph:
        add(graph, 0, 40)
        assert graph._tails is not None
        graph._tails.drain()
        assert graph._tails.last_failure is None
        assert ages(graph) == {f"p{number:03d}": number for number in range(40)}
        assert layout(graph).fragments < 6 + 4
        compactions = [
            entry
            for entry in graph._parts.log.between("main", 1, graph.snapshot().number)
            if entry.actor == UPKEEP_ACTOR
        ]
        assert len(compactions) >= 2
        assert {entry.kind for entry in compactions} == {CommitKind.COMPACT}
        assert all(entry.intent is None for entry in compactions)
        indexes = {index.name for index in graph.snapshot()._pinned.table("node:Person").indexes()}
        assert indexes == {"id_btree"}  # what was never built is left to a call for it


def test_a_process_that_writes_once_and_ends_compacts_what_others_have_left(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "g", SCHEMA, options=QUIET).close()
    for number in range(7):
        with omnigraph.open(tmp_path / "g", options=EAGER) as graph:
            add(graph, number, number + 1)
    with omnigraph.open(tmp_path / "g", options=QUIET) as graph:
        assert kinds(graph).count(CommitKind.COMPACT) == 1
        assert layout(graph).fragments == 2
        assert len(ages(graph)) == 7


def test_a_graph_opened_without_it_is_left_alone() -> None:
    with omnigraph.init("memory://", SCHEMA, options=OpenOptions(auto_compact=False, tail_fragments_max=2)) as graph:
        add(graph, 0, 8)
        assert layout(graph).fragments == 8


def test_a_row_is_rewritten_few_times_however_many_come_after_it() -> None:
    with omnigraph.init("memory://", SCHEMA, options=EAGER) as graph:
        assert graph._tails is not None
        rewritten = 0
        for number in range(120):
            add(graph, number, number + 1)
            graph._tails.drain()
            head = graph.snapshot()
            if head.record.kind is CommitKind.COMPACT:
                now, before = (
                    {each.key: each.rows for each in stored_fragments(at._pinned.table("node:Person"))}
                    for at in (head, graph.snapshot(number=head.number - 1))
                )
                rewritten += sum(rows for key, rows in now.items() if key not in before)
        # Making one of all small fragments each time would have rewritten some 1,500 rows.
        assert 100 < rewritten < 600


def test_a_compaction_that_fails_fails_nobodys_write(monkeypatch: pytest.MonkeyPatch) -> None:
    with omnigraph.init("memory://", SCHEMA, options=EAGER) as graph:
        assert graph._tails is not None

        def refused(*_: object, **__: object) -> None:
            raise ConflictError("busy")

        monkeypatch.setattr("omnigraph.api.tail_compaction.compact_tail", refused)
        add(graph, 0, 8)
        graph._tails.drain()
        assert isinstance(graph._tails.last_failure, ConflictError)
        monkeypatch.undo()
        add(graph, 8, 20)
        graph._tails.drain()
        assert len(ages(graph)) == 20
        assert layout(graph).fragments < 20


def test_a_process_that_ends_without_closing_its_graph_ends_quietly_and_loses_nothing(tmp_path: Path) -> None:
    script = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
import omnigraph
from omnigraph import OpenOptions
from omnigraph.api import tail_compaction
from omnigraph.failpoints import Failpoint, armed
from tests.support.interleaving import once

compact_tail = tail_compaction.compact_tail

def once_the_end_has_begun(*args):
    try:
        while True:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(time.sleep, 0.01)
    except RuntimeError:
        print("late", flush=True)
    # Others are faster, several times: their entries are read by several threads at once.
    with armed(Failpoint.WRITE_TABLES_STAGED, once(lambda: add(other, 8, 12))):
        compact_tail(*args)

def add(graph, first, last):
    for number in range(first, last):
        graph.write({"Person": [{"name": f"p{number:03d}", "age": number}]})

tail_compaction.compact_tail = once_the_end_has_begun
other = omnigraph.open(sys.argv[1], options=OpenOptions(durability="process", auto_compact=False))
add(omnigraph.open(sys.argv[1], options=OpenOptions(durability="process", tail_fragments_max=6)), 0, 8)
"""
    omnigraph.init(tmp_path / "g", SCHEMA, options=QUIET).close()
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "g")], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr, done.returncode) == ("late\n", "", 0)
    with omnigraph.open(tmp_path / "g", options=EAGER) as graph:
        add(graph, 12, 13)
    with omnigraph.open(tmp_path / "g", options=QUIET) as graph:
        assert len(ages(graph)) == 13
        assert kinds(graph).count(CommitKind.COMPACT) >= 1


def test_noticing_asks_the_store_nothing(tmp_path: Path) -> None:
    counts = []
    for options in (QUIET, OpenOptions(durability="process")):
        place = tmp_path / str(options.auto_compact)
        omnigraph.init(place, SCHEMA, options=QUIET).close()
        store = CountingStore(LocalStore(place, durability=Durability.PROCESS))
        with omnigraph.open(store, options=options) as graph:
            add(graph, 0, 1)
            store.reset()
            add(graph, 1, 4)
            counts.append(store.counts())
    assert counts[0] == counts[1]


def test_many_writers_and_upkeep_at_once_lose_nothing() -> None:
    with omnigraph.init("memory://", SCHEMA, options=EAGER) as graph:
        failures: list[GraphError] = []
        done = threading.Event()

        def writing(owner: int) -> None:
            try:
                for step in range(12):
                    rows = [{"name": f"o{owner}-{place}", "age": step} for place in (step % 3, 3 + step)]
                    graph.write({"Person": rows}, mode="merge")
            except GraphError as fault:
                failures.append(fault)

        def keeping() -> None:
            try:
                while not done.is_set():
                    graph.optimize(types=["Person"])
            except GraphError as fault:
                failures.append(fault)

        writers = [threading.Thread(target=writing, args=(owner,)) for owner in range(3)]
        keeper = threading.Thread(target=keeping)
        for thread in (*writers, keeper):
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        keeper.join()
        assert failures == []
        expected = {f"o{owner}-{3 + step}": step for owner in range(3) for step in range(12)}
        expected |= {f"o{owner}-{place}": 9 + place for owner in range(3) for place in range(3)}
        assert ages(graph) == expected
        table = graph.snapshot()._pinned.table("node:Person")
        assert all(table.rows_with_ids([name]).num_rows == 1 for name in expected)
