"""Split the input of the shell into statements, and turn each into a query."""

import re
from collections.abc import Iterable, Iterator

from omnigraph.language import lexer
from omnigraph.language.text import Source

_OPENING, _CLOSING = "{([", "})]"
QUERY_NAME = "shell"
# By first word: what must appear before a statement can be complete.
_ENDS_AFTER = {"query": "{", "insert": "{", "match": "return", "update": "where", "delete": "where"}
# A condition is at least a property, an operator and a value.
_CONDITION_TOKENS = 3
# Clauses that continue a statement which could be complete already.
_CONTINUATIONS = ("order", "limit", "offset")
_LINE_NUMBER = re.compile(r"^( *--> |)(\d+)(?=:| \|)", re.MULTILINE)


def is_command(text: str) -> bool:
    """True for a command of the shell, which begins with a backslash."""
    return text.lstrip().startswith("\\")


def is_complete(text: str) -> bool:
    """True if a statement ends here, and does not continue on the next line.

    It ends when its brackets are closed and no required clause is missing; a `;` ends any statement.
    """
    if is_command(text):
        command, _, rest = text.strip().partition(" ")
        return command != "\\explain" or is_complete(rest)
    text = text.strip()
    if not text or text.endswith(";"):
        return True
    tokens = lexer.tokenize(Source(text))
    if lexer.BAD in tokens.kinds:
        position = tokens.starts[tokens.kinds.index(lexer.BAD)]
        return not text.startswith(('"', "/*"), position)  # a string or a comment may end on a later line
    depth = 0
    required_at: int | None = None
    words = [text[start:end] for start, end in zip(tokens.starts, tokens.ends, strict=True)]
    required = _ENDS_AFTER.get(words[0])
    for position, word in enumerate(words[:-1]):
        if required_at is None and depth == 0 and word == required:
            required_at = position
        depth += (word in _OPENING) - (word in _CLOSING)
    if depth > 0:
        return False
    if required is None or depth < 0:
        return True  # wrong, which executing it reports
    if required_at is None:
        return False
    after = words[required_at + 1 : -1]
    if required == "return":
        return "}" in after
    return required != "where" or len(after) >= _CONDITION_TOKENS


def continues_statement(line: str) -> bool:
    """True if a line belongs to the statement before it, although that could be complete."""
    return line.lstrip().startswith(_CONTINUATIONS)


def statements(lines: Iterable[str]) -> Iterator[str]:
    """Split lines into statements; the last one may be incomplete."""
    text = ""
    for line in lines:
        if text.strip() and is_complete(text) and not (continues_statement(line) and not is_command(text)):
            yield text
            text = ""
        text += line
    if text.strip():
        yield text


def with_typed_lines(report: str) -> str:
    """Return the report of a parse error in `as_query` with the line numbers of the statement."""
    return _LINE_NUMBER.sub(lambda match: f"{match[1]}{int(match[2]) - 1:>{len(match[2])}}", report)


def as_query(text: str) -> str:
    """Return the query of a statement, wrapped in `query name()` if it has none."""
    text = text.strip().removesuffix(";").rstrip()
    if text.split("(")[0].split()[:1] == ["query"]:
        return text
    return f"query {QUERY_NAME}() {{\n{text}\n}}"
