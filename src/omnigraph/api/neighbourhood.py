"""What surrounds a node, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NodeKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class NearNode:
    """A node of a neighbourhood.

    Attributes:
        type_name: its type.
        id: its id.
        properties: JSON values; vectors and blobs are left out.
        distance: how many edges it is away from the middle.
    """

    type_name: str
    id: str
    properties: Mapping[str, Any]
    distance: int

    def to_dict(self) -> dict[str, Any]:
        """The node as a JSON document."""
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
        type_name: its type.
        id: its id.
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
        """The edge as a JSON document."""
        ends = {"from": self.source, "to": self.target}
        return {
            "type": self.type_name,
            "id": self.id,
            **{name: {"type": end[0], "id": end[1]} for name, end in ends.items()},
            "properties": dict(self.properties),
        }


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What surrounds a node, at one commit.

    Attributes:
        commit: where it was read.
        nodes: the middle first, then by distance.
        edges: all that were found between these nodes.
        is_cut: there is more than was asked for.
    """

    commit: str
    nodes: tuple[NearNode, ...]
    edges: tuple[NearEdge, ...]
    is_cut: bool

    def to_dict(self) -> dict[str, Any]:
        """The neighbourhood as a JSON document."""
        return {
            "nodes": [each.to_dict() for each in self.nodes],
            "edges": [each.to_dict() for each in self.edges],
            "is_cut": self.is_cut,
            "graph_commit_id": self.commit,
        }
