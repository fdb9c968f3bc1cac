"""Types too large for memory: searched through their indexes or piece by piece, with the answers of those in memory."""

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
from omnigraph.errors import LimitError
from omnigraph.execution.arrays import Ordinals, Values
from omnigraph.execution.columns import Columns
from omnigraph.execution.search.word_files import WordFiles, to_bytes
from omnigraph.storage.derived import version_of
from omnigraph.storage.object_stores.local import LocalStore
from omnigraph.storage.object_stores.memory import MemoryStore
from omnigraph.testing.counting_store import CountingStore

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
        vectors = pa.FixedSizeListArray.from_arrays(
            pa.array(self.vectors.ravel()), DIMENSION, mask=pa.array(~self.has_vector)
        )
        rows = pa.table(
            {
                "slug": self.slugs,
                "body": [*(" ".join(f"word{each}" for each in some) for some in words[1:]), LIKE_NO_OTHER],
                "vec": vectors,
                "year": pa.array(self.years.astype(np.int32)),
                "kind": [KINDS[each % 3] for each in range(COUNT)],
                "open": pa.array(np.arange(COUNT) % 5 == 0),
            }
        )
        self.folder = folder
        with omnigraph.init(folder, SCHEMA) as graph:
            graph.write({"Doc": rows.slice(0, COUNT - 50)})
            with patch.object(limits, "VECTOR_PARTITION_ROWS", CELL_ROWS):
                graph.optimize()
            graph.write({"Doc": rows.slice(COUNT - 50)})

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
        patch("omnigraph.execution.columns._BYTES_PER_SECOND_READ", 1.0),
        omnigraph.open(documents.folder, options=OpenOptions(cache_bytes=cache_bytes)) as graph,
    ):
        yield graph


def best(graph: Graph, query: Vectors, clause: str = "") -> list[tuple[str, float]]:
    found = graph.query(BEST % clause, {"v": query.tolist()}).to_arrow()
    return [(row["slug"], row["far"]) for row in found.to_pylist()]


def test_an_index_of_many_cells_finds_nearly_all_at_the_default_effort_in_exact_order(
    documents: Documents, record_property: Callable[[str, object], None]
) -> None:
    hits, wanted = 0, 0
    with scarce(documents) as graph:
        said = graph.explain(BEST % "")
        assert "through the index vec_ivf_flat (IVF_FLAT), by looking into 64 of about 298 cells" in said
        assert "50 of 12,000 nodes are not in it yet" in said
        for query in documents.queries:
            found, right = best(graph, query), documents.nearest(query)
            hits, wanted = hits + len(dict(found).keys() & dict(right).keys()), wanted + len(right)
            truth = dict(right)
            assert [far for _, far in found] == sorted(far for _, far in found)
            for slug, far in found:
                assert far == pytest.approx(truth.get(slug, far), rel=1e-12)
    record_property("recall_at_10", hits / wanted)
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


# --- words ------------------------------------------------------------------------------------------------------------

WORDS = (
    'search($d.body, "word7 word300")',
    'match_text($d.body, "word7 word7")',
    'fuzzy($d.body, "word39", 1)',
    'bm25($d.body, "word7") > 4.5',
)


def counts(graph: Graph) -> list[int]:
    texts = (f"query q() {{ match {{ $d: Doc {each} }} return {{ count(*) as n }} }}" for each in WORDS)
    return [graph.query(each).to_arrow().column("n")[0].as_py() for each in texts]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "__derived" / "words").rglob("*") if path.is_file())


@pytest.fixture
def searched(tmp_path: Path) -> Iterator[Path]:
    """A graph whose texts were searched once, so that there is an index over their words beside it."""
    rows = [{"slug": f"d{each:04}", "body": f"word{each % 9} word7 Ünï{each % 3}" if each % 5 else None}
            for each in range(600)]  # fmt: skip
    with patch.object(limits, "WORDS_FILE_TEXTS_MIN", 100):
        with omnigraph.init(tmp_path / "texts", "node Doc { slug: String @key  body: String? }") as graph:
            graph.write({"Doc": rows})
            assert files(tmp_path / "texts") == []
            counts(graph)
        assert len(files(tmp_path / "texts")) == 1
        yield tmp_path / "texts"


def test_an_index_over_words_is_read_by_the_next_process_instead_of_the_texts(searched: Path) -> None:
    text = f"query q() {{ match {{ $d: Doc {WORDS[0]} }} return {{ count(*) as n }} }}"
    with omnigraph.open(searched, read_only=True) as graph:
        assert "$d.body: words are found through an index kept beside the graph, over all texts (600" in graph.explain(
            text
        )
        with patch("omnigraph.execution.column.fragment_rows", side_effect=AssertionError("texts were read")):
            found = counts(graph)
        assert "words are found through an index in memory" in graph.explain(text)
    shutil.rmtree(searched / "__derived")
    with omnigraph.open(searched, read_only=True) as graph:
        assert "words are found through an index made from the texts" in graph.explain(text)
        assert counts(graph) == found
    assert files(searched) == [], "who may only read writes none"


