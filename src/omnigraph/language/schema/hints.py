"""Suggestions for misspelled or foreign words in schema texts."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

from omnigraph import limits
from omnigraph.model.types import BASE_SCALARS

TYPE_WORDS = (*BASE_SCALARS, "Vector", "enum")

# How other systems call our types.
_FOREIGN_TYPES = {
    "int": "I32` or `I64",
    "integer": "I32` or `I64",
    "long": "I64",
    "bigint": "I64",
    "int8": "I32",
    "int16": "I32",
    "int32": "I32",
    "int64": "I64",
    "uint": "U32` or `U64",
    "uint32": "U32",
    "uint64": "U64",
    "float": "F32` or `F64",
    "float32": "F32",
    "float64": "F64",
    "double": "F64",
    "decimal": "F64",
    "number": "F64",
    "text": "String",
    "str": "String",
    "varchar": "String",
    "char": "String",
    "uuid": "String",
    "boolean": "Bool",
    "timestamp": "DateTime",
    "time": "DateTime",
    "bytes": "Blob",
    "binary": "Blob",
    "list": "[String]",
    "array": "[String]",
    "embedding": "Vector(N)",
}
_DECLARATIONS = {
    "vertex": "node",
    "type": "node",
    "class": "node",
    "table": "node",
    "entity": "node",
    "relationship": "edge",
    "relation": "edge",
    "rel": "edge",
    "link": "edge",
    "trait": "interface",
}
_KEYWORDS = ("interface", "node", "edge")


def suggest_word(word: str, known: Iterable[str]) -> str:
    """Return `did you mean …?` for the known word closest to `word`, ignoring case; empty if none is close."""
    # Comparing with very many names takes long, and then none of them is a likely answer.
    folded = {name.lower(): name for name in islice(known, limits.HINT_NAMES_MAX)}
    close = get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return f"did you mean `{folded[close[0]]}`?" if close else ""


def suggest_type(word: str) -> str:
    """Suggest a replacement for an unknown type."""
    foreign = _FOREIGN_TYPES.get(word.lower())
    return f"did you mean `{foreign}`?" if foreign else suggest_word(word, TYPE_WORDS)


def suggest_declaration(word: str) -> str:
    """Suggest a replacement for a word that does not start a declaration."""
    folded = word.lower()
    if folded == "query":
        return "this looks like a query; queries live in a text of their own"
    if folded in _KEYWORDS:
        return f"keywords are written in lower case: `{folded}`"
    meant = _DECLARATIONS.get(folded)
    return f"did you mean `{meant}`?" if meant else suggest_word(word, _KEYWORDS)


def capitalize(word: str) -> str:
    """Return a name as a type name: without leading underscores, first letter in upper case."""
    bare = word.lstrip("_0123456789")
    return bare[:1].upper() + bare[1:]
