"""Types too large for memory: searched through their indexes or piece by piece, with the answers of those in memory."""

import copy
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph, OpenOptions, limits
from omnigraph.execution.arrays import Ordinals, Values
from omnigraph.execution.columns import Columns
from omnigraph.execution.search.vector_index import nearest_by_index
from omnigraph.storage.tables.table import BuiltIndex

pytestmark = pytest.mark.usefixtures("parts_of_few_texts_are_indexed")

COUNT, DIMENSION, CELL_ROWS = 12_000, 32, 40
SCHEMA = f"""node Doc {{
    slug: String @key  body: String @index  vec: Vector({DIMENSION})? @index
    year: I32 @index  kind: enum(paper, book, talk) @index  open: Bool @index
}}"""
LIKE_NO_OTHER = "the one text that is like no other"
KINDS = ("paper", "book", "talk")
BEST = f"""query q($v: Vector({DIMENSION})?) {{ match {{ $d: Doc %s }}
return {{ $d.slug as slug, nearest($d.vec, $v) as far }} order {{ nearest($d.vec, $v) }} limit 10 }}"""

Vectors = npt.NDArray[np.float32]


class Documents:
    """Documents whose vectors lie around some hundred topics, as those of texts do, in an index of many cells."""

    def __init__(self, folder: Path) -> None:
        chance = np.random.default_rng(11)
        topics = chance.normal(size=(300, DIMENSION))
        self.vectors: Vectors = (
            topics[chance.integers(0, 300, COUNT)] + 0.6 * chance.normal(size=(COUNT, DIMENSION))
        ).astype(np.float32)
        self.queries: Vectors = (topics[:60] + 0.6 * chance.normal(size=(60, DIMENSION))).astype(np.float32)
        self.years = chance.integers(0, 20, COUNT)
        self.has_vector = np.arange(COUNT) % 97 != 0
        self.slugs = np.array([f"d{each:05}" for each in range(COUNT)])
        words = chance.integers(0, 400, (COUNT, 6))
        self.texts = [*(" ".join(f"word{each}" for each in some) for some in words[1:]), LIKE_NO_OTHER]
        self.folder = folder
        rows = self.rows
        with omnigraph.init(folder, SCHEMA) as graph:
            graph.write({"Doc": rows.slice(0, COUNT - 50)})
            with patch.object(limits, "VECTOR_PARTITION_ROWS", CELL_ROWS):
                graph.optimize()
            graph.write({"Doc": rows.slice(COUNT - 50)})

    @property
    def rows(self) -> pa.Table:
        """All documents as they are here."""
        vectors = pa.FixedSizeListArray.from_arrays(
            pa.array(self.vectors.ravel()), DIMENSION, mask=pa.array(~self.has_vector)
        )
        return pa.table(
            {
                "slug": self.slugs,
                "body": self.texts,
                "vec": vectors,
                "year": pa.array(self.years.astype(np.int32)),
                "kind": [KINDS[each % 3] for each in range(COUNT)],
                "open": pa.array(np.arange(COUNT) % 5 == 0),
            }
        )

    def copied(self, folder: Path) -> "Documents":
        """The same, to be changed."""
        shutil.copytree(self.folder, folder)
        other = copy.copy(self)
        other.folder, other.vectors, other.has_vector = folder, self.vectors.copy(), self.has_vector.copy()
        return other

    def nearest(self, query: Vectors, where: "npt.NDArray[np.bool_] | bool" = True) -> list[tuple[str, float]]:
        """The right answer, by comparing each."""
        far = np.linalg.norm(self.vectors.astype(np.float64) - query, axis=1)
        far[~(self.has_vector & where)] = np.inf
        return [(str(self.slugs[each]), float(far[each])) for each in np.lexsort([self.slugs, far])[:10]]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Documents:
    return Documents(tmp_path_factory.mktemp("documents"))


@contextmanager
def scarce(documents: Documents, *, cache_bytes: int = limits.QUERY_CACHE_BYTES_MAX) -> Iterator[Graph]:
    """The graph as a process sees it for which its types are too large to be read at once."""
    with (
        patch.object(limits, "READ_WHOLE_ROWS_MAX", 10),
        patch.object(limits, "VECTOR_PARTITION_ROWS", CELL_ROWS),
        patch("omnigraph.execution.versions._BYTES_PER_SECOND_READ", 1.0),
        omnigraph.open(documents.folder, options=OpenOptions(cache_bytes=cache_bytes)) as graph,
    ):
        yield graph


