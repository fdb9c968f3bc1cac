"""Algorithms over whole graphs say what networkx says."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import networkx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as Spark's own documentation calls it)

from omnigraph import limits
from omnigraph.errors import InvalidRequestError
from omnigraph.pipeline.analytics.blocks import Array, Blocks, Kernel, Messages, blocks_of
from omnigraph.pipeline.analytics.components import connected_components
from omnigraph.pipeline.analytics.cores import core_numbers
from omnigraph.pipeline.analytics.degrees import degrees
from omnigraph.pipeline.analytics.labels import label_propagation
from omnigraph.pipeline.analytics.network import Network, id_of, name_of, type_of
from omnigraph.pipeline.analytics.pagerank import pagerank
from omnigraph.pipeline.analytics.paths import check_weights, distances
from omnigraph.pipeline.analytics.triangles import triangle_count

Edge = tuple[str, str, int]


@st.composite
def small_graphs(draw: st.DrawFn) -> list[tuple[list[str], list[Edge]]]:
    """A few graphs beside each other: one run on Spark tries them all."""
    found = []
    for number in range(4):
        names = [f"V:{number}-{n:02}" for n in range(draw(st.integers(1, 14)))]
        name = st.sampled_from(names)
        found.append((names, draw(st.lists(st.tuples(name, name, st.integers(0, 5)), max_size=40))))
    return found


def as_networkx(vertices: Iterable[str], edges: Iterable[Edge]) -> networkx.MultiDiGraph:
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(vertices)
    graph.add_weighted_edges_from(edges)
    return graph


def as_network(spark: SparkSession, vertices: list[str], edges: list[Edge]) -> Network:
    return Network(
        spark.createDataFrame([(name,) for name in vertices], "vertex string"),
        spark.createDataFrame(edges, "src string, dst string, weight int"),
    )


def values(frame: DataFrame) -> dict[str, Any]:
    return {row["vertex"]: row["value"] for row in frame.collect()}


def labels_by_hand(simple: networkx.Graph, rounds: int) -> dict[str, str]:
    labels = {name: name for name in simple}
    for _ in range(rounds):
        heard = {name: Counter(labels[other] for other in simple[name]) for name in simple}
        labels = {
            name: min(heard[name], key=lambda label: (-heard[name][label], label)) if heard[name] else labels[name]
            for name in simple
        }
    return labels


def by_name(names: list[str], values: Array) -> dict[str, Any]:
    return dict(zip(sorted(names), values.tolist(), strict=True))


def labelled(names: list[str], values: Array) -> dict[str, str]:
    return {name: sorted(names)[value] for name, value in by_name(names, values).items()}


@settings(max_examples=1, phases=[Phase.generate], suppress_health_check=list(HealthCheck), derandomize=True)
@given(graphs=small_graphs())
def test_every_algorithm_agrees_with_networkx(spark: SparkSession, graphs: list[tuple[list[str], list[Edge]]]) -> None:
    names = [name for some, _ in graphs for name in some]
    edges = [edge for _, some in graphs for edge in some]
    network = as_network(spark, names, edges)
    directed = as_networkx(names, edges)
    simple = networkx.Graph(directed)
    simple.remove_edges_from(list(networkx.selfloop_edges(simple)))
    weightless = as_networkx(names, ((src, dst, 1) for src, dst, _ in edges))
    there, both_ways = blocks_of(network), blocks_of(network.undirected())

    assert {row["vertex"]: (row["out_degree"], row["in_degree"]) for row in degrees(network).collect()} == {
        name: (directed.out_degree(name), directed.in_degree(name)) for name in names
    }
    expected = networkx.pagerank(weightless, tol=1e-12, max_iter=1_000)
    assert by_name(names, pagerank(there)) == pytest.approx(expected, abs=1e-7)
    assert labelled(names, connected_components(both_ways)) == {
        name: min(component) for component in networkx.connected_components(simple) for name in component
    }
    assert labelled(names, label_propagation(both_ways, rounds_max=3)) == labels_by_hand(simple, 3)
    assert values(triangle_count(network)) == networkx.triangles(simple)
    assert by_name(names, core_numbers(both_ways)) == networkx.core_number(simple)
    check_weights(there)
    for weighed, graph in ((True, directed), (False, weightless)):
        found = by_name(names, distances(there, sorted(names).index(names[0]), weighed=weighed))
        reached = {name: length for name, length in found.items() if length < math.inf}
        assert reached == networkx.single_source_dijkstra_path_length(graph, names[0])


@pytest.mark.torture
def test_edges_on_the_executors_give_the_answers_of_edges_that_were_fetched(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ANALYTICS_BLOCK_EDGES", 40)
    names = [f"V:{n:02}" for n in range(30)]
    edges = [(names[n * 7 % 30], names[(n * n + 1) % 30], n % 4) for n in range(90)]
    network = as_network(spark, names, edges)
    spread = Network(network.vertices.repartition(3), network.edges.repartition(5))

    def answers(near_edges_max: int) -> list[list[float]]:
        there: Blocks = blocks_of(spread, near_edges_max=near_edges_max)
        both_ways: Blocks = blocks_of(spread.undirected(), near_edges_max=near_edges_max)
        assert (there.far is None) == (near_edges_max > 0)
        found = [
            pagerank(there, rounds_max=2),
            connected_components(both_ways),
            label_propagation(both_ways, rounds_max=1),
            distances(there, 0, weighed=True, rounds_max=2),
        ]
        return [each.tolist() for each in found]

    assert answers(0) == answers(1_000)


def test_a_long_chain_is_one_component_after_few_rounds(spark: SparkSession) -> None:
    names = [f"V:{(n * 37) % 64:02}" for n in range(64)]
    network = as_network(spark, names, [(one, other, 1) for one, other in pairwise(names)])
    blocks = Counted(blocks_of(network.undirected()))

    assert set(connected_components(blocks).tolist()) == {0}
    assert blocks.rounds <= 7


class Counted(Blocks):
    """Blocks that count how often they are gone over."""

    rounds: int

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks.size, blocks.names, blocks.far, blocks.near)
        object.__setattr__(self, "rounds", 0)

    def tell(self, kernel: Kernel, known: object) -> Iterator[Messages]:
        object.__setattr__(self, "rounds", self.rounds + 1)
        return super().tell(kernel, known)


def test_paths_need_lengths(spark: SparkSession) -> None:
    with pytest.raises(InvalidRequestError, match="weight"):
        check_weights(blocks_of(as_network(spark, ["V:a", "V:b"], [("V:a", "V:b", -1)])))


def test_a_graph_without_edges_has_answers_too(spark: SparkSession) -> None:
    blocks = blocks_of(as_network(spark, ["V:b", "V:a"], []))

    assert pagerank(blocks).tolist() == [0.5, 0.5]
    assert connected_components(blocks).tolist() == [0, 1]
    assert core_numbers(blocks).tolist() == [0, 0]
    assert sorted(values(blocks.named(connected_components(blocks), names=True)).items()) == [
        ("V:a", "V:a"),
        ("V:b", "V:b"),
    ]


def test_names_of_vertices_keep_type_and_id_apart(spark: SparkSession) -> None:
    named = spark.createDataFrame([("a:b",), ("",), ("é",)], "id string").select(
        name_of("Person", F.col("id")).alias("v")
    )

    assert [tuple(row) for row in named.select(type_of(F.col("v")), id_of(F.col("v"))).collect()] == [
        ("Person", "a:b"), ("Person", ""), ("Person", "é"),
    ]  # fmt: skip
