"""The names of all that a cluster holds: `graph.knowledge`, `query.knowledge.find`, `policy.base` and so on."""

from dataclasses import dataclass
from enum import StrEnum

from omnigraph.cluster import layout


class Kind(StrEnum):
    """What a resource is, in the order in which they come about."""

    PROVIDER = "embedding_provider"
    GRAPH = "graph"
    SCHEMA = "schema"
    QUERY = "query"
    POLICY = "policy"


_ORDER = {kind: at for at, kind in enumerate(Kind)}
_PROVIDER = "provider.embedding."


@dataclass(frozen=True, slots=True)
class Address:
    """The name of a resource.

    Attributes:
        kind: what it is.
        graph: which graph it belongs to; empty for policies and providers.
        name: of a query, a policy or a provider.
    """

    kind: Kind
    graph: str = ""
    name: str = ""

    def __str__(self) -> str:
        """As it is written."""
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
        """Sorts resources as they come about."""
        return _ORDER[self.kind], self.graph, self.name


def graph(graph_id: str) -> Address:
    """A graph."""
    return Address(Kind.GRAPH, graph_id)


def schema(graph_id: str) -> Address:
    """The schema of a graph."""
    return Address(Kind.SCHEMA, graph_id)


def query(graph_id: str, name: str) -> Address:
    """A stored query of a graph."""
    return Address(Kind.QUERY, graph_id, name)


def policy(name: str) -> Address:
    """A bundle of rules."""
    return Address(Kind.POLICY, name=name)


def provider(name: str) -> Address:
    """A provider of embeddings."""
    return Address(Kind.PROVIDER, name=name)


def parse(text: str) -> Address | None:
    """The address that is written so; None where it is none, or could lead out of its folder."""
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
