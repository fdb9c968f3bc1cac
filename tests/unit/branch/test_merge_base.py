"""The common ancestor a merge compares with, over graphs of commits of every shape."""

from itertools import count

import pytest
from tests.support import operations as op
from tests.support.operations import PERSON

from omnigraph.branch import branches
from omnigraph.branch.merge.ancestry import MERGE_NOTE, SOURCE_BRANCH, SOURCE_NUMBER, Ancestry
from omnigraph.branch.merge.base import best_common, merge_base
from omnigraph.errors import ConflictError
from omnigraph.ids import encode
from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.storage import paths
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet


def walked(text: str, source: str, target: str) -> list[str]:
    """The best common ancestors in a graph written like `b<a c<a d<b,c`, oldest commit first."""
    numbers = count(1)
    ids: dict[str, str] = {}
    parents: dict[str, tuple[str, ...]] = {}
    for each in text.split():
        name, _, above = each.partition("<")
        for one in (*filter(None, above.split(",")), name):
            ids.setdefault(one, encode(next(numbers)))
        parents[ids[name]] = tuple(ids[one] for one in filter(None, above.split(",")))
    names = {commit: name for name, commit in ids.items()}
    found, _ = best_common(ids[source], ids[target], lambda commit: parents.get(commit, ()))
    return [names[commit] for commit in found]


@pytest.mark.parametrize(
    ("text", "source", "target", "expected"),
    [
        pytest.param("a b<a c<a", "b", "c", ["a"], id="a fork"),
        pytest.param("a b<a", "a", "b", ["a"], id="nothing new"),
        pytest.param("a b<a", "b", "a", ["a"], id="fast forward"),
        pytest.param("a", "a", "a", ["a"], id="the same"),
        pytest.param("a b<a c<a d<b,c e<c", "d", "e", ["c"], id="merged before"),
        pytest.param("a b<a c<a d<b,c e<c,b", "d", "e", ["c", "b"], id="criss-cross: the newer of two equally near"),
        pytest.param("a b<a c<a d<b,c e<c,b f<d g<f", "g", "e", ["c", "b"], id="criss-cross, further on"),
        pytest.param("a b<a c<a d<b,c e<c f<e,b", "d", "f", ["b", "c"], id="the nearer of two"),
        pytest.param("a b", "a", "b", [], id="nothing in common"),
    ],
)
def test_the_best_common_ancestor_is_found(text: str, source: str, target: str, expected: list[str]) -> None:
    assert walked(text, source, target) == expected


def test_a_short_way_to_an_older_ancestor_does_not_make_it_the_best() -> None:
    """From `s` it is two steps to `a` by way of `x`, and five to `b`; but `b` descends from `a`."""
    text = "a x<a b<a c<b d<c e<d s<e,x t<b"
    assert walked(text, "s", "t") == ["b"]


# -- over logs --------------------------------------------------------------------------------------------------------


def people(parts: GraphContext, branch: str, **rows: int) -> None:
    write(parts, branch, op.upsert(PERSON, rows))


def merged(parts: GraphContext, source: str, target: str) -> None:
    """A commit with two parents, as far as ancestry goes."""
    entry = parts.log.live_head(source)

    def run(staging: WriteSet) -> None:
        staging.notes[MERGE_NOTE] = {SOURCE_BRANCH: entry.branch, SOURCE_NUMBER: entry.number}

    operation = Operation(
        CommitKind.MERGE,
        frozenset(),
        run,
        redoable=True,
        always_commits=True,
        merged_parent=entry.head_commit,
    )
    write(parts, target, operation)


def base(parts: GraphContext, source: str, target: str) -> tuple[str, Record]:
    found = merge_base(Ancestry(parts), parts.log.live_head(source), parts.log.live_head(target))
    return found.commit, found.state


