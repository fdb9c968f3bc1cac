"""Writers in processes of their own, which may be killed at any moment: `python -m tests.support.workers <order>`.

A worker makes commits one after the other. Each has a token, in its message, that says who made it and as which of how
many; a commit that was acknowledged is written to the worker's ledger after the call has returned. A worker that takes
the place of a dead one reads the ledger and goes on behind its last line. Before each commit a worker looks into
everybody's ledgers: what was acknowledged to any of them it must see.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from zlib import crc32

from tests.support import operations as op
from tests.support.interleaving import REPOSITORY
from tests.support.operations import COMPANY, KNOWS, PERSON

from omnigraph.clock import SystemClock
from omnigraph.errors import ConflictError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.storage.object_stores.s3 import S3Options
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import IntentPolicy, Operation, Receipt, write
from omnigraph.transaction.write_set import WriteSet

COUNTER = "counter"
ACCOUNTS = tuple(f"account-{number}" for number in range(6))
OPENING_BALANCE = 100
_TRIES_MAX = 200
_POLL_S = 0.005
_NEWS_EVERY = 4
_NEWS_S = 0.3
_NOTED_EVERY = 3


class Work(StrEnum):
    """What a worker does."""

    INSERTS = "inserts"
    """A row of its own per commit, in one type that all share; every other commit in two types."""
    COUNTS = "counts"
    """One more on one counter that all share; the operation may be run again."""
    TRANSFERS = "transfers"
    """A unit from one account to another; what both hold is read, so a lost race is refused and tried again."""


@dataclass(frozen=True, slots=True)
class Order:
    """What one worker is to do.

    Attributes:
        uri: the graph.
        name: the worker's, unique in the graph.
        work: what it does.
        branch: where.
        commits: how many it makes.
        ledger: file of the acknowledged ones.
        start: file whose appearance says that all are ready; those that start early wait for it.
        keyed: whether each request carries its token as idempotency key, too.
    """

    uri: str
    name: str
    work: Work
    branch: str
    commits: int
    ledger: str
    start: str
    keyed: bool = False

    @property
    def ready(self) -> Path:
        """The file by which the worker says that it waits for the start."""
        return Path(f"{self.ledger}.ready")

    def acknowledged(self) -> list[tuple[str, str]]:
        """Token and commit of every acknowledged request, in order; a line cut short by death is none."""
        try:
            lines = Path(self.ledger).read_text(encoding="ascii").split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [(token, commit) for token, commit, _, _ in (line.split() for line in lines)]

    def line(self, number: int, entry: Record) -> bytes:
        """What the ledger says of an acknowledged request.

        Args:
            number (int): of the request.
            entry (Record): the commit it made.

        Returns:
            bytes: one line.
        """
        return f"{self.token(number)} {entry.commit} {entry.branch} {entry.number}\n".encode("ascii")

    def acknowledged_to_anybody(self) -> int:
        """The highest entry of the branch that any worker of the crew was told of; 0 where there is none yet."""
        ledgers = Path(self.ledger).parent.glob("*.ledger")
        lines = (line.split() for each in ledgers for line in each.read_text(encoding="ascii").split("\n")[:-1])
        return max((int(number) for _, _, branch, number in lines if branch == self.branch), default=0)

    def token(self, number: int) -> str:
        """What the request of this number says it is."""
        return f"{self.name}/{number}"


def prepare(parts: GraphContext) -> None:
    """What the workers start from.

    Args:
        parts (GraphContext): of a fresh graph.
    """
    write(parts, "main", op.upsert_many({KNOWS: {COUNTER: 0} | dict.fromkeys(ACCOUNTS, OPENING_BALANCE)}))


def operation(order: Order, number: int) -> Operation:
    """The `number`-th commit of a worker.

    Args:
        order (Order): the worker's.
        number (int): from 1.

    Returns:
        Operation: every third is made under an intent.
    """
    token = order.token(number)
    match order.work:
        case Work.INSERTS:
            made = op.insert(PERSON, {token: number})
            if number % 2 == 0:
                made = op.both(made, op.insert(COMPANY, {token: number}))
        case Work.COUNTS:
            made = Operation(CommitKind.MUTATION, frozenset({KNOWS}), _count_one_more, redoable=True)
        case Work.TRANSFERS:
            made = _transfer(token)
    return replace(made, intent=IntentPolicy.BY_SIZE if number % _NOTED_EVERY else IntentPolicy.ALWAYS)


def _count_one_more(staging: WriteSet) -> None:
    [row] = staging.rows(KNOWS, [COUNTER]).to_pylist()
    staging.upsert(KNOWS, op.table_of({COUNTER: int(row["v"]) + 1}))


def _transfer(token: str) -> Operation:
    chosen = crc32(token.encode())
    giver = ACCOUNTS[chosen % len(ACCOUNTS)]
    taker = ACCOUNTS[(chosen + 1 + chosen // 7 % (len(ACCOUNTS) - 1)) % len(ACCOUNTS)]

    def run(staging: WriteSet) -> None:
        rows = staging.rows(KNOWS, [giver, taker]).to_pylist()
        held = {str(row["id"]): int(row["v"]) for row in rows}
        staging.upsert(KNOWS, op.table_of({giver: held[giver] - 1, taker: held[taker] + 1}))

    return Operation(CommitKind.MUTATION, frozenset({KNOWS}), run, redoable=False)


def work(order: Order) -> None:
    """Carry out an order, from where its ledger ends.

    Args:
        order (Order): the worker's.
    """
    parts = open_root(order.uri)
    done = len(order.acknowledged())
    order.ready.touch()
    while not Path(order.start).exists():
        parts.clock.sleep(_POLL_S)
    with Path(order.ledger).open("ab", buffering=0) as ledger:
        for number in range(done + 1, order.commits + 1):
            told = _told(parts, order, number)
            seen = parts.log.live_head(order.branch).number
            assert seen >= told, f"entry {told} was acknowledged in some process, and in this one the head is {seen}"
            ledger.write(order.line(number, _committed(parts, order, number)))


def _told(parts: GraphContext, order: Order, number: int) -> int:
    """The newest entry that was acknowledged to any worker; now and then one that another has made since we looked."""
    known = told = order.acknowledged_to_anybody()
    until = parts.clock.monotonic() + (_NEWS_S if number % _NEWS_EVERY == 0 else 0.0)
    while told == known and parts.clock.monotonic() < until:  # who is alone by now hears nothing
        parts.clock.sleep(_POLL_S)
        told = order.acknowledged_to_anybody()
    return told


def _committed(parts: GraphContext, order: Order, number: int) -> Record:
    """Make one commit, as often as it takes."""
    token = order.token(number)
    options = WriteOptions(actor=order.name, message=token, idempotency_key=token if order.keyed else None)
    for _ in range(_TRIES_MAX):
        try:
            receipt = write(parts, order.branch, operation(order, number), options)
        except ConflictError as refused:
            if refused.code == "key_conflict":
                return _landed_before(parts, order, token)
            continue
        return _entry_of(receipt)
    raise ConflictError(f"{token} was refused {_TRIES_MAX} times")


def _entry_of(receipt: Receipt) -> Record:
    assert receipt.entry is not None, "these writes always change something"
    return receipt.entry


def _landed_before(parts: GraphContext, order: Order, token: str) -> Record:
    """The commit by which the worker before us, killed before it could say so, made the row that is there."""
    for entry in parts.log.since(order.branch, 0):
        if entry.message == token:
            return entry
    raise AssertionError(f"the row of {token} is there and no commit made it")


class Crew:
    """Running workers."""

    def __init__(self, orders: Sequence[Order], environment: dict[str, str], folder: Path) -> None:
        self._orders = list(orders)
        self._environment = environment
        self._folder = folder
        self._clock = SystemClock()
        self._running = {order.name: self._started(order) for order in orders}

    def start(self) -> None:
        """Wait until all are ready, and let them go at once: otherwise the first is done before the last has begun."""
        for order in self._orders:
            while not order.ready.exists() and self._running[order.name].poll() is None:
                self._clock.sleep(_POLL_S)
        for order in self._orders:
            Path(order.start).touch()

    def kill(self, name: str) -> None:
        """Kill a worker as it is, and let another take its place.

        Args:
            name (str): the worker's.
        """
        process = self._running[name]
        process.send_signal(signal.SIGKILL)
        process.wait()
        self._running[name] = self._started(next(order for order in self._orders if order.name == name))

    def wait_until(self, name: str, *, commits: int) -> bool:
        """Wait until a worker has so many commits in its ledger.

        Args:
            name (str): the worker's.
            commits (int): how many.

        Returns:
            bool: False if it has ended; then there is nobody to kill.
        """
        order = next(order for order in self._orders if order.name == name)
        while len(order.acknowledged()) < commits:
            if self._running[name].poll() is not None:
                return False
            self._clock.sleep(_POLL_S)
        return self._running[name].poll() is None

    def finish(self) -> None:
        """Wait for all.

        Raises:
            AssertionError: one of them failed; it says what the worker said.
        """
        for name, process in self._running.items():
            code = process.wait()
            assert code == 0, f"{name} ended with {code}: {self._said(name).read_text(encoding='utf-8')}"

    def stop(self) -> None:
        """End those that still run."""
        for process in self._running.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def _started(self, order: Order) -> "subprocess.Popen[bytes]":
        with self._said(order.name).open("ab") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.support.workers", json.dumps(asdict(order))],
                env={**os.environ, **self._environment},
                stdout=said,
                stderr=said,
                cwd=REPOSITORY,
            )

    def _said(self, name: str) -> Path:
        return self._folder / f"{name}.said"


@contextmanager
def crew(orders: Sequence[Order], folder: Path, *, s3: S3Options | None = None) -> Iterator[Crew]:
    """Start a process per order; whoever still runs at the end of the block is killed.

    Args:
        orders (Sequence[Order]): what they do.
        folder (Path): where what they say is kept.
        s3 (S3Options | None): how they reach their bucket.

    Yields:
        Crew: at work already.
    """
    environment = {} if s3 is None else _environment(s3)
    with ExitStack() as stack:
        running = Crew(orders, environment, folder)
        stack.callback(running.stop)
        running.start()
        yield running


def _environment(s3: S3Options) -> dict[str, str]:
    """What the options say, as `S3Options.from_environment` reads it."""
    known = {
        "AWS_ENDPOINT_URL": s3.endpoint,
        "AWS_REGION": s3.region,
        "AWS_ACCESS_KEY_ID": s3.access_key_id,
        "AWS_SECRET_ACCESS_KEY": s3.secret_access_key,
        "AWS_ALLOW_HTTP": str(s3.allow_http).lower(),
    }
    return {name: value for name, value in known.items() if value is not None}


def main(text: str) -> None:
    """Carry out an order that was passed as JSON.

    Args:
        text (str): the order.
    """
    members = json.loads(text)
    work(Order(**{**members, "work": Work(members["work"])}))


if __name__ == "__main__":
    main(sys.argv[1])
