"""A tour of the store on a graph of its own: written, raced, killed, healed, branched and read as it was.

`python -m omnigraph.cli.tour`; every number it prints was measured or counted in that run.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from omnigraph.branch import branches, tags
from omnigraph.errors import ConflictError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN, RECOVERY_ACTOR, CommitKind, Record
from omnigraph.transaction.parts import Parts, Settings
from omnigraph.transaction.root import init, open_and_heal, open_root
from omnigraph.transaction.staging import Staging
from omnigraph.transaction.write import Operation, Receipt, WriteOptions, write

_PERSON, _KNOWS = "node:Person", "edge:Knows"
_TEXT_ID = pa.field("id", pa.string(), nullable=False)
_TABLES = {
    _PERSON: pa.schema([_TEXT_ID]).append(pa.field("age", pa.int64())),
    _KNOWS: pa.schema([_TEXT_ID]).append(pa.field("src", pa.string())).append(pa.field("dst", pa.string())),
}
_DIE = "--die-while-writing"
_RIVAL = "--rival"
_PEOPLE = 20_000

_Result = TypeVar("_Result")


def main(arguments: list[str]) -> int:
    """Run the tour; the other processes in it are this program too, told apart by their first argument."""
    if arguments[:1] == [_DIE]:
        _die_while_writing(arguments[1])
        return 0
    if arguments[:1] == [_RIVAL]:
        _write(open_root(arguments[1]), _RIVAL_WRITES[arguments[2]], actor="rival")
        return 0
    folder = tempfile.mkdtemp(prefix="omnigraph-tour-")
    try:
        _tour(Path(folder) / "graph")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _tour(root: Path) -> None:
    _heading("A graph: one Lance table per type, one log per branch")
    graph, took = _timed(lambda: init(str(root), _TABLES, actor="you"))
    _say(f"made an empty graph with {len(_TABLES)} types in {took:.0f} ms")

    _heading("One commit over two tables")
    receipt, took = _timed(lambda: _write(graph, _friends("Ada", "Grace"), actor="you"))
    _say(f"Ada, Grace and the edge between them: one record, visible at once, {took:.0f} ms with every sync")
    _show(receipt.entry)
    receipt, took = _timed(lambda: _write(graph, _crowd(), actor="importer"))
    _say(f"{_PEOPLE:,} more people as one commit: {took:.0f} ms, {_PEOPLE / took * 1000:,.0f} rows/s")

    _heading("Two writers on one base")
    _race(graph)

    _heading("A process is killed in the middle of a write")
    before = graph.snapshot(graph.log.live_head(MAIN)).count(_PERSON)
    died = subprocess.run([sys.executable, "-m", "omnigraph.cli.tour", _DIE, str(root)], check=False)
    _say(f"a second process staged 2 tables and was killed ({signal.Signals(-died.returncode).name}) before publishing")
    _say(f"readers meanwhile: still {before:,} people, nothing half done")
    (reopened, healed), took = _timed(lambda: open_and_heal(str(root)))
    after = reopened.snapshot(reopened.log.live_head(MAIN)).count(_PERSON)
    _say(f"the next open finished it in {took:.0f} ms: {after:,} people ({len(healed.ended)} write healed)")
    audit = reopened.log.live_head(MAIN)
    assert audit.actor == RECOVERY_ACTOR
    assert audit.recovery is not None
    _say(f"the log says so: {audit.kind} by {audit.actor}, {audit.recovery.kind} for {audit.recovery.for_actor}")

    _heading("A branch is one record")
    _, took = _timed(lambda: branches.create(reopened, "review", actor="you"))
    _say(f"branch 'review' over {after:,} people: {took:.1f} ms, one put")
    _write(reopened, _friends("Linus", "Margaret"), branch="review", actor="agent-7")
    for name in branches.names(reopened):
        count = reopened.snapshot(reopened.log.live_head(name)).count(_PERSON)
        _say(f"  {name:<8} {count:,} people")

    _heading("Any past state can be read again")
    tags.create(reopened, "before-the-crowd", _nth(reopened, 2))
    tag = tags.read(reopened, "before-the-crowd")
    entry = reopened.log.read(tag.branch, tag.number)
    assert entry is not None
    names = sorted(reopened.snapshot(entry).scan(_PERSON)["id"].to_pylist(), key=str)
    _say(f"at tag '{tag.name}' (commit {tag.commit}) there are: {', '.join(map(str, names))}")

    _heading("The whole history of main")
    for record in reopened.log.backwards(MAIN, start=reopened.log.live_head(MAIN).number):
        _show(record)


def _race(graph: Parts) -> None:
    """A second process is faster, twice: with other rows, and with the same row."""
    with armed(Failpoint.WRITE_TABLES_STAGED, lambda: _run_beside(graph, "insert")):
        write(graph, MAIN, _RIVAL_WRITES["update"])
    _say("an update of Ada met another process's commit that added Edsger: other rows, so it was rebased; both stand")
    try:
        with armed(Failpoint.WRITE_TABLES_STAGED, lambda: _run_beside(graph, "update")):
            write(graph, MAIN, _RIVAL_WRITES["update"])
    except ConflictError as refused:
        _say(f"an update of Ada met another process's update of Ada: refused ({refused.code}), nothing overwritten")


def _update_ada(staging: Staging) -> None:
    staging.rows(_PERSON, ["Ada"])
    staging.upsert(_PERSON, pa.table({"id": ["Ada"], "age": [37]}, schema=_TABLES[_PERSON]))


def _insert_edsger(staging: Staging) -> None:
    staging.insert(_PERSON, pa.table({"id": ["Edsger"], "age": [72]}, schema=_TABLES[_PERSON]))


_RIVAL_WRITES = {
    "update": Operation(CommitKind.MUTATION, frozenset({_PERSON}), _update_ada, redoable=False),
    "insert": Operation(CommitKind.MUTATION, frozenset({_PERSON}), _insert_edsger, redoable=True),
}


def _run_beside(graph: Parts, which: str) -> None:
    subprocess.run([sys.executable, "-m", "omnigraph.cli.tour", _RIVAL, graph.store.uri, which], check=True)


def _die_while_writing(root: str) -> None:
    graph = open_root(root, settings=Settings(intent_rows_min=0))
    with armed(Failpoint.WRITE_INTENT_COMPLETED, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        _write(graph, _friends("Barbara", "Donald"), actor="doomed")


def _write(graph: Parts, operation: Operation, *, actor: str, branch: str = MAIN) -> Receipt:
    return write(graph, branch, operation, WriteOptions(actor=actor))


def _friends(one: str, other: str) -> Operation:
    def run(staging: Staging) -> None:
        staging.upsert(_PERSON, pa.table({"id": [one, other], "age": [36, 85]}, schema=_TABLES[_PERSON]))
        edge = {"id": [f"{one}-{other}"], "src": [one], "dst": [other]}
        staging.insert(_KNOWS, pa.table(edge, schema=_TABLES[_KNOWS]), fresh_ids=True)

    return Operation(CommitKind.MUTATION, frozenset(_TABLES), run, redoable=True)


def _crowd() -> Operation:
    rows = {"id": [f"person-{number}" for number in range(_PEOPLE)], "age": list(range(_PEOPLE))}
    table = pa.table(rows, schema=_TABLES[_PERSON])
    return Operation(CommitKind.LOAD, frozenset({_PERSON}), lambda it: it.upsert(_PERSON, table), redoable=True)


def _nth(graph: Parts, number: int) -> Record:
    entry = graph.log.read(MAIN, number)
    assert entry is not None
    return entry


def _timed(work: Callable[[], _Result]) -> tuple[_Result, float]:
    started = time.perf_counter()
    return work(), (time.perf_counter() - started) * 1_000


def _heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else f"\n{text}")


def _say(text: str) -> None:
    print(f"  {text}")


def _show(record: Record | None) -> None:
    if record is None:
        return
    changed = ", ".join(
        f"{key} +{change.inserted} ~{change.updated} -{change.deleted}" for key, change in record.changes.types.items()
    )
    _say(f"{record.number:>4}  {record.commit}  {record.kind.value:<9} {record.actor or '-':<19} {changed}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
