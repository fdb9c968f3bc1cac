"""Statements as they are typed at a prompt: where one ends, and the query that it stands for."""

from omnigraph.language import lexer
from omnigraph.language.text import Source

_OPENING, _CLOSING = "{([", "})]"
QUERY_NAME = "shell"
# What may follow the words before a statement can be over.
_ENDS_AFTER = {"query": "{", "insert": "{", "match": "return", "update": "where", "delete": "where"}
# A condition is at least a property, an operator and a value.
_CONDITION_TOKENS = 3


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


def as_query(text: str) -> str:
    """The query that a statement stands for: what is typed without `query name()` gets it."""
    text = text.strip().removesuffix(";").rstrip()
    if text.split("(")[0].split()[:1] == ["query"]:
        return text
    return f"query {QUERY_NAME}() {{\n{text}\n}}"
