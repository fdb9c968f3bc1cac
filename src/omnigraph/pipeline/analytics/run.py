"""Algorithms over the types of a graph: which nodes and edges take part, and what becomes of the answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as Spark's own documentation calls it)

from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import EdgeType, Schema
from omnigraph.model.suggest import explain_unknown
from omnigraph.pipeline.analytics import cores, labels, paths
from omnigraph.pipeline.analytics.blocks import Blocks, blocks_of
from omnigraph.pipeline.analytics.components import connected_components
from omnigraph.pipeline.analytics.degrees import degrees
from omnigraph.pipeline.analytics.network import DST, SRC, VALUE, VERTEX, WEIGHT, Network, id_of, name_of, type_of
from omnigraph.pipeline.analytics.pagerank import pagerank
from omnigraph.pipeline.analytics.triangles import triangle_count
from omnigraph.pipeline.analytics.validation import check_columns, check_properties, rounds, starts, texts, within

TYPE, ID = "type", "id"
Read = Callable[[str, Sequence[str] | None], DataFrame]
"""A type's rows at the commit that is looked at, by its key and columns."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A graph at a commit, and the edges of it that count.

    Attributes:
        schema: its types.
        read: reads a type.
        edges: the edge types that count.
    """

    schema: Schema
    read: Read
    edges: tuple[EdgeType, ...]

    @property
    def node_types(self) -> tuple[str, ...]:
        """The node types whose nodes are the vertices: those that the edges leave or reach."""
        return tuple(sorted({end.type_name for edge in self.edges for end in (edge.from_type, edge.to_type)}))

    def network(self, *, weight: str | None = None) -> Network:
        """The vertices and edges.

        Args:
            weight: the property of edges that is their length.

        Returns:
            Network: named by types and ids.

        Raises:
            InvalidRequestError: an edge type has no such property, or it is no number.
        """
        vertices = [
            self.read(f"node:{name}", [ID]).select(name_of(name, F.col(ID)).alias(VERTEX)) for name in self.node_types
        ]
        edges = [self._edges(edge, weight) for edge in self.edges]
        return Network(reduce(DataFrame.union, vertices), reduce(DataFrame.union, edges))

    def _edges(self, edge: EdgeType, weight: str | None) -> DataFrame:
        declared = None if weight is None else edge.property_named(weight)
        if weight is not None and (declared is None or not declared.type.is_numeric):
            raise InvalidRequestError(f"edges of type '{edge.name}' have no number '{weight}'")
        rows = self.read(edge.type_key, [SRC, DST] if weight is None else [SRC, DST, weight])
        ends = [
            name_of(edge.from_type.type_name, F.col(SRC)).alias(SRC),
            name_of(edge.to_type.type_name, F.col(DST)).alias(DST),
        ]
        return rows.select(*ends) if weight is None else rows.select(*ends, F.col(weight).alias(WEIGHT))


def subject(schema: Schema, read: Read, edges: Sequence[str] | None) -> Subject:
    """A graph and the edges of it that count.

    Args:
        schema: its types.
        read: reads a type.
        edges: names of edge types; all by default.

    Returns:
        Subject: what algorithms run on.

    Raises:
        InvalidRequestError: there is no such edge type, or none at all.
    """
    known = [edge.name for edge in schema.edges]
    names = known if edges is None else texts(edges, "the edge types that count")
    found = [(name, schema.edge(name)) for name in names]
    for name, edge in found:
        if edge is None:
            raise InvalidRequestError(explain_unknown("there is no edge type", name, known), code="type_not_found")
    if not found:
        raise InvalidRequestError("there are no edges to count: the graph has no edge types, or none was named")
    return Subject(schema, read, tuple(edge for _, edge in found if edge is not None))


def degree_frame(of: Subject) -> DataFrame:
    """`type`, `id`, `out_degree`, `in_degree` and `degree` of every node."""
    return _by_node(degrees(of.network()))


def pagerank_frame(of: Subject, *, damping: float, tolerance: float, rounds_max: int) -> DataFrame:
    """`type`, `id` and `value` of every node: its rank."""
    within("damping", damping, 0, 1)
    within("tolerance", tolerance, 0)
    rounds("rounds_max", rounds_max)
    blocks = blocks_of(of.network())
    ranks = pagerank(blocks, damping=damping, tolerance=tolerance, rounds_max=rounds_max)
    return _by_node(blocks.named(ranks))


def component_frame(of: Subject) -> DataFrame:
    """`type`, `id` and `value` of every node: the first node of its component."""
    blocks = _undirected(of)
    return _by_node(blocks.named(connected_components(blocks), names=True))


def community_frame(of: Subject, *, rounds_max: int) -> DataFrame:
    """`type`, `id` and `value` of every node: the label of its community."""
    rounds("rounds_max", rounds_max)
    blocks = _undirected(of)
    return _by_node(blocks.named(labels.label_propagation(blocks, rounds_max=rounds_max), names=True))


def triangle_frame(of: Subject) -> DataFrame:
    """`type`, `id` and `value` of every node: how many triangles it is in."""
    return _by_node(triangle_count(of.network()))


def core_frame(of: Subject) -> DataFrame:
    """`type`, `id` and `value` of every node: its core number."""
    blocks = _undirected(of)
    return _by_node(blocks.named(cores.core_numbers(blocks)))


def distance_frame(
    of: Subject, sources: Sequence[tuple[str, str]], *, weight: str | None, rounds_max: int | None
) -> DataFrame:
    """`source_type`, `source_id`, `type`, `id` and `value` of every node that a source reaches: how far it is."""
    for type_name, _ in starts(sources):
        if type_name not in of.node_types:
            message = explain_unknown("the edges that count leave and reach no nodes of type", type_name, of.node_types)
            raise InvalidRequestError(message)
    if rounds_max is not None:
        rounds("rounds_max", rounds_max)
    blocks = blocks_of(of.network(weight=weight))
    if weight is not None:
        paths.check_weights(blocks)
    names = [f"{type_name}:{node}" for type_name, node in sources]
    there = blocks.names.where(F.col(VERTEX).isin(names)).collect()
    numbers = paths.numbers_of(names, {row[VERTEX]: row["number"] for row in there})
    frames = []
    for (type_name, node), number in zip(sources, numbers, strict=True):
        found = paths.distances(blocks, number, weighed=weight is not None, rounds_max=rounds_max)
        whose = [F.lit(type_name).alias("source_type"), F.lit(node).alias("source_id")]
        reached = blocks.named(found).where(F.col(VALUE) < F.lit(np.inf))
        value = F.col(VALUE) if weight is not None else F.col(VALUE).cast("bigint").alias(VALUE)
        frames.append(_by_node(reached.select(VERTEX, value)).select(*whose, TYPE, ID, VALUE))
    return reduce(DataFrame.union, frames)


def updated_rows(of: Subject, answers: DataFrame, properties: Mapping[str, str]) -> dict[str, DataFrame]:
    """Whole rows of nodes with answers in their properties, for a write that puts them in the place of the old.

    Args:
        of: what the answers are about.
        answers: `type`, `id` and columns of answers.
        properties: by columns of answers, the properties they go to.

    Returns:
        dict[str, DataFrame]: by type key; only rows that change.

    Raises:
        InvalidRequestError: no node type has these properties.
    """
    check_columns(answers, properties)
    found: dict[str, DataFrame] = {}
    for name in of.node_types:
        node = of.schema.node(name)
        if node is None or any(node.property_named(property_name) is None for property_name in properties.values()):
            continue
        check_properties(node, answers, properties)
        rows = of.read(node.type_key, None)
        mine = answers.where(F.col(TYPE) == F.lit(name)).select(
            ID, *(F.col(column).alias(f"new {own}") for column, own in properties.items())
        )
        fresh = {own: F.col(f"new {own}").cast(rows.schema[own].dataType) for own in properties.values()}
        moved = reduce(lambda one, other: one | other, (~F.col(own).eqNullSafe(value) for own, value in fresh.items()))
        joined = rows.join(mine, ID).where(moved)
        found[node.type_key] = joined.select(
            *(fresh[column].alias(column) if column in fresh else F.col(column) for column in rows.columns)
        )
    if not found:
        listed = ", ".join(properties.values())
        raise InvalidRequestError(
            f"none of the node types {', '.join(of.node_types)} has the property {listed}; add it to the schema first"
        )
    return found


def _undirected(of: Subject) -> Blocks:
    return blocks_of(of.network().undirected())


def _by_node(frame: DataFrame) -> DataFrame:
    rest = [column for column in frame.columns if column != VERTEX]
    return frame.select(type_of(F.col(VERTEX)).alias(TYPE), id_of(F.col(VERTEX)).alias(ID), *rest)
