"""A tour of the features: load on Spark, query, write concurrently, recover, branch, merge, blame and verify.

`python -m omnigraph.cli.tour`; every number it prints was measured or counted in that run. `--small` is shorter.
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
from textwrap import indent
from typing import TypeVar

import pyarrow as pa

from omnigraph.api.graph import Graph
from omnigraph.api.open import init
from omnigraph.api.open import open as open_graph
from omnigraph.branch.entity_change import EntityChange
from omnigraph.cli.render import table
from omnigraph.cli.sample_data import SampleSize, write_sample
from omnigraph.errors import ConflictError, ConstraintError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import RECOVERY_ACTOR
from omnigraph.pipeline.load.how_far import LoadProgress

_SCHEMA = """\
node Person {
  name: String @key
  age: I32?
  @range(age, 0..150)
}
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City @card(0..1)
"""
_FRIENDS = """\
query friends($name: String) {
  match { $p: Person { name: $name }  $p knows{1,2} $friend  optional { $friend livesIn $city } }
  return { $friend.name as friend, $friend.age as age, $city.name as city }
  order { age desc }
  limit 5
}
"""
_CITIES = """\
query cities() {
  match { $p: Person  $p livesIn $c }
  return { $c.name as city, count($p) as people, avg($p.age) as mean_age }
  order { people desc }
}
"""
_AGE = "query age($name: String) { match { $p: Person { name: $name } } return { $p.age as age } }"
_BIRTHDAY = "query birthday($name: String, $age: I32) { update Person set { age: $age } where name = $name }"
_ADD = "query add($name: String, $age: I32) { insert Person { name: $name, age: $age } }"
_HELLO = """\
query hello($a: String, $b: String) {
  insert Person { name: $a, age: 36 }
  insert Person { name: $b, age: 85 }
  insert Knows { from: $a, to: $b, since: 1950 }
}
"""
_DIE, _RIVAL, _SMALL = "--die-while-writing", "--rival", "--small"
_FULL_SIZE, _SMALL_SIZE = SampleSize(100_000, 500_000), SampleSize(2_000, 10_000)
_LATE = 20_000
_BAR_CHARACTERS = 24

_Result = TypeVar("_Result")


def main(arguments: list[str]) -> int:
    """Run the tour, or one of its helper processes, selected by the first argument."""
    match arguments:
        case [first, root] if first == _DIE:
            _die_while_writing(root)
        case [first, root, text, name, age] if first == _RIVAL:
            open_graph(root).mutate(text, {"name": name, "age": int(age)}, actor="rival")
        case _:
            folder = tempfile.mkdtemp(prefix="omnigraph-tour-")
            try:
                _, took = _timed(
                    lambda: _tour(Path(folder) / "graph", _SMALL_SIZE if _SMALL in arguments else _FULL_SIZE)
                )
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            _heading(f"The tour took {took / 1000:.0f} s. Its graph is deleted.")
            _say("create your own graph: docs/quickstart.md")
            _say("all commands:          omnigraph --help")
    return 0


def _tour(root: Path, size: SampleSize) -> None:
    print("The tour creates a graph in a temporary folder, loads, queries, breaks, recovers, branches and merges it.")
    print("Every number below was counted or measured in this run, on this machine.")
    _heading("A graph from a schema")
    _text(_SCHEMA)
    graph, took = _timed(lambda: init(root, _SCHEMA, actor="you"))
    _say(f"created in {took:.0f} ms: one Lance table per type, one log per branch")

    _heading("A mutation is one commit over all the tables it changes")
    first, took = _timed(lambda: graph.mutate(_HELLO, {"a": "Ada", "b": "Grace"}, actor="you"))
    _say(f"Ada, Grace and the edge between them: {took:.0f} ms including fsync, atomically visible")
    _show_refusal(graph, 'query old() { insert Person { name: "Methuselah", age: 969 } }')
    _show_refusal(graph, 'query lost() { insert Knows { from: "Ada", to: "Nobody" } }')

    _heading("A bulk load on Spark is one commit")
    _load_sample(graph, size, root.parent / "sample.jsonl")

    _heading("Queries")
    _query(graph, "people by city", _CITIES)
    _query(graph, "people within two hops of Grace", _FRIENDS, name="Grace")
    _say("its plan:")
    _text(graph.explain(_FRIENDS))

    _heading("Two processes write concurrently")
    _write_concurrently(graph)

    _heading("A process is killed during a write")
    graph = _recover(graph, root)

    _heading("Branching and merging write one small record each")
    _branch_and_merge(graph)

    _heading("Merge conflicts are shown, then resolved")
    _resolve_conflict(graph)

    _heading("Time travel and blame")
    assert first.commit is not None
    _travel_in_time(graph, first.commit)

    _heading("Verification")
    report, took = _timed(lambda: graph.verify(deep=True))
    checked = report.to_dict()["checked"]
    _say(
        f"{checked['commits']} commits, {checked['files']} files, {checked['bytes'] / 1e6:.0f} MB, every value "
        f"checked against the schema: {'no damage' if report.is_whole else 'damaged'}, {took / 1000:.1f} s"
    )


def _recover(graph: Graph, root: Path) -> Graph:
    """Kill a process during a write, and show that the next open completes it."""
    died = subprocess.run([sys.executable, "-m", "omnigraph.cli.tour", _DIE, str(root)], check=False)
    _say(f"it had staged its tables and was killed by {signal.Signals(-died.returncode).name} before publishing")
    _say(f"readers still see {graph.count('Person'):,} people, and no partial write")
    graph, took = _timed(lambda: open_graph(root))
    _say(f"the next open completed the write in {took:.0f} ms: {graph.count('Person'):,} people")
    record = graph.snapshot().record
    assert record.actor == RECOVERY_ACTOR
    assert record.recovery is not None
    _say(f"the log records it: {record.kind} by {record.actor}, {record.recovery.kind} for {record.recovery.for_actor}")
    return graph


def _branch_and_merge(graph: Graph) -> None:
    """Change different rows on two branches, and merge them."""
    fork = graph.snapshot()
    _, took = _timed(lambda: graph.branches.create("review", actor="you"))
    rows = sum(graph.count(name) for name in ("Person", "City", "Knows", "LivesIn"))
    _say(f"'review', over {rows:,} rows: {took:.1f} ms, one conditional put")
    graph.mutate(_HELLO, {"a": "Linus", "b": "Margaret"}, branch="review", actor="agent-7")
    graph.mutate(_BIRTHDAY, {"name": "person-1", "age": 99}, branch="review", actor="agent-7")
    graph.mutate(_BIRTHDAY, {"name": "person-2", "age": 98}, actor="you")
    for name in graph.branches:
        _say(f"  {name:<8} {graph.count('Person', branch=name):,} people")
    changes, took = _timed(lambda: list(graph.diff(fork, "review")))
    listed = ", ".join(f"{change.op} {change.type_name}{_node_id(change)}" for change in changes)
    _say(f"the changes on 'review', found in {took:.0f} ms:")
    _say(f"  {listed}")
    merged, took = _timed(lambda: graph.merge("review", into="main", actor="you"))
    counted = ", ".join(f"{key} +{counts.inserted} ~{counts.updated}" for key, counts in sorted(merged.changes.items()))
    _say(f"both branches had changed; {merged.outcome} in {took:.0f} ms: {counted}")
    theirs, ours = (next(iter(graph.query(_AGE, {"name": name})))["age"] for name in ("person-1", "person-2"))
    people = f"  {'main':<8} {graph.count('Person'):,} people"
    _say(f"{people}; person-1 is {theirs} as on 'review', person-2 {ours} as on 'main'")


def _travel_in_time(graph: Graph, commit: str) -> None:
    """Read an early state, and show who set which property since."""
    with graph.snapshot(commit=commit) as snapshot:
        names = snapshot.query("query all() { match { $p: Person } return { $p.name as name } order { name } }")
        _say(f"people at commit {snapshot.commit}: {', '.join(row['name'] for row in names)}")
    for name, entry in sorted(graph.blame("Person", "Ada").properties.items()):
        _say(f"  Ada's {name:<4} was set by {entry.actor or 'no actor'}, in commit {entry.commit}")


def _resolve_conflict(graph: Graph) -> None:
    """Change the same row on two branches, and prefer one side."""
    graph.branches.create("draft", actor="agent-7")
    graph.mutate(_BIRTHDAY, {"name": "Ada", "age": 40}, branch="draft", actor="agent-7")
    graph.mutate(_BIRTHDAY, {"name": "Ada", "age": 41}, actor="you")
    previewed = graph.merge("draft", into="main", preview=True)
    for conflict in previewed.conflicts:
        _say(f"preview: {conflict.message} ({conflict.kind})")
        base, source, target = (row or {} for row in (conflict.base, conflict.source, conflict.target))
        _say(f"  it was {base.get('age')}; 'draft' says {source.get('age')}, 'main' says {target.get('age')}")
    merged, took = _timed(lambda: graph.merge("draft", into="main", prefer="source", actor="you"))
    (age,) = (row["age"] for row in graph.query(_AGE, {"name": "Ada"}))
    _say(f"preferring the draft: {merged.outcome} in {took:.0f} ms, Ada is {age}; history keeps both")


def _load_sample(graph: Graph, size: SampleSize, path: Path) -> None:
    written = write_sample(size, path, hub="Grace")
    _say(f"{size.nodes:,} nodes and {size.edges:,} edges as JSON lines: {written / 1e6:.0f} MB")
    from omnigraph.pipeline.session import describe_session  # noqa: PLC0415  (pyspark takes long to import)

    session, took = _timed(graph.spark.session)
    _say(f"{describe_session(session)}: started in {took / 1000:.1f} s")
    with _ProgressBar() as bar:
        result, took = _timed(lambda: graph.load(path, mode="append", actor="importer", progress=bar))
    rows = result.total_entities
    counted = {**result.nodes, **result.edges}
    _say(
        f"{rows:,} rows, every constraint checked, in one commit: {took / 1000:.1f} s, {rows / took * 1000:,.0f} rows/s"
    )
    _say("  " + ", ".join(f"{name} {count:,}" for name, count in sorted(counted.items())))


class _ProgressBar:
    """Shows the progress of the load: a bar on a terminal, else a line for each stage."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._stage = ""

    def __enter__(self) -> "_ProgressBar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            print("\r\033[K", end="", flush=True)

    def __call__(self, progress: LoadProgress) -> None:
        if self._live:
            full = round(_BAR_CHARACTERS * min(progress.bytes / max(progress.bytes_total, 1), 1.0))
            bar = "█" * full + "·" * (_BAR_CHARACTERS - full)
            print(f"\r\033[K  [{bar}] {progress.stage} {progress.rows:,} rows", end="", flush=True)
        elif progress.stage != self._stage:
            _say(f"  {progress.stage} …")
        self._stage = progress.stage


def _write_concurrently(graph: Graph) -> None:
    """Lose a race against a second process twice: over another row, and over the same row."""
    with armed(Failpoint.WRITE_TABLES_STAGED, lambda: _run_rival(graph, _ADD, "Edsger", 72)):
        graph.mutate(_BIRTHDAY, {"name": "person-7", "age": 37}, actor="you")
    _say("another process committed first, to other rows: our write was rebased, both commits exist")
    try:
        with armed(Failpoint.WRITE_TABLES_STAGED, lambda: _run_rival(graph, _BIRTHDAY, "Ada", 38)):
            graph.mutate(_BIRTHDAY, {"name": "Ada", "age": 37}, actor="you")
    except ConflictError as error:
        _say(f"another process committed first, to the same row: our write was refused ({error.code})")


def _run_rival(graph: Graph, text: str, name: str, age: int) -> None:
    words = [sys.executable, "-m", "omnigraph.cli.tour", _RIVAL, graph.uri, text, name, str(age)]
    subprocess.run(words, check=True)


def _die_while_writing(root: str) -> None:
    graph = open_graph(root)
    people = pa.table({"name": [f"late-{number}" for number in range(_LATE)]})
    with armed(Failpoint.WRITE_INTENT_COMPLETED, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        graph.write(nodes={"Person": people}, actor="doomed")


def _show_refusal(graph: Graph, mutation: str) -> None:
    try:
        graph.mutate(mutation)
    except ConstraintError as error:
        _say(f"refused, nothing written: {error}")


def _query(graph: Graph, title: str, text: str, **params: object) -> None:
    _say(f"{title}:")
    _text(text)
    graph.query(text, params)  # the first run reads columns into memory
    result, took = _timed(lambda: graph.query(text, params))
    _say(f"answered in {took:.1f} ms")
    _text("\n".join(table(result.columns, [[_cell(value) for value in row.values()] for row in result])))


def _cell(value: object) -> str:
    match value:
        case float():
            return f"{value:.1f}"
        case int():
            return f"{value:,}"
        case _:
            return "-" if value is None else str(value)


def _node_id(change: EntityChange) -> str:
    """Return the id of a node; the ids of edges are not readable."""
    return f" {change.id}" if change.kind == "node" else ""


def _text(text: str) -> None:
    print(indent(text.rstrip("\n"), "    "))


def _timed(work: Callable[[], _Result]) -> tuple[_Result, float]:
    started = time.perf_counter()
    return work(), (time.perf_counter() - started) * 1_000


def _heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else f"\n{text}")


def _say(text: str, *, end: str = "\n") -> None:
    print(f"  {text}", end=end)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
