"""The schema language under texts nobody would write."""

import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from omnigraph import limits
from omnigraph.errors import GraphError, LimitError, ParseError
from omnigraph.language import schema as language
from omnigraph.language.lexer import scan_comments, tokenize
from omnigraph.language.schema.format import format_syntax
from omnigraph.language.schema.syntax import (
    AnnotationSyntax,
    Bounds,
    CardinalitySyntax,
    ConstraintSyntax,
    EdgeSyntax,
    InterfaceSyntax,
    Literal,
    LiteralKind,
    Name,
    NodeSyntax,
    PropertySyntax,
    SchemaSyntax,
    TypeSyntax,
)
from omnigraph.language.text import Source
from omnigraph.model.schema_change_document import dump_plan, load_steps
from omnigraph.model.schema_document import from_bytes, shape_digest, to_bytes
from omnigraph.model.types import BASE_SCALARS, Scalar

QUICK = settings(derandomize=True, max_examples=40, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=4_000, suppress_health_check=list(HealthCheck))

# ---- trees that follow the grammar, whatever the other rules say

NAMES = st.sampled_from(["name", "x", "y", "node", "edge", "implements", "_a1", "key", "id", "true_", "enum"])
TYPE_NAMES = st.sampled_from(["A", "B", "Person", "String", "I32x", "Vector", "X_1"]).map(Name)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
LITERALS = st.one_of(
    st.builds(Literal, st.just(LiteralKind.STRING), TEXTS),
    st.builds(Literal, st.just(LiteralKind.INTEGER), st.integers(0, 10**30).map(str)),
    st.builds(Literal, st.just(LiteralKind.FLOAT), st.sampled_from(["0.5", "00.10", "12345678901234567890.1"])),
    st.builds(Literal, st.just(LiteralKind.BOOL), st.sampled_from(["true", "false"])),
)
BARE = st.builds(Literal, st.just(LiteralKind.NAME), NAMES)
ANNOTATION_NAMES = st.sampled_from(["index", "key", "embed", "description", "rename_from", "unit", "card"])
ANNOTATIONS = st.one_of(
    st.builds(AnnotationSyntax, ANNOTATION_NAMES),
    st.builds(
        AnnotationSyntax,
        st.sampled_from(["embed", "description", "rename_from", "unit"]),
        LITERALS | BARE,
        st.lists(st.tuples(NAMES, LITERALS), max_size=2).map(tuple),
    ),
)
ENUM_VALUES = st.lists(st.text("ab0_-", min_size=1, max_size=3), min_size=1, max_size=3, unique=True).map(tuple)
TYPES = st.one_of(
    st.builds(TypeSyntax, st.sampled_from(BASE_SCALARS), st.booleans()),
    st.builds(
        TypeSyntax,
        st.sampled_from([each for each in BASE_SCALARS if each is not Scalar.BLOB]),
        st.booleans(),
        list=st.just(True),
    ),
    st.builds(TypeSyntax, st.just(Scalar.STRING), st.booleans(), enum_values=ENUM_VALUES),
    st.builds(TypeSyntax, st.just(Scalar.VECTOR), st.booleans(), vector_dim=st.integers(1, 2**31 - 1)),
)
PROPERTIES = st.builds(PropertySyntax, NAMES, TYPES, st.lists(ANNOTATIONS, max_size=2).map(tuple))
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
BOUNDS = st.one_of(
    st.builds(Bounds, NUMBERS, NUMBERS), st.builds(Bounds, NUMBERS, st.none()), st.builds(Bounds, st.none(), NUMBERS)
)
CONSTRAINTS = st.builds(
    ConstraintSyntax,
    st.sampled_from(["key", "unique", "index", "range", "check"]),
    st.lists(LITERALS | BARE | BOUNDS, max_size=3).map(tuple),
)
MEMBERS = st.lists(PROPERTIES | CONSTRAINTS, max_size=4).map(tuple)
HEADER = st.lists(ANNOTATIONS.filter(lambda each: each.name != "card"), max_size=2).map(tuple)
CARDINALITIES = st.builds(CardinalitySyntax, st.integers(0, 2**32 - 1), st.none() | st.integers(0, 2**32 - 1))
DECLARATIONS = st.one_of(
    st.builds(InterfaceSyntax, TYPE_NAMES, st.lists(PROPERTIES, max_size=3).map(tuple)),
    st.builds(NodeSyntax, TYPE_NAMES, HEADER, st.lists(TYPE_NAMES, max_size=2).map(tuple), MEMBERS),
    st.builds(EdgeSyntax, TYPE_NAMES, TYPE_NAMES, TYPE_NAMES, st.none() | CARDINALITIES, HEADER, MEMBERS),
)
TREES = st.lists(DECLARATIONS, max_size=4).map(lambda found: SchemaSyntax(tuple(found), Source("")))

