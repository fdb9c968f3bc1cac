"""A tour on a graph of its own: loaded on Spark, queried, raced, killed, healed, branched, merged, blamed and verified.

`python -m omnigraph.cli.tour`; every number it prints was measured or counted in that run. `--small` is a shorter one.
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
from omnigraph.cli.crowd import Crowd, write_crowd
from omnigraph.cli.render import table
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
_CROWD, _SMALL_CROWD = Crowd(100_000, 500_000), Crowd(2_000, 10_000)
_LATE = 20_000
_BAR_CHARACTERS = 24

_Result = TypeVar("_Result")


def main(arguments: list[str]) -> int:
    """Run the tour; the other processes in it are this program too, told apart by their first argument."""
    match arguments:
        case [first, root] if first == _DIE:
            _die_while_writing(root)
        case [first, root, text, name, age] if first == _RIVAL:
            open_graph(root).mutate(text, {"name": name, "age": int(age)}, actor="rival")
        case _:
            folder = tempfile.mkdtemp(prefix="omnigraph-tour-")
            try:
                _, took = _timed(lambda: _tour(Path(folder) / "graph", _SMALL_CROWD if _SMALL in arguments else _CROWD))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            _heading(f"That was the tour, in {took / 1000:.0f} s. Its graph is gone again.")
            _say("a graph of your own:       docs/quickstart.md")
            _say("everything there is to do: omnigraph --help")
    return 0


def _tour(root: Path, crowd: Crowd) -> None:
    print("A graph is made, filled, asked, fought over, killed and merged, in a folder of its own.")
    print("Every number below is counted or measured in this run, on this machine.")
    _heading("A graph from a schema")
    _text(_SCHEMA)
    graph, took = _timed(lambda: init(root, _SCHEMA, actor="you"))
    _say(f"made in {took:.0f} ms: one Lance table per type, one log per branch")

    _heading("One mutation, one commit, over as many tables as it takes")
    first, took = _timed(lambda: graph.mutate(_HELLO, {"a": "Ada", "b": "Grace"}, actor="you"))
    _say(f"Ada, Grace and the edge between them: {took:.0f} ms with every sync, visible at once or not at all")
    _refused(graph, 'query old() { insert Person { name: "Methuselah", age: 969 } }')
    _refused(graph, 'query lost() { insert Knows { from: "Ada", to: "Nobody" } }')

    _heading("A load of any size, on Spark, as one commit")
    _load_a_crowd(graph, crowd, root.parent / "crowd.jsonl")

    _heading("Questions")
    _ask(graph, "where people live", _CITIES)
    _ask(graph, "whom Grace knows, and whom they know", _FRIENDS, name="Grace")
    _say("how that is carried out")
    _text(graph.explain(_FRIENDS))

    _heading("Two processes write at once")
    _race(graph)

    _heading("A process is killed in the middle of a write")
    graph = _killed(graph, root)

    _heading("A branch is one small record, and merging it is one more")
    _branch_and_merge(graph)

    _heading("Where both changed one thing, a person decides")
    _disagree(graph)

    _heading("Any past state can be read again, and everything says where it comes from")
    assert first.commit is not None
    _look_back(graph, first.commit)

    _heading("And all of it is there")
    report, took = _timed(lambda: graph.verify(deep=True))
    checked = report.to_dict()["checked"]
    _say(
        f"{checked['commits']} commits, {checked['files']} files, {checked['bytes'] / 1e6:.0f} MB, every value read "
        f"and held against the schema: {'whole' if report.is_whole else 'damaged'}, {took / 1000:.1f} s"
    )


def _killed(graph: Graph, root: Path) -> Graph:
    """A process dies with a write under way; whoever opens the graph next has it finished."""
    died = subprocess.run([sys.executable, "-m", "omnigraph.cli.tour", _DIE, str(root)], check=False)
    _say(f"it had staged its tables and got {signal.Signals(-died.returncode).name} before it could publish")
    _say(f"readers meanwhile: still {graph.count('Person'):,} people, nothing half done")
    graph, took = _timed(lambda: open_graph(root))
    _say(f"the next open finished it in {took:.0f} ms: {graph.count('Person'):,} people")
    healed = graph.snapshot().record
    assert healed.actor == RECOVERY_ACTOR
    assert healed.recovery is not None
    _say(
        f"and the log says so: {healed.kind} by {healed.actor}, {healed.recovery.kind} for {healed.recovery.for_actor}"
    )
    return graph


def _branch_and_merge(graph: Graph) -> None:
    """Two lines go their own ways, on other rows, and come together."""
    fork = graph.snapshot()
    _, took = _timed(lambda: graph.branches.create("review", actor="you"))
    rows = sum(graph.count(each) for each in ("Person", "City", "Knows", "LivesIn"))
    _say(f"'review', over {rows:,} rows: {took:.1f} ms, one put")
    graph.mutate(_HELLO, {"a": "Linus", "b": "Margaret"}, branch="review", actor="agent-7")
    graph.mutate(_BIRTHDAY, {"name": "person-1", "age": 99}, branch="review", actor="agent-7")
    graph.mutate(_BIRTHDAY, {"name": "person-2", "age": 98}, actor="you")
    for name in graph.branches:
        _say(f"  {name:<8} {graph.count('Person', branch=name):,} people")
    changes, took = _timed(lambda: list(graph.diff(fork, "review")))
    told = ", ".join(f"{each.op} {each.type_name}{_named(each)}" for each in changes)
    _say(f"what 'review' changed since, told in {took:.0f} ms:")
    _say(f"  {told}")
    merged, took = _timed(lambda: graph.merge("review", into="main", actor="you"))
    told = ", ".join(f"{key} +{each.inserted} ~{each.updated}" for key, each in sorted(merged.changes.items()))
    _say(f"both had moved; {merged.outcome} in {took:.0f} ms: {told}")
    theirs, ours = (next(iter(graph.query(_AGE, {"name": name})))["age"] for name in ("person-1", "person-2"))
    people = f"  {'main':<8} {graph.count('Person'):,} people"
    _say(f"{people}; person-1 is {theirs} as on 'review', person-2 {ours} as on 'main'")


def _look_back(graph: Graph, commit: str) -> None:
    """An early state, and who has set what since."""
    with graph.snapshot(commit=commit) as then:
        names = then.query("query all() { match { $p: Person } return { $p.name as name } order { name } }")
        _say(f"at commit {then.commit} there were: {', '.join(row['name'] for row in names)}")
    for name, entry in sorted(graph.blame("Person", "Ada").properties.items()):
        _say(f"  Ada's {name:<4} was set by {entry.actor or 'nobody named'}, in commit {entry.commit}")


def _disagree(graph: Graph) -> None:
    """The same row is changed on two branches, and one of them is taken."""
    graph.branches.create("draft", actor="agent-7")
    graph.mutate(_BIRTHDAY, {"name": "Ada", "age": 40}, branch="draft", actor="agent-7")
    graph.mutate(_BIRTHDAY, {"name": "Ada", "age": 41}, actor="you")
    seen = graph.merge("draft", into="main", preview=True)
    for conflict in seen.conflicts:
        _say(f"a preview tells: {conflict.message} ({conflict.kind})")
        base, source, target = (row or {} for row in (conflict.base, conflict.source, conflict.target))
        _say(f"  it was {base.get('age')}; 'draft' says {source.get('age')}, 'main' says {target.get('age')}")
    merged, took = _timed(lambda: graph.merge("draft", into="main", prefer="source", actor="you"))
    (age,) = (row["age"] for row in graph.query(_AGE, {"name": "Ada"}))
    _say(f"taking the draft's: {merged.outcome} in {took:.0f} ms, Ada is {age}; the history keeps both")


def _load_a_crowd(graph: Graph, crowd: Crowd, path: Path) -> None:
    size = write_crowd(crowd, path, famous="Grace")
    _say(f"{crowd.nodes:,} nodes and {crowd.edges:,} edges as JSON lines: {size / 1e6:.0f} MB")
    session, took = _timed(graph.spark.session)
    version = str(session.sparkContext._jvm.java.lang.System.getProperty("java.version"))
    _say(f"Spark {session.version} on Java {version}, {session.sparkContext.master}: started in {took / 1000:.1f} s")
    with _Bar() as bar:
        done, took = _timed(lambda: graph.load(path, mode="append", actor="importer", progress=bar))
    rows = done.total_entities
    counted = {**done.nodes, **done.edges}
    _say(f"{rows:,} rows, every rule checked, in one commit: {took / 1000:.1f} s, {rows / took * 1000:,.0f} rows/s")
    _say("  " + ", ".join(f"{name} {count:,}" for name, count in sorted(counted.items())))


class _Bar:
    """How far the load is: a bar that moves on a terminal, else a line for each stage."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._stage = ""

    def __enter__(self) -> "_Bar":
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