def best(graph: Graph, query: Vectors, clause: str = "") -> list[tuple[str, float]]:
    found = graph.query(BEST % clause, {"v": query.tolist()}).to_arrow()
    return [(row["slug"], row["far"]) for row in found.to_pylist()]


@contextmanager
def through_the_index(documents: Documents) -> Iterator[tuple[Graph, list[str]]]:
    """The graph as one whose vectors never fit into memory, with every search of the index noted."""
    searched: list[str] = []

    def noted(columns: Columns, index: BuiltIndex, query: Vectors, count: int) -> Ordinals:
        searched.append(index.name)
        return nearest_by_index(columns, index, query, count)

    memory = int(documents.vectors.nbytes / limits.VECTOR_COLUMN_SHARE_MAX) - 100_000
    with (
        scarce(documents, cache_bytes=memory) as graph,
        patch("omnigraph.execution.search.scoring.nearest_by_index", noted),
    ):
        yield graph, searched


# So many cells are looked into at least; of an index with thousands, the share of a sixteenth is more than that.
@pytest.mark.parametrize(("at_least", "looked_into"), [(limits.VECTOR_CELLS_LOOKED_INTO, 64), (1, 19)])
def test_an_index_of_many_cells_finds_nearly_all_at_the_default_effort_in_exact_order(
    documents: Documents, record_property: Callable[[str, object], None], at_least: int, looked_into: int
) -> None:
    hits, wanted = 0, 0
    with (
        through_the_index(documents) as (graph, searched),
        patch.object(limits, "VECTOR_CELLS_LOOKED_INTO", at_least),
    ):
        said = graph.explain(BEST % "")
        assert f"through the index vec_ivf_flat (IVF_FLAT), by looking into {looked_into} of about 298 cells" in said
        assert "50 of 12,000 nodes are not in it yet" in said
        for query in documents.queries:
            found, right = best(graph, query), documents.nearest(query)
            hits, wanted = hits + len(dict(found).keys() & dict(right).keys()), wanted + len(right)
            truth = dict(right)
            assert [far for _, far in found] == sorted(far for _, far in found)
            for slug, far in found:
                assert far == pytest.approx(truth.get(slug, far), rel=1e-12)
    assert len(searched) == len(documents.queries), "none was answered from memory"
    record_property("recall_at_10", hits / wanted)
    assert hits / wanted >= 0.95


