"""Searches asked for wrongly: a sentence and a code, the same from a graph that is open here and over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.support.served_here import InProcess

import omnigraph
from omnigraph import Graph, GraphError, limits

SCHEMA = "node Doc { slug: String @key  body: String? @index  vec: Vector(3)? }"
ROWS = """\
{"type":"Doc","data":{"slug":"a","body":"Hello wörld 😀 hello","vec":[1,0,0]}}
{"type":"Doc","data":{"slug":"b","body":"cafe\\u0301 au lait","vec":[0,1,0]}}
{"type":"Doc","data":{"slug":"c"}}
"""
NEAREST = "order { nearest($d.vec, $v) } limit 2"
NEAR_X = "nearest($d.vec, [1.0, 0.0, 0.0])"
FUSED = f'order {{ rrf({NEAR_X}, bm25($d.body, "hello"), $k) }} limit 2'
MANY = " ".join(f"w{number}" for number in range(limits.SEARCH_WORDS_MAX + 1))


class Here:
    """A graph that is open in this process."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def ask(self, query: str, params: dict[str, Any]) -> list[Any] | tuple[str, str]:
        """The rows, or the code and the sentence of the refusal."""
        try:
            return [row["s"] for row in self._graph.query(query, params)]
        except GraphError as refused:
            return str(refused.code), str(refused)


class Served:
    """The same one behind a server."""

    def __init__(self, client: TestClient) -> None:
        self._client = client

    def ask(self, query: str, params: dict[str, Any]) -> list[Any] | tuple[str, str]:
        """The rows, or the code and the sentence of the refusal."""
        # Not by the client's own writer of JSON, which knows no NaN.
        answer = self._client.post(
            "query",
            content=json.dumps({"query": query, "params": params}),
            headers={"Content-Type": "application/json"},
        )
        body = answer.json()
        if answer.status_code == 200:
            return [row["s"] for row in body["rows"]]
        assert 400 <= answer.status_code < 500, answer.text
        return body.get("code"), body["error"]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    made = InProcess()
    yield Served(made(schema=SCHEMA, rows=ROWS))
    made.close()


@pytest.fixture(scope="module")
def here() -> Iterator[Here]:
    with omnigraph.init("memory://", SCHEMA) as graph:
        graph.load(ROWS.encode(), mode="append", engine="local", format="jsonl")
        yield Here(graph)


@pytest.fixture(params=["here", "served"])
def asked(request: pytest.FixtureRequest) -> Here | Served:
    found: Here | Served = request.getfixturevalue(request.param)
    return found


def written(match: str, order: str, params: str) -> str:
    return f"query q({params}) {{ match {{ $d: Doc {match} }} return {{ $d.slug as s }} {order} }}"


