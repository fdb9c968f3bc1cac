"""Tokens of both languages, and the cursor over them."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph import limits
from omnigraph.errors import ParseError
from omnigraph.language.lexer import BAD, END, Cursor, describe_kind, quoted, scan_comments, tokenize, unescape_string
from omnigraph.language.text import Source, Span

QUICK = settings(derandomize=True, max_examples=200)


def tokens(text: str) -> list[tuple[str, str]]:
    found = tokenize(Source(text))
    return [(kind, text[start:end]) for kind, start, end in zip(found.kinds, found.starts, found.ends, strict=True)]


def kinds(text: str) -> list[str]:
    return tokenize(Source(text)).kinds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name _x a1_B", ["name", "name", "name", END]),
        ("Person X", ["type name", "type name", END]),
        ("12 0.5 1..5 1.5..2.5", ["integer", "float", "integer", "..", "integer", "float", "..", "float", END]),
        ("1.x 1. 12abc", ["integer", ".", "name", "integer", ".", "integer", "name", END]),
        ('"a" "a\\"b" "" "x\ny"', ["string", "string", "string", "string", END]),
        ("$p $_ $a1.b", ["variable", "variable", "variable", ".", "name", END]),
        ("-> .. >= <= != > < =", ["->", "..", ">=", "<=", "!=", ">", "<", "=", END]),
        ("{}()[]:,@?.-+*/%;|&!", [*"{}()[]:,@?.-+*/%;|&!", END]),
        ("a-->b", ["name", "-", "->", "name", END]),
        ("a // x\nb /* y\n */ c /**/ d /* / * **/", ["name", "name", "name", "name", END]),
        ("a //", ["name", END]),
        ("a / b", ["name", "/", "name", END]),
        ("", [END]),
        (" \t\r\n", [END]),
    ],
)
def test_a_text_is_cut_into_tokens(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected


def test_tokens_carry_their_characters() -> None:
    assert tokens('x: "a b"') == [("name", "x"), (":", ":"), ("string", '"a b"'), (END, "")]


@pytest.mark.parametrize("text", ["a # b", "a é b", 'a "b', "a /* b", "a $ b", "a $X b", "a \u00a0 b", 'a "b\\'])
def test_what_is_no_token_is_the_last_one_before_the_end(text: str) -> None:
    assert kinds(text) == ["name", BAD, END]


def test_a_long_text_of_one_repeated_mistake_stops_at_the_first() -> None:
    assert kinds("#" * 1_000_000) == [BAD, END]


@pytest.mark.parametrize(
    "text",
    [
        " " * 1_000_000,
        "/**/" * 250_000,
        "// x\n" * 200_000,
        "/*" + "*" * 1_000_000,
        "/* " * 300_000,
        '"' + "\\\\" * 500_000,
        '"' + '\\"' * 500_000,
        "/" * 999_999,
    ],
    ids=[
        "spaces",
        "comments",
        "line comments",
        "open comment",
        "open comments",
        "open string",
        "escaped quotes",
        "slashes",
    ],
)
def test_texts_made_to_be_slow_are_read_in_one_pass(text: str) -> None:
    assert len(kinds(text)) <= 2
    assert sum(1 for _ in scan_comments(Source(text))) <= 250_000


def test_a_long_string_of_escapes_takes_little_memory() -> None:
    text = '"' + "\\n" * 500_000 + '"'
    tracemalloc.start()
    try:
        assert kinds(text) == ["string", END]
        assert tracemalloc.get_traced_memory()[1] < 10 * len(text)
    finally:
        tracemalloc.stop()


def test_an_unclosed_comment_after_a_closed_one_takes_nothing_with_it() -> None:
    assert kinds("node A {} /* one */ /* two\nnode B {}") == ["name", "type name", "{", "}", BAD, END]


def test_comments_are_found_outside_strings_only() -> None:
    source = Source('a // one\n"// not" /* two\n */ b')

    assert [(each.text, each.span.start) for each in scan_comments(source)] == [("// one", 2), ("/* two\n */", 18)]


@QUICK
@given(st.text().filter(lambda text: "\0" not in text))
def test_a_quoted_string_says_what_was_quoted(value: str) -> None:
    source = Source(quoted(value))

    assert tokens(source.text) == [("string", source.text), (END, "")]
    assert unescape_string(source, Span(0, len(source.text))) == value


def test_an_unknown_escape_is_refused_where_it_stands() -> None:
    source = Source('"ab\\x"')

    with pytest.raises(ParseError, match=r"unsupported escape sequence: \\x") as raised:
        unescape_string(source, Span(0, 6))
    assert raised.value.column == 4


@QUICK
@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_any_text_becomes_tokens_in_order_that_end_with_the_end(text: str) -> None:
    found = tokenize(Source(text))

    assert found.kinds[-1] == END
    assert END not in found.kinds[:-1]
    assert found.starts == sorted(found.starts)
    assert all(start <= end for start, end in zip(found.starts, found.ends, strict=True))


def test_a_cursor_walks_and_never_passes_the_end() -> None:
    cursor = Cursor(Source("node A"))

    assert cursor.is_at_word("node")
    assert (cursor.peek_kind(), cursor.peek_text(), cursor.peek_kind(9), cursor.peek_text(9)) == (
        "type name",
        "A",
        END,
        "",
    )
    assert cursor.take_word("edge") is None
    assert cursor.take_word("node") == Span(0, 4)
    assert cursor.take("name") is None
    assert cursor.take("type name") == Span(5, 6)
    assert cursor.advance() == cursor.advance() == Span(6, 6)
    assert cursor.kind == END


def test_a_name_is_split_into_a_keyword_and_the_rest() -> None:
    cursor = Cursor(Source("nodePerson stringname"))

    assert cursor.split(4) == Span(0, 4)
    assert (cursor.kind, cursor.text, cursor.span) == ("type name", "Person", Span(4, 10))
    cursor.advance()
    cursor.split(6)
    assert (cursor.kind, cursor.text) == ("name", "name")


def test_a_cursor_knows_whether_tokens_touch() -> None:
    cursor = Cursor(Source("-5 - 5"))
    touching = []
    while cursor.kind != END:
        touching.append(cursor.is_adjacent)
        cursor.advance()

    assert touching == [False, True, False, False]
    assert cursor.span_from(0) == Span(0, 6)


def test_skipping_stops_at_the_first_token_from_there() -> None:
    cursor = Cursor(Source("aa bb cc"))
    cursor.skip_to(4)

    assert cursor.text == "cc"
    cursor.skip_to(99)
    assert cursor.kind == END


def test_expecting_another_token_says_what_was_expected() -> None:
    cursor = Cursor(Source("a b"))

    with pytest.raises(ParseError, match="unexpected `a` in here") as raised:
        cursor.expect("->", where="in here", hint="draw an arrow")
    assert raised.value.report.splitlines()[-2:] == ["  = expected `->`", "  = hint: draw an arrow"]
    assert cursor.expect("name") == Span(0, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"' + "x" * 99 + '"', 'unexpected `"' + "x" * 39 + "…`"),
        ('"a\nb"', 'unexpected `"a…`'),
        ("", "unexpected end of text"),
        ("\x7f", "unexpected character `U+007F`"),
        ("$ x", "`$` without a name"),
        ("/* x", "unterminated comment"),
        ('"x', "unterminated string"),
        ('"x\\', "unterminated escape sequence"),
        ('"x\\\\', "unterminated string"),
    ],
)
def test_an_unexpected_token_is_named(text: str, message: str) -> None:
    assert Cursor(Source(text)).unexpected().message == message


def test_nesting_is_bounded_and_released() -> None:
    cursor = Cursor(Source("x"))

    def dive(levels: int) -> None:
        with cursor.nested():
            if levels > 1:
                dive(levels - 1)

    dive(limits.LANGUAGE_NESTING_MAX)
    dive(limits.LANGUAGE_NESTING_MAX)
    with pytest.raises(ParseError, match="nested more than 100 levels deep"):
        dive(limits.LANGUAGE_NESTING_MAX + 1)
    dive(limits.LANGUAGE_NESTING_MAX)


@pytest.mark.parametrize("kind", ["name", "type name", "string", "integer", "float", "variable", "end", "->"])
def test_every_kind_of_token_has_a_phrase(kind: str) -> None:
    assert describe_kind(kind)
    assert (describe_kind(kind) == "`->`") == (kind == "->")
