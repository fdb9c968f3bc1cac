"""What could come next where somebody types: words of the schema, and variables from what was typed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from omnigraph.language import lexer
from omnigraph.language.text import Source
from omnigraph.model.schema import EdgeType, EntityType, Schema

_FIRST = ("match", "insert", "update", "delete", "query")
_KEYWORDS = ("match", "return", "order", "limit", "offset", "distinct", "where", "set", "optional", "not", "exists")
_FUNCTIONS = ("count", "sum", "avg", "min", "max", "collect", "lower", "upper", "length", "nearest", "search", "bm25")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A word that could come next.

    Attributes:
        text: the word.
        about: what it is.
    """

    text: str
    about: str


@dataclass(frozen=True, slots=True)
class Typed:
    """What stands before the cursor, as words; the last one may be unfinished."""

    words: Sequence[str]
    partial: str

    def before(self, steps: int = 1) -> str:
        """A finished word, counted backwards from the cursor."""
        return self.words[-steps] if len(self.words) >= steps else ""


def typed(text: str) -> Typed:
    """The words of a text that ends at the cursor."""
    tokens = lexer.tokenize(Source(text))
    words = [text[start:end] for start, end in zip(tokens.starts, tokens.ends, strict=True) if end > start]
    unfinished = bool(words) and text[-1:].strip() != "" and (words[-1][-1].isalnum() or words[-1][-1] in "_$")
    return Typed(words[:-1], words[-1]) if unfinished else Typed(words, "")


def suggestions(text: str, schema: Schema) -> list[Suggestion]:
    """What could come where a text ends, in the order to show it; only what begins like the word begun there."""
    if lexer.BAD in lexer.tokenize(Source(text)).kinds:
        return []  # inside a string, as a rule
    here = typed(text)
    found = _possible(here, schema)
    return [each for each in found if each.text.startswith(here.partial) and each.text != here.partial]


def spelled(edge: EdgeType) -> str:
    """The name of an edge type as patterns write it."""
    return edge.name[:1].lower() + edge.name[1:]


def _possible(here: Typed, schema: Schema) -> list[Suggestion]:
    words, last = here.words, here.before()
    if not words:
        return [Suggestion(each, "statement") for each in _FIRST]
    if here.partial.startswith("$"):
        return [Suggestion(each, "variable") for each in dict.fromkeys(words) if each.startswith("$")]
    if last == "." and here.before(2).startswith("$"):
        return _properties(_type_of(here.before(2), words, schema))
    if last == ":" and here.before(2).startswith("$"):
        is_edge = here.before(3).startswith("$")
        return _edges(schema.edges) if is_edge else [Suggestion(node.name, "node type") for node in schema.nodes]
    if last in ("insert", "update", "delete"):
        return [Suggestion(each.name, f"{each.kind.value} type") for each in schema.entities]
    opened = _opened(words)
    if opened is not None and last in ("{", ","):
        entity = schema.node(opened) or schema.edge(opened)
        ends = [Suggestion(end, "endpoint") for end in ("from", "to")] if isinstance(entity, EdgeType) else []
        return ends + _properties(entity)
    if last == "where" and len(words) > 1:
        return _properties(next((schema.entity(f"node:{word}") for word in words if schema.node(word)), None))
    if last.startswith("$") and "return" not in words:
        node = _type_of(last, words, schema)
        return _edges(schema.edges_of(node.name) if node is not None else schema.edges)
    about_rows = "return" in words
    return [Suggestion(each, "keyword") for each in _KEYWORDS] + [
        Suggestion(f"{each}(", "function") for each in _FUNCTIONS if about_rows
    ]


def _opened(words: Sequence[str]) -> str | None:
    """The type whose properties the innermost open brace lists: of `$p: Type {`, `insert Type {` or `set {`."""
    depth = 0
    for at in range(len(words) - 1, -1, -1):
        depth += (words[at] == "}") - (words[at] == "{")
        if depth < 0:
            before = words[at - 1] if at else ""
            if before == "set":
                return words[at - 2]
            return before if before[:1].isupper() else None
    return None


def _type_of(variable: str, words: Sequence[str], schema: Schema) -> EntityType | None:
    """The type of a variable: as it is bound, else as an edge that it stands beside tells."""
    for at, word in enumerate(words):
        following = words[at + 1 : at + 3]
        if word == variable and len(following) == 2 and following[0] == ":":
            found = schema.node(following[1]) or _edge(following[1], schema)
            if found is not None:
                return found
    for at, word in enumerate(words):
        edge = _edge(word, schema)
        if edge is None:
            continue
        if at and words[at - 1] == variable:
            return schema.node(edge.from_type.type_name)
        if words[at + 1 : at + 2] == [variable]:
            return schema.node(edge.to_type.type_name)
    return None


def _edge(word: str, schema: Schema) -> EdgeType | None:
    return schema.edge(word) if word[:1].islower() else None


def _properties(entity: EntityType | None) -> list[Suggestion]:
    return [] if entity is None else [Suggestion(each.name, str(each.type)) for each in entity.properties]


def _edges(edges: Iterable[EdgeType]) -> list[Suggestion]:
    return [
        Suggestion(spelled(edge), f"{edge.from_type.type_name} -> {edge.to_type.type_name}")
        for edge in sorted(edges, key=lambda edge: edge.name)
    ]
