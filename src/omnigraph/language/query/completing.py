"""Autocompletion: suggest schema names, variables and keywords at the cursor."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from omnigraph.language import lexer
from omnigraph.language.text import Source
from omnigraph.model.schema import EdgeType, EntityType, Schema

_FIRST = ("match", "insert", "upsert", "update", "delete", "query")
_KEYWORDS = ("match", "return", "order", "limit", "offset", "distinct", "where", "set", "optional", "not", "exists")
_FUNCTIONS = ("count", "sum", "avg", "min", "max", "collect", "lower", "upper", "length", "nearest", "search", "bm25")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A word that can follow.

    Attributes:
        text: word to insert.
        about: description of the word.
    """

    text: str
    about: str


@dataclass(frozen=True, slots=True)
class WordsBeforeCursor:
    """Words before the cursor; the last one may be unfinished."""

    words: Sequence[str]
    partial: str

    def before(self, steps: int = 1) -> str:
        """Return a finished word, counted backwards from the cursor."""
        return self.words[-steps] if len(self.words) >= steps else ""


def split_words(text: str) -> WordsBeforeCursor:
    """Split the text before the cursor into words."""
    tokens = lexer.tokenize(Source(text))
    words = [text[start:end] for start, end in zip(tokens.starts, tokens.ends, strict=True) if end > start]
    unfinished = bool(words) and text[-1:].strip() != "" and (words[-1][-1].isalnum() or words[-1][-1] in "_$")
    return WordsBeforeCursor(words[:-1], words[-1]) if unfinished else WordsBeforeCursor(words, "")


def suggest_next(text: str, schema: Schema) -> list[Suggestion]:
    """Return the words that can follow and match the unfinished word, in display order."""
    if lexer.BAD in lexer.tokenize(Source(text)).kinds:
        return []  # inside a string, as a rule
    here = split_words(text)
    found = _suggest_words(here, schema)
    return [
        suggestion
        for suggestion in found
        if suggestion.text.startswith(here.partial) and suggestion.text != here.partial
    ]


def format_edge_name(edge: EdgeType) -> str:
    """Return the name of an edge type as patterns write it."""
    return edge.name[:1].lower() + edge.name[1:]


def _suggest_words(here: WordsBeforeCursor, schema: Schema) -> list[Suggestion]:
    words, last = here.words, here.before()
    if not words:
        return [Suggestion(word, "statement") for word in _FIRST]
    if here.partial.startswith("$"):
        return [Suggestion(word, "variable") for word in dict.fromkeys(words) if word.startswith("$")]
    if last == "." and here.before(2).startswith("$"):
        return _suggest_properties(_find_variable_type(here.before(2), words, schema))
    if last == ":" and here.before(2).startswith("$"):
        is_edge = here.before(3).startswith("$")
        return (
            _suggest_edges(schema.edges) if is_edge else [Suggestion(node.name, "node type") for node in schema.nodes]
        )
    if last in ("insert", "upsert", "update", "delete"):
        return [Suggestion(entity.name, f"{entity.kind.value} type") for entity in schema.entities]
    opened = _find_open_type(words)
    if opened is not None and last in ("{", ","):
        entity = schema.node(opened) or schema.edge(opened)
        ends = [Suggestion(end, "endpoint") for end in ("from", "to")] if isinstance(entity, EdgeType) else []
        return ends + _suggest_properties(entity)
    if last == "where" and len(words) > 1:
        return _suggest_properties(next((schema.entity(f"node:{word}") for word in words if schema.node(word)), None))
    if last.startswith("$") and "return" not in words:
        node = _find_variable_type(last, words, schema)
        return _suggest_edges(schema.edges_of(node.name) if node is not None else schema.edges)
    about_rows = "return" in words
    return [Suggestion(word, "keyword") for word in _KEYWORDS] + [
        Suggestion(f"{function}(", "function") for function in _FUNCTIONS if about_rows
    ]


def _find_open_type(words: Sequence[str]) -> str | None:
    """Return the type whose properties the innermost open brace lists: `$p: Type {`, `insert Type {` or `set {`."""
    depth = 0
    for index in range(len(words) - 1, -1, -1):
        depth += (words[index] == "}") - (words[index] == "{")
        if depth < 0:
            before = words[index - 1] if index else ""
            if before == "set":
                return words[index - 2]
            return before if before[:1].isupper() else None
    return None


def _find_variable_type(variable: str, words: Sequence[str], schema: Schema) -> EntityType | None:
    """Return the type of a variable from its binding, else from an edge beside it."""
    for index, word in enumerate(words):
        following = words[index + 1 : index + 3]
        if word == variable and len(following) == 2 and following[0] == ":":
            found = schema.node(following[1]) or _find_edge(following[1], schema)
            if found is not None:
                return found
    for index, word in enumerate(words):
        edge = _find_edge(word, schema)
        if edge is None:
            continue
        if index and words[index - 1] == variable:
            return schema.node(edge.from_type.type_name)
        if words[index + 1 : index + 2] == [variable]:
            return schema.node(edge.to_type.type_name)
    return None


def _find_edge(word: str, schema: Schema) -> EdgeType | None:
    return schema.edge(word) if word[:1].islower() else None


def _suggest_properties(entity: EntityType | None) -> list[Suggestion]:
    return (
        [] if entity is None else [Suggestion(property_.name, str(property_.type)) for property_ in entity.properties]
    )


def _suggest_edges(edges: Iterable[EdgeType]) -> list[Suggestion]:
    return [
        Suggestion(format_edge_name(edge), f"{edge.from_type.type_name} -> {edge.to_type.type_name}")
        for edge in sorted(edges, key=lambda edge: edge.name)
    ]
