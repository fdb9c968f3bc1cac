"""The reference of the query language: every example on the page is true."""

import re
from pathlib import Path

import pytest

from omnigraph.errors import ParseError
from omnigraph.language.plan.expressions import AggregateFunction, Function
from omnigraph.language.query import compile, lint, parse
from omnigraph.language.query.compile import compile_uncached
from omnigraph.language.schema import accept
from omnigraph.model.schema import Schema

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "query-language.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def schema() -> Schema:
    (text,) = blocks("pg")
    return accept(text)


def test_the_page_has_one_schema_and_many_queries() -> None:
    assert len(blocks("pg")) == 1
    assert len(blocks("gq")) > 15


@pytest.mark.parametrize("text", blocks("gq"))
def test_every_query_on_the_page_compiles_against_its_schema(text: str, schema: Schema) -> None:
    for query in parse(text).queries:
        assert compile(text, schema, name=query.name).name == query.name
    assert lint(text, schema).errors == 0


def test_every_python_example_on_the_page_runs() -> None:
    for text in blocks("python"):
        exec(text, {})


def test_the_mistake_shown_on_the_page_is_the_one_that_is_made(schema: Schema) -> None:
    (shown,) = blocks("text")
    text = 'query q() {\n  match { $w: Author\n    $w.nmae = "Ada"\n  } return { $w } }'

    with pytest.raises(ParseError) as caught:
        compile_uncached(text, schema, None, "")

    assert str(caught.value) == shown.rstrip("\n")


def test_every_function_and_aggregate_is_on_the_page() -> None:
    for name in (
        *Function,
        *AggregateFunction,
        "nodes",
        "search",
        "fuzzy",
        "match_text",
        "bm25",
        "nearest",
        "rrf",
        "now",
    ):
        assert re.search(rf"`{name}\(|`{name}`", PAGE), name


def test_every_code_of_a_type_error_is_on_the_page() -> None:
    codes: set[str] = set(re.findall(r"\bT\d+\b", PAGE))
    for first, last in re.findall(r"T(\d+)–T(\d+)", PAGE):
        codes |= {f"T{number}" for number in range(int(first), int(last) + 1)}

    assert codes == {f"T{number}" for number in range(1, 27)}
