"""The neighbourhood of a node: nodes and edges around it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NodeKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class NearNode:
    """A node of a neighbourhood.

    Attributes:
        type_name: the node type.
        id: the node id.
        properties: JSON values in declared order; blobs are left out, and vectors unless they were wanted.
        distance: the number of edges to the node in the middle.
    """

    type_name: str
    id: str
    properties: Mapping[str, Any]
    distance: int

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return {
            "type": self.type_name,
            "id": self.id,
            "distance": self.distance,
            "properties": dict(self.properties),
        }


@dataclass(frozen=True, slots=True)
class NearEdge:
    """An edge of a neighbourhood.

    Attributes:
        type_name: the edge type.
        id: the edge id.
        source: type and id of the node it leaves.
        target: type and id of the node it reaches.
        properties: JSON values; vectors and blobs are left out.
    """

    type_name: str
    id: str
    source: NodeKey
    target: NodeKey
    properties: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        ends = {"from": self.source, "to": self.target}
        return {
            "type": self.type_name,
            "id": self.id,
            **{name: {"type": end[0], "id": end[1]} for name, end in ends.items()},
            "properties": dict(self.properties),
        }


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The nodes and edges around a node, at one commit.

    Attributes:
        commit: the commit it was read at.
        nodes: the middle first, then by distance.
        edges: all that were found between these nodes.
        is_cut: whether there are more nodes or edges than returned.
    """

    commit: str
    nodes: tuple[NearNode, ...]
    edges: tuple[NearEdge, ...]
    is_cut: bool

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return {
            "nodes": [node.to_dict() for node in self.nodes],
            "edges": [edge.to_dict() for edge in self.edges],
            "is_cut": self.is_cut,
            "graph_commit_id": self.commit,
        }
