"""What surrounds one node: the edges at it, the nodes they lead to, and so on for a few steps, bounded."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

from omnigraph import limits
from omnigraph.api.neighbourhood import NearEdge, NearNode, Neighbourhood, NodeKey
from omnigraph.branch.images import images_of
from omnigraph.branch.row_changes import ids_of
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType, NodeType, Schema
from omnigraph.transaction.lookup import identifier, literal
from omnigraph.transaction.snapshot import Snapshot as Pinned


@dataclass(slots=True)
class _Walk:
    """A walk outwards, step by step."""

    at: Pinned
    schema: Schema
    wanted: frozenset[str]
    limit: int
    distances: dict[NodeKey, int] = field(default_factory=dict)
    edges: dict[tuple[str, str], NearEdge] = field(default_factory=dict)
    is_cut: bool = False

    def step(self, frontier: Mapping[str, list[str]], distance: int) -> dict[str, list[str]]:
        """Follow the edges at some nodes; the nodes reached for the first time, by type."""
        reached: dict[str, list[str]] = {}
        # One edge of every type in turn, so that a type with very many does not hide the others.
        for edge in _in_turn([self._edges_at(*end) for end in self._ends(frontier)]):
            for end in (edge.source, edge.target):
                if end not in self.distances and len(self.distances) < self.limit:
                    self.distances[end] = distance
                    reached.setdefault(end[0], []).append(end[1])
            if edge.source in self.distances and edge.target in self.distances:
                self.edges[edge.type_name, edge.id] = edge
            else:
                self.is_cut = True
        return reached

    def _ends(self, frontier: Mapping[str, list[str]]) -> Iterator[tuple[EdgeType, str, list[str]]]:
        for edge in self.schema.edges:
            if self.wanted and edge.name not in self.wanted:
                continue
            for column, node in ((SRC, edge.from_type.type_name), (DST, edge.to_type.type_name)):
                if node in frontier:
                    yield edge, column, frontier[node]

    def _edges_at(self, edge: EdgeType, column: str, ids: list[str]) -> list[NearEdge]:
        # Twice the nodes that may come: parallel edges, and those back to where we were, bring none.
        most = 2 * self.limit
        columns = [ID, SRC, DST, *_told(edge)]
        rows = self.at.scan(edge.type_key, columns=columns, filter=_one_of(column, ids), limit=most + 1)
        if rows.num_rows > most:
            self.is_cut = True
        images = images_of(rows.select([name for name in columns if name != ID]))
        return [
            NearEdge(
                edge.name,
                each,
                (edge.from_type.type_name, image.source or ""),
                (edge.to_type.type_name, image.target or ""),
                image.properties,
            )
            for each, image in zip(ids_of(rows), images, strict=True)
        ]


def neighbourhood(
    at: Pinned,
    schema: Schema,
    node: NodeType,
    entity_id: str,
    *,
    edges: Iterable[str],
    depth: int,
    limit: int,
) -> Neighbourhood:
    """What surrounds a node; see `Graph.neighbourhood`."""
    if not 1 <= depth <= limits.NEIGHBOURHOOD_DEPTH_MAX:
        raise InvalidRequestError(f"the depth must be 1 to {limits.NEIGHBOURHOOD_DEPTH_MAX}, and it is {depth}")
    if not 1 <= limit <= limits.NEIGHBOURHOOD_NODES_MAX:
        raise InvalidRequestError(f"the limit must be 1 to {limits.NEIGHBOURHOOD_NODES_MAX}, and it is {limit}")
    wanted = set()
    for name in edges:
        found = schema.edge(name)
        if found is None:
            raise NotFoundError(f"there is no edge type '{name}'", code="type_not_found", type=name)
        wanted.add(found.name)
    walk = _Walk(at, schema, frozenset(wanted), limit)
    walk.distances[node.name, entity_id] = 0
    properties = dict(_properties(at, schema, {node.name: [entity_id]}))
    if not properties:
        raise NotFoundError(f"there is no {node.name} '{entity_id}'", code="entity_not_found", type=node.name)
    frontier = {node.name: [entity_id]}
    for distance in range(1, depth + 1):
        frontier = walk.step(frontier, distance)
        properties |= dict(_properties(at, schema, frontier))
        if not frontier:
            break
    nodes = [NearNode(*key, properties.get(key, {}), distance) for key, distance in walk.distances.items()]
    return Neighbourhood(at.commit, tuple(nodes), tuple(walk.edges.values()), walk.is_cut)


def _properties(
    at: Pinned, schema: Schema, ids: Mapping[str, list[str]]
) -> Iterator[tuple[NodeKey, Mapping[str, Any]]]:
    for name, wanted in ids.items():
        node = schema.node(name)
        assert node is not None, "an edge joins types there are"
        rows = at.scan(node.type_key, columns=[ID, *_told(node)], filter=_one_of(ID, wanted))
        images = images_of(rows.drop_columns(ID))
        for each, image in zip(ids_of(rows), images, strict=True):
            yield (name, each), image.properties


def _told(entity: EntityType) -> list[str]:
    """The properties that are shown: vectors and blobs are long, and mean nothing to a reader."""
    return [each.name for each in entity.properties if not each.type.is_vector and not each.type.is_blob]


def _one_of(column: str, ids: list[str]) -> str:
    return f"{identifier(column)} IN ({', '.join(str(literal(each)) for each in ids)})"


def _in_turn(lists: list[list[NearEdge]]) -> Iterator[NearEdge]:
    return (edge for edge in chain.from_iterable(zip_longest(*lists)) if edge is not None)