def test_the_base_of_a_branch_is_where_it_was_made(parts: GraphContext) -> None:
    people(parts, MAIN, a=1)
    forked = parts.log.live_head(MAIN).commit
    branches.create(parts, "side")
    assert base(parts, "side", MAIN)[0] == forked
    for number in range(5):
        people(parts, MAIN, a=number)
        people(parts, "side", b=number)
    assert base(parts, "side", MAIN)[0] == forked
    assert base(parts, MAIN, "side")[0] == forked


def test_a_branch_of_a_branch_has_its_base_in_either(parts: GraphContext) -> None:
    branches.create(parts, "side")
    people(parts, "side", a=1)
    middle = parts.log.live_head("side").commit
    branches.create(parts, "deeper", source="side")
    people(parts, "deeper", b=1)
    people(parts, "side", c=1)
    assert base(parts, "deeper", "side")[0] == middle
    assert base(parts, "deeper", MAIN)[0] == parts.log.live_head(MAIN).commit


def test_what_was_merged_is_the_base_of_the_next_merge(parts: GraphContext) -> None:
    branches.create(parts, "side")
    people(parts, "side", a=1)
    people(parts, MAIN, b=1)
    brought = parts.log.live_head("side").commit
    merged(parts, "side", MAIN)
    people(parts, "side", c=1)
    people(parts, MAIN, d=1)
    assert base(parts, "side", MAIN)[0] == brought


def test_a_branch_made_anew_under_its_old_name_has_nothing_of_its_first_life(parts: GraphContext) -> None:
    branches.create(parts, "side")
    people(parts, "side", a=1)
    merged(parts, "side", MAIN)
    branches.delete(parts, "side")
    people(parts, MAIN, b=1)
    branches.create(parts, "side")
    forked = parts.log.live_head(MAIN).commit
    people(parts, "side", c=1)
    people(parts, MAIN, d=1)
    assert base(parts, "side", MAIN)[0] == forked


def test_what_a_deleted_branch_brought_in_is_still_followed(parts: GraphContext) -> None:
    branches.create(parts, "one")
    people(parts, "one", a=1)
    branches.create(parts, "two", source="one")
    shared = parts.log.live_head("one").commit
    merged(parts, "one", MAIN)
    branches.delete(parts, "one")
    people(parts, "two", b=1)
    assert base(parts, "two", MAIN)[0] == shared


def cut(parts: GraphContext, branch: str, below: int) -> None:
    """Take away the entries of a log below a number, as a prune does."""
    for number in range(1, below):
        parts.store.delete(paths.entry(branch, number))


def test_a_log_cut_without_a_trace_leaves_no_base_to_guess(parts: GraphContext) -> None:
    """Whether the branch was merged in the stretch that is gone, nothing tells."""
    people(parts, MAIN, a=1)
    forked = parts.log.live_head(MAIN)
    branches.create(parts, "side")
    people(parts, "side", b=1)
    for number in range(6):
        people(parts, MAIN, a=number)
    cut(parts, MAIN, forked.number + 4)
    with pytest.raises(ConflictError) as refused:
        base(parts, "side", MAIN)
    assert refused.value.code == "merge_base_missing"


def test_a_log_cut_below_the_base_does_no_harm(parts: GraphContext) -> None:
    people(parts, MAIN, a=1)
    people(parts, MAIN, a=2)
    forked = parts.log.live_head(MAIN)
    branches.create(parts, "side")
    people(parts, "side", b=1)
    people(parts, MAIN, a=3)
    cut(parts, MAIN, forked.number)
    commit, state = base(parts, "side", MAIN)
    assert (commit, state.tables) == (forked.commit, forked.tables)


def test_two_branches_that_have_nothing_in_common_are_not_merged(parts: GraphContext) -> None:
    branches.create(parts, "one")
    people(parts, "one", a=1)
    branches.create(parts, "two")
    people(parts, "two", b=1)
    people(parts, MAIN, c=1)
    for name in ("one", "two", MAIN):
        cut(parts, name, parts.log.live_head(name).number)
    with pytest.raises(ConflictError) as refused:
        base(parts, "one", "two")
    assert refused.value.code == "merge_base_missing"
