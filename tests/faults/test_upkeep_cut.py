"""Death in the rarer work of upkeep, at every request: files beside the graph, leases, passes, quarantine."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cuts import FOR_EVER, Copies, Cut, at_every_request

import omnigraph
from omnigraph import Graph, Maintenance, OpenOptions, limits
from omnigraph.storage import derived, paths
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore

QUIET = OpenOptions(durability="process", auto_compact=False, protection_s=0)
SCHEMA = """
node Doc { slug: String @key  body: String? @index }
edge Cites: Doc -> Doc
"""
QUERIES = (
    "query cited() { match { $a: Doc  $b: Doc  $a cites $b } return { $a.slug as a, $b.slug as b } order { a, b } }",
    'query words() { match { $d: Doc  search($d.body, "word1") } return { $d.slug as s } order { s } }',
)
FAULTS = [
    Fault.CRASH_AFTER,
    pytest.param(Fault.FAIL_BEFORE, marks=pytest.mark.torture),
    pytest.param(Fault.CRASH_BEFORE, marks=pytest.mark.torture),
]


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits with which a small graph has every kind of file beside it."""
    monkeypatch.setattr(limits, "ADJACENCY_FILE_EDGES_MIN", 1)
    monkeypatch.setattr(limits, "WORDS_FILE_TEXTS_MIN", 1)
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)


@pytest.fixture
def documents(folder: Path, small_files: None) -> Copies:
    """Copies of a graph with texts and edges, and nothing made of them yet."""
    root = folder / "documents"
    with omnigraph.init(root, SCHEMA, options=QUIET) as graph:
        for first in (0, 4, 8):
            graph.write(
                {"Doc": [{"slug": f"d{each}", "body": f"word{each % 3}"} for each in range(first, first + 4)]},
                {"Cites": [{"from": f"d{each}", "to": "d0"} for each in range(first, first + 4)]},
            )
    return Copies(root, folder)


def opened(store: FaultyStore | str) -> Graph:
    return omnigraph.open(store, options=QUIET, clock=ManualClock())


def answers(graph: Graph) -> list[list[dict[str, object]]]:
    return [[dict(row) for row in graph.query(query)] for query in QUERIES]


@pytest.fixture
def expected(documents: Copies) -> list[list[dict[str, object]]]:
    with opened(documents.fresh()) as graph:
        return answers(graph)


def survives(cut: Cut, expected: list[list[dict[str, object]]]) -> None:
    """What is left answers as before, at once and after everything was done again, and nothing of it is damaged."""
    with opened(cut.store) as graph:
        assert answers(graph) == expected, cut.where
        graph.write({"Doc": [{"slug": "d0", "body": "word0"}]}, mode="merge")
        graph.maintain_once(Maintenance(keep=1, now=True, sweep_older_than=0.0))
        assert answers(graph) == expected, cut.where
        assert graph.verify(deep=True).is_whole, cut.where


@pytest.mark.parametrize("fault", FAULTS)
def test_files_made_beside_the_graph_are_whole_or_believed_by_nobody(
    fault: Fault, documents: Copies, expected: list[list[dict[str, object]]]
) -> None:
    def work(store: FaultyStore) -> None:
        with opened(store) as graph:
            answers(graph)

    cuts = 0
    for cut in at_every_request(documents, fault, work, path_part=derived.DERIVED):
        survives(cut, expected)
        cuts += 1
    assert cuts >= 4


@pytest.mark.parametrize("kept", [derived.ADJACENCY, derived.WORDS])
@pytest.mark.parametrize("fault", [Fault.NO_SPACE, Fault.FAIL_BEFORE, Fault.LOSE_REQUEST])
def test_files_that_could_not_be_made_beside_the_graph_are_made_of_the_next_version(
    fault: Fault, kept: str, documents: Copies
) -> None:
    store = documents.fresh()
    with opened(store) as graph:
        store.arm(fault, times=FOR_EVER, path_part=kept)
        before = answers(graph)
        store.disarm()
        assert list(store.list(kept)) == []

        graph.write({"Doc": [{"slug": "next", "body": "word2"}]}, {"Cites": [{"from": "next", "to": "d1"}]})

        [cited, words] = answers(graph)
        assert (len(cited), words) == (len(before[0]) + 1, before[1])
        assert list(store.list(kept)) != []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_pass_of_maintenance_may_die_anywhere(
    fault: Fault, documents: Copies, expected: list[list[dict[str, object]]]
) -> None:
    def work(store: FaultyStore) -> None:
        with opened(store) as graph:
            graph.maintain_once(Maintenance(keep=1, now=True, sweep_older_than=0.0, verify_reads_max=1))

    cuts = 0
    for cut in at_every_request(documents, fault, work):
        survives(cut, expected)
        cuts += 1
    assert cuts > 10


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lease_whose_holder_dies_anywhere_holds_nothing_for_ever(
    fault: Fault, documents: Copies, expected: list[list[dict[str, object]]]
) -> None:
    def work(store: FaultyStore) -> None:
        with opened(store) as graph, graph.lease() as snapshot:
            snapshot.count("Doc")

    for cut in at_every_request(documents, fault, work, path_part=paths.LEASES):
        for left in cut.store.list(paths.LEASES):
            os.utime(Path(cut.store.uri) / left.path, (1_000_000_000, 1_000_000_000))  # it has run out long ago
        survives(cut, expected)
        assert list(cut.store.list(paths.LEASES)) == []


@pytest.fixture
def damaged(documents: Copies) -> Iterator[Copies]:
    """Copies of a graph of which something of every kind is damaged."""
    root = Path(documents.fresh().uri)
    with opened(str(root)) as graph:
        graph.optimize()
        graph.branches.create("side")
        graph.write({"Doc": [{"slug": "side", "body": "word1"}]}, branch="side")
        graph.tags.create("named")
        answers(graph)
    data = sorted(root.glob("nodes/*/data/*.lance"), key=os.path.getmtime)[-1]
    for path in (
        data,
        root / paths.entry("main", 2),
        root / paths.tag_entry("named", 1),
        next((root / derived.ADJACENCY).rglob("head.json")),
        next(path for path in (root / derived.WORDS).rglob("*") if path.is_file()),
        next((root / paths.CHECKPOINTS).rglob("*.json")),
    ):
        os.truncate(path, path.stat().st_size // 2)
    for name in (paths.RECOVERY, paths.LEASES):
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / "01KDVDNA00AAAAAAAAAAAAAAAA.json").write_text("{")
    yield Copies(root, root.with_suffix(".copies"))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_quarantine_that_dies_anywhere_is_finished_by_the_next(
    fault: Fault, damaged: Copies, expected: list[list[dict[str, object]]]
) -> None:
    def work(store: FaultyStore) -> None:
        omnigraph.verify(store, deep=True, quarantine=True, options=QUIET)

    cuts = 0
    for cut in at_every_request(damaged, fault, work):
        work(cut.store)
        with opened(cut.store) as graph:
            assert answers(graph) == expected, cut.where
            assert {row["slug"] for row in graph.query(SLUGS, branch="side")} == {f"d{each}" for each in range(12)}
            graph.write({"Doc": [{"slug": "next"}]}, branch="side")
            assert not any(number > 5 for branch, number in graph.verify(deep=True).lost if branch == "main"), cut.where
            graph.tags.create("named")
        cuts += 1
    assert cuts > 8


SLUGS = "query slugs() { match { $d: Doc } return { $d.slug as slug } }"