# ---- texts that may be accepted

SCALARS = st.sampled_from(["String", "I32", "I64?", "Date", "Bool?", "F64", "[String]?", "enum(a, b)", "Vector(3)?"])
EXTRAS = st.sampled_from(["", "", " @index(x)", " @unique(x, y)", ' @description("d")', ' @rename_from("y")'])


@st.composite
def accepted_texts(draw: st.DrawFn) -> str:
    """A text that is likely to be accepted: every name is declared, constraints name scalars."""
    nodes = draw(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=3, unique=True))
    has_interface = draw(st.booleans())
    lines = [f"interface I {{ shared: {draw(SCALARS)} }}"] if has_interface else []
    for name in nodes:
        properties = [f"x: {draw(st.sampled_from(['String', 'I32']))}", "y: I32?"]
        properties += [f"{each}: {draw(SCALARS)}" for each in draw(st.lists(st.sampled_from("pqr"), unique=True))]
        implements = " implements I" if has_interface and draw(st.booleans()) else ""
        hint = draw(st.sampled_from(["", "", ' @rename_from("A")', ' @description("n")']))
        properties[-1] += draw(EXTRAS)
        lines.append(f"node {name}{hint}{implements} {{ {'  '.join(properties)} }}")
    for name in draw(st.lists(st.sampled_from(["E", "F"]), unique=True)):
        ends = f"{draw(st.sampled_from(nodes))} -> {draw(st.sampled_from(nodes))}"
        lines.append(f"edge {name}: {ends} {draw(st.sampled_from(['', '@card(0..1)', '{ w: F32? }']))}")
    return "\n".join(lines)


VALID = """
// people
interface Named { name: String @index }
node Person @description("somebody") implements Named {
  name: String @key  // unique
  age: I32?  mood: enum(good, bad-ish, 2x)?  tags: [String]?
  text: String?  v: Vector(4)? @embed(text, model="m")
  @range(age, 0..150)  @check(name, "^[A-Z]\\\\w+$")  @unique(age, mood)  @index(age, mood)
}
edge Knows: Person -> Person @card(0..9) @instruction("ask") { since: Date?  /* why */ @unique(src, dst) }
"""


def everything(text: str | bytes) -> None:
    """Do with a text all that can be done; only our own errors may come of it."""
    for act in (language.parse, language.format, language.accept, _problems, _planned):
        _try(act, text)


def _problems(text: str | bytes) -> None:
    syntax = language.parse(text)
    found = list(language.find_problems(syntax))
    language.lint(syntax)
    try:
        language.check(syntax)
    except ParseError as raised:
        assert str(raised) == str(found[0])
    else:
        assert found == []


def _planned(text: str | bytes) -> None:
    language.plan(language.accept(VALID), text)


def _try(act: Callable[[str | bytes], object], text: str | bytes) -> None:
    try:
        act(text)
    except GraphError as raised:
        assert str(raised).encode()


@QUICK
@given(TREES)
def test_a_tree_laid_out_and_read_again_is_the_same_tree(tree: SchemaSyntax) -> None:
    text = format_syntax(tree)

    assert language.parse(text) == tree
    assert language.format(text) == text


