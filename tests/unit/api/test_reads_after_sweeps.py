"""What a process has in memory of versions that were swept since is no hindrance to reading those there are."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, OpenOptions, limits

SCHEMA = """
node Doc { slug: String @key  body: String?  rank: I32?  vector: Vector(2)? }
edge Cites: Doc -> Doc { note: String? }
"""
QUERIES = (
    "query cited() { match { $a: Doc  $b: Doc  $a cites $b } return { $a.slug as a, $b.slug as b } order { a, b } }",
    'query words() { match { $d: Doc  search($d.body, "word1") } return { $d.slug as s } order { s } }',
    "query near() { match { $d: Doc } return { $d.slug as s } order { nearest($d.vector, [3.0, 1.0]) } limit 3 }",
    "query ranked() { match { $d: Doc  $d.rank > 3 } return { $d.slug as s, $d.rank as r } order { s } }",
    'query one() { match { $d: Doc { slug: "d3" }  $d cites $o } return { $o.slug as s } }',
)


@pytest.fixture(params=["in memory", "in files"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "in files":
        monkeypatch.setattr(limits, "ADJACENCY_FILE_EDGES_MIN", 1)
        monkeypatch.setattr(limits, "WORDS_FILE_TEXTS_MIN", 1)
    return tmp_path / "graph"


@pytest.fixture
def graph(root: Path) -> Iterator[Graph]:
    options = OpenOptions(durability="process", auto_compact=False, protection_s=0)
    with omnigraph.init(root, SCHEMA, options=options) as made:
        docs = [
            {"slug": f"d{each}", "body": f"word{each % 3}", "rank": each, "vector": [float(each), 1.0]}
            for each in range(8)
        ]
        made.write({"Doc": docs}, {"Cites": [{"from": f"d{each}", "to": f"d{(each * 3) % 8}"} for each in range(8)]})
        yield made


def answers(graph: Graph) -> list[list[dict[str, object]]]:
    return [[dict(row) for row in graph.query(query)] for query in QUERIES]


CHANGES: dict[str, Callable[[Graph], object]] = {
    "nodes replaced": lambda graph: graph.write({"Doc": [{"slug": "d3", "body": "word1", "rank": 9}]}, mode="merge"),
    "nodes deleted": lambda graph: graph.mutate('query q() { delete Doc where slug = "d5" }'),
    "edges added": lambda graph: graph.write({}, {"Cites": [{"from": "d0", "to": "d7"}]}),
    "all replaced": lambda graph: graph.mutate("query q() { update Doc set { rank: 7 } where rank >= 0 }"),
    "replaced and compacted": lambda graph: (CHANGES["nodes replaced"](graph), graph.optimize()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_process_that_has_read_what_was_swept_since_reads_on(change: str, graph: Graph, root: Path) -> None:
    answers(graph)
    graph.write({"Doc": [{"slug": "d8", "body": "word1", "rank": 8}]})
    answers(graph)
    # Each has read for one query only, and has in memory what that one needs.
    readers = [omnigraph.open(root, read_only=True) for _ in QUERIES]
    for reader, query in zip(readers, QUERIES, strict=True):
        reader.query(query)
    with omnigraph.open(root, options=OpenOptions(durability="process", protection_s=0)) as other:
        CHANGES[change](other)
        other.prune(keep=1, now=True)
        other.sweep(older_than=0)

    found = answers(graph)

    with omnigraph.open(root, read_only=True) as fresh:
        expected = answers(fresh)
        assert found == expected
    for reader, query, rows in zip(readers, QUERIES, expected, strict=True):
        assert [dict(row) for row in reader.query(query)] == rows
        reader.close()
