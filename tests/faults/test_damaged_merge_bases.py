"""Damage to what is kept for merges only, below what a branch keeps itself, is reported by a verification."""

from pathlib import Path

import pytest
from tests.support.damage import cut

import omnigraph
from omnigraph import OpenOptions

QUIET = OpenOptions(durability="process", auto_compact=False, protection_s=0)
SCHEMA = "node Person { name: String @key  age: I32? }"


def written(graph: omnigraph.Graph, branch: str, **ages: int) -> str:
    people = [{"name": name, "age": age} for name, age in ages.items()]
    commit = graph.write({"Person": people}, mode="merge", branch=branch).commit
    assert commit is not None
    return commit


@pytest.mark.parametrize("base", ["fork point", "merge base"])
@pytest.mark.parametrize("in_rounds", [False, True])
def test_damage_to_a_merge_base_below_the_floor_is_reported(tmp_path: Path, base: str, *, in_rounds: bool) -> None:
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=QUIET) as graph:
        commit = written(graph, "main", ada=1)
        graph.branches.create("side")
        written(graph, "side", bob=2)
        if base == "merge base":
            commit = written(graph, "main", cy=3)
            graph.merge("main", into="side")
        pin = graph.snapshot(commit=commit).record.tables["node:Person"]
        for age in range(4):
            written(graph, "main", ada=age)
            written(graph, "side", bob=age)
        graph.cleanup(keep=1, confirm=True)
        assert graph.verify(deep=True).is_whole
        cut(Path(graph.uri) / pin.table / "_versions" / f"d{pin.version}.manifest")
        policy = omnigraph.Maintenance(optimize=False, sweep=False, verify_reads_max=10_000)
        found = graph.maintain_once(policy).verified if in_rounds else graph.verify()
        assert found is not None
        assert commit in {at.commit for finding in found.findings for at in finding.affected}
        # Once no merge needs it, it is nobody's loss.
        graph.branches.delete("side")
        graph.sweep(older_than=0)
        assert graph.verify(deep=True).is_whole
