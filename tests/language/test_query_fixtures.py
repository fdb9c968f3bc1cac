"""The text fixtures of the query language: what they show is what happens.

A fixture is a sentence saying what it shows, then sections. `=== query` is the text looked at, against the schema that
`=== schema` names (`people` where it is left out; the schemas stand in a folder of their own). The others say what is
expected of it:

    canonical    the canonical text, which has the same tree and does not change when written again
    plan         the plan of every query, in words
    columns      the columns of the result, with their types
    operation    what the query returns, reads and writes, as JSON
    error        the whole error
    lint         what lint says, in words
    lint json    what lint says, as JSON
    params       a JSON value given as parameters, for the section below
    values       the values they become, or the error
"""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from tests.support.text_fixtures import expected_of, sections_of, sentences, unheard

from omnigraph.errors import GraphError
from omnigraph.language import query as language
from omnigraph.language.query.compile import CompiledQuery, compile_uncached
from omnigraph.language.query.format import format_file
from omnigraph.language.schema import accept
from omnigraph.model.schema import Schema

FOLDER = Path(__file__).parent / "query"
FIXTURES = sorted(FOLDER.rglob("*.txt"))
SOURCES = Path(language.__file__).parent


@cache
def schema_called(name: str) -> Schema:
    return accept((FOLDER / "schemas" / f"{name}.pg").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: str(path.relative_to(FOLDER).with_suffix("")))
def test_what_a_fixture_shows_is_what_happens(path: Path) -> None:
    for name, body in expected_of(path, given=("schema", "query", "params")).items():
        assert shown(name, sections_of(path)).rstrip("\n") == body.rstrip("\n"), name


def shown(name: str, sections: dict[str, str]) -> str:
    """What happens, in the words of a section."""
    text = sections["query"]
    schema = schema_called(sections.get("schema", "people").strip())
    match name:
        case "canonical":
            return canonical(text)
        case "plan":
            return "\n".join(language.explain(each) for each in compiled(text, schema))
        case "columns":
            return "\n".join(
                f"{column.name}: {column.type}" for each in compiled(text, schema) for column in each.columns
            )
        case "operation":
            return json.dumps([each.operation.to_json() for each in compiled(text, schema)], indent=2)
        case "error":
            return error(text, schema)
        case "lint":
            return "\n".join(language.lint(text, schema).lines())
        case "lint json":
            source = {"kind": "file", "path": "people.pg"}
            return json.dumps(language.lint(text, schema).to_json(schema_source=source, query_path="q.gq"), indent=2)
        case "values":
            return values(compiled(text, schema)[0], sections["params"])
        case _:
            raise AssertionError(f"no section is called {name}")


def compiled(text: str, schema: Schema) -> list[CompiledQuery]:
    return [compile_uncached(text, schema, each.name, "") for each in language.parse(text).queries]


def canonical(text: str) -> str:
    tree = language.parse(text)
    written = format_file(tree)
    assert language.parse(written) == tree
    assert format_file(language.parse(written)) == written
    return written


def error(text: str, schema: Schema) -> str:
    try:
        compile_uncached(text, schema, None, "")
    except GraphError as raised:
        return str(raised)
    return "no error"


def values(query: CompiledQuery, params: str) -> str:
    try:
        bound = language.bind_params(query, json.loads(params))
    except GraphError as raised:
        return f"error: {raised}"
    return "\n".join(f"{name} = {value!r}" for name, value in bound.values.items())


# --- coverage -------------------------------------------------------------------------------------------------------

# Sentences that no fixture can bring about.
_ELSEWHERE: tuple[str, ...] = (
    "query text",  # what a text is called
    "query '*' not found",  # fixtures name no query; tests of their own do
    "* cannot be given",  # every scalar is handled before
    "* is not supported",  # JSON has no other kinds of value
)
_SPEAKING = tuple(
    sorted(
        path.stem
        for path in SOURCES.glob("*.py")
        if path.stem.startswith(("parse", "bind", "lint", "params", "suggest", "compile"))
    )
)


@pytest.mark.parametrize("module", _SPEAKING)
def test_every_sentence_the_language_can_say_is_shown_by_a_fixture(module: str) -> None:
    found = unheard(SOURCES / f"{module}.py", FIXTURES, ("error", "lint", "lint json", "values", "plan"))
    assert set(found) <= set(_ELSEWHERE)


def test_the_search_for_sentences_finds_messages_and_hints() -> None:
    assert "T4: unknown edge type `*`" in sentences(SOURCES / "bind_traversal.py")
    assert "clauses are separated by white space; remove the comma" in sentences(SOURCES / "parse_pattern.py")


def test_every_code_of_a_type_error_is_shown_by_a_fixture() -> None:
    shown_codes = {
        found
        for path in FIXTURES
        for found in re.findall(r"^type error: (T\d+):", sections_of(path).get("error", ""), re.MULTILINE)
    }

    assert shown_codes == {f"T{number}" for number in range(1, 27)}


def test_every_step_of_plans_is_shown_by_a_fixture() -> None:
    words = {
        "scan", "expand", "connect", "filter", "each with", "keep where there is", "keep where there is no",
        "note as", "optionally bring", "any of", "rank", "count", "aggregate", "return", "distinct", "order by",
        "limit", "given", "put node", "insert node", "insert edge", "update nodes", "delete nodes", "delete edges",
    }  # fmt: skip
    plans = "\n".join(sections_of(path).get("plan", "") for path in FIXTURES)

    assert {word for word in words if not re.search(rf"^ *{word}\b", plans, re.MULTILINE)} == set()
