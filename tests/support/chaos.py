"""Everything at once, in processes of their own.

Some have a number of things to do and write down what was acknowledged; the others go on until those are done. All of
them meet whoever prunes and sweeps without any patience: no window, no grace.
"""

import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from omnigraph.api.graph import Graph
from omnigraph.api.schemas import Schemas
from omnigraph.api.snapshot import Snapshot
from omnigraph.clock import SystemClock
from omnigraph.errors import ConflictError, GraphError, OutcomeUnknownError, ReclaimedError
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.root import open_root

SCHEMA = """
node Person { name: String @key  age: I32? }
node Company { name: String @key }
"""
SETTINGS = Settings(protection_s=0, log_cut_s=0, intent_rows_min=50, auto_compact=False)
_NAMES = {
    type_name: f"query names() {{ match {{ $n: {type_name} }} return {{ $n.name as name }} }}"
    for type_name in ("Person", "Company")
}
_TRIES_MAX = 200
_POLL_S = 0.01
_LOADED_ROWS = 60
_STREAMED_ROWS = 3
_DELIVERIES = 2


class Role(StrEnum):
    """What a process does."""

    WRITES = "writes"
    """A row in each of two types per commit; every third commit prunes what came before."""
    LOADS = "loads"
    """Many rows per commit, under an intent."""
    STREAMS = "streams"
    """Batches of a stream, each under a key of its own, and each delivered twice, as after a crash."""
    SPARK = "spark"
    """Batches of a stream on Spark, and between them loads on Spark."""
    BRANCHES = "branches"
    """Makes a branch, writes there, merges it back and deletes it."""
    TAGS = "tags"
    """Names the newest commit, reads it through its name and takes the name back."""
    READS = "reads"
    """Reads the newest state; every third time under a lease, which must never fail."""
    OPTIMIZES = "optimizes"
    """Compacts and indexes."""
    SWEEPS = "sweeps"
    """Prunes all but the newest commits and sweeps everything."""

    @property
    def is_endless(self) -> bool:
        """Whether it goes on until the others are done."""
        return self in (Role.READS, Role.OPTIMIZES, Role.SWEEPS, Role.TAGS)