# What of the query, with which parameter, and what is said of it.
REFUSED: dict[str, tuple[str, str, str, object, str]] = {
    "too few numbers": ("", NEAREST, "$v: Vector(3)", [1, 2], "expected 3 values for Vector(3), got 2"),
    "too many numbers": ("", NEAREST, "$v: Vector(3)", [1, 2, 3, 4], "expected 3 values for Vector(3), got 4"),
    "no numbers": ("", NEAREST, "$v: Vector(3)", [], "expected 3 values for Vector(3), got 0"),
    "a text for a vector": ("", NEAREST, "$v: Vector(3)", "near", "expected array for Vector(3)"),
    "a number for a vector": ("", NEAREST, "$v: Vector(3)", 5, "expected array for Vector(3)"),
    "texts in a vector": ("", NEAREST, "$v: Vector(3)", ["a", "b", "c"], "vector element is not numeric"),
    "nothing in a vector": ("", NEAREST, "$v: Vector(3)", [1, None, 2], "vector element is not numeric"),
    "flags in a vector": ("", NEAREST, "$v: Vector(3)", [True, False, True], "vector element is not numeric"),
    "lists in a vector": ("", NEAREST, "$v: Vector(3)", [[1], [2], [3]], "vector element is not numeric"),
    "endless numbers": ("", NEAREST, "$v: Vector(3)", [1, 2, 10**400], "expected float"),
    "numbers too large": ("", NEAREST, "$v: Vector(3)", [1, 2, 1e300], "takes a vector of 3 finite numbers"),
    "null for a vector": ("", NEAREST, "$v: Vector(3)", None, "null is not accepted"),
    "a vector of another dimension": ("", NEAREST, "$v: Vector(2)", [1, 2], "T15: nearest vector dimension mismatch"),
    "numbers for a vector property": ("", NEAREST, "$v: F64", 1.5, "T15: nearest query must be Vector(3) or String"),
    "a vector for a text": ("search($d.body, $v)", "", "$v: String", [1, 2], "expected string, got array"),
    "a number for a text": ("match_text($d.body, $v)", "", "$v: String", 5, "expected string, got number"),
    "a vector to look for in texts": (
        "search($d.body, $v)",
        "",
        "$v: Vector(3)",
        [1, 2, 3],
        "T19: search query must be",
    ),
    "words in a vector": ('search($d.vec, "x")', "", "$v: I64?", None, "T19: search field must be String"),
    "far in a text": ("", "order { nearest($d.body, $v) } limit 1", "$v: Vector(3)", [1, 2, 3], "requires a Vector"),
    "fewer than no rows": ("", f"order {{ {NEAR_X} }} limit $k", "$k: I64", -1, "cannot be negative, got -1"),
    "half a row": ("", f"order {{ {NEAR_X} }} limit $k", "$k: I64", 1.5, "expected integer number"),
    "more rows than there are numbers": ("", f"order {{ {NEAR_X} }} limit $k", "$k: I64", 2**63, "exceeds I64"),
    "no limit": ("", f"order {{ {NEAR_X} }}", "", None, "T17: nearest ordering requires a limit clause"),
    "fewer than no edits": ('fuzzy($d.body, "helo", $k)', "", "$k: I64", -1, "must be from 0 to 8, not -1"),
    "too many edits": ('fuzzy($d.body, "helo", $k)', "", "$k: I64", 9, "must be from 0 to 8, not 9"),
    "k of nothing": ("", FUSED, "$k: I64", 0, "rrf k must be greater than 0"),
    "k below nothing": ("", FUSED, "$k: I64", -7, "rrf k must be greater than 0"),
    "too many words": ("search($d.body, $v)", "", "$v: String", MANY, "words of a search: actual 4097, limit 4096"),
    "too long a phrase": ("match_text($d.body, $v)", "", "$v: String", "x " * 5_000, "words of a phrase: actual 5000"),
    "too many to rank by": ("", "order { bm25($d.body, $v) } limit 1", "$v: String", MANY, "words of a search: actual"),
    "too many misspelled": ("fuzzy($d.body, $v)", "", "$v: String", MANY[:2_000], "words of fuzzy: actual"),
    "too long a word": ("fuzzy($d.body, $v)", "", "$v: String", "x" * 257, "letters of a word of fuzzy: actual 257"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_searched_for_is_told_in_a_sentence_with_a_code(asked: Here | Served, case: str) -> None:
    match, order, declared, value, told = REFUSED[case]
    name = declared[1:2]
    found = asked.ask(written(match, order, declared), {name: value} if name else {})
    assert isinstance(found, tuple), found
    code, message = found
    assert told in message
    assert code in {"bad_request", "type_error", "parse_error", "resource_limit"}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_is_no_part_of_a_vector(asked: Here | Served, number: float) -> None:
    found = asked.ask(written("", NEAREST, "$v: Vector(3)"), {"v": [1, 2, number]})
    # Over HTTP it is refused before anybody asks what it is for.
    told = "param 'v': expected float" if isinstance(asked, Here) else "is not a JSON number"
    assert isinstance(found, tuple), found
    assert found[0] == "bad_request"
    assert told in found[1]


@pytest.mark.parametrize("function", ["search", "match_text", "fuzzy"])
@pytest.mark.parametrize("text", ["", "   ", "!?", "😀", "\u0000", "\u200d", "the" * 10_000])
def test_a_text_without_a_word_that_is_there_finds_nothing(asked: Here | Served, function: str, text: str) -> None:
    if function == "fuzzy" and len(text) > limits.FUZZY_WORD_LETTERS_MAX:
        text = text[: limits.FUZZY_WORD_LETTERS_MAX]
    assert asked.ask(written(f"{function}($d.body, $t)", "", "$t: String"), {"t": text}) == []
    assert asked.ask(written("", "order { bm25($d.body, $t) } limit 3", "$t: String"), {"t": text}) == []


def test_words_said_again_and_again_are_looked_for_once(asked: Here | Served) -> None:
    query = written("search($d.body, $t)", "order { $d.slug }", "$t: String")
    assert asked.ask(query, {"t": "hello " * 50_000}) == ["a"]
    assert asked.ask(query, {"t": "CAFÉ 😀 Wörld"}) == ["a", "b"]


@pytest.mark.parametrize(("limit", "found"), [("0", []), ("1", ["a"]), ("9223372036854775807", ["a", "b"])])
def test_any_number_of_rows_may_be_asked_for(asked: Here | Served, limit: str, found: list[str]) -> None:
    assert asked.ask(written("", f"order {{ {NEAR_X} }} limit {limit}", ""), {}) == found
    assert asked.ask(written("", f"order {{ {NEAR_X} }} limit $k", "$k: I64"), {"k": int(limit)}) == found
