"""Death in the middle of a change of schema: the old schema with its rows, or the new one, and work goes on."""

from pathlib import Path

import pytest
from tests.support.cuts import Copies, Cut, at_every_failpoint, at_every_request

import omnigraph
from omnigraph import ConstraintError, Graph, OpenOptions
from omnigraph.failpoints import Failpoint
from omnigraph.storage.object_store import ObjectStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore

BEFORE = "node A { name: String @key  x: I32? }\nnode B { y: I32? }\nedge E: A -> A { w: I32? }"
AFTER = (
    'node Z @rename_from("A") { name: String @key  n: I32? @rename_from("x")  more: String? }\n'
    "node C { z: I32? }\nedge E: Z -> Z { v: I32? }"
)
STRICT = BEFORE.replace("x: I32?", "x: I64?  rank: I32 @default(5)  @range(rank, 1..8)")
RANKS = "query q() { match { $a: A } return { $a.rank } }"
OLD = "query q() { match { $a: A $a e $b } return { $a.name, $a.x, $b.name as b } }"
NEW = "query q() { match { $a: Z $a e $b } return { $a.name, $a.n, $a.more, $b.name as b } }"


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    graph = omnigraph.init(tmp_path / "template", BEFORE, options=OpenOptions(durability="process"))
    graph.mutate('query q() { insert A { name: "a", x: 1 } insert A { name: "b" } insert B { y: 1 } }')
    graph.mutate('query q() { insert E { from: "a", to: "b" } }')
    return Copies(tmp_path / "template", tmp_path / "copies")


def opened(store: ObjectStore) -> Graph:
    return omnigraph.open(store, options=OpenOptions(durability="process"), clock=ManualClock())


def apply(store: FaultyStore) -> None:
    opened(store).schema_apply(AFTER)


def check(cut: Cut) -> bool:
    """Whether the change was made; either way the graph is whole and the same apply works at once."""
    graph = opened(cut.store)
    made = graph.schema_text() == AFTER
    if made:
        assert graph.query(NEW).to_pylist() == [{"a.name": "a", "a.n": 1, "a.more": None, "b": "b"}], cut.where
        graph.mutate('query q() { insert Z { name: "next", more: "m" } }')
    else:
        assert graph.schema_text() == BEFORE, cut.where
        assert graph.query(OLD).to_pylist() == [{"a.name": "a", "a.x": 1, "b": "b"}], cut.where
        graph.mutate('query q() { insert A { name: "next" } }')
    assert graph.schema_apply(AFTER).applied is not made, cut.where
    assert graph.count("Z") == 3, cut.where
    return made


def apply_what_the_data_must_allow(store: FaultyStore) -> None:
    opened(store).schema_apply(STRICT, validated=True)


def check_strict(cut: Cut) -> bool:
    """The same of a change that writes columns anew."""
    graph = opened(cut.store)
    made = graph.schema_text() == STRICT
    rows = graph.query("query q() { match { $a: A } return { $a.x } order { $a.name } }").to_pylist()
    assert rows == [{"a.x": 1}, {"a.x": None}], cut.where
    if made:
        assert graph.query(RANKS).to_pylist() == [{"a.rank": 5}] * 2, cut.where
    else:
        assert graph.schema_text() == BEFORE, cut.where
    assert graph.schema_apply(STRICT, validated=True).applied is not made, cut.where
    with pytest.raises(ConstraintError):
        graph.mutate('query q() { insert A { name: "next", x: 5000000000, rank: 9 } }')
    graph.mutate('query q() { insert A { name: "next", x: 5000000000, rank: 8 } }')
    return made


def test_a_change_that_the_data_must_allow_is_cut_like_any_other(copies: Copies) -> None:
    requests = [
        check_strict(cut) for cut in at_every_request(copies, Fault.CRASH_AFTER, apply_what_the_data_must_allow)
    ]
    places = [place for place in Failpoint if place.startswith(("write.", "publish."))]
    steps = [check_strict(cut) for cut in at_every_failpoint(copies, apply_what_the_data_must_allow, places)]
    for made in (requests, steps):
        assert True in made
        assert False in made


@pytest.mark.parametrize("fault", [Fault.CRASH_AFTER, Fault.LOSE_ANSWER])
def test_an_apply_that_is_cut_at_a_request_is_there_whole_or_not_at_all(copies: Copies, fault: Fault) -> None:
    made = [check(cut) for cut in at_every_request(copies, fault, apply)]
    assert not made[0] or fault is Fault.LOSE_ANSWER
    assert made[-1]


def test_an_apply_that_dies_between_two_steps_is_there_whole_or_not_at_all(copies: Copies) -> None:
    places = [place for place in Failpoint if place.startswith(("write.", "publish."))]
    made = [check(cut) for cut in at_every_failpoint(copies, apply, places)]
    assert True in made
    assert False in made
