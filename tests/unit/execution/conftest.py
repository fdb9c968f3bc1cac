"""The graph that mutations are tried on."""

from collections.abc import Iterator

import pytest
from tests.support.mutation_graph import SCHEMA, load

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.testing.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def graph(clock: ManualClock) -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=OpenOptions(durability="process"), clock=clock) as made:
        yield made


@pytest.fixture
def town(graph: Graph) -> Graph:
    load(
        graph,
        'insert Person { name: "Ada", age: 30 } insert Person { name: "Bob", age: 25 }'
        ' insert Person { name: "Cy", age: 35 } insert Person { name: "Di" } insert Company { name: "Acme" }',
        'insert Knows { from: "Ada", to: "Bob", since: 1 } insert Knows { from: "Ada", to: "Cy", since: 2 }'
        ' insert Knows { from: "Bob", to: "Di" } insert WorksAt { from: "Ada", to: "Acme" }',
    )
    return graph
