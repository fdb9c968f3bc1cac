"""Bounded breadth-first search around one node, along edges in both directions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

from omnigraph import limits
from omnigraph.api.entities import id_filter
from omnigraph.api.neighbourhood import NearEdge, NearNode, Neighbourhood, NodeKey
from omnigraph.branch.row_changes import ids_of, images_of
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType, NodeType, Schema
from omnigraph.transaction.snapshot import Snapshot as Pinned


@dataclass(slots=True)
class _Search:
    """The state of a breadth-first search."""

    snapshot: Pinned
    schema: Schema
    edge_types: frozenset[str]
    limit: int
    vectors: bool
    distances: dict[NodeKey, int] = field(default_factory=dict)
    edges: dict[tuple[str, str], NearEdge] = field(default_factory=dict)
    is_cut: bool = False

    def step(self, frontier: Mapping[str, list[str]], distance: int) -> dict[str, list[str]]:
        """Follow the edges of the frontier, and return the newly reached nodes by type."""
        reached: dict[str, list[str]] = {}
        # Round-robin over edge types, so that a type with many edges does not crowd out the others.
        for edge in _round_robin([self._edges_at(*end) for end in self._ends(frontier)]):
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
            if self.edge_types and edge.name not in self.edge_types:
                continue
            for column, node in ((SRC, edge.from_type.type_name), (DST, edge.to_type.type_name)):
                if node in frontier:
                    yield edge, column, frontier[node]

    def _edges_at(self, edge: EdgeType, column: str, ids: list[str]) -> list[NearEdge]:
        # Twice the node limit, because parallel edges and edges back reach no new nodes.
        most = 2 * self.limit
        columns = [ID, SRC, DST, *_shown_properties(self.schema, edge, vectors=self.vectors)]
        rows = self.snapshot.scan(edge.type_key, columns=columns, filter=id_filter(column, ids), limit=most + 1)
        if rows.num_rows > most:
            self.is_cut = True
        images = images_of(rows.select([name for name in columns if name != ID]))
        return [
            NearEdge(
                edge.name,
                edge_id,
                (edge.from_type.type_name, image.source or ""),
                (edge.to_type.type_name, image.target or ""),
                image.properties,
            )
            for edge_id, image in zip(ids_of(rows), images, strict=True)
        ]

    def properties(self, ids: Mapping[str, list[str]]) -> Iterator[tuple[NodeKey, Mapping[str, Any]]]:
        """Read the properties of nodes, by type and id."""
        for name, type_ids in ids.items():
            node = self.schema.node(name)
            assert node is not None, "an edge connects types of the schema"
            columns = [ID, *_shown_properties(self.schema, node, vectors=self.vectors)]
            rows = self.snapshot.scan(node.type_key, columns=columns, filter=id_filter(ID, type_ids))
            images = images_of(rows.drop_columns(ID))
            for node_id, image in zip(ids_of(rows), images, strict=True):
                yield (name, node_id), image.properties


def search_neighbourhood(
    snapshot: Pinned,
    schema: Schema,
    node: NodeType,
    entity_id: str,
    *,
    edges: Iterable[str],
    depth: int,
    limit: int,
    vectors: bool,
) -> Neighbourhood:
    """Search the neighbourhood of a node; see `Graph.neighbourhood`."""
    if not 1 <= depth <= limits.NEIGHBOURHOOD_DEPTH_MAX:
        raise InvalidRequestError(f"the depth must be 1 to {limits.NEIGHBOURHOOD_DEPTH_MAX}, not {depth}")
    if not 1 <= limit <= limits.NEIGHBOURHOOD_NODES_MAX:
        raise InvalidRequestError(f"the limit must be 1 to {limits.NEIGHBOURHOOD_NODES_MAX}, not {limit}")
    edge_types = set()
    for name in edges:
        found = schema.edge(name)
        if found is None:
            raise NotFoundError(f"there is no edge type '{name}'", code="type_not_found", type=name)
        edge_types.add(found.name)
    search = _Search(snapshot, schema, frozenset(edge_types), limit, vectors)
    search.distances[node.name, entity_id] = 0
    properties = dict(search.properties({node.name: [entity_id]}))
    if not properties:
        raise NotFoundError(f"there is no {node.name} '{entity_id}'", code="entity_not_found", type=node.name)
    frontier = {node.name: [entity_id]}
    for distance in range(1, depth + 1):
        frontier = search.step(frontier, distance)
        properties |= dict(search.properties(frontier))
        if not frontier:
            break
    nodes = [NearNode(*key, properties.get(key, {}), distance) for key, distance in search.distances.items()]
    return Neighbourhood(snapshot.commit, tuple(nodes), tuple(search.edges.values()), search.is_cut)


def _shown_properties(schema: Schema, entity: EntityType, *, vectors: bool) -> list[str]:
    """Return the names of the properties in declared order, without blobs."""
    declared = schema.declared_properties(entity)
    return [prop.name for prop in declared if not prop.type.is_blob and (vectors or not prop.type.is_vector)]


def _round_robin(lists: list[list[NearEdge]]) -> Iterator[NearEdge]:
    return (edge for edge in chain.from_iterable(zip_longest(*lists)) if edge is not None)
