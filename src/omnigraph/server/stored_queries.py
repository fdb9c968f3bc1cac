"""Stored queries: kept with a graph and called by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.language.query import parse
from omnigraph.language.query.statements import Mutation, Parameter, Query

_KINDS = {
    "String": "string",
    "Bool": "bool",
    "I32": "int",
    "U32": "int",
    "I64": "bigint",
    "U64": "bigint",
    "F32": "float",
    "F64": "float",
    "Date": "date",
    "DateTime": "datetime",
    "Blob": "blob",
    "Vector": "vector",
}


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """One query of a stored file.

    Attributes:
        query: parsed.
        text: content of the whole file.
    """

    query: Query
    text: str

    @property
    def name(self) -> str:
        """Name by which it is called."""
        return self.query.name

    @property
    def is_mutation(self) -> bool:
        """True if it writes."""
        return isinstance(self.query.body, Mutation)

    def to_dict(self) -> dict[str, Any]:
        """Return its entry in the catalogue."""
        about = {"description": self.query.description, "instruction": self.query.instruction}
        return {
            "name": self.name,
            "tool_name": self.name,
            **{key: text for key, text in about.items() if text is not None},
            "mutation": self.is_mutation,
            "params": [_parameter_document(parameter) for parameter in self.query.parameters],
        }


def stored_queries(texts: Mapping[str, str]) -> dict[str, StoredQuery]:
    """Parse the stored queries of a graph; return them sorted by name.

    Args:
        texts: content of the file of each query, by query name.

    Raises:
        ParseError: a file cannot be parsed.
    """
    found: dict[str, StoredQuery] = {}
    for name, text in sorted(texts.items()):
        for query in parse(text, name=name).queries:
            if query.name == name:
                found[name] = StoredQuery(query, text)
    return found


def _parameter_document(parameter: Parameter) -> dict[str, Any]:
    declared = parameter.type
    kind = _KINDS.get(declared.base, "string")
    document: dict[str, Any] = {"name": parameter.name, "kind": "list" if declared.is_list else kind}
    if declared.is_list:
        document["item_kind"] = kind
    if declared.dimension is not None:
        document["vector_dim"] = declared.dimension
    return {**document, "nullable": declared.nullable}
