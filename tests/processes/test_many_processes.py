"""Many processes write one graph at once, and some are killed: what was acknowledged is there, once, and whole."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.operations import COMPANY, KNOWS, PERSON
from tests.support.s3_server import S3Server
from tests.support.workers import ACCOUNTS, COUNTER, OPENING_BALANCE, Order, Work, crew, prepare

from omnigraph.branch import branches
from omnigraph.model.commit import MAIN, Record
from omnigraph.storage import paths
from omnigraph.storage.object_stores.s3 import S3Options, S3Store
from omnigraph.testing.invariants import check_graph, entries
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import open_root

SIDE = "side"


@dataclass(frozen=True, slots=True)
class Plan:
    """How many do how much.

    Attributes:
        commits: of each worker.
        kills: how many workers are killed and replaced, one after the other.
        crews: how often each kind of worker is there.
        kinds: how many kinds of workers there are.
    """

    commits: int
    kills: int
    crews: int = 1
    kinds: int = 6

    def orders(self, uri: str, folder: Path) -> list[Order]:
        kinds = [
            ("counts", Work.COUNTS, MAIN, False),
            ("keyed-counts", Work.COUNTS, MAIN, True),
            ("inserts", Work.INSERTS, MAIN, False),
            ("side-inserts", Work.INSERTS, SIDE, True),
            ("transfers", Work.TRANSFERS, MAIN, False),
            ("more-transfers", Work.TRANSFERS, MAIN, False),
        ]
        return [
            Order(
                uri,
                f"{name}-{crew}",
                work,
                branch,
                self.commits,
                ledger=str(folder / f"{name}-{crew}.ledger"),
                start=str(folder / "start"),
                keyed=keyed,
            )
            for crew in range(self.crews)
            for name, work, branch, keyed in kinds[: self.kinds]
        ]


def carried_out(plan: Plan, parts: GraphContext, folder: Path, *, s3: S3Options | None = None) -> list[Order]:
    """Prepare the graph and let the whole crew work on it, killing some of them on the way."""
    prepare(parts)
    branches.create(parts, SIDE)
    orders = plan.orders(parts.store.uri, folder)
    with crew(orders, folder, s3=s3) as running:
        for number in range(plan.kills):
            # Each victim has done a different share of its work; where in the next commit it is hit is left to chance.
            victim = orders[number * 5 % len(orders)]
            share = 1 + number * plan.commits // max(plan.kills, 1)
            if running.wait_until(victim.name, commits=min(share, plan.commits - 1)):
                running.kill(victim.name)
        running.finish()
    return orders


def check(parts: GraphContext, orders: Sequence[Order]) -> None:
    """Everything that was promised to the workers."""
    left = [listed.path for listed in parts.store.list(paths.RECOVERY)]
    assert left == [], "one open ends every interrupted write"
    for branch in (MAIN, SIDE):
        log = entries(parts, branch)
        here = [order for order in orders if order.branch == branch]
        check_acknowledged(log, here)
        check_rows(parts, log, here)
        check_counter(parts, log, here)
        check_accounts(parts, log)
    check_graph(parts)


def check_acknowledged(log: Sequence[Record], orders: Sequence[Order]) -> None:
    """What was acknowledged is in the log, once; a keyed request is there once whatever was acknowledged."""
    messages = {entry.commit: entry.message for entry in log}
    times = Counter(entry.message for entry in log)
    for order in orders:
        acknowledged = order.acknowledged()
        assert [token for token, _ in acknowledged] == [order.token(each + 1) for each in range(order.commits)]
        assert [messages.get(commit) for _, commit in acknowledged] == [token for token, _ in acknowledged]
        if order.keyed or order.work is Work.INSERTS:
            assert {times[token] for token, _ in acknowledged} == {1}


def landed(log: Sequence[Record], orders: Sequence[Order], work: Work) -> list[str]:
    """The tokens of a kind of work that are in the log, in its order, acknowledged or not."""
    names = {order.name for order in orders if order.work is work}
    return [entry.message for entry in log if entry.message and entry.message.rpartition("/")[0] in names]


def check_rows(parts: GraphContext, log: Sequence[Record], orders: Sequence[Order]) -> None:
    tokens = landed(log, orders, Work.INSERTS)
    number = {token: int(token.rpartition("/")[2]) for token in tokens}
    assert len(number) == len(tokens)
    for entry, expected in ((log[-1], number), *((entry, None) for entry in log[:: max(len(log) // 7, 1)])):
        people, companies = op.rows_at(parts, PERSON, entry), op.rows_at(parts, COMPANY, entry)
        assert expected is None or people == expected
        assert companies == {token: each for token, each in people.items() if each and each % 2 == 0}, "half a commit"


def check_counter(parts: GraphContext, log: Sequence[Record], orders: Sequence[Order]) -> None:
    counted = 0
    tokens = landed(log, orders, Work.COUNTS)
    for entry in log:
        if entry.message in tokens:
            counted += 1
            assert op.rows_at(parts, KNOWS, entry)[COUNTER] == counted, "an increment was lost or counted twice"
    assert op.rows_at(parts, KNOWS, log[-1])[COUNTER] == len(tokens)


def check_accounts(parts: GraphContext, log: Sequence[Record]) -> None:
    for entry in log[2 :: max(len(log) // 11, 1)]:
        rows = op.rows_at(parts, KNOWS, entry)
        assert sum(rows[account] or 0 for account in ACCOUNTS) == OPENING_BALANCE * len(ACCOUNTS), "money was made"


PLANS = [
    pytest.param(Plan(commits=12, kills=2), id="six-processes"),
    pytest.param(Plan(commits=200, kills=40, crews=2), id="twelve-processes-for-long", marks=pytest.mark.torture),
]


@pytest.mark.parametrize("plan", PLANS)
def test_every_acknowledged_commit_of_many_processes_is_there_once_on_local_disk(plan: Plan, tmp_path: Path) -> None:
    root = str(tmp_path / "graph")

    orders = carried_out(plan, op.new_graph(root), tmp_path)

    check(open_root(root), orders)


@pytest.mark.s3
@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(Plan(commits=6, kills=1, kinds=4), id="four-processes"),
        pytest.param(Plan(commits=60, kills=20), id="six-processes-for-long", marks=pytest.mark.torture),
    ],
)
def test_every_acknowledged_commit_of_many_processes_is_there_once_on_s3(
    plan: Plan, tmp_path: Path, s3_server: S3Server, s3_store: S3Store
) -> None:
    orders = carried_out(plan, op.new_graph(s3_store), tmp_path, s3=s3_server.options)

    check(open_root(s3_store), orders)
