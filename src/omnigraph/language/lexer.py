"""The tokens of both languages, and a cursor that walks over them.

One regular expression, one pass: time is linear in the text. The last alternative takes any character, so white space
is never skipped in two ways, and no repetition holds another. Possessive repetition is not used: Python before 3.11.5
matches it wrongly.

A character that starts no token, an unterminated string and an unterminated comment become a last token of kind `BAD`:
a parser that stops earlier reports the earlier mistake, one that gets there reports this one.
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
    """The tokens of a text, in one pass."""
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


def comments(source: Source) -> Iterator[Comment]:
    """The comments of a text, in order."""
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
            kind, end = _escaped_string(text, start, end)
        yield kind, start, end


def _escaped_string(text: str, start: int, escape: int) -> tuple[str, int]:
    """Kind and end of a string, from its first escape on; a repeated group would take memory per repetition."""
    for match in _ESCAPE_OR_QUOTE.finditer(text, escape):
        if match[0] == '"':
            return STRING, match.end()
    return BAD, start + 1


def string_value(source: Source, span: Span) -> str:
    """What a string token says.

    Args:
        source: the text.
        span: the token, with its quotes.

    Returns:
        The characters between the quotes, escapes replaced.

    Raises:
        ParseError: an escape is none of the five.
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
    """A string token that says `value`."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


class Cursor:
    """A place in the tokens of a text: what stands here, what comes after, and errors that say so.

    Attributes:
        source: the text.
        kind: the kind of the token here.
        position: the index of the token here.
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
        """Where the token here is."""
        return Span(self._starts[self.position], self._ends[self.position])

    @property
    def text(self) -> str:
        """The characters of the token here."""
        return self.source.text[self._starts[self.position] : self._ends[self.position]]

    def span_from(self, start: int) -> Span:
        """From `start` to the end of the token before this one."""
        return Span(start, self.end_before)

    @property
    def end_before(self) -> int:
        """Where the token before this one ended; 0 at the first."""
        return self._ends[self.position - 1] if self.position else 0

    @property
    def is_adjacent(self) -> bool:
        """Whether nothing stands between the token before and this one."""
        return self.position > 0 and self._ends[self.position - 1] == self._starts[self.position]

    def kind_after(self, ahead: int = 1) -> str:
        """The kind of a later token; `END` beyond the last."""
        at = self.position + ahead
        return self._kinds[at] if at < len(self._kinds) else END

    def text_after(self, ahead: int = 1) -> str:
        """The characters of a later token; empty beyond the last."""
        at = self.position + ahead
        return self.source.text[self._starts[at] : self._ends[at]] if at < len(self._kinds) else ""

    def at_word(self, word: str) -> bool:
        """Whether the name `word` stands here."""
        return self.kind is NAME and self.text == word

    def advance(self) -> Span:
        """Step over the token here, whatever it is, and return where it was; the end is never passed."""
        span = self.span
        if self.position + 1 < len(self._kinds):
            self.position += 1
            self.kind = self._kinds[self.position]
        return span

    def take(self, kind: str) -> Span | None:
        """Step over the token here if it is of this kind, and return where it was."""
        return self.advance() if self.kind == kind else None

    def take_word(self, word: str) -> Span | None:
        """Step over the name `word` if it stands here, and return where it was."""
        return self.advance() if self.at_word(word) else None

    def expect(self, kind: str, *, where: str = "", expected: Sequence[str] = (), hint: str = "") -> Span:
        """Step over the token here, which must be of this kind.

        Args:
            kind: the kind.
            where: for the message, like `in the body of node Person`.
            expected: phrases for the report; by default the kind.
            hint: what to do about it if it is another.

        Returns:
            Where it was.

        Raises:
            ParseError: it is of another kind.
        """
        if self.kind != kind:
            raise self.unexpected(where=where, expected=expected or (phrase_of(kind),), hint=hint)
        return self.advance()

    def split(self, length: int) -> Span:
        """Step over the first characters of the name here, leaving the rest as a token of its own.

        The languages have no word boundaries after keywords: `nodePerson` is `node Person`.
        """
        start = self._starts[self.position]
        self._starts[self.position] = start + length
        self.kind = self._kinds[self.position] = TYPE_NAME if self.text[0].isupper() else NAME
        return Span(start, start + length)

    def skip_to(self, offset: int) -> None:
        """Step over every token that starts before `offset`."""
        while self._starts[self.position] < offset and self.kind is not END:
            self.advance()

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One level deeper inside this block.

        Raises:
            ParseError: that is deeper than texts may nest.
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
        """The error that the token here cannot stand here.

        Args:
            where: for the message, like `in the body of node Person`.
            expected: what could have stood here.
            hint: what to do about it.

        Returns:
            The error, to be raised. For a `BAD` token it says what is bad about it.
        """
        span = self.span
        if self.kind is BAD:
            return _bad(self.source, span, expected)
        found = "end of text" if self.kind is END else f"`{_clipped(self.text)}`"
        message = f"unexpected {found} {where}".rstrip()
        return parse_error(self.source, span, message, expected=expected, hint=hint)

    def error(self, span: Span, message: str, *, expected: Sequence[str] = (), hint: str = "") -> ParseError:
        """An error at a span of this text, to be raised."""
        return parse_error(self.source, span, message, expected=expected, hint=hint)


def phrase_of(kind: str) -> str:
    """A kind of token as a phrase for people."""
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


def _clipped(text: str) -> str:
    first_line = text.split("\n", 1)[0]
    clipped = first_line[: limits.REPORT_TOKEN_CHARACTERS_MAX]
    return clipped if clipped == text else clipped + "…"


def _bad(source: Source, span: Span, expected: Sequence[str]) -> ParseError:
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