@dataclass(frozen=True, slots=True)
class Order:
    """What one process is to do.

    Attributes:
        uri: the graph.
        name: the process's, unique in the graph.
        role: what it does.
        times: how often, if it is not endless.
        folder: where ledgers are, and the file that ends the endless.
    """

    uri: str
    name: str
    role: Role
    times: int
    folder: str

    @property
    def ledger(self) -> Path:
        """The file of what was acknowledged or done, a line each."""
        return Path(self.folder) / f"{self.name}.ledger"

    @property
    def said(self) -> Path:
        """The file of what it said on its way."""
        return Path(self.folder) / f"{self.name}.said"

    def done(self) -> list[str]:
        """The lines of the ledger; one cut short by death is none."""
        return self.ledger.read_text(encoding="ascii").split("\n")[:-1] if self.ledger.exists() else []

    @property
    def ready(self) -> Path:
        """The file by which it says that it waits for the start."""
        return Path(self.folder) / f"{self.name}.ready"

    def start(self) -> ForkServerProcess:
        """Start the process. What takes long, the import of everything, is done once for all of them."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        process = context.Process(target=_run, args=(self,), name=self.name)
        process.start()
        return process


def start_file(folder: str | Path) -> Path:
    """The file whose appearance says that all are ready."""
    return Path(folder) / "start"


def stop_file(folder: str | Path) -> Path:
    """The file that ends the endless."""
    return Path(folder) / "stop"


def _run(order: Order) -> None:
    with order.said.open("ab") as said:
        for descriptor in (1, 2):
            os.dup2(said.fileno(), descriptor)
    work(order)


def opened(uri: str) -> Graph:
    """A graph with no patience."""
    parts = open_root(uri, settings=SETTINGS)
    return Graph(parts, Schemas(parts))


def names_in(snapshot: Snapshot) -> set[str]:
    """Everybody in a state; both types hold the same names, or a commit was seen in part.

    Raises:
        AssertionError: they do not.
    """
    found = {}
    for type_name, query in _NAMES.items():
        rows = [str(row["name"]) for row in snapshot.query(query)]
        assert len(rows) == len(set(rows)), f"{type_name} holds a name twice at {snapshot.number}"
        found[type_name] = set(rows)
    assert found["Person"] == found["Company"], f"half a commit at {snapshot.branch} {snapshot.number}"
    return found["Person"]


def work(order: Order) -> None:
    """Carry out an order; what is in the ledger already is not done again."""
    acts: dict[Role, Callable[[Graph, Order, int], str]] = {
        Role.WRITES: _write,
        Role.LOADS: _load,
        Role.STREAMS: _stream,
        Role.SPARK: _on_spark,
        Role.BRANCHES: _branch,
        Role.TAGS: _tag,
        Role.READS: _read,
        Role.OPTIMIZES: _optimize,
        Role.SWEEPS: _sweep,
    }
    clock = SystemClock()
    with opened(order.uri) as graph, order.ledger.open("ab", buffering=0) as ledger:
        number = len(order.done())
        if order.role is Role.SPARK:
            _start_spark(graph)  # takes its time, and the others shall not be done by then
        order.ready.touch()
        while not start_file(order.folder).exists():
            clock.sleep(_POLL_S)
        while not (stop_file(order.folder).exists() and number) if order.role.is_endless else number < order.times:
            ledger.write(f"{acts[order.role](graph, order, number)}\n".encode("ascii"))
            number += 1
            clock.sleep(_POLL_S)


def _rows(names: list[str]) -> dict[str, object]:
    return {"Person": [{"name": name, "age": 1} for name in names], "Company": [{"name": name} for name in names]}


def _landed(graph: Graph, names: list[str], *, branch: str = "main", prune_previous: bool = False) -> None:
    """Write names, as often as it takes; the one before us may have been killed before it could say that it had."""
    for _ in range(_TRIES_MAX):
        try:
            graph.write(_rows(names), branch=branch, prune_previous=prune_previous)
        except ConflictError as refused:
            if refused.code == "key_conflict":
                return
        except OutcomeUnknownError:
            continue
        else:
            return
    raise AssertionError(f"{names[0]} was refused {_TRIES_MAX} times")


def _write(graph: Graph, order: Order, number: int) -> str:
    name = f"{order.name}-{number}"
    _landed(graph, [name], prune_previous=number % 3 == 0)
    return name


def _load(graph: Graph, order: Order, number: int) -> str:
    names = [f"{order.name}-{number}-{each}" for each in range(_LOADED_ROWS)]
    _landed(graph, names)
    return " ".join(names)


def _lines(names: list[str]) -> bytes:
    """Names as a file of a load: whoever holds both types holds each name in both."""
    records = [{"type": kind, "data": {"name": name}} for name in names for kind in ("Person", "Company")]
    return "".join(f"{json.dumps(record)}\n" for record in records).encode("ascii")


def _stream(graph: Graph, order: Order, number: int) -> str:
    names = [f"{order.name}-{number}-{each}" for each in range(_STREAMED_ROWS)]
    key = f"stream:{order.name}:{number}"
    delivered = 0
    for _ in range(_TRIES_MAX):
        try:
            done = graph.load(_lines(names), mode="append", format="jsonl", engine="local", idempotency_key=key)
        except OutcomeUnknownError:
            continue
        except ConflictError as refused:
            assert refused.code != "key_conflict", f"{key} was carried out twice"
        else:
            assert done.replayed or not delivered, f"{key} was carried out twice"
            delivered += 1
            if delivered == _DELIVERIES:
                return " ".join(names)
    raise AssertionError(f"{key} was refused {_TRIES_MAX} times")


def _start_spark(graph: Graph) -> None:
    # Imported here: only who has this role needs Spark, and its package takes its time.
    from omnigraph.pipeline.settings import SparkSettings

    conf = (("spark.sql.shuffle.partitions", "1"), ("spark.default.parallelism", "1"))
    graph.spark.session(SparkSettings(master="local[1]", driver_memory="512m", conf=conf))


def _on_spark(graph: Graph, order: Order, number: int) -> str:
    names = [f"{order.name}-{number}-{each}" for each in range(_LOADED_ROWS)]
    inbox = Path(order.folder) / f"{order.name}.inbox"
    inbox.mkdir(exist_ok=True)
    under_way = inbox.with_suffix(".jsonl")
    under_way.write_bytes(_lines(names))
    if number % 2:
        return _loaded_on_spark(graph, under_way, names)
    file = under_way.rename(inbox / f"{number}.jsonl")
    checkpoint = inbox.with_suffix(".checkpoint")
    for _ in range(_TRIES_MAX):
        query = graph.spark.stream(
            inbox,
            stream_id=checkpoint.name,
            checkpoint=checkpoint,
            mode="append",
            available_now=True,
            files_per_batch=1,
        )
        with suppress(Exception):  # Spark's own words for whatever stopped the batch: it comes again, under its key
            query.awaitTermination()
        if set(names) <= names_in(graph.snapshot()):
            file.unlink()
            return " ".join(names)
    raise AssertionError(f"{names[0]} never came through the stream: {query.exception()}")


def _loaded_on_spark(graph: Graph, file: Path, names: list[str]) -> str:
    for _ in range(_TRIES_MAX):
        try:
            graph.load(file, mode="append", engine="spark")
        except (ConflictError, OutcomeUnknownError, ReclaimedError) as refused:
            if refused.code == "key_conflict":
                return " ".join(names)
        else:
            return " ".join(names)
    raise AssertionError(f"{names[0]} was refused {_TRIES_MAX} times")


def _branch(graph: Graph, order: Order, number: int) -> str:
    name = f"{order.name}-{number}"
    for attempt in range(_TRIES_MAX):
        side = f"{name}-try-{attempt}-{os.getpid()}"
        try:
            graph.branches.create(side)
        except (ReclaimedError, ConflictError):
            continue  # its source moved on under it, and it said so
        known = names_in(graph.snapshot(branch=side))
        if name in known:
            return name
        _landed(graph, [name], branch=side)
        assert names_in(graph.snapshot(branch=side)) == known | {name}
        try:
            graph.merge(side, delete_branch=True)
        except (ConflictError, ReclaimedError, OutcomeUnknownError):
            graph.branches.delete(side)
            continue
        return name
    raise AssertionError(f"{name} could not be merged")


def _tag(graph: Graph, order: Order, number: int) -> str:
    name = f"{order.name}-{number}-{os.getpid()}"
    try:
        tagged = graph.tags.create(name)
    except (ReclaimedError, ConflictError):
        return "overtaken"
    SystemClock().sleep(_POLL_S)
    snapshot = graph.snapshot(tag=name)
    assert snapshot.commit == tagged.commit
    names_in(snapshot)
    graph.tags.delete(name)
    return "read"


def _read(graph: Graph, _order: Order, number: int) -> str:
    leased = number % 3 == 0
    try:
        with graph.lease(seconds=30) if leased else nullcontext(graph.snapshot()) as snapshot:
            try:
                names_in(snapshot)
            except ReclaimedError:
                assert not leased, "a lease did not hold"
                return "overtaken"
    except ReclaimedError:
        return "overtaken"  # before the lease was there, and told so
    return "leased" if leased else "read"


def _optimize(graph: Graph, _order: Order, _number: int) -> str:
    try:
        graph.optimize()
    except ConflictError:
        return "overtaken"
    return "done"


def _sweep(graph: Graph, _order: Order, number: int) -> str:
    try:
        if number % 2:
            graph.prune(now=True)
        else:
            graph.prune(keep=2)
    except (ConflictError, GraphError) as refused:
        # A branch may be gone by the time it is to be pruned, or too busy.
        assert refused.code in ("too_busy", "branch_not_found"), refused
    try:
        report = graph.sweep(older_than=0)
    except ConflictError:
        return "0"
    assert not report.swept.errors, report.swept.errors
    return str(report.deleted_files)


def tallied(order: Order) -> Counter[str]:
    """How often each line is in a ledger."""
    return Counter(order.done())
