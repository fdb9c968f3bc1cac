"""Search, rule by rule: words, phrases, misspellings, distances, scores as columns, rankings fused, indexes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from tests.support import search_meaning

import omnigraph
from omnigraph import Graph, limits
from omnigraph.embedding.provider import MockProvider, Provider, Purpose
from omnigraph.errors import InvalidRequestError
from omnigraph.execution.column import SharedColumn
from omnigraph.execution.growing import GrowingArray
from omnigraph.execution.search.fuzzy import within_edits
from omnigraph.execution.search.query_text import Embedder
from omnigraph.execution.search.text_index import build_text_index
from omnigraph.execution.search.tokenizer import Term, tokenize, tokenize_query
from omnigraph.model.analyzer import Analyzer

pytestmark = pytest.mark.usefixtures("parts_of_few_texts_are_indexed")

SCHEMA = """
node Doc { slug: String @key  body: String?  vec: Vector(3)? @index  year: I32? }
node Note { text: String  vec: Vector(4)? @embed("text", model="of-then") }
edge Cites: Doc -> Doc
"""
DOCS: list[dict[str, Any]] = [
    {"slug": "a", "body": "The quick brown fox", "vec": [1.0, 0.0, 0.0], "year": 1},
    {"slug": "b", "body": "A lazy dog, and a dog", "vec": [0.0, 1.0, 0.0], "year": 2},
    {"slug": "c", "body": "Fox and dog; brown dog", "vec": [0.0, 0.0, 1.0], "year": 1},
    {"slug": "d", "body": None, "vec": [0.0, 0.5, 0.5], "year": 2},
    {"slug": "e", "body": "nothing of the kind", "vec": None, "year": 1},
]


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://search", SCHEMA) as made:
        cites = [{"from": "a", "to": each} for each in "bcd"]
        made.write({"Doc": DOCS, "Note": [{"text": "x", "vec": [1.0, 0.0, 0.0, 0.0]}]}, {"Cites": cites})
        yield made


def rows(graph: Graph, body: str, **params: object) -> list[dict[str, Any]]:
    declared = "$v: Vector(3)?, $q: String?, $n: I64?"
    return graph.query(f"query q({declared}) {{ {body} }}", params).to_arrow().to_pylist()


def slugs(graph: Graph, clause: str, **params: object) -> list[str]:
    found = rows(graph, f"match {{ $d: Doc {clause} }} return {{ $d.slug as s }} order {{ $d.slug }}", **params)
    return [row["s"] for row in found]


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The quick-brown FOX_2, 3rd.", ["the", "quick", "brown", "fox", "2", "3rd"]),
        ("Straße ÉTÉ", ["straße", "été"]),
        ("cafe\u0301", ["café"]),
        ("日本 テスト", ["日本", "テスト"]),
        ("  …!  ", []),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_and_digits_without_regard_to_case(text: str, words: list[str]) -> None:
    assert [term.word for term in tokenize_query(text, Analyzer.SIMPLE)] == words
    assert tokenize(pa.array([None, text]), Analyzer.SIMPLE).words.to_pylist() == words
    assert tokenize(pa.array(["x y", text, None]), Analyzer.SIMPLE).counts.tolist() == [2, len(words), 0]
    assert search_meaning.words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("learn learns Learning learned", ["learn"] * 4),
        ("Café cafe CAFÉS cafe\u0301", ["cafe"] * 4),
        ("résumé resumes", ["resum", "resum"]),
        ("The quick-brown FOX_2, 3rd.", ["quick", "brown", "fox", "2", "3rd"]),
        ("this is the one", ["one"]),
        ("Straße Øresund łódź Þór Encyclopædia ǿ", ["strass", "oresund", "lodz", "thor", "encyclopaedia", "o"]),
        ("日本 テスト が й", ["日本", "テスト", "が", "й"]),
        ("the", []),
        ("…", []),
    ],
)
def test_english_words_are_stems_without_accents_and_stop_words(text: str, words: list[str]) -> None:
    assert [term.word for term in tokenize_query(text, Analyzer.ENGLISH)] == words
    found = tokenize(pa.array(["x the y", text, None]), Analyzer.ENGLISH)
    assert found.words.to_pylist() == ["x", "y", *words]
    assert found.counts.tolist() == [2, len(words), 0]
    assert found.positions.tolist() == [0, 2, *(term.position for term in tokenize_query(text, Analyzer.ENGLISH))]
    assert search_meaning.words(text, Analyzer.ENGLISH) == words


def test_misspellings_are_counted_in_letters() -> None:
    words = ["fox", "fx", "foxes", "ox", "dog", "fóx", "f", ""]
    for edits in range(4):
        expected = [each != "" and search_meaning.edits(each, "fox") <= edits for each in words]
        assert within_edits(pa.array(words), "fox", edits).tolist() == expected


def test_an_index_that_grew_row_by_row_knows_what_one_made_at_once_knows() -> None:
    chance = np.random.default_rng(1)
    texts = [" ".join(f"w{each}" for each in chance.integers(0, 9, 5)) for _ in range(70)]
    index = build_text_index(SharedColumn(GrowingArray([pa.array(texts[:1])]), {}), Analyzer.ENGLISH, None)
    for count in range(2, 71):
        index = build_text_index(SharedColumn(GrowingArray([pa.array(texts[:count])]), {}), Analyzer.ENGLISH, index)
    whole = build_text_index(SharedColumn(GrowingArray([pa.array(texts)]), {}), Analyzer.ENGLISH, None)
    assert len(index.segments) <= 8
    for word in [f"w{each}" for each in range(10)]:
        assert [each.tolist() for each in index.postings(word)] == [each.tolist() for each in whole.postings(word)]
    assert index.match_phrase([Term("w1", 0), Term("w2", 1)]).tolist() == ["w1 w2" in text for text in texts]
    assert index.lengths.tolist() == whole.lengths.tolist()


# --- in patterns ------------------------------------------------------------------------------------------------------


def test_search_finds_any_word_a_phrase_all_in_a_row_and_fuzzy_misspelled_ones(graph: Graph) -> None:
    assert slugs(graph, 'search($d.body, "FOX lazy")') == ["a", "b", "c"]
    assert slugs(graph, 'match_text($d.body, "brown fox")') == ["a"]
    assert slugs(graph, 'match_text($d.body, "dog brown")') == ["c"]
    assert slugs(graph, 'fuzzy($d.body, "quikc")') == ["a"]
    assert slugs(graph, 'fuzzy($d.body, "quikc", 1)') == []
    assert slugs(graph, 'search($d.body, "")') == []
    assert slugs(graph, 'match_text($d.body, "…")') == []


def test_several_searches_on_one_variable_must_all_match(graph: Graph) -> None:
    assert slugs(graph, 'search($d.body, "fox") search($d.body, "dog")') == ["c"]
    assert slugs(graph, 'search($d.body, "fox") not { search($d.body, "dog") }') == ["a"]


def test_a_search_for_null_finds_nothing(graph: Graph) -> None:
    assert slugs(graph, "search($d.body, $q)") == []
    assert slugs(graph, 'fuzzy($d.body, "fox", $n)') == []
    body = "match { $d: Doc } return { $d.slug } order { nearest($d.vec, $v) } limit 3"
    assert rows(graph, body) == []


def test_edits_out_of_bounds_are_refused(graph: Graph) -> None:
    with pytest.raises(InvalidRequestError, match="max_edits must be from 0 to 8, not 9"):
        slugs(graph, 'fuzzy($d.body, "fox", $n)', n=9)


def test_what_was_reached_by_a_traversal_is_searched_and_ranked(graph: Graph) -> None:
    body = """match { $a: Doc { slug: "a" }  $a cites $d  search($d.body, "dog") }
    return { $d.slug as s, bm25($d.body, "dog brown") as b } order { bm25($d.body, "dog brown") }"""
    found = rows(graph, body)
    texts = [doc["body"] for doc in DOCS]
    expected = {doc["slug"]: search_meaning.bm25(texts, doc["body"], "dog brown", Analyzer.ENGLISH) for doc in DOCS}
    assert [row["s"] for row in found] == ["c", "b"]
    assert [row["b"] for row in found] == pytest.approx([expected["c"], expected["b"]])


def test_scores_are_columns_named_after_their_functions(graph: Graph) -> None:
    body = """match { $d: Doc } return { $d.slug as s, nearest($d.vec, $v), bm25($d.body, "fox"),
    rrf(nearest($d.vec, $v), bm25($d.body, "fox")) } order { $d.slug }"""
    answer = graph.query(f"query q($v: Vector(3)) {{ {body} }}", {"v": [1, 0, 0]}).to_arrow()
    assert answer.column_names == ["s", "nearest", "bm25", "rrf"]
    assert [str(each) for each in answer.schema.types[1:]] == ["double"] * 3
    assert answer.column("nearest").to_pylist() == pytest.approx([0, 2**0.5, 2**0.5, 1.5**0.5, None])
    assert [each is None for each in answer.column("bm25").to_pylist()] == [False, True, False, True, True]
    assert answer.column("rrf").to_pylist()[4] is None


def test_two_rankings_are_fused_by_the_formula_within_the_window(graph: Graph) -> None:
    body = """match { $d: Doc } return { $d.slug as s, rrf(bm25($d.body, "dog fox"), nearest($d.vec, $v), 2) as r }
    order { rrf(bm25($d.body, "dog fox"), nearest($d.vec, $v), 2) } limit %d"""
    # By words c, b, a; by distance a, d, and then b before c, which is as far.
    everything = rows(graph, body % 9, v=[1, 0, 0])
    assert {row["s"]: row["r"] for row in everything} == pytest.approx(
        {"a": 1 / 5 + 1 / 3, "b": 1 / 4 + 1 / 5, "c": 1 / 3 + 1 / 6, "d": 1 / 4}
    )
    assert [row["s"] for row in everything] == ["a", "c", "b", "d"]
    # Of each ranking only the first two take part; c is first by words, as a is by distance.
    assert [(row["s"], row["r"]) for row in rows(graph, body % 2, v=[1, 0, 0])] == [("c", 1 / 3), ("a", 1 / 3)]


def test_a_fusion_with_a_k_that_is_not_positive_is_refused(graph: Graph) -> None:
    body = """match { $d: Doc } return { $d.slug } order { rrf(nearest($d.vec, $v), bm25($d.body, "x"), $n) } limit 2"""
    for n in (0, None):
        with pytest.raises(InvalidRequestError, match="rrf k must be greater than 0"):
            rows(graph, body, v=[1, 0, 0], n=n)


# --- texts as vectors -------------------------------------------------------------------------------------------------

NEAREST_TEXT = 'query q() { match { $n: Note } return { $n.text, nearest($n.vec, "x") as s } }'


def test_a_text_is_embedded_by_the_provider_that_the_environment_names(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    (row,) = graph.query(NEAREST_TEXT).to_arrow().to_pylist()
    vector = MockProvider().embed("x", 4, Purpose.QUERY).tolist()
    assert row["s"] == pytest.approx(search_meaning.distance([1, 0, 0, 0], vector))


class Elsewhere:
    model = "of-now"

    def embed(self, text: str, dimension: int, purpose: Purpose) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
        return MockProvider().embed(text, dimension, purpose)


def test_vectors_of_one_model_are_not_compared_with_those_of_another() -> None:
    provider: Provider = Elsewhere()
    embedder = Embedder(lambda: provider)
    with pytest.raises(InvalidRequestError) as refused:
        embedder.vector("x", dimension=4, model="of-then", target="vec")
    message = "nearest() on 'vec': its stored vectors were embedded with model 'of-then'"
    assert str(refused.value).startswith(message)
    assert "of-now" in str(refused.value)
    assert len(embedder.vector("x", dimension=4, model="of-now", target="vec")) == 4
    assert len(embedder.vector("x", dimension=4, model=None, target="vec")) == 4


def test_a_query_is_refused_where_its_text_would_be_embedded_by_another_model(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with pytest.raises(InvalidRequestError, match="nearest\\(\\) on 'vec': its stored vectors were embedded"):
        graph.query(NEAREST_TEXT)


# --- many -------------------------------------------------------------------------------------------------------------

COUNT, DIMENSION = 6_000, 12
MANY_SCHEMA = (
    f"node Doc {{ slug: String @key  body: String @index  vec: Vector({DIMENSION}) @index  year: I32 @index }}"
)


class Many:
    """A type with many nodes, stored with its indexes, and then some more."""

    def __init__(self, folder: Path) -> None:
        chance = np.random.default_rng(7)
        centres = chance.normal(size=(40, DIMENSION))
        self.vectors: npt.NDArray[Any] = centres[chance.integers(0, 40, COUNT)] + chance.normal(size=(COUNT, DIMENSION))
        self.vectors = self.vectors.astype(np.float32)
        self.years = chance.integers(0, 10, COUNT)
        self.slugs = [f"d{each:05}" for each in range(COUNT)]
        self.bodies = [" ".join(f"w{each}" for each in words) for words in chance.zipf(1.5, (COUNT, 8)) % 500]
        self.graph = omnigraph.init(folder, MANY_SCHEMA)
        self._write(0, COUNT - 100)
        self.graph.optimize()
        self._write(COUNT - 100, COUNT)

    def _write(self, start: int, stop: int) -> None:
        flat = pa.array(self.vectors[start:stop].ravel())
        columns = {
            "slug": self.slugs[start:stop],
            "body": self.bodies[start:stop],
            "vec": pa.FixedSizeListArray.from_arrays(flat, DIMENSION),
            "year": pa.array(self.years[start:stop].astype(np.int32)),
        }
        self.graph.write({"Doc": pa.table(columns)})

    def nearest(self, vector: npt.NDArray[Any], where: npt.NDArray[Any], count: int) -> list[str]:
        distances = np.linalg.norm(self.vectors.astype(np.float64) - vector.astype(np.float32), axis=1)
        order = [each for each in np.argsort(distances, kind="stable") if where[each]]
        return [self.slugs[each] for each in order[:count]]

    def asked(self, clause: str, order: str, count: int, **params: object) -> list[str]:
        text = f"match {{ $d: Doc {clause} }} return {{ $d.slug as s }} order {{ {order} }} limit {count}"
        found = self.graph.query(f"query q($v: Vector({DIMENSION})?) {{ {text} }}", params).to_arrow()
        return [row["s"] for row in found.to_pylist()]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    made = Many(tmp_path_factory.mktemp("many"))
    yield made
    made.graph.close()


@pytest.mark.parametrize("clause", ["", "$d.year >= 2", "$d.year = 3"])
def test_the_nearest_of_many_are_those_that_comparing_each_finds(many: Many, clause: str) -> None:
    where = {"": many.years >= 0, "$d.year >= 2": many.years >= 2, "$d.year = 3": many.years == 3}[clause]
    for seed in range(5):
        vector = np.random.default_rng(seed).normal(size=DIMENSION)
        found = many.asked(clause, "nearest($d.vec, $v)", 10, v=vector.tolist())
        assert found == many.nearest(vector, where, 10)


def test_ranking_what_passes_a_filter_is_filtering_the_ranking(many: Many) -> None:
    order = 'bm25($d.body, "w3 w40 w77")'
    everything = many.asked("", order, COUNT)
    years = dict(zip(many.slugs, many.years, strict=True))
    assert len(everything) > 100
    for year in (1, 5):
        assert many.asked(f"$d.year = {year}", order, COUNT) == [each for each in everything if years[each] == year]


def test_vectors_that_stay_in_their_index_are_found_there_with_rows_written_since(many: Many) -> None:
    with patch.object(limits, "READ_WHOLE_ROWS_MAX", 10), patch.object(limits, "VECTOR_COLUMN_SHARE_MAX", 0.0):
        cold = omnigraph.open(many.graph.uri)
        query = """query q($v: Vector(12)) { match { $d: Doc } return { $d.slug as s }
        order { nearest($d.vec, $v) } limit 10 }"""
        said = cold.explain(query)
        assert "found through the index vec_ivf_flat (IVF_FLAT), by looking into all its cells" in said
        assert "100 of 6,000 nodes are not in it yet" in said
        hits = wanted = fresh = 0
        for seed in range(20):
            vector = np.random.default_rng(seed).normal(size=DIMENSION)
            if seed % 4 == 0:
                vector = many.vectors[COUNT - 1 - seed].astype(np.float64)
            found = [row["s"] for row in cold.query(query, {"v": vector.tolist()}).to_arrow().to_pylist()]
            right = many.nearest(vector, many.years >= 0, 10)
            hits, wanted = hits + len(set(found) & set(right)), wanted + len(right)
            fresh += sum(each >= many.slugs[COUNT - 100] for each in found)
        assert hits / wanted >= 0.95
        assert fresh >= 5
        stats = cold.stats()
        assert stats.cache.bytes < many.vectors.nbytes
        cold.close()


def test_explain_tells_what_is_searched_and_how(many: Many) -> None:
    text = """query q($v: Vector(12)) { match { $d: Doc search($d.body, "w1") } return { $d.slug }
    order { nearest($d.vec, $v) } limit 2 }"""
    many.graph.query(text, {"v": [0.0] * DIMENSION})
    said = many.graph.explain(text)
    assert "$d.body: words are found through an index in memory, over all texts (6,000 nodes)" in said
    assert "$d.vec: distances are exact, of vectors in memory (6,000 nodes)" in said


@pytest.mark.parametrize(
    ("clause", "index"),
    [
        ("$d.year = 3", "$d.year: nodes are found through the index year_btree"),
        ("$d.year > 8", "$d.year: nodes are found through the index year_btree"),
        ("8 < $d.year", "$d.year: nodes are found through the index year_btree"),
        ('$d.body contains "w40 w7"', "$d.body: nodes are found through the index body_ngram"),
        ('$d.body contains "w40"  $d.year != 4', "$d.body: nodes are found through the index body_ngram"),
        ('$d.body contains "%"', None),
        ("$d.year < 0 - 1", None),
    ],
)
def test_filters_of_a_large_type_go_through_its_indexes_and_no_answer_depends_on_it(
    many: Many, clause: str, index: str | None
) -> None:
    text = f"query q() {{ match {{ $d: Doc {clause} }} return {{ $d.slug as s }} order {{ $d.slug }} }}"
    expected = many.graph.query(text).to_arrow().column("s").to_pylist()
    with (
        patch.object(limits, "READ_WHOLE_ROWS_MAX", 10),
        patch("omnigraph.execution.versions._BYTES_PER_SECOND_READ", 1.0),
        omnigraph.open(many.graph.uri) as cold,
    ):
        said = cold.explain(text)
        assert cold.query(text).to_arrow().column("s").to_pylist() == expected
        # Where an index was asked, only that the version was opened is kept: no column was read.
        assert (cold.stats().cache.values == 1) == (index is not None)
    assert ("through the index" in said) == (index is not None)
    assert index is None or index in said