def test_vectors_that_came_changed_and_went_since_the_index_are_found_as_they_are(
    documents: Documents, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    changed = documents.copied(tmp_path / "changed")
    chance = np.random.default_rng(5)
    moved, gone = np.arange(0, COUNT, 20), np.arange(7, COUNT, 20)
    queries = changed.queries[:20]
    changed.vectors[moved] = queries[chance.integers(0, len(queries), len(moved))] + chance.normal(
        size=(len(moved), DIMENSION)
    ).astype(np.float32)
    changed.has_vector[moved] = True
    changed.has_vector[gone] = False
    with omnigraph.open(changed.folder) as graph:
        graph.write({"Doc": changed.rows.take(moved)}, mode="merge")
        for first in range(0, len(gone), 200):
            names = ", ".join(f'"{slug}"' for slug in changed.slugs[gone[first : first + 200]])
            graph.mutate(f"query q() {{ delete Doc where slug in [{names}] }}")
    hits, wanted = 0, 0
    with through_the_index(changed) as (graph, searched):
        assert "through the index vec_ivf_flat (IVF_FLAT), by looking into 64 of about" in graph.explain(BEST % "")
        for query in queries:
            found, right = dict(best(graph, query)), dict(changed.nearest(query))
            hits, wanted = hits + len(found.keys() & right.keys()), wanted + len(right)
            assert len(found) == 10
            for slug, far in found.items():
                place = int(slug[1:])
                assert changed.has_vector[place], "what was deleted is never found"
                assert far == pytest.approx(np.linalg.norm(changed.vectors[place].astype(np.float64) - query), rel=1e-9)
    assert len(searched) == len(queries)
    record_property("recall_at_10_after_changes", hits / wanted)
    assert hits / wanted >= 0.95


@pytest.mark.parametrize("ranking", ["nearest($d.vec, $v)", 'bm25($d.body, "word7")'])
def test_other_columns_are_fetched_of_the_best_alone(documents: Documents, ranking: str) -> None:
    fetched: list[tuple[str, int]] = []
    really = Columns.take

    def counted(self: Columns, name: str, ordinals: Ordinals, *, absent: bool = False) -> Values:
        fetched.append((name, len(ordinals)))
        return really(self, name, ordinals, absent=absent)

    text = f"""query q($v: Vector({DIMENSION})?) {{ match {{ $d: Doc }}
    return {{ $d.kind as kind, $d.year as year }} order {{ {ranking} }} limit 10 }}"""
    with scarce(documents) as graph, patch.object(Columns, "take", counted):
        assert graph.query(text, {"v": documents.queries[0].tolist()}).to_arrow().num_rows == 10
    assert {count for name, count in fetched if name in {"kind", "year"}} == {10}


def test_a_search_of_all_cells_finds_what_comparing_each_finds(documents: Documents) -> None:
    with scarce(documents) as graph, patch.object(limits, "VECTOR_CELLS_LOOKED_INTO", 1_000):
        assert "by looking into all its cells" in graph.explain(BEST % "")
        for query in documents.queries[:10]:
            assert [slug for slug, _ in best(graph, query)] == [slug for slug, _ in documents.nearest(query)]


@pytest.mark.parametrize("clause", ["$d.year >= 2", "$d.year = 3", 'search($d.body, "word7")'])
def test_vectors_larger_than_the_memory_are_compared_piece_by_piece_under_any_filter(
    documents: Documents, clause: str
) -> None:
    memory = documents.vectors.nbytes - 100_000
    with omnigraph.open(documents.folder) as ample, scarce(documents, cache_bytes=memory) as graph:
        with patch.object(limits, "VECTOR_PIECE_BYTES", 10_000):
            for query in documents.queries[:4]:
                assert best(graph, query, clause) == best(ample, query, clause)
        said = graph.explain(BEST % clause)
        assert "of vectors read piece by piece" in said
        assert graph.stats().cache.bytes < memory


def test_all_distances_of_vectors_larger_than_the_memory_are_computed(documents: Documents) -> None:
    text = f"""query q($v: Vector({DIMENSION})) {{ match {{ $d: Doc }}
    return {{ $d.slug as slug, nearest($d.vec, $v) as far }} order {{ $d.slug }} }}"""
    query = {"v": documents.queries[0].tolist()}
    with omnigraph.open(documents.folder) as ample, scarce(documents, cache_bytes=1_400_000) as graph:
        assert graph.query(text, query).to_arrow().equals(ample.query(text, query).to_arrow())


def test_without_an_index_vectors_larger_than_the_memory_are_read_through(tmp_path: Path) -> None:
    vectors = np.random.default_rng(3).normal(size=(3_000, 64)).astype(np.float32)
    rows = pa.table(
        {
            "slug": [f"d{each:04}" for each in range(len(vectors))],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 64),
        }
    )
    text = """query q($v: Vector(64)) { match { $d: Doc } return { $d.slug as slug }
    order { nearest($d.vec, $v) } limit 5 }"""
    with omnigraph.init(
        tmp_path / "plain", "node Doc { slug: String @key  vec: Vector(64) }", options=OpenOptions(cache_bytes=500_000)
    ) as graph:
        graph.write({"Doc": rows})
        found = graph.query(text, {"v": vectors[17].tolist()}).to_arrow().column("slug").to_pylist()
    far = np.linalg.norm(vectors.astype(np.float64) - vectors[17], axis=1)
    assert found == [f"d{each:04}" for each in np.argsort(far, kind="stable")[:5]]


@pytest.mark.parametrize(
    ("clause", "index"),
    [
        ("$d.year = 3", "year_btree (BTREE)"),
        ("$d.year > 17", "year_btree (BTREE)"),
        ('$d.body = "the one text that is like no other"', "body_btree (BTREE)"),
        ('$d.kind = "talk"  $d.year = 3', "kind_bitmap (BITMAP)"),
        ("$d.open = true", "open_bitmap (BITMAP)"),
        ("$d.open = false  $d.year = 19", "open_bitmap (BITMAP)"),
        ('$d.body contains "word39 wor"', "body_ngram (NGRAM)"),
        ('$d.body contains "ord39"  $d.open = true', "body_ngram (NGRAM)"),
    ],
)
def test_every_kind_of_index_is_told_by_explain_and_changes_no_answer(
    documents: Documents, clause: str, index: str
) -> None:
    text = f"query q() {{ match {{ $d: Doc {clause} }} return {{ $d.slug as s }} order {{ $d.slug }} }}"
    with omnigraph.open(documents.folder) as ample:
        expected = ample.query(text).to_arrow()
        assert expected.num_rows
        assert "through the index" not in ample.explain(text)
    with scarce(documents) as graph:
        assert f"nodes are found through the index {index}" in graph.explain(text)
        assert graph.query(text).to_arrow().equals(expected)