TRIVIA = st.sampled_from([" ", "\n", "\n\n", "\t", " // note\n", "/* a */", " /* b\n c */ ", "\n// d\n\n", "\r\n"])


@QUICK
@given(TREES, st.data())
def test_comments_and_white_space_anywhere_change_neither_tree_nor_get_lost(
    tree: SchemaSyntax, data: st.DataObject
) -> None:
    text = format_syntax(tree)
    scattered = _scattered(text, data)

    assert language.parse(scattered) == tree
    laid_out = language.format(scattered)
    assert language.parse(laid_out) == tree
    assert _comments(laid_out) == _comments(scattered)
    assert language.format(laid_out) == laid_out


def _scattered(text: str, data: st.DataObject) -> str:
    """The text with something between some of its tokens, where the grammar lets white space stand."""
    source = Source(text)
    found = tokenize(source)
    # Enum values and signed numbers are one token to the grammar and several to us.
    parts, position = [], 0
    for start, end in zip(found.starts, found.ends, strict=True):
        gap = text[position:start]
        parts.append(gap + data.draw(TRIVIA) if gap and data.draw(st.booleans()) else gap)
        parts.append(text[start:end])
        position = end
    return "".join(parts)


def _comments(text: str) -> list[str]:
    return [each.text.rstrip() for each in scan_comments(Source(text))]


@QUICK
@given(st.text())
def test_any_text_raises_nothing_but_our_errors(text: str) -> None:
    everything(text)


@QUICK
@given(st.binary())
def test_any_bytes_raise_nothing_but_our_errors(body: bytes) -> None:
    everything(body)


WORDS = [
    "node",
    "edge",
    "interface",
    "implements",
    "A",
    "B",
    "x",
    "String",
    "I32?",
    "enum",
    "Vector",
    "{",
    "}",
    "(",
    ")",
]
WORDS += [
    "@key",
    "@card",
    "@range",
    "@embed",
    "@",
    ":",
    "->",
    ",",
    "..",
    "-",
    "5",
    "1.5",
    '"s"',
    "[",
    "]",
    "?",
    "//",
    "/*",
]
SOUP = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)


@QUICK
@given(SOUP)
def test_any_heap_of_words_raises_nothing_but_our_errors(text: str) -> None:
    everything(text)


MUTATIONS = st.lists(
    st.tuples(st.integers(0, len(VALID)), st.integers(0, 6), st.sampled_from(["", *WORDS, " ", "\n", "9" * 30, "é"])),
    min_size=1,
    max_size=4,
)


def _mutated(mutations: list[tuple[int, int, str]]) -> str:
    text = VALID
    for start, removed, added in mutations:
        text = text[:start] + added + text[start + removed :]
    return text


@QUICK
@given(MUTATIONS)
def test_a_valid_text_with_mistakes_raises_nothing_but_our_errors(mutations: list[tuple[int, int, str]]) -> None:
    everything(_mutated(mutations))


def test_a_valid_text_cut_off_anywhere_raises_nothing_but_our_errors() -> None:
    for end in range(len(VALID)):
        _try(language.accept, VALID[:end])


@QUICK
@given(accepted_texts(), accepted_texts())
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(before: str, after: str) -> None:
    try:
        accepted = language.accept(before)
        plan = language.plan(accepted, after)
    except GraphError:
        assume(False)
    again = language.plan(plan.schema, after)

    assert load_steps(json.loads(json.dumps(dump_plan(plan.steps)))) == plan.steps
    assert from_bytes(to_bytes(plan.schema)) == plan.schema
    if plan.supported:
        assert again.is_empty
        assert shape_digest(again.schema) == shape_digest(language.accept(after))
    if plan.is_empty:
        assert plan.schema is accepted
        assert shape_digest(accepted) == shape_digest(language.accept(after))


