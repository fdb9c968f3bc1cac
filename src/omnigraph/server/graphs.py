"""The graphs that a server has open, by their ids."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.api.graph import Graph
from omnigraph.errors import InvalidRequestError
from omnigraph.policy.rules import Action
from omnigraph.server.authorize import Authority
from omnigraph.server.errors import Refusal
from omnigraph.server.stored import StoredQuery

_GRAPH_ID = re.compile(r"[a-zA-Z0-9-]{1,64}")
_RESERVED = frozenset({"policies"})


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """One graph, and what belongs to it.

    Attributes:
        id: what it is called in addresses.
        graph: open.
        authority: who may do what with it.
        queries: those that are stored with it, by name.
        schema_is_managed: its schema is a cluster's matter, and not to be changed through the server.
    """

    id: str
    graph: Graph
    authority: Authority
    queries: Mapping[str, StoredQuery] = field(default_factory=dict)
    schema_is_managed: bool = False


class Graphs:
    """Every graph that is served. Static: what is served changes with a restart."""

    def __init__(self, served: Mapping[str, ServedGraph], *, authority: Authority) -> None:
        self._served = dict(sorted(served.items()))
        self.authority = authority

    def __iter__(self) -> Iterator[ServedGraph]:
        return iter(self._served.values())

    def __len__(self) -> int:
        return len(self._served)

    def named(self, graph_id: str) -> ServedGraph:
        """The graph with an id.

        Raises:
            Refusal: there is none, or it could not be opened.
        """
        found = self._served.get(graph_id)
        if found is None:
            raise _not_found(graph_id)
        return found

    def named_to(self, actor: str | None) -> set[str]:
        """The ids of those that somebody is told of: all to those who may list them, else what they could use."""
        lists = self.authority.allows(actor, Action.GRAPH_LIST)
        return {each.id for each in self if lists or each.authority.is_named_to(actor)}

    def close(self) -> None:
        """Close all of them."""
        for each in self:
            each.graph.close()


def _not_found(graph_id: str) -> Refusal:
    return Refusal(404, f"graph '{graph_id}' not found", code="not_found")


def checked_id(graph_id: str) -> str:
    """An id that a graph may have.

    Raises:
        InvalidRequestError: it may not.
    """
    if _GRAPH_ID.fullmatch(graph_id) is None or graph_id in _RESERVED:
        raise InvalidRequestError(
            f"'{graph_id}' is no graph id: letters, digits and dashes, up to 64, and not 'policies'"
        )
    return graph_id


def id_from(address: str) -> str:
    """The id of a graph by its address: its last part, without an ending, what an id may not have made a dash."""
    last = address.rstrip("/").rsplit("/", 1)[-1].rsplit(":", 1)[-1].removesuffix(".omni")
    return re.sub(r"[^a-zA-Z0-9-]+", "-", last).strip("-")[:64] or "graph"
