"""Texts that nobody meant: whatever they are, they end in an answer or in an error of ours, and soon."""

import random  # noqa: TID251  (seeded: the same texts in every run)
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import FrameType

import pytest

from omnigraph import limits
from omnigraph.errors import GraphError, LimitError, ParseError
from omnigraph.language.query import bind_params, explain, format_file, lint, parse
from omnigraph.language.query.compile import compile_uncached
from omnigraph.language.schema import accept
from omnigraph.model.schema import Schema

FIXTURES = Path(__file__).parents[3] / "language" / "query"
PIECES = re.compile(r"\s+|[A-Za-z_0-9]+|\"[^\"]*\"|.", re.DOTALL)
INSERTED = (
    *"{}()[]<>:,.$@?=!-+*/%;|&'\"\\\n\0é\N{GRINNING FACE}",
    "\ud800", "\u2028", "not", "or", "and", "in", "is", "null", "$_", "$p", "$q.", "exists", "optional", "shortest",
    "{1,2}", "{0,}", "count(", "nearest(", "99999999999999999999", "1.5", "Person", "match", "return", "query",
    "date(\"x\")", "as", "//", "/*", "*/", "distinct", "limit", "@ordered", "insert", "now()", "-",
)  # fmt: skip


@cache
def people() -> Schema:
    return accept((FIXTURES / "schemas" / "people.pg").read_text(encoding="utf-8"))


@cache
def corpus() -> tuple[str, ...]:
    texts = []
    for path in sorted(FIXTURES.rglob("*.txt")):
        found = re.search(r"\n=== query\n(.*?)(?=\n=== )", path.read_text(encoding="utf-8"), re.DOTALL)
        assert found is not None, path
        texts.append(found[1])
    return tuple(texts)


def answers(text: str) -> None:
    """Every stage on one text: each ends, and says so in its own words if it cannot do it."""
    lint(text, people())
    try:
        file = parse(text)
    except GraphError:
        return
    assert parse(format_file(file)) == file
    for query in file.queries:
        try:
            compiled = compile_uncached(text, people(), query.name, "")
        except GraphError:
            continue
        explain(compiled)
        try:
            bind_params(compiled, {"n": 1, "x": [1, "a"], "q": None})
        except GraphError:
            continue


def mutated(draw: random.Random) -> str:
    """A text of the fixtures with a few pieces lost, doubled, swapped, inserted or taken from another."""
    pieces = PIECES.findall(draw.choice(corpus()))
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(pieces) + 1)
        match draw.randrange(5):
            case 0:
                pieces.insert(at, draw.choice(INSERTED))
            case 1 if pieces:
                del pieces[at - 1]
            case 2 if pieces:
                pieces.insert(at, pieces[draw.randrange(len(pieces))])
            case 3 if len(pieces) > 1:
                other = draw.randrange(len(pieces))
                pieces[at - 1], pieces[other] = pieces[other], pieces[at - 1]
            case _:
                others = PIECES.findall(draw.choice(corpus()))
                start = draw.randrange(len(others) or 1)
                pieces[at:at] = others[start : start + draw.randint(1, 8)]
    return "".join(pieces)


def garbage(draw: random.Random) -> str:
    return "".join(draw.choices((*INSERTED, " ", "\n", "a", "Q", "7"), k=draw.randint(0, 40)))


def test_texts_with_mistakes_raise_only_errors_of_ours() -> None:
    for seed in range(1_500):
        answers(mutated(random.Random(seed)))


def test_garbage_raises_only_errors_of_ours() -> None:
    for seed in range(500):
        answers(garbage(random.Random(seed)))


@pytest.mark.torture
def test_very_many_texts_with_mistakes_raise_only_errors_of_ours() -> None:
    for seed in range(1_500, 200_000):
        answers(mutated(random.Random(seed)))
        answers(garbage(random.Random(seed)))


def in_match(clause: str) -> str:
    return f"query q() {{ match {{ $p: Person {clause} }} return {{ $p }} }}"


NESTINGS: dict[str, Callable[[int], str]] = {
    "parentheses": lambda depth: in_match(f"{'(' * depth}1{')' * depth} = 1"),
    "open parentheses": lambda depth: in_match("(" * depth),
    "negations": lambda depth: in_match(f"{'not { $p knows $_ ' * depth}{'}' * depth}"),
    "open negations": lambda depth: in_match("not { " * depth),
    "not": lambda depth: in_match(f"{'not ' * depth}$p.age = 1"),
    "signs": lambda depth: in_match(f"{'-' * depth}$p.age = 1"),
    "exists": lambda depth: in_match(f"{'exists { $p knows $_ ' * depth}{'}' * depth}"),
    "exists in conditions": lambda depth: in_match(f"{'1 = 2 or exists { $p knows $_ ' * depth}{'}' * depth}"),
    "alternatives": lambda depth: in_match(f"{'or { $p.age = 1 } { $p knows $_ ' * depth}{'}' * depth}"),
    "optional": lambda depth: in_match(f"{'optional { $p knows $_ ' * depth}{'}' * depth}"),
    "lists": lambda depth: in_match(f"$p.age in {'[' * depth}1{']' * depth}"),
    "calls": lambda depth: in_match(f"{'lower(' * depth}$p.name{')' * depth} = $p.name"),
    "sums": lambda depth: in_match(f"$p.age = 1{' + 1' * depth}"),
    "products of sums": lambda depth: in_match(f"$p.age = {'(' * depth}1{' + 1) * 2' * depth}"),
    "products": lambda depth: in_match(f"$p.age = 1{' * 1' * depth}"),
}


def inside_many_calls(depth: int, act: Callable[[], None]) -> None:
    if depth:
        inside_many_calls(depth - 1, act)
    else:
        act()


