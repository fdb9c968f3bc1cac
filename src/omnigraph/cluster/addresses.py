"""Addresses of cluster resources: `graph.knowledge`, `query.knowledge.find`, `policy.base` and so on."""

from dataclasses import dataclass
from enum import StrEnum

from omnigraph.cluster import layout


class Kind(StrEnum):
    """Resource kinds, in creation order."""

    PROVIDER = "embedding_provider"
    GRAPH = "graph"
    SCHEMA = "schema"
    QUERY = "query"
    POLICY = "policy"


_ORDER = {kind: position for position, kind in enumerate(Kind)}
_PROVIDER = "provider.embedding."


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a resource."""

    kind: Kind  # decides which of the other fields are set
    graph: str = ""  # owning graph; empty for policies and providers
    name: str = ""  # name of a query, policy or provider; empty for graphs and schemas

    def __str__(self) -> str:
        """Return the textual form."""
        match self.kind:
            case Kind.PROVIDER:
                return f"{_PROVIDER}{self.name}"
            case Kind.QUERY:
                return f"query.{self.graph}.{self.name}"
            case Kind.POLICY:
                return f"policy.{self.name}"
            case Kind.GRAPH | Kind.SCHEMA:
                return f"{self.kind}.{self.graph}"

    @property
    def order(self) -> tuple[int, str, str]:
        """Sort key in creation order."""
        return _ORDER[self.kind], self.graph, self.name


def graph(graph_id: str) -> Address:
    """Return the address of a graph."""
    return Address(Kind.GRAPH, graph_id)


def schema(graph_id: str) -> Address:
    """Return the address of a graph's schema."""
    return Address(Kind.SCHEMA, graph_id)


def query(graph_id: str, name: str) -> Address:
    """Return the address of a stored query."""
    return Address(Kind.QUERY, graph_id, name)


def policy(name: str) -> Address:
    """Return the address of a policy."""
    return Address(Kind.POLICY, name=name)


def provider(name: str) -> Address:
    """Return the address of an embedding provider."""
    return Address(Kind.PROVIDER, name=name)


def parse(text: str) -> Address | None:
    """Parse an address; None if it is invalid or could escape its folder."""
    if text.startswith(_PROVIDER):
        name = text.removeprefix(_PROVIDER)
        return provider(name) if layout.is_name(name) else None
    match text.split("."):
        case ["graph", graph_id] if layout.is_graph_id(graph_id):
            return graph(graph_id)
        case ["schema", graph_id] if layout.is_graph_id(graph_id):
            return schema(graph_id)
        case ["query", graph_id, name] if layout.is_graph_id(graph_id) and layout.is_query_name(name):
            return query(graph_id, name)
        case ["policy", name] if layout.is_name(name):
            return policy(name)
        case _:
            return None
