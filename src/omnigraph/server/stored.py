"""Queries that are stored with a graph and called by name."""

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
        query: as it was written.
        text: the file it is in.
    """

    query: Query
    text: str

    @property
    def name(self) -> str:
        """By which it is called."""
        return self.query.name

    @property
    def is_mutation(self) -> bool:
        """Whether it writes."""
        return isinstance(self.query.body, Mutation)

    def to_dict(self) -> dict[str, Any]:
        """Its entry in the catalogue."""
        about = {"description": self.query.description, "instruction": self.query.instruction}
        return {
            "name": self.name,
            "tool_name": self.name,
            **{key: text for key, text in about.items() if text is not None},
            "mutation": self.is_mutation,
            "params": [_parameter(each) for each in self.query.parameters],
        }


def stored_queries(texts: Mapping[str, str]) -> dict[str, StoredQuery]:
    """The stored queries of a graph.

    Args:
        texts: by the name of each query, the file it is in.

    Returns:
        Them by name, in order.

    Raises:
        ParseError: a file is no query file.
    """
    found: dict[str, StoredQuery] = {}
    for name, text in sorted(texts.items()):
        for query in parse(text, name=name).queries:
            if query.name == name:
                found[name] = StoredQuery(query, text)
    return found


def _parameter(parameter: Parameter) -> dict[str, Any]:
    of = parameter.type
    kind = _KINDS.get(of.base, "string")
    document: dict[str, Any] = {"name": parameter.name, "kind": "list" if of.is_list else kind}
    if of.is_list:
        document["item_kind"] = kind
    if of.dimension is not None:
        document["vector_dim"] = of.dimension
    return {**document, "nullable": of.nullable}