def test_texts_larger_than_the_memory_are_searched_by_their_words(tmp_path: Path) -> None:
    long = " ".join(["internationalisation antidisestablishmentarianism"] * 40)
    bodies = [f"{long} word{each % 9} word7" if each % 5 else None for each in range(400)]
    rows = [{"slug": f"d{each:04}", "body": body} for each, body in enumerate(bodies)]
    schema = "node Doc { slug: String @key  body: String? }"
    with omnigraph.init(tmp_path / "long", schema) as ample:
        ample.write({"Doc": rows[:300]})
        ample.write({"Doc": rows[300:]})
        ample.mutate('query q() { delete Doc where slug = "d0007" }')
        expected = counts(ample)
    with (
        patch.object(limits, "SEARCH_TEXTS_AT_ONCE", 150),
        omnigraph.open(tmp_path / "long", options=OpenOptions(cache_bytes=500_000)) as scarce_one,
    ):
        assert counts(scarce_one) == expected
        with pytest.raises(LimitError) as refused:
            scarce_one.query('query q() { match { $d: Doc  $d.body contains "word3" } return { count(*) as n } }')
        assert refused.value.code == "column_too_large", "the texts themselves did not fit"
    with omnigraph.open(tmp_path / "long", options=OpenOptions(cache_bytes=50_000)) as tiny:
        with pytest.raises(LimitError) as refused:
            counts(tiny)
        assert refused.value.code == "column_too_large"


def test_few_texts_are_indexed_without_asking_the_store_for_a_file() -> None:
    store = CountingStore(MemoryStore())
    with omnigraph.init(store, "node Doc { slug: String @key  body: String? }") as graph:
        graph.write({"Doc": [{"slug": f"d{each}", "body": "word7"} for each in range(50)]})
        assert counts(graph)[0] == 50
        graph.explain(f"query q() {{ match {{ $d: Doc {WORDS[0]} }} return {{ count(*) as n }} }}")
    assert [path for _, path in store.requests() if path.startswith("__derived/")] == []


@pytest.mark.parametrize("damage", ["cut", "changed", "emptied", "of another format"])
def test_no_answer_depends_on_a_damaged_index_over_words(searched: Path, damage: str) -> None:
    [file] = files(searched)
    with omnigraph.open(searched) as graph:
        expected = counts(graph)
    body = file.read_bytes()
    changed = body[:-9] + bytes([body[-9] ^ 1]) + body[-8:]
    other = body.replace(b'"format":2', b'"format":9')
    file.write_bytes(
        {"cut": body[: len(body) // 2], "changed": changed, "emptied": b"", "of another format": other}[damage]
    )

    with omnigraph.open(searched, read_only=True) as graph:
        assert counts(graph) == expected


def test_an_index_over_words_with_any_byte_changed_is_no_index(searched: Path) -> None:
    [file] = files(searched)
    body = file.read_bytes()
    read = WordFiles(LocalStore(searched), read_only=True)._read
    path = file.relative_to(searched).as_posix()
    assert read(path) is not None
    for place in [*range(min(2_000, len(body))), *range(2_000, len(body), 97)]:
        file.write_bytes(body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :])
        found = read(path)
        assert found is None or to_bytes(found) == body, place


def test_rows_that_came_changed_and_went_since_are_found_as_they_are(searched: Path) -> None:
    with omnigraph.open(searched) as graph:
        graph.write({"Doc": [{"slug": f"n{each}", "body": "word7 word7"} for each in range(20)]})
        graph.mutate('query q() { delete Doc where slug = "d0007" }')
        graph.mutate('query q() { update Doc set { body: "word39" } where slug = "d0008" }')
        expected = counts(graph)
    with omnigraph.open(searched) as graph:
        assert counts(graph) == expected
        graph.optimize()
        assert counts(graph) == expected
    with omnigraph.open(searched) as graph:
        assert counts(graph) == expected, "rows lie elsewhere now; the index is not taken for theirs"
    shutil.rmtree(searched / "__derived")
    with omnigraph.open(searched) as graph:
        assert counts(graph) == expected


def test_an_index_over_words_goes_with_the_version_it_was_made_for(searched: Path) -> None:
    [file] = files(searched)
    options = OpenOptions(protection_s=0)
    with omnigraph.open(searched, options=options) as graph:
        graph.write({"Doc": [{"slug": "only", "body": "word7"}]}, mode="overwrite")
        assert version_of(file.relative_to(searched).as_posix()) is not None
        graph.prune(keep=1, now=True)
        graph.sweep(older_than=0)
        assert files(searched) == []
