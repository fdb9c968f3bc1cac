"""Source texts, spans, and error reports with a caret.

parse error: unexpected `,` in the body of node Person
 --> 2:15
  |
2 |   name: String,
  |               ^---
  |
  = expected a property, a constraint or `}`
  = hint: properties are separated by white space; remove the comma
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.errors import InvalidRequestError, LimitError, ParseError

_BYTE_ORDER_MARK = "\ufeff"
_CARET_WIDTH_MIN = 4
_CLIPPED = "…"


@dataclass(frozen=True, slots=True)
class Span:
    """The characters from `start` up to, not including, `end`."""

    start: int
    end: int


NOWHERE = Span(0, 0)


class Source:
    """A validated text that maps offsets to lines and columns.

    Attributes:
        text: characters without a leading byte order mark.
        name: name for messages, usually a file name.
    """

    __slots__ = ("_line_starts", "name", "text")

    def __init__(self, text: str | bytes, name: str = "text") -> None:
        """Validate the text.

        Args:
            text: characters, or bytes in UTF-8.
            name: name for messages.

        Raises:
            InvalidRequestError: it is neither `str` nor `bytes`.
            LimitError: it is too long.
            ParseError: it is not UTF-8, or holds a NUL character or half of a surrogate pair.
        """
        self.name = name
        self._line_starts: list[int] | None = None
        self.text = ""
        if not isinstance(text, str | bytes):
            raise InvalidRequestError(f"{name} must be a text, got {type(text).__name__}")
        # Characters never outnumber bytes, so the length alone tells most texts that are too long.
        if len(text) > limits.LANGUAGE_TEXT_BYTES_MAX:
            raise _length_error(name)
        self.text = _decode(text, name).removeprefix(_BYTE_ORDER_MARK)
        self._check_characters()

    def _check_characters(self) -> None:
        try:
            encoded = self.text.encode()
        except UnicodeEncodeError as mistake:
            half, start = self.text[mistake.start], mistake.start
            self.text = self.text.encode(errors="replace").decode()
            raise parse_error(
                self, Span(start, start + 1), f"the text holds half of a surrogate pair (U+{ord(half):04X})"
            ) from None
        if len(encoded) > limits.LANGUAGE_TEXT_BYTES_MAX:
            raise _length_error(self.name)
        nul = self.text.find("\0")
        if nul >= 0:
            raise parse_error(self, Span(nul, nul + 1), "the text holds a NUL character; is it a binary file?")

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset, both counted from 1."""
        starts = self._starts()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return a line (from 1), without its end."""
        starts = self._starts()
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    def cut(self, span: Span) -> str:
        """Return the characters of a span."""
        return self.text[span.start : span.end]

    def _starts(self) -> list[int]:
        if self._line_starts is None:
            starts = [0]
            newline = self.text.find("\n")
            while newline >= 0:
                starts.append(newline + 1)
                newline = self.text.find("\n", newline + 1)
            self._line_starts = starts
        return self._line_starts


def report(source: Source, span: Span, *, expected: Sequence[str] = (), hint: str = "") -> str:
    """Format the location of an error: position, source line, caret, expected phrases and hint.

    A span over several lines is shown by its first.
    """
    line, column = source.position(span.start)
    shown, before = _cut_line(source.line(line), column - 1)
    width = max(_CARET_WIDTH_MIN, min(span.end - span.start, len(shown) - before))
    gutter = " " * len(str(line))
    lines = [
        f"{gutter}--> {line}:{column}",
        f"{gutter} |",
        f"{line} | {_replace_controls(shown)}".rstrip(),
        f"{gutter} | {_pad_to(shown[:before])}^{'-' * (width - 1)}",
    ]
    if expected or hint:
        lines.append(f"{gutter} |")
    if expected:
        lines.append(f"{gutter} = expected {one_of(expected)}")
    if hint:
        lines.append(f"{gutter} = hint: {hint}")
    return "\n".join(lines)


def parse_error(
    source: Source,
    span: Span,
    message: str,
    *,
    expected: Sequence[str] = (),
    hint: str = "",
    stage: str = "parse",
) -> ParseError:
    """Return an error at a span, with line, column and report; `stage` is `parse`, `catalog` or `type`.

    Args:
        source: the text.
        span: the characters at fault.
        message: what is wrong.
        expected: what could have stood there instead.
        hint: what to do about it.
        stage: which stage found it: `parse`, `catalog` or `type`.

    Returns:
        An error with line, column and report filled in, to be raised.
    """
    line, column = source.position(span.start)
    return ParseError(
        message,
        stage=stage,
        line=line,
        column=column,
        report=report(source, span, expected=expected, hint=hint),
        hint=hint,
    )


def one_of(phrases: Sequence[str]) -> str:
    """Join phrases for people: `a`, `a or b`, `a, b or c`."""
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} or {phrases[-1]}"


def _decode(text: str | bytes, name: str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as mistake:
        before = Source(text[: mistake.start].decode(errors="replace"), name)
        end = len(before.text)
        raise parse_error(before, Span(end, end), f"the text is not UTF-8: byte 0x{text[mistake.start]:02X}") from None


def _length_error(name: str) -> LimitError:
    return LimitError(f"{name} is longer than {limits.LANGUAGE_TEXT_BYTES_MAX} bytes, the most one text may hold")


def _cut_line(line: str, before: int) -> tuple[str, int]:
    """Cut a long line around the character at `before`; return the part and that character's offset in it."""
    most = limits.REPORT_LINE_CHARACTERS_MAX
    if len(line) <= most:
        return line, before
    start = max(0, min(before - most // 2, len(line) - most))
    shown = line[start : start + most]
    if start + most < len(line):
        shown += _CLIPPED
    if start > 0:
        return _CLIPPED + shown, before - start + 1
    return shown, before


def _replace_controls(line: str) -> str:
    """Replace characters that would move the cursor of a terminal."""
    return "".join(
        character if character == "\t" or character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line
    )


def _pad_to(before: str) -> str:
    """Return white space as wide as `before` is on a terminal."""
    return "".join(
        "\t" if character == "\t" else "  " if unicodedata.east_asian_width(character) in "WF" else " "
        for character in before
        if not unicodedata.combining(character)
    )
