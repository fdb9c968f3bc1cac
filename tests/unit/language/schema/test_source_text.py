"""Texts: what counts as one, where things are in it, and the caret under a mistake."""

import pytest

from omnigraph import limits
from omnigraph.errors import LimitError, ParseError
from omnigraph.language.text import Source, Span, one_of, parse_error, report


@pytest.mark.parametrize(
    ("offset", "position"),
    [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (4, (3, 1)), (6, (3, 3)), (7, (3, 4))],
)
def test_lines_and_columns_count_from_one(offset: int, position: tuple[int, int]) -> None:
    assert Source("ab\n\nxyz").position(offset) == position


def test_a_line_is_shown_without_its_end() -> None:
    source = Source("one\r\ntwo\nthree")

    assert [source.line(number) for number in (1, 2, 3)] == ["one", "two", "three"]


def test_bytes_are_read_as_utf_8() -> None:
    assert Source("é".encode()).text == "é"


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert Source(b"\xef\xbb\xbfnode A {}").text == "node A {}"
    assert Source("\ufeffnode A {}").text == "node A {}"


def test_bytes_that_are_not_utf_8_are_refused_where_they_stand() -> None:
    with pytest.raises(ParseError, match="the text is not UTF-8: byte 0xFF") as raised:
        Source(b"node A {}\n  \xff")

    assert (raised.value.line, raised.value.column) == (2, 3)


def test_a_nul_character_is_refused_where_it_stands() -> None:
    with pytest.raises(ParseError, match="NUL") as raised:
        Source("node A {\n \0")

    assert (raised.value.line, raised.value.column) == (2, 2)


@pytest.mark.parametrize("half", ["\ud800", "\udfff"])
def test_half_a_surrogate_pair_is_refused_where_it_stands(half: str) -> None:
    with pytest.raises(ParseError, match=f"U\\+{ord(half):04X}") as raised:
        Source(f"// a\n//{half}")

    assert (raised.value.line, raised.value.column) == (2, 3)
    assert str(raised.value).encode()  # the error itself can be printed


@pytest.mark.parametrize(
    "text",
    [
        "x" * (10 * 1000**2),
        b"x" * (10 * 1000**2),
        "é" * (limits.LANGUAGE_TEXT_BYTES_MAX // 2 + 1),
    ],
    ids=["characters", "bytes", "two bytes per character"],
)
def test_a_text_that_is_too_long_is_refused_before_it_is_read(text: str | bytes) -> None:
    with pytest.raises(LimitError, match="big is longer than 8388608 bytes"):
        Source(text, "big")


def test_a_text_of_exactly_the_greatest_length_is_read() -> None:
    assert len(Source("x" * limits.LANGUAGE_TEXT_BYTES_MAX).text) == limits.LANGUAGE_TEXT_BYTES_MAX


def test_a_report_shows_place_line_caret_expectation_and_hint() -> None:
    source = Source("node Person {\n  name String\n}")
    start = source.text.index("String")

    assert report(source, Span(start, start + 6), expected=("`:`", "`?`"), hint="write a colon") == "\n".join(
        [
            " --> 2:8",
            "  |",
            "2 |   name String",
            "  |        ^-----",
            "  |",
            "  = expected `:` or `?`",
            "  = hint: write a colon",
        ]
    )


def test_the_margin_of_a_report_is_as_wide_as_the_line_number() -> None:
    source = Source("\n" * 99 + "oops")

    assert report(source, Span(99, 103)).splitlines() == ["   --> 100:1", "    |", "100 | oops", "    | ^---"]


def test_a_span_over_several_lines_is_shown_by_its_first() -> None:
    assert report(Source("ab cdefgh\nij"), Span(3, 12)).splitlines()[-1] == "  |    ^-----"


def test_the_caret_of_an_empty_span_stands_at_the_end() -> None:
    assert report(Source("ab"), Span(2, 2)).splitlines()[-2:] == ["1 | ab", "  |   ^---"]


def test_tabs_wide_and_combining_characters_keep_the_caret_in_place() -> None:
    text = "\t日e\u0301x"

    assert report(Source(text), Span(4, 5)).splitlines()[-1] == "  | \t   ^---"


def test_control_characters_of_the_text_never_reach_the_terminal() -> None:
    shown = report(Source("a\x1b[31mb\x07"), Span(0, 1))

    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_of_a_long_line_the_part_around_the_mistake_is_shown() -> None:
    text = "a" * 500 + "!" + "b" * 500
    lines = report(Source(text), Span(500, 501)).splitlines()

    shown, caret = lines[2].removeprefix("1 | "), lines[3].removeprefix("  | ")
    assert len(shown) == limits.REPORT_LINE_CHARACTERS_MAX + 2
    assert (shown[0], shown[-1]) == ("…", "…")
    assert shown[caret.index("^")] == "!"


@pytest.mark.parametrize("at", [0, 3, 999, 1000])
def test_at_the_ends_of_a_long_line_the_caret_stays_in_place(at: int) -> None:
    text = "x" * at + "!" + "x" * (1000 - at)
    lines = report(Source(text), Span(at, at + 1)).splitlines()

    assert lines[2].removeprefix("1 | ")[lines[3].removeprefix("  | ").index("^")] == "!"


def test_an_error_carries_place_report_hint_and_stage() -> None:
    error = parse_error(Source("ab\ncd"), Span(4, 5), "wrong", expected=("x",), hint="do y", stage="catalog")

    assert (error.line, error.column, error.hint, error.code) == (2, 2, "do y", "catalog_error")
    assert str(error) == f"catalog error: wrong\n{error.report}"
    assert "= expected x" in error.report


@pytest.mark.parametrize(
    ("phrases", "text"), [((), ""), (("a",), "a"), (("a", "b"), "a or b"), (("a", "b", "c"), "a, b or c")]
)
def test_phrases_are_listed_as_people_do(phrases: tuple[str, ...], text: str) -> None:
    assert one_of(phrases) == text