@pytest.mark.parametrize("kind", NESTINGS)
def test_ten_thousand_levels_are_refused_clearly(kind: str) -> None:
    with pytest.raises(ParseError, match=r"nested more than 50 levels deep|more than 64 arithmetic operators"):
        parse(NESTINGS[kind](10_000))


@pytest.mark.parametrize("kind", NESTINGS)
def test_the_deepest_texts_pass_through_every_stage_with_room_to_spare(kind: str) -> None:
    deepest = max(depth for depth in range(1, 70) if is_parsed(NESTINGS[kind](depth)))

    inside_many_calls(250, lambda: answers(NESTINGS[kind](deepest)))
    assert deepest >= limits.QUERY_NESTING_MAX - 2 or "open" in kind or deepest == 32


def is_parsed(text: str) -> bool:
    try:
        parse(text)
    except ParseError as mistake:
        return "nested more than" not in mistake.message and "arithmetic operators" not in mistake.message
    return True


def test_ten_megabytes_are_refused_before_they_are_read() -> None:
    with pytest.raises(LimitError, match="longer than 8388608 bytes"):
        parse("x" * 10_000_000)
    with pytest.raises(LimitError, match="longer than 8388608 bytes"):
        compile_uncached("é" * 5_000_000, people(), None, "")


def test_a_nul_and_half_a_surrogate_pair_are_shown_where_they_stand() -> None:
    for character, name in (("\0", "NUL"), ("\ud800", "surrogate")):
        with pytest.raises(ParseError, match=name) as caught:
            parse(f"query q() {{\n  {character}")
        assert (caught.value.line, caught.value.column) == (2, 3)


LONG: dict[str, Callable[[int], str]] = {
    "clauses": lambda size: in_match(" ".join(f"$p.age > {each}" for each in range(size))),
    "bindings": lambda size: in_match(" ".join(f"$v{each}: Person" for each in range(size))),
    "a chain": lambda size: in_match(" ".join(f"$v{each} knows $v{each + 1}" for each in range(size))),
    "a chain backward": lambda size: in_match(" ".join(f"$v{each + 1} knows $v{each}" for each in range(size))),
    "a star": lambda size: in_match(" ".join(f"$p knows $v{each} $v{each}.age > {each}" for each in range(size))),
    "edges between two": lambda size: in_match("$p knows $q " + "$q knows $p " * size),
    "negations": lambda size: in_match(" ".join(f"not {{ $p knows $v{each} }}" for each in range(size))),
    "optional blocks": lambda size: in_match(" ".join(f"optional {{ $p knows $v{each} }}" for each in range(size))),
    "conditions with exists": lambda size: in_match("$p.age = 1 or exists { $p knows $_ } " * size),
    "conditions on pairs": lambda size: in_match(
        " ".join(f"$p knows $v{each} $v{each}.age < $p.age" for each in range(size))
    ),
    "or": lambda size: in_match("$p.age = 1" + " or $p.age = 1" * size),
    "and": lambda size: in_match("$p.age = 1" + " and $p.age = 1" * size),
    "a list": lambda size: in_match(f"$p.age in [{', '.join(map(str, range(size)))}]"),
    "projections": lambda size: "query q() { match { $p: Person } return { " + "$p.age, " * size + "} }",
    "counted neighbours": lambda size: (
        "query q() { match { $p: Person " + "$p knows $_ " * size + "} return { count(*) } }"
    ),
    "alternatives": lambda size: in_match("or " + "{ $p.age = 1 } " * (size + 1)),
    "queries": lambda size: "query q() { match { $p: Person } return { $p } } " * size,
    "parameters": lambda size: (
        f"query q({', '.join(f'$a{each}: I64' for each in range(size))}) {{ match {{ $p: Person }} return {{ $p }} }}"
    ),
    "unclosed braces": lambda size: "query q() { match { $p: Person { age: 1" + ", age: 1" * size,
    "an unknown name": lambda size: in_match(f"$p.{'a' * size} = 1"),
    "a string": lambda size: in_match(f'$p.name = "{"x" * size}"'),
    "an open string": lambda size: in_match(f'$p.name = "{"x" * size}'),
    "comments": lambda size: in_match("/* */ // x\n" * size),
    "open comments": lambda size: in_match("/* " * size),
}


def calls_made(act: Callable[[], None]) -> int:
    """How many function calls an act makes, ours and the interpreter's own."""
    made = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(before)
    return made


@pytest.mark.parametrize("kind", LONG)
def test_work_grows_with_the_text_and_not_faster(kind: str) -> None:
    small = calls_made(partial(compile_or_refuse, LONG[kind](60)))
    large = calls_made(partial(compile_or_refuse, LONG[kind](240)))

    assert large <= 5 * small


def compile_or_refuse(text: str) -> None:
    try:
        compile_uncached(text, people(), "q", "")
    except GraphError:
        return


def test_all_of_these_long_texts_are_queries_or_refused_for_a_reason() -> None:
    refused = {kind for kind in LONG if not is_compiled(LONG[kind](20))}

    assert refused == {"unclosed braces", "an unknown name", "an open string", "open comments"}


def is_compiled(text: str) -> bool:
    try:
        compile_uncached(text, people(), "q", "")
    except GraphError:
        return False
    return True


def test_every_beginning_of_a_text_is_an_answer_or_an_error_of_ours() -> None:
    text = (
        'query books_of($a: String, $n: I64?) @description("x") { match { $w: Person { name: $a } $w $e: knows{1,1} $b '
        "not { $b worksAt $_ } $b.age > 100 or exists { $b wrote $n } } return distinct { $b.name as title, count(*) } "
        "order { title desc } limit 10 offset $n }"
    )
    seen = ""
    for piece in PIECES.findall(text):
        answers(seen)
        seen += piece
