"""Statements as they are typed at a prompt: where one ends, and the query that it stands for."""

import re
from collections.abc import Iterable, Iterator

from omnigraph.language import lexer
from omnigraph.language.text import Source

_OPENING, _CLOSING = "{([", "})]"
QUERY_NAME = "shell"
# What may follow the words before a statement can be over.
_ENDS_AFTER = {"query": "{", "insert": "{", "match": "return", "update": "where", "delete": "where"}
# A condition is at least a property, an operator and a value.
_CONDITION_TOKENS = 3
# What can only go on with a statement that could be over already.
_GOES_ON = ("order", "limit", "offset")
_LINE_NUMBER = re.compile(r"^( *--> |)(\d+)(?=:| \|)", re.MULTILINE)


def is_command(text: str) -> bool:
    """Whether it is a word to the prompt itself, which begins with a backslash."""
    return text.lstrip().startswith("\\")


def is_whole(text: str) -> bool:
    """Whether a statement is over at the end of a text, or goes on in the next line.

    A statement is over when its brackets are closed and nothing is missing that must come; a `;` ends any.
    """
    if is_command(text):
        command, _, rest = text.strip().partition(" ")
        return command != "\\explain" or is_whole(rest)
    text = text.strip()
    if not text or text.endswith(";"):
        return True
    tokens = lexer.tokenize(Source(text))
    if lexer.BAD in tokens.kinds:
        at = tokens.starts[tokens.kinds.index(lexer.BAD)]
        return not text.startswith(('"', "/*"), at)  # a string or a comment may end in a later line
    depth = 0
    seen_at: int | None = None
    words = [text[start:end] for start, end in zip(tokens.starts, tokens.ends, strict=True)]
    needed = _ENDS_AFTER.get(words[0])
    for at, word in enumerate(words[:-1]):
        if seen_at is None and depth == 0 and word == needed:
            seen_at = at
        depth += (word in _OPENING) - (word in _CLOSING)
    if depth > 0:
        return False
    if needed is None or depth < 0:
        return True  # it is wrong, and will be told so
    if seen_at is None:
        return False
    after = words[seen_at + 1 : -1]
    if needed == "return":
        return "}" in after
    return needed != "where" or len(after) >= _CONDITION_TOKENS


def goes_on(line: str) -> bool:
    """Whether a line belongs to the statement before it, although that could be over."""
    return line.lstrip().startswith(_GOES_ON)


def statements(lines: Iterable[str]) -> Iterator[str]:
    """The statements of a text; what is missing at the end of the last one is not waited for."""
    text = ""
    for line in lines:
        if text.strip() and is_whole(text) and not (goes_on(line) and not is_command(text)):
            yield text
            text = ""
        text += line
    if text.strip():
        yield text


def as_typed(report: str) -> str:
    """The report of a mistake in `as_query`, with the lines counted as they were typed."""
    return _LINE_NUMBER.sub(lambda found: f"{found[1]}{int(found[2]) - 1:>{len(found[2])}}", report)


def as_query(text: str) -> str:
    """The query that a statement stands for: what is typed without `query name()` gets it."""
    text = text.strip().removesuffix(";").rstrip()
    if text.split("(")[0].split()[:1] == ["query"]:
        return text
    return f"query {QUERY_NAME}() {{\n{text}\n}}"