def _race(graph: Graph) -> None:
    """A second process is faster, twice: with another person, and with the same one."""
    with armed(Failpoint.WRITE_TABLES_STAGED, lambda: _run_beside(graph, _ADD, "Edsger", 72)):
        graph.mutate(_BIRTHDAY, {"name": "person-7", "age": 37}, actor="you")
    _say("one was faster with somebody new: other rows, so ours was rebased; both commits stand")
    try:
        with armed(Failpoint.WRITE_TABLES_STAGED, lambda: _run_beside(graph, _BIRTHDAY, "Ada", 38)):
            graph.mutate(_BIRTHDAY, {"name": "Ada", "age": 37}, actor="you")
    except ConflictError as refused:
        _say(f"one was faster with the very row: ours was refused ({refused.code}), nothing overwritten")


def _run_beside(graph: Graph, text: str, name: str, age: int) -> None:
    words = [sys.executable, "-m", "omnigraph.cli.tour", _RIVAL, graph.uri, text, name, str(age)]
    subprocess.run(words, check=True)


def _die_while_writing(root: str) -> None:
    graph = open_graph(root)
    crowd = pa.table({"name": [f"late-{number}" for number in range(_LATE)]})
    with armed(Failpoint.WRITE_INTENT_COMPLETED, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        graph.write(nodes={"Person": crowd}, actor="doomed")


def _refused(graph: Graph, mutation: str) -> None:
    try:
        graph.mutate(mutation)
    except ConstraintError as breach:
        _say(f"refused, nothing written: {breach}")


def _ask(graph: Graph, what: str, text: str, **params: object) -> None:
    _say(f"{what}:")
    _text(text)
    graph.query(text, params)  # the first time, columns are read into memory
    found, took = _timed(lambda: graph.query(text, params))
    _say(f"answered in {took:.1f} ms")
    _text("\n".join(table(found.columns, [[_cell(value) for value in row.values()] for row in found])))


def _cell(value: object) -> str:
    match value:
        case float():
            return f"{value:.1f}"
        case int():
            return f"{value:,}"
        case _:
            return "-" if value is None else str(value)


def _named(change: EntityChange) -> str:
    """The id of a node; those of edges say nothing to people."""
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
