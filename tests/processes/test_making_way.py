"""A write that rests on whole types, beside another process that never stops writing rows of one of them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.operations import COMPANY, PERSON, insert, new_graph, rows_of

from omnigraph import limits
from omnigraph.clock import SystemClock
from omnigraph.model.commit import MAIN
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet

_RESTLESS = """
import sys
from pathlib import Path
from tests.support.operations import insert
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

uri, type_key, ledger, stop = sys.argv[1:]
parts = open_root(uri)
number = 0
with open(ledger, "ab", buffering=0) as done:
    while not Path(stop).exists():
        write(parts, "main", insert(type_key, {f"small-{number}": number}))
        done.write(f"small-{number}\\n".encode())
        number += 1
"""


@contextmanager
def restless_writer(root: Path, type_key: str) -> Iterator[Path]:
    """A process that writes rows of a type, one after the other; its ledger, once it has begun."""
    ledger, stop = root.with_suffix(".ledger"), root.with_suffix(".stop")
    process = subprocess.Popen([sys.executable, "-c", _RESTLESS, str(root), type_key, str(ledger), str(stop)])
    try:
        while not ledger.exists() or not ledger.stat().st_size:
            assert process.poll() is None
            SystemClock().sleep(0.01)
        yield ledger
        stop.touch()
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()


def overtaken(parts: GraphContext, type_key: str, *, patience_s: float) -> Operation:
    """Rests on a whole type, and takes until somebody else has committed; or so long, where nobody does."""
    row = insert(type_key, {"large": 0})

    def run(staging: WriteSet) -> None:
        staging.read_whole(type_key)
        row.run(staging)
        clock, base = parts.clock, staging.snapshot.record
        begun = clock.monotonic()
        while clock.monotonic() - begun < patience_s and parts.log.live_head(MAIN).number == base.number:
            clock.sleep(0.005)

    return replace(row, run=run, redoable=True)


@pytest.mark.parametrize("patience_s", [0.5, 1.5])
def test_a_write_that_is_always_overtaken_is_let_through(tmp_path: Path, patience_s: float) -> None:
    root = tmp_path / "graph"
    parts = new_graph(str(root))

    with restless_writer(root, PERSON) as ledger:
        receipt = write(parts, MAIN, overtaken(parts, PERSON, patience_s=patience_s))
        before = ledger.stat().st_size
        while ledger.stat().st_size == before:  # and the others go on
            parts.clock.sleep(0.01)

    assert limits.STARVED_AFTER_LOSSES < receipt.attempts < limits.REDO_ATTEMPTS_MAX
    assert rows_of(parts, PERSON).keys() == {"large", *ledger.read_text(encoding="ascii").split()}
    assert parts.intents.everything() == []


def test_a_write_whose_base_is_always_pruned_is_let_through(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    parts = new_graph(str(root), settings=Settings(protection_s=0.0))

    def run(staging: WriteSet) -> None:
        base = staging.snapshot.record
        while parts.log.live_head(MAIN).number < base.number + 3:
            parts.clock.sleep(0.005)
        prune(parts, MAIN, Policy(keep=1, now=True))
        insert(COMPANY, {"large": 0}).run(staging)

    with restless_writer(root, PERSON):
        receipt = write(parts, MAIN, replace(insert(COMPANY, {"large": 0}), run=run, redoable=True))

    assert receipt.attempts == limits.STARVED_AFTER_LOSSES + 1
    assert rows_of(parts, COMPANY) == {"large": 0}


_EQUAL = """
import sys
from pathlib import Path
from omnigraph.clock import SystemClock
from tests.support.operations import append
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

uri, type_key, name, start, seconds = sys.argv[1:]
parts, clock, number = open_root(uri), SystemClock(), 0
print("ready", flush=True)
while not Path(start).exists():
    clock.sleep(0.005)
until = clock.monotonic() + float(seconds)
while clock.monotonic() < until:
    write(parts, "main", append(type_key, {f"{name}-{number}": number}))
    number += 1
print(number, flush=True)
"""


@pytest.mark.parametrize(
    ("seconds", "most"), [(5, 2.5), pytest.param(20, 1.5, marks=pytest.mark.torture)], ids=["short", "long"]
)
def test_two_processes_that_write_one_type_share_it(tmp_path: Path, seconds: int, most: float) -> None:
    root, start = tmp_path / "graph", tmp_path / "start"
    new_graph(str(root))
    arguments = [sys.executable, "-c", _EQUAL, str(root), PERSON]
    writers = [
        subprocess.Popen([*arguments, name, str(start), str(seconds)], stdout=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    start.touch()
    written = sorted(int(writer.communicate(timeout=60 + seconds)[0]) for writer in writers)

    assert written[0] > 0
    assert written[1] / written[0] <= most, written
