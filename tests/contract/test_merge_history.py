"""Merges over longer histories: again and again, both ways, criss-cross, and after old commits were pruned."""

from collections.abc import Iterator

import pytest
from tests.support.interleaving import once

import omnigraph
from omnigraph import ConflictError, Graph, MergeConflictError, OpenOptions
from omnigraph.failpoints import Failpoint, armed

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
"""


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=OpenOptions(durability="process")) as made:
        made.write({"Person": [{"name": name, "age": 0} for name in "abc"]})
        made.branches.create("side")
        yield made


def put(graph: Graph, branch: str, **ages: int) -> None:
    rows = [{"name": name, "age": age} for name, age in ages.items()]
    graph.write({"Person": rows}, mode="merge", branch=branch)


def ages(graph: Graph, branch: str = "main") -> dict[str, int]:
    rows = graph.export_arrow("Person", branch=branch).read_all().to_pylist()
    return {row["id"]: row["age"] for row in sorted(rows, key=lambda row: str(row["id"]))}


def test_a_branch_is_merged_again_and_again(graph: Graph) -> None:
    for number in range(1, 4):
        put(graph, "side", a=number)
        put(graph, "main", b=number)
        assert graph.merge("side").outcome == "merged"
        assert ages(graph) == {"a": number, "b": number, "c": 0}
    assert graph.merge("main", into="side").outcome == "fast_forward"
    assert graph.merge("side").outcome == "fast_forward"
    assert graph.merge("main", into="side").outcome == "fast_forward"
    assert ages(graph) == ages(graph, "side")


def test_a_value_put_back_after_it_was_merged_is_put_back_on_the_other_branch_too(graph: Graph) -> None:
    """The base is what was merged last, not where the branch began: there nothing would seem to have changed."""
    put(graph, "side", a=1)
    graph.merge("side")
    put(graph, "side", a=0)
    put(graph, "main", b=1)
    graph.merge("side")
    assert ages(graph) == {"a": 0, "b": 1, "c": 0}


def test_criss_cross_merges_come_to_the_same_on_both_branches(graph: Graph) -> None:
    put(graph, "side", a=1)
    put(graph, "main", b=1)
    graph.branches.create("main before")
    graph.merge("side")
    graph.merge("main before", into="side")
    put(graph, "side", c=2)
    put(graph, "main", d=2)
    assert graph.merge("side").outcome == "merged"
    assert graph.merge("main", into="side").outcome == "fast_forward"
    assert ages(graph) == ages(graph, "side") == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_several_branches_are_merged_one_after_the_other(graph: Graph) -> None:
    for number in range(4):
        graph.branches.create(f"topic {number}")
    for number in range(4):
        put(graph, f"topic {number}", **{f"t{number}": number})
    for number in range(4):
        assert graph.merge(f"topic {number}").outcome == ("fast_forward" if number == 0 else "merged")
    assert ages(graph) == {"a": 0, "b": 0, "c": 0, "t0": 0, "t1": 1, "t2": 2, "t3": 3}


def test_merges_go_through_branches_of_branches(graph: Graph) -> None:
    graph.branches.create("deeper", source="side")
    put(graph, "deeper", a=1)
    put(graph, "side", b=1)
    put(graph, "main", c=1)
    graph.merge("deeper")
    graph.merge("side")
    graph.merge("main", into="deeper")
    assert ages(graph) == ages(graph, "deeper") == {"a": 1, "b": 1, "c": 1}
    assert graph.merge("side", into="deeper").outcome == "already_up_to_date"


def test_a_merge_works_across_compactions_of_both_branches(graph: Graph) -> None:
    for number in range(4):
        put(graph, "side", **{f"s{number}": number, "a": number})
        put(graph, "main", **{f"m{number}": number, "b": number})
    graph.optimize(branch="side")
    graph.optimize()
    graph.mutate('query q() { delete Person where name = "c" }', branch="side")
    put(graph, "main", late=9)
    before = graph.snapshot()
    graph.merge("side")
    expected = {f"{side}{number}": number for side in "sm" for number in range(4)} | {"a": 3, "b": 3, "late": 9}
    assert ages(graph) == dict(sorted(expected.items()))
    [counts] = [each for key, each in graph.snapshot().record.changes.types.items() if key == "node:Person"]
    assert (counts.inserted, counts.updated, counts.deleted) == (4, 1, 1)
    assert len(graph.diff(before, "main")) == 6


def test_a_row_that_only_a_compaction_moved_is_no_conflict(graph: Graph) -> None:
    for number in range(3):
        put(graph, "side", a=number + 1)
    graph.optimize(branch="side")
    put(graph, "main", b=7)
    graph.optimize()
    graph.merge("side")
    assert ages(graph) == {"a": 3, "b": 7, "c": 0}


def test_branches_are_merged_after_old_commits_were_pruned_and_swept(graph: Graph) -> None:
    for number in range(5):
        put(graph, "side", a=number)
        put(graph, "main", b=number)
    for branch in ("main", "side"):
        graph.prune(branch, now=True)
    graph.sweep(older_than=0)
    put(graph, "main", d=1)
    assert graph.merge("side").outcome == "merged"
    assert ages(graph) == {"a": 4, "b": 4, "c": 0, "d": 1}
    put(graph, "side", a=9)
    assert graph.merge("side").outcome == "merged"
    assert ages(graph)["a"] == 9


def test_a_source_pruned_while_it_is_merged_is_merged_at_its_new_head(graph: Graph) -> None:
    put(graph, "side", a=1)
    put(graph, "main", b=1)

    def pruned() -> None:
        put(graph, "side", a=2)
        put(graph, "side", a=3)
        graph.prune("side", now=True)

    with armed(Failpoint.WRITE_PREPARED, once(pruned)):
        graph.merge("side")
    graph.sweep(older_than=0)
    assert ages(graph) == {"a": 3, "b": 1, "c": 0}


def test_conflicts_stay_until_they_are_resolved_and_are_gone_then(graph: Graph) -> None:
    put(graph, "side", a=1)
    put(graph, "main", a=2)
    for _ in range(2):
        with pytest.raises(MergeConflictError):
            graph.merge("side")
    graph.merge("side", prefer="target")
    put(graph, "side", b=1)
    assert graph.merge("side").outcome == "merged"
    assert ages(graph) == {"a": 2, "b": 1, "c": 0}


def test_a_schema_changed_under_the_merge_is_told(graph: Graph) -> None:
    put(graph, "side", a=1)
    put(graph, "main", b=1)
    wider = SCHEMA.replace("age: I32?", "age: I32?  mail: String?")
    with (
        armed(Failpoint.WRITE_TABLES_STAGED, once(lambda: graph.schema_apply(wider))),
        pytest.raises(ConflictError, match="schema changed"),
    ):
        graph.merge("side")
    graph.merge("side")
    assert ages(graph) == {"a": 1, "b": 1, "c": 0}
