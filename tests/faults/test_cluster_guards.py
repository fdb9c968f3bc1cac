"""Any configurations one after the other, approvals or none, faults anywhere: no graph ever loses its policy."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.small_cluster import Cluster

from omnigraph.cluster.apply import apply
from omnigraph.cluster.serving import load_applied
from omnigraph.cluster.session import Environment
from omnigraph.errors import GraphError
from omnigraph.failpoints import Crash
from omnigraph.testing.faults import Fault, Faults
from omnigraph.testing.stores import FaultyStore

GRAPHS = ("aa", "bb")
POLICIES = ("p", "q")
FAULTS = (Fault.CRASH_AFTER, Fault.CRASH_BEFORE, Fault.NO_SPACE, Fault.LOSE_ANSWER)


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Some of the graphs, each with one of the policies, each of these in one of two wordings; or with none."""
    graphs = sorted(draw(st.sets(st.sampled_from(GRAPHS))))
    bound: dict[str, list[str]] = {}
    for graph in graphs:
        policy = draw(st.sampled_from((None, *POLICIES)))
        if policy is not None:
            bound.setdefault(policy, []).append(graph)
    return {
        "graphs": {graph: {"schema": "people.pg"} for graph in graphs},
        "policies": {
            name: {"file": draw(st.sampled_from(("base.policy.yaml", "strict.policy.yaml"))), "applies_to": graphs_of}
            for name, graphs_of in bound.items()
        },
    }


def guarded(config: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The graphs that a configuration has a policy for."""
    return {graph for each in config["policies"].values() for graph in each["applies_to"]}


def in_ledger(cluster: Cluster) -> dict[str, bool]:
    """The graphs that would be served, and whether each has a policy."""
    try:
        found = load_applied(cluster.folder).graphs
    except GraphError as fault:
        assert fault.code in ("cluster_empty", "cluster_no_healthy_graphs")
        return {}
    assert not [each for each in found if "duplicate_policy_binding" in (each.quarantine or "")]
    return {each.id: each.policy is not None for each in found if each.quarantine is None}


def step(cluster: Cluster, data: st.DataObject) -> None:
    """Declare something, perhaps approve, and apply it with a fault somewhere."""
    before = in_ledger(cluster)
    config = data.draw(configurations())
    cluster.declare(**config)
    for graph in sorted(set(before) - set(config["graphs"])):
        if data.draw(st.booleans()):
            cluster.approve(f"graph.{graph}")
    faults = Faults()
    fault = data.draw(st.sampled_from((None, *FAULTS)))
    if fault is not None:
        faults.arm(fault, at=data.draw(st.integers(1, 30)))
    stores = cluster.environment.stores
    environment = Environment(lambda uri: FaultyStore(stores(uri), faults), cluster.clock, cluster.environment.ids)
    with suppress(Crash):
        apply(cluster.folder, environment=environment)
    for graph, has_policy in in_ledger(cluster).items():
        wanted = graph in guarded(config)
        stays_as_it_was = graph in before and graph not in config["graphs"]
        if (wanted and before.get(graph, True)) or (stays_as_it_was and before[graph]):
            assert has_policy, graph


def play(data: st.DataObject, steps: int) -> None:
    with TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        cluster.write("strict.policy.yaml", "version: 1\n")
        assert cluster.begin().is_ok
        for _ in range(steps):
            step(cluster, data)
        config = data.draw(configurations())
        cluster.declare(**config)
        assert cluster.apply().is_ok
        found = in_ledger(cluster)
        assert {graph for graph in config["graphs"] if found[graph]} == guarded(config)
        assert set(found) >= set(config["graphs"])


@settings(max_examples=6)
@given(st.data())
def test_no_graph_is_ever_served_without_the_policy_it_had_or_should_have(data: st.DataObject) -> None:
    play(data, 3)


@pytest.mark.torture
@settings(max_examples=150)
@given(st.data())
def test_no_graph_is_ever_served_without_its_policy_however_long_it_goes_on(data: st.DataObject) -> None:
    play(data, 6)
