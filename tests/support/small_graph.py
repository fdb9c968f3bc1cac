"""A graph in memory, small enough to try everything on it."""

from collections.abc import Mapping, Sequence

from omnigraph.language.plan.pattern import Direction

Properties = Mapping[str, object]
# A node or an edge as rows hold it: its id, and those of its properties that were asked for.
Held = tuple[str, Properties]
# An edge: its id, the ids it joins, its properties.
Edge = tuple[str, str, str, Properties]


class SmallGraph:
    """Nodes by type and id, and edges by type.

    Attributes:
        nodes: the properties of every node.
        edges: every edge record.
    """

    def __init__(self, nodes: Mapping[str, Mapping[str, Properties]], edges: Mapping[str, Sequence[Edge]]) -> None:
        self.nodes = nodes
        self.edges = edges

    def __repr__(self) -> str:
        return f"SmallGraph({self.nodes}, {self.edges})"

    def near(self, edge: str, node: str, direction: Direction) -> list[tuple[str, Held]]:
        """The other end and the record of every edge at a node; an edge to itself once."""
        found: list[tuple[str, Held]] = []
        for edge_id, start, end, properties in self.edges[edge]:
            if start == node and direction is not Direction.IN:
                found.append((end, (edge_id, properties)))
            if end == node and direction is not Direction.OUT and not (start == end and direction is Direction.BOTH):
                found.append((start, (edge_id, properties)))
        return found

    def walk(self, edge: str, node: str, direction: Direction, least: int, most: int) -> dict[str, tuple[str, ...]]:
        """Every node whose distance lies within the bounds, with a path to it.

        Of several shortest paths, the one whose node ids come first. A node counts again where an edge joins it to
        itself, without being walked from again.
        """
        reached: dict[str, tuple[str, ...]] = {}
        frontier: dict[str, tuple[str, ...]] = {node: (node,)}
        seen = {node}
        for hop in range(1, most + 1):
            found: dict[str, tuple[str, ...]] = {}
            for here, path in sorted(frontier.items(), key=lambda item: item[1]):
                for there, _ in self.near(edge, here, direction):
                    longer = (*path, there)
                    if there == here and hop >= least and there not in reached:
                        reached[there] = longer
                    if there not in seen and (there not in found or longer < found[there]):
                        found[there] = longer
            if hop >= least:
                reached |= found
            seen |= found.keys()
            frontier = found
        return reached