@QUICK
@given(accepted_texts())
def test_a_text_and_its_layout_mean_the_same(text: str) -> None:
    try:
        accepted = language.accept(text)
    except GraphError:
        assume(False)

    assert shape_digest(language.accept(language.format(text))) == shape_digest(accepted)
    assert language.plan(accepted, language.format(text)).is_empty


LEVELS = 10_000


@pytest.mark.parametrize(
    "text",
    [
        "[" * LEVELS,
        "node A { x: " + "[" * LEVELS + "I32" + "]" * LEVELS + " }",
        "node A " + "{" * LEVELS + "}" * LEVELS,
        "node A { @key" + "(" * LEVELS + ")" * LEVELS + " }",
        "node A @x" + "(" * LEVELS,
        "node A { x: I32" + "?" * LEVELS + " }",
        "/*" * LEVELS,
        "node A { e: enum" + "(" * LEVELS + " }",
    ],
)
def test_ten_thousand_levels_are_a_parse_error(text: str) -> None:
    with pytest.raises(ParseError):
        language.parse(text)


@pytest.mark.parametrize("part", ["x", " ", "node A {}\n", "{", "9", "é", '"'])
def test_ten_million_characters_are_refused(part: str) -> None:
    with pytest.raises(LimitError):
        language.parse(part * (10 * 1000**2 // len(part)))


def test_a_name_may_be_as_long_as_a_text() -> None:
    name = "A" + "a" * 1_000_000

    assert language.accept(f"node {name} {{}}").nodes[0].name == name


@pytest.mark.parametrize("digits", [30, 5_000, 100_000])
def test_numbers_of_any_length_are_refused_by_their_own_message(digits: int) -> None:
    long = "9" * digits
    for text, message in (
        (f"node A {{ v: Vector({long}) }}", "invalid Vector dimension"),
        (f"node A {{}} edge E: A -> A @card({long}..)", "invalid cardinality min"),
        (f"node A {{ x: I32 @range(x, ..{long}) }}", "invalid constraint bound"),
    ):
        with pytest.raises(ParseError, match=message):
            language.accept(text)
    assert language.accept(f"node A @big({long}) {{}}").nodes[0].annotations[0].value == long


def test_a_large_schema_is_planned_whole() -> None:
    wide = " ".join(f"p{number}: I32?" for number in range(1_000))
    many = "\n".join(f"node N{number} {{ x: I32 @key }}\nedge E{number}: N0 -> N{number}" for number in range(200))
    accepted = language.accept(f"node Wide {{ {wide} }}\n{many}")

    assert len(accepted.nodes) == 201
    assert language.plan(accepted, f"{many}\nnode Wide {{ {wide} q: I32? }}").supported
    assert from_bytes(to_bytes(accepted)) == accepted


@pytest.mark.torture
@LONG
@given(TREES)
def test_very_many_trees_survive_their_layout(tree: SchemaSyntax) -> None:
    text = format_syntax(tree)

    assert language.parse(text) == tree
    assert language.format(text) == text


@pytest.mark.torture
@LONG
@given(TREES, st.data())
def test_comments_survive_very_many_layouts(tree: SchemaSyntax, data: st.DataObject) -> None:
    scattered = _scattered(format_syntax(tree), data)
    laid_out = language.format(scattered)

    assert language.parse(laid_out) == tree
    assert _comments(laid_out) == _comments(scattered)
    assert language.format(laid_out) == laid_out


@pytest.mark.torture
@LONG
@given(st.one_of(st.text(), SOUP, MUTATIONS.map(_mutated)))
def test_very_many_texts_raise_nothing_but_our_errors(text: str) -> None:
    everything(text)


@pytest.mark.torture
def test_a_text_of_the_greatest_length_is_accepted_and_laid_out() -> None:
    part = "x{:07}: I32? @index  // note\n"
    count = (limits.LANGUAGE_TEXT_BYTES_MAX - 20) // len(part.format(0))
    text = "node A {\n" + "".join(part.format(number) for number in range(count)) + "}\n"

    assert len(language.accept(text).nodes[0].properties) == count
    assert len(language.format(text)) > len(text) - count
