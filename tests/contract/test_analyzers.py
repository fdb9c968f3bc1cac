"""Which words a search finds: as the English analyzer has them, or as the schema declares."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, limits
from omnigraph.errors import ParseError

SCHEMA = """
node Doc { slug: String @key  body: String @index  exact: String @index @analyzer(simple) }
"""
TEXTS = {
    "a": "She learns",
    "b": "Learning the ropes",
    "c": "A Café near the bank of America",
    "d": "the bank for America",
    "e": "bank America",
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    graph.write({"Doc": [{"slug": slug, "body": text, "exact": text} for slug, text in TEXTS.items()]})
    return graph


def found(graph: Graph, clause: str) -> str:
    text = f"query q() {{ match {{ $d: Doc {clause} }} return {{ $d.slug as s }} order {{ s }} }}"
    return "".join(str(row["s"]) for row in graph.query(text))


def test_words_are_found_by_their_stems(graph: Graph) -> None:
    for word in ("learn", "Learns", "learning"):
        assert found(graph, f'search($d.body, "{word}")') == "ab"
    assert found(graph, 'search($d.exact, "learn")') == ""
    assert found(graph, 'search($d.exact, "learns")') == "a"


def test_words_are_found_whatever_their_accents(graph: Graph) -> None:
    for word in ("cafe", "CAFÉ", "cafés"):
        assert found(graph, f'search($d.body, "{word}")') == "c"
    assert found(graph, 'search($d.exact, "cafe")') == ""
    assert found(graph, 'search($d.exact, "CAFÉ")') == "c"


def test_stop_words_find_nothing(graph: Graph) -> None:
    for function in ("search", "match_text", "fuzzy"):
        assert found(graph, f'{function}($d.body, "the")') == ""
    assert found(graph, 'search($d.exact, "the")') == "bcd"
    ranked = 'query q() { match { $d: Doc } return { $d.slug } order { bm25($d.body, "the of") } limit 9 }'
    assert list(graph.query(ranked)) == []


def test_a_phrase_keeps_the_places_of_its_stop_words(graph: Graph) -> None:
    assert found(graph, 'match_text($d.body, "the bank of America")') == "cd"
    assert found(graph, 'match_text($d.body, "bank america the")') == "e"
    assert found(graph, 'match_text($d.exact, "bank of america")') == "c"


def test_misspelled_words_are_compared_by_their_stems(graph: Graph) -> None:
    assert found(graph, 'fuzzy($d.body, "lerning", 1)') == "ab"


def test_explain_names_the_analyzer(graph: Graph) -> None:
    text = 'query q() { match { $d: Doc search($d.body, "x") search($d.exact, "x") } return { $d.slug } }'
    explained = str(graph.explain(text))
    assert "$d.body: words are found through an index" in explained
    assert "by the analyzer english" in explained
    assert "by the analyzer simple" in explained


def test_another_analyzer_is_a_change_of_the_schema(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """It rewrites no row, and indexes over words that were kept by the other one are not used."""
    monkeypatch.setattr(limits, "WORDS_FILE_TEXTS_MIN", 1)
    graph.optimize()
    for text, expected in ((SCHEMA.replace("@index  exact", "@index @analyzer(simple)  exact"), ""), (SCHEMA, "ab")):
        graph.schema_apply(text)
        assert found(graph, 'search($d.body, "learn")') == expected
        with omnigraph.open(graph.uri) as fresh:
            assert found(fresh, 'search($d.body, "learn")') == expected
        graph.optimize()
        with omnigraph.open(graph.uri) as fresh:
            assert found(fresh, 'search($d.body, "learn")') == expected


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("body: String @analyzer(klingon)", "@analyzer on property Doc.body takes one of: english, simple"),
        ("body: String @analyzer", "takes one of: english, simple"),
        ('body: String @analyzer(english, stop="no")', "takes one of: english, simple"),
        ("body: String @analyzer(simple) @analyzer(english)", "declares @analyzer multiple times"),
        ("size: I32 @analyzer(english)", "@analyzer is only supported on String properties"),
        ("tags: [String] @analyzer(english)", "@analyzer is only supported on String properties"),
    ],
)
def test_an_analyzer_that_is_none_is_refused(written: str, problem: str) -> None:
    with pytest.raises(ParseError) as refused:
        omnigraph.init("memory://analyzers", f"node Doc {{ slug: String @key  {written} }}")
    assert problem in str(refused.value)


def test_an_analyzer_of_a_type_is_refused() -> None:
    with pytest.raises(ParseError, match="@analyzer is only supported on String properties"):
        omnigraph.init("memory://analyzers", "node Doc @analyzer(english) { slug: String @key }")
