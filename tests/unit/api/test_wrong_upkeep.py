"""Arguments of upkeep that mean nothing are refused in words, before anything is pruned, swept or looked at."""

import math
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, InvalidRequestError, Maintenance, NotFoundError, OpenOptions

NO_AGES: tuple[Any, ...] = ("x", -1, math.nan, math.inf, [], True, timedelta(seconds=-1))
NO_FLAGS: tuple[Any, ...] = ("false", 0, None)
WRONG: dict[str, dict[str, tuple[Any, ...]]] = {
    "lease": {"seconds": (*NO_AGES, None, 0, 10**12), "branch": (7, ""), "commit": (7,), "tag": (7,)},
    "prune": {
        "keep": (-1, "x", 1.5, True, [], math.nan),
        "older_than": NO_AGES,
        "branch": (7, ""),
        "commits": ("abc", [7], 7, None, [None]),
        "now": NO_FLAGS,
        "dry_run": NO_FLAGS,
        "actor": (7,),
    },
    "sweep": {"older_than": NO_AGES, "dry_run": NO_FLAGS, "engine": ("x", 7, None)},
    "cleanup": {"keep": (-1, "x", 1.5), "older_than": NO_AGES, "confirm": NO_FLAGS, "actor": (7,)},
    "optimize": {
        "branch": (7, None),
        "types": ("Person", [7], 7),
        "engine": (7, "x"),
        "actor": (7,),
        "message": (7,),
    },
    "verify": {"branch": (7, ""), "deep": NO_FLAGS, "quarantine": NO_FLAGS},
    "maintain": {"every": (*NO_AGES, None, 0), "policy": (7, {"keep": 1}, None), "stop": (7, "x")},
    "maintain_once": {"policy": (7, {"keep": 1}, None)},
}
# Without these, something else would be wrong, too.
NEEDED: dict[str, dict[str, Any]] = {"prune": {"keep": 1}, "cleanup": {"keep": 1}}
NO_POLICIES: dict[str, tuple[Any, ...]] = {
    "optimize": NO_FLAGS,
    "keep": (-1, "x", 1.5),
    "older_than": NO_AGES,
    "now": NO_FLAGS,
    "sweep": NO_FLAGS,
    "sweep_older_than": NO_AGES,
    "verify": NO_FLAGS,
    "verify_reads_max": (0, -1, "x", 1.5),
    "seconds_max": NO_AGES[:-1],
    "bytes_max": (-1, "x", 1.5),
}


@pytest.fixture
def graph() -> Iterator[Graph]:
    options = OpenOptions(durability="process", protection_s=0)
    with omnigraph.init("memory://", "node Person { name: String @key }", options=options) as made:
        for name in ("ada", "bob"):
            made.write({"Person": [{"name": name}]})
        yield made


def lease(graph: Graph, **said: Any) -> None:  # noqa: ANN401  (of any kind, that is the point)
    with graph.lease(**said):
        raise AssertionError("there is no such lease")


def maintain(graph: Graph, **said: Any) -> None:  # noqa: ANN401  (of any kind, that is the point)
    next(iter(graph.maintain(**said)))


ACTS: dict[str, Callable[..., object]] = {"lease": lease, "maintain": maintain}


@pytest.mark.parametrize(("act", "argument"), [(act, argument) for act, known in WRONG.items() for argument in known])
def test_what_means_nothing_is_refused_before_anything_is_done(act: str, argument: str, graph: Graph) -> None:
    before = {listed.path for listed in graph._open().store.list("")}
    for value in WRONG[act][argument]:
        said = NEEDED.get(act, {}) | {argument: value}
        with pytest.raises(InvalidRequestError) as refused:
            ACTS[act](graph, **said) if act in ACTS else getattr(graph, act)(**said)
        assert refused.value.message, value
    assert {listed.path for listed in graph._open().store.list("")} == before


@pytest.mark.parametrize("member", NO_POLICIES)
def test_a_policy_that_means_nothing_cannot_be_made(member: str) -> None:
    for value in NO_POLICIES[member]:
        with pytest.raises(InvalidRequestError):
            Maintenance(**{member: value})


def test_names_of_what_is_not_there_are_told_as_such(graph: Graph) -> None:
    for act in (
        lambda: graph.prune("nowhere", keep=1),
        lambda: graph.prune(commits=["nothing"]),
        lambda: graph.optimize("nowhere"),
        lambda: graph.optimize(types=["Nobody"]),
        lambda: graph.verify(branch="nowhere"),
    ):
        with pytest.raises(NotFoundError):
            act()
