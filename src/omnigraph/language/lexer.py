"""Tokenizer of both languages, and a cursor over the tokens.

One regular expression, one pass: linear time. The last alternative matches any character, so white space is never
skipped in two ways, and repetitions are not nested. Possessive quantifiers are avoided: Python before 3.11.5 matches
them wrongly.

An invalid character, an unterminated string and an unterminated comment become a last token of kind `BAD`: a parser
that stops earlier reports the earlier error, one that reaches it reports this one.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.errors import ParseError
from omnigraph.language.text import Source, Span, parse_error

# Kinds of token. Punctuation is its own kind: `{`, `->`, `..`, `>=` and so on.
NAME = "name"  # starts with a lower-case letter or `_`; keywords too, for they are not reserved
TYPE_NAME = "type name"  # starts with an upper-case letter
STRING = "string"
INTEGER = "integer"
FLOAT = "float"
VARIABLE = "variable"  # `$name` or `$_`
END = "end"
BAD = "bad"

# Found by the expression, never tokens: a comment, and the start of a string up to its first escape.
_COMMENT = "comment"
_ESCAPED = "escaped"
_KINDS = (None, NAME, TYPE_NAME, _COMMENT, None, STRING, _ESCAPED, FLOAT, INTEGER, VARIABLE, END, BAD)

_TOKEN = re.compile(
    r"""
    [ \t\r\n]*
    (?: ([a-z_][A-Za-z0-9_]*)
      | ([A-Z][A-Za-z0-9_]*)
      | (//[^\n]*|/\*.*?\*/)
      | (->|\.\.|>=|<=|!=|/(?!\*)|[{}()\[\]:,@?=<>.\-+*%;|&!])
      | ("[^"\\]*")
      | ("[^"\\]*(?=\\))
      | ([0-9]+\.[0-9]+)
      | ([0-9]+)
      | (\$[a-z_][A-Za-z0-9_]*)
      | (\Z)
      | (.)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_INTEGER_DIGITS_MAX = 20
_ESCAPE_OR_QUOTE = re.compile(r'\\.|"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_BAD_HINTS = {
    "#": "comments start with `//`",
    "'": 'strings are written in double quotes: "…"',
    "`": "names are written without quotes",
    "“": 'strings are written in straight double quotes: "…"',
    "”": 'strings are written in straight double quotes: "…"',
}


@dataclass(frozen=True, slots=True)
class Tokens:
    """Parallel lists, one entry per token; the last token is `END`."""

    kinds: list[str]
    starts: list[int]
    ends: list[int]


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment, with its `//` or `/* */`."""

    text: str
    span: Span


def tokenize(source: Source) -> Tokens:
    """Return the tokens of a text, in one pass."""
    kinds: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for kind, start, end in _scan(source.text):
        if kind is not _COMMENT:
            kinds.append(kind)
            starts.append(start)
            ends.append(end)
    if kinds[-1] is BAD:
        # No parser gets past it, so the rest need not be read.
        kinds.append(END)
        starts.append(len(source.text))
        ends.append(len(source.text))
    return Tokens(kinds, starts, ends)


def scan_comments(source: Source) -> Iterator[Comment]:
    """Yield the comments of a text, in order."""
    for kind, start, end in _scan(source.text):
        if kind is _COMMENT:
            yield Comment(source.text[start:end], Span(start, end))


def _scan(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of every token and comment, up to and including the first `BAD` or `END`."""
    kind, end = "", 0
    while kind is not END and kind is not BAD and (match := _TOKEN.match(text, end)):
        group = match.lastindex or 0
        start, end = match.span(group)
        kind = _KINDS[group] or text[start:end]
        if kind is _ESCAPED:
            kind, end = _scan_escaped_string(text, start, end)
        yield kind, start, end


def _scan_escaped_string(text: str, start: int, escape: int) -> tuple[str, int]:
    """Return kind and end of a string from its first escape on; a repeated group would take memory per repetition."""
    for match in _ESCAPE_OR_QUOTE.finditer(text, escape):
        if match[0] == '"':
            return STRING, match.end()
    return BAD, start + 1


def unescape_string(source: Source, span: Span) -> str:
    """Return the value of a string token, without quotes and with escapes replaced.

    Raises:
        ParseError: an escape sequence is not supported.
    """
    inner = source.text[span.start + 1 : span.end - 1]
    if "\\" not in inner:
        return inner

    def replaced(match: re.Match[str]) -> str:
        letter = match.group(1)
        if letter not in _ESCAPES:
            start = span.start + 1 + match.start()
            raise parse_error(
                source,
                Span(start, start + 2),
                f"unsupported escape sequence: \\{letter}",
                hint=r"the escapes are \" \\ \n \r \t; a backslash itself is written \\",
            )
        return _ESCAPES[letter]

    return _ESCAPE.sub(replaced, inner)


def quoted(value: str) -> str:
    """Return a string token with this value."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


class Cursor:
    """Cursor over the tokens of a text, which also builds syntax errors.

    Attributes:
        source: text being parsed.
        kind: kind of the current token.
        position: index of the current token.
    """

    __slots__ = ("_depth", "_ends", "_kinds", "_starts", "kind", "position", "source")

    def __init__(self, source: Source) -> None:
        tokens = tokenize(source)
        self.source = source
        self._kinds, self._starts, self._ends = tokens.kinds, tokens.starts, tokens.ends
        self.position = 0
        self.kind = self._kinds[0]
        self._depth = 0

    @property
    def span(self) -> Span:
        """Span of the current token."""
        return Span(self._starts[self.position], self._ends[self.position])

    @property
    def text(self) -> str:
        """Characters of the current token."""
        return self.source.text[self._starts[self.position] : self._ends[self.position]]

    def span_from(self, start: int) -> Span:
        """Return the span from `start` to the end of the previous token."""
        return Span(start, self.end_before)

    @property
    def end_before(self) -> int:
        """End of the previous token; 0 at the first."""
        return self._ends[self.position - 1] if self.position else 0

    @property
    def is_adjacent(self) -> bool:
        """True if nothing separates the current token from the previous one."""
        return self.position > 0 and self._ends[self.position - 1] == self._starts[self.position]

    def peek_kind(self, ahead: int = 1) -> str:
        """Return the kind of a later token; `END` beyond the last."""
        index = self.position + ahead
        return self._kinds[index] if index < len(self._kinds) else END

    def peek_text(self, ahead: int = 1) -> str:
        """Return the characters of a later token; empty beyond the last."""
        index = self.position + ahead
        return self.source.text[self._starts[index] : self._ends[index]] if index < len(self._kinds) else ""

    def is_at_word(self, word: str) -> bool:
        """True if the current token is the name `word`."""
        return self.kind is NAME and self.text == word

    def advance(self) -> Span:
        """Consume the current token and return its span; never passes the end."""
        span = self.span
        if self.position + 1 < len(self._kinds):
            self.position += 1
            self.kind = self._kinds[self.position]
        return span

    def take(self, kind: str) -> Span | None:
        """Consume the current token if it is of this kind, and return its span."""
        return self.advance() if self.kind == kind else None

    def take_word(self, word: str) -> Span | None:
        """Consume the name `word` if it is the current token, and return its span."""
        return self.advance() if self.is_at_word(word) else None

    def expect(self, kind: str, *, where: str = "", expected: Sequence[str] = (), hint: str = "") -> Span:
        """Consume the current token, which must be of this kind, and return its span.

        Args:
            kind: required kind.
            where: context for the message, like `in the body of node Person`.
            expected: phrases for the report; by default the kind.
            hint: suggestion for the report.

        Raises:
            ParseError: the token is of another kind.
        """
        if self.kind != kind:
            raise self.unexpected(where=where, expected=expected or (describe_kind(kind),), hint=hint)
        return self.advance()

    def split(self, length: int) -> Span:
        """Consume the first characters of the current name, leaving the rest as a token of its own.

        The languages have no word boundaries after keywords: `nodePerson` is `node Person`.
        """
        start = self._starts[self.position]
        self._starts[self.position] = start + length
        self.kind = self._kinds[self.position] = TYPE_NAME if self.text[0].isupper() else NAME
        return Span(start, start + length)

    def skip_to(self, offset: int) -> None:
        """Consume every token that starts before `offset`."""
        while self._starts[self.position] < offset and self.kind is not END:
            self.advance()

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Increase the nesting depth within the context.

        Raises:
            ParseError: the text nests too deeply.
        """
        if self._depth >= limits.LANGUAGE_NESTING_MAX:
            raise parse_error(
                self.source, self.span, f"nested more than {limits.LANGUAGE_NESTING_MAX} levels deep, the most allowed"
            )
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def unexpected(self, *, where: str = "", expected: Sequence[str] = (), hint: str = "") -> ParseError:
        """Return the error for an unexpected current token; for a `BAD` token it explains why it is invalid.

        Args:
            where: context for the message, like `in the body of node Person`.
            expected: phrases for what is allowed here.
            hint: suggestion for the report.
        """
        span = self.span
        if self.kind is BAD:
            return _explain_bad_token(self.source, span, expected)
        found = "end of text" if self.kind is END else f"`{_clip(self.text)}`"
        message = f"unexpected {found} {where}".rstrip()
        return parse_error(self.source, span, message, expected=expected, hint=hint)

    def error(self, span: Span, message: str, *, expected: Sequence[str] = (), hint: str = "") -> ParseError:
        """Return an error at a span of this text."""
        return parse_error(self.source, span, message, expected=expected, hint=hint)


def parse_integer(cursor: Cursor, digits: str, span: Span, *, most: int) -> int:
    """Convert the digits of a token to a number.

    Raises:
        ParseError: it is greater than `most`.
    """
    # Texts may hold millions of digits; only a few of them are worth converting.
    significant = digits.lstrip("0")
    if len(significant) > _INTEGER_DIGITS_MAX or int(significant or "0") > most:
        raise cursor.error(span, "invalid integer: number too large to fit in target type")
    return int(significant or "0")


def describe_kind(kind: str) -> str:
    """Return a phrase for a kind of token, for messages."""
    match kind:
        case "name":
            return "a name"
        case "type name":
            return "a type name"
        case "string":
            return "a string in double quotes"
        case "integer":
            return "a whole number"
        case "float":
            return "a number"
        case "variable":
            return "a variable like `$name`"
        case "end":
            return "end of text"
        case _:
            return f"`{kind}`"


def _clip(text: str) -> str:
    first_line = text.split("\n", 1)[0]
    clipped = first_line[: limits.REPORT_TOKEN_CHARACTERS_MAX]
    return clipped if clipped == text else clipped + "…"


def _explain_bad_token(source: Source, span: Span, expected: Sequence[str]) -> ParseError:
    character = source.text[span.start]
    rest = source.text[span.start : span.start + 2]
    if rest == "/*":
        return parse_error(source, Span(span.start, span.start + 2), "unterminated comment", hint="close it with `*/`")
    if character == '"':
        # A backslash as the very last character has nothing to escape; after any other tail the quote is missing.
        tail = len(source.text) - len(source.text.rstrip("\\"))
        if tail % 2:
            end = len(source.text)
            return parse_error(source, Span(end - 1, end), "unterminated escape sequence")
        return parse_error(source, span, "unterminated string", hint='close it with `"`')
    if character == "$":
        message = "`$` without a name"
        return parse_error(
            source,
            span,
            message,
            expected=expected,
            hint="a variable is `$` and, without a space, a name that starts with a lower-case letter",
        )
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return parse_error(
        source, span, f"unexpected character `{shown}`", expected=expected, hint=_BAD_HINTS.get(character, "")
    )
