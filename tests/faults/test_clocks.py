"""Commit times against the store's own clock: what a clock that is ahead may do, and how a log is mended."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.operations import PERSON
from tests.support.s3_proxy import S3Proxy
from tests.support.s3_server import S3Server

from omnigraph import limits
from omnigraph.api.open import open as open_graph
from omnigraph.branch import branches, tags
from omnigraph.branch.clock_repair import repair_clock
from omnigraph.branch.find_entry import entry_at, of_commit
from omnigraph.branch.lineage import commits
from omnigraph.branch.point import Point
from omnigraph.clock import SystemClock
from omnigraph.errors import ClockError
from omnigraph.model.commit import MAIN, Record
from omnigraph.model.times import correct_time, keep_since
from omnigraph.storage.instants import EPOCH
from omnigraph.storage.object_stores import S3Store
from omnigraph.storage.object_stores.local import LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.invariants import check_graph
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.root import init, open_root
from omnigraph.transaction.write import write

TEN_YEARS_S = 3_650 * 86_400.0
SETTINGS = Settings(durability="process")
_SECOND_US = 1_000_000


@pytest.fixture
def parts(folder: Path) -> GraphContext:
    """A graph with one commit, and a clock that is right."""
    made = op.new_graph(LocalStore(folder / "graph", durability="process"), settings=SETTINGS, clock=SystemClock())
    write(made, MAIN, op.insert(PERSON, {"ada": 36}))
    return made


def at(instant_us: int) -> datetime:
    return EPOCH + timedelta(microseconds=instant_us)


def ahead_by(parts: GraphContext, seconds: float) -> GraphContext:
    """The same graph on a host whose clock is ahead."""
    clock = ManualClock(SystemClock().now_us() + int(seconds * _SECOND_US))
    return open_root(parts.store, settings=parts.settings, clock=clock)


def poisoned(parts: GraphContext, rows: int = 1, *, branch: str = MAIN, seconds: float = TEN_YEARS_S) -> list[Record]:
    """Commits as a release made them that did not ask the store for its time."""
    host = ahead_by(parts, seconds)
    made = []
    for number in range(rows):
        host.log.store_clock.learn(host.clock.now_us())
        made.append(write(host, branch, op.upsert(PERSON, {f"late{number}": number})).entry)
    return [entry for entry in made if entry is not None]


@pytest.mark.parametrize(
    "act",
    [
        lambda host: write(host, MAIN, op.insert(PERSON, {"x": 1})),
        lambda host: write(host, MAIN, op.noted(op.insert(PERSON, {"x": 1}))),
        lambda host: branches.create(host, "side"),
        lambda host: prune(host, MAIN, Policy(keep=1)),
        lambda host: tags.create(host, "now", host.log.live_head(MAIN)),
        repair_clock,
    ],
    ids=["insert", "write with an intent", "branch", "prune", "tag", "repair"],
)
def test_a_clock_that_is_ahead_writes_nothing_and_is_told_both_times(
    parts: GraphContext, act: Callable[[GraphContext], object]
) -> None:
    write(parts, MAIN, op.insert(PERSON, {"alan": 41}))
    if act is repair_clock:
        poisoned(parts)
    before = parts.log.live_head(MAIN)
    host = ahead_by(parts, limits.COMMIT_TIME_AHEAD_S_MAX + 60)

    with pytest.raises(ClockError) as refused:
        act(host)

    assert refused.value.code == "clock_ahead"
    told = refused.value.details
    assert told["commit_time_us"] - told["store_time_us"] > limits.COMMIT_TIME_AHEAD_S_MAX * _SECOND_US
    assert "Set the clock of this machine" in refused.value.message
    assert parts.log.live_head(MAIN).commit == before.commit
    assert branches.names(parts) == [MAIN]
    assert tags.names(parts) == []
    assert not list(parts.intents.listed())
    if act is not repair_clock:
        write(parts, MAIN, op.insert(PERSON, {"next": 1}))
        check_graph(parts)


def test_a_graph_is_not_made_by_a_clock_that_is_ahead(folder: Path) -> None:
    ahead = ManualClock(SystemClock().now_us() + int(TEN_YEARS_S * _SECOND_US))

    with pytest.raises(ClockError):
        init(LocalStore(folder / "new"), {PERSON: op.COLUMNS}, clock=ahead)


@pytest.mark.s3
def test_on_an_object_store_its_clock_counts_and_small_writes_ask_for_nothing_more(
    s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str
) -> None:
    made = op.new_graph(S3Store("omnigraph-tests", s3_prefix, options=s3_server.options), clock=SystemClock())
    write(made, MAIN, op.insert(PERSON, {"ada": 36}))
    with pytest.raises(ClockError):
        write(ahead_by(made, TEN_YEARS_S), MAIN, op.insert(PERSON, {"x": 1}))
    graph = open_root(S3Store("omnigraph-tests", s3_prefix, options=s3_proxy.options))
    s3_proxy.reset()

    write(graph, MAIN, op.append(PERSON, {"alan": 41}))

    assert s3_proxy.counts()["LIST", "other"] == 1  # interrupted writes
    assert poisoned(made)
    assert [each.branch for each in repair_clock(graph)] == [MAIN]
    write(graph, MAIN, op.append(PERSON, {"emmy": 1}))
    check_graph(graph)


def test_a_clock_within_the_limit_writes(parts: GraphContext) -> None:
    host = ahead_by(parts, limits.COMMIT_TIME_AHEAD_S_MAX - 60)

    write(host, MAIN, op.insert(PERSON, {"x": 1}))
    write(parts, MAIN, op.insert(PERSON, {"y": 1}))

    check_graph(parts)


def test_a_host_that_was_suspended_asks_the_store_again_and_writes(parts: GraphContext) -> None:
    clock = ManualClock(SystemClock().now_us() - 3_600 * _SECOND_US)
    host = open_root(parts.store, settings=SETTINGS, clock=clock)
    host.log.store_clock.learn(clock.now_us())  # an hour ago
    clock.set_back(-3_590)  # the monotonic clock has stood still

    write(host, MAIN, op.insert(PERSON, {"x": 1}))

    check_graph(parts)


def test_a_log_with_a_commit_from_the_future_is_mended(parts: GraphContext) -> None:
    old = parts.log.live_head(MAIN)
    bad = poisoned(parts, 3)
    with pytest.raises(ClockError, match="repair --clock"):
        write(parts, MAIN, op.insert(PERSON, {"refused": 1}))

    [mended] = repair_clock(parts)

    assert mended.numbers == tuple(entry.number for entry in bad)
    assert mended.ahead_s == pytest.approx(TEN_YEARS_S, abs=60)
    assert repair_clock(parts) == []
    write(parts, MAIN, op.insert(PERSON, {"after": 1}))
    for handle in (parts, open_root(parts.store, settings=SETTINGS, read_only=True)):
        now_us = handle.clock.now_us()
        times = [entry.created_at_us for entry in handle.log.between(MAIN, 1, handle.log.live_head(MAIN).number)]
        assert times == sorted(times)
        assert times[-1] <= now_us
        assert entry_at(handle, Point(at=at(now_us))).commit == handle.log.live_head(MAIN).commit
        assert entry_at(handle, Point(at=at(old.created_at_us))).commit == old.commit
        assert [of_commit(handle, entry.commit).commit for entry in bad] == [entry.commit for entry in bad]
        assert len(list(commits(handle, handle.log.live_head(MAIN)))) == 6
    check_graph(parts)


def test_times_are_mended_for_a_reader_that_names_a_commit_and_nothing_else(parts: GraphContext) -> None:
    [bad] = poisoned(parts)
    repair_clock(parts)
    tags.create(parts, "bad", bad)

    fresh = open_root(parts.store, settings=SETTINGS, read_only=True)
    fresh.log.forget(MAIN)

    assert entry_at(fresh, Point(tag="bad")).created_at_us <= fresh.clock.now_us()


def test_age_pruning_and_protection_windows_work_after_a_repair(parts: GraphContext) -> None:
    host = ahead_by(parts, TEN_YEARS_S)
    for number in range(4):
        host.log.store_clock.learn(host.clock.now_us())
        write(host, MAIN, op.insert(PERSON, {f"late{number}": number}), WriteOptions(prune_previous=True))
    repair_clock(parts)
    eager = replace(parts, settings=replace(SETTINGS, protection_s=0.0))
    write(eager, MAIN, op.insert(PERSON, {"a": 1}))
    write(eager, MAIN, op.insert(PERSON, {"b": 1}))

    pruned = prune(eager, MAIN, Policy(older_than_s=0.0))

    head = parts.log.live_head(MAIN)
    assert pruned.after.floor > 6
    assert all(at_us <= parts.clock.now_us() for _, at_us in head.pruned.ages)


def test_a_branch_that_was_made_meanwhile_is_mended_too(parts: GraphContext) -> None:
    host = ahead_by(parts, TEN_YEARS_S)
    poisoned(parts)
    host.log.store_clock.learn(host.clock.now_us())
    branches.create(host, "side")
    poisoned(parts, branch="side", seconds=TEN_YEARS_S + 60)

    assert {each.branch for each in repair_clock(parts)} == {MAIN, "side"}

    write(parts, "side", op.insert(PERSON, {"y": 1}))
    head = parts.log.live_head("side")
    assert head.created_at_us <= parts.clock.now_us()
    assert entry_at(parts, Point(branch="side", at=at(parts.clock.now_us()))).commit == head.commit
    check_graph(parts)


def test_a_log_can_be_poisoned_and_mended_twice_and_folded_between(
    parts: GraphContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)
    monkeypatch.setattr(limits, "CORRECTED_TIMES_MAX", 3)
    poisoned(parts, 5)
    parts.log.fold(MAIN)
    repair_clock(parts)
    host = ahead_by(parts, TEN_YEARS_S)
    for number in range(4):
        host.log.store_clock.learn(host.clock.now_us())
        write(host, MAIN, op.insert(PERSON, {f"again{number}": number}))
    repair_clock(parts)
    parts.log.fold(MAIN)

    fresh = open_root(parts.store, settings=SETTINGS)
    head = write(fresh, MAIN, op.insert(PERSON, {"last": 1})).entry

    assert head is not None
    assert all(entry.created_at_us <= head.created_at_us for entry in fresh.log.between(MAIN, 1, head.number))
    assert len(head.times) <= 2 * (3 + 1)
    check_graph(fresh)


def test_verify_tells_of_a_log_that_no_write_goes_on_from(parts: GraphContext) -> None:
    poisoned(parts)
    graph = open_graph(parts.store)

    told = graph.verify().found.notes

    assert any("repair --clock" in note for note in told)
    assert [each.branch for each in graph.repair_clock()] == [MAIN]
    assert not any("repair --clock" in note for note in graph.verify().found.notes)


def test_a_corrected_time_counts_up_to_the_next_and_a_zero_ends_the_run() -> None:
    times = ((3, 30), (5, 50), (7, 0), (9, 90), (10, 0))

    assert [correct_time(times, number, -1) for number in range(1, 12)] == [-1, -1, 30, 30, 50, 50, -1, -1, 90, -1, -1]
    assert keep_since(times, 5) == times
    assert keep_since(times, 8) == ((3, 30), (7, 0), (9, 90), (10, 0))
    assert keep_since((), 8) == ()
