"""Invariants of every graph that no one is writing, whatever happened to it before.

`check_graph` reads everything again, without cached heads. `observed` is everything a user can see of a graph, to be
compared with what it was before or should be now.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from omnigraph.api.graph import Graph
from omnigraph.branch import branches, tags
from omnigraph.errors import GraphError
from omnigraph.model.commit import MAIN, UNKNOWN, CommitKind, Pin, Record
from omnigraph.storage import paths
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.log import Log

# The manifests that lie on a table's own lineage; detached ones begin with a `d`.
_ON_THE_LINEAGE = re.compile(r"/_versions/(?!d)[^/]*\.manifest\Z")
_LATEST_POSSIBLE = 2**64 - 1
_FIRST_VERSION = 1

Row = tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything a user can see of a graph.

    Attributes:
        branches: per live branch, per type, the columns and the rows in order of their ids.
        schemas: per live branch, the digest of its schema.
        history: per branch that ever existed, the kinds of its entries. What recovery finished counts as the kind it
            was meant to be; entries that only record how a write ended are left out.
        tags: per tag, the entry it names.
    """

    branches: Mapping[str, Mapping[str, tuple[tuple[str, ...], tuple[Row, ...]]]]
    schemas: Mapping[str, str]
    history: Mapping[str, tuple[CommitKind, ...]]
    tags: Mapping[str, tuple[str, int]]


def observed(graph: Graph | GraphContext) -> Observed:
    """Read everything a user can see; equal for two graphs that a user cannot distinguish."""
    parts = _context(graph)
    heads = {name: parts.log.live_head(name) for name in branches.names(parts)}
    named = [tags.read(parts, name) for name in tags.names(parts)]
    return Observed(
        branches={name: {key: _content(parts, head, key) for key in head.tables} for name, head in heads.items()},
        schemas={name: head.schema for name, head in heads.items()},
        history={name: _kinds(entries(parts, name)) for name in parts.log.branch_names()},
        tags={tag.name: (tag.branch, tag.number) for tag in named},
    )


def entries(parts: GraphContext, branch: str = MAIN) -> list[Record]:
    """Return the whole log of a branch, oldest first; empty if there never was such a branch."""
    return parts.log.since(branch, 0)


def check_graph(graph: Graph | GraphContext) -> None:
    """Check every log, every commit and every table of a graph that no one is writing.

    Raises:
        AssertionError: some invariant does not hold; the message lists every violation.
    """
    parts = _context(graph)
    logs = {}
    violations = []
    fresh = Log(parts.store, clock=parts.clock)
    for branch in fresh.branch_names():
        try:
            logs[branch] = fresh.since(branch, 0)
        except GraphError as fault:
            violations.append(f"the log of {branch!r} cannot be read: {fault}")
    for branch, log in logs.items():
        violations += _log_violations(parts, branch, log)
    violations += _ancestry_violations(logs)
    violations += _recovery_violations(parts, logs)
    violations += _table_violations(parts, logs)
    assert not violations, f"the graph at {parts.store.uri} breaks invariants:\n" + "\n".join(violations)


def _context(graph: Graph | GraphContext) -> GraphContext:
    return graph._parts if isinstance(graph, Graph) else graph


def _log_violations(parts: GraphContext, branch: str, log: Sequence[Record]) -> Iterator[str]:
    listed = sorted(
        number
        for file in parts.store.list(paths.log_folder(branch))
        if (number := paths.entry_number(file.path)) is not None
    )
    if listed != [entry.number for entry in log] or listed != list(range(1, len(log) + 1)):
        yield f"{branch!r}: the entries are not one line without gaps: {listed}"
    before: Record | None = None
    keys: Counter[str] = Counter()
    for entry in log:
        where = f"{branch!r} entry {entry.number} ({entry.kind})"
        if before is not None and not before.commit < entry.commit:
            yield f"{where}: its id {entry.commit} does not follow {before.commit}"
        if before is not None and before.created_at_us > entry.created_at_us:
            yield f"{where}: it is older than the entry before"
        starts = before is None or not before.is_live
        if starts != (entry.kind in (CommitKind.FORK, CommitKind.INIT)):
            yield f"{where}: it does not belong in this place"
        if not starts and before is not None and entry.parent != before.head_commit:
            yield f"{where}: its parent is {entry.parent}, not {before.head_commit}"
        if starts:
            keys.clear()  # the name is used again
        if entry.idempotency_key is not None:
            keys[entry.idempotency_key] += 1
            if keys[entry.idempotency_key] > 1:
                yield f"{where}: the key {entry.idempotency_key!r} was used before"
        if before is not None and not starts:
            yield from _change_violations(where, before, entry)
        before = entry


def _change_violations(where: str, before: Record, entry: Record) -> Iterator[str]:
    """Row counts change by what was inserted and deleted."""
    for key, pin in entry.tables.items():
        old = before.tables.get(key)
        if old is None or old.table != pin.table:
            old = Pin(pin.table, _FIRST_VERSION)  # a type's new life starts empty
        change = entry.changes.types.get(key)
        grown = change.inserted - change.deleted if change is not None else 0
        if UNKNOWN not in (old.rows, pin.rows) and pin.rows - old.rows != grown:
            yield f"{where}: {key} went from {old.rows} to {pin.rows} rows, its changes say {grown:+}"


def _ancestry_violations(logs: Mapping[str, Sequence[Record]]) -> Iterator[str]:
    parents: dict[str, str | None] = {}
    for branch, log in logs.items():
        for entry in log:
            if entry.commit in parents:
                yield f"{branch!r} entry {entry.number}: another entry has its id {entry.commit}"
            parents[entry.commit] = entry.parent
            if entry.kind is CommitKind.FORK and entry.fork_of is not None:
                source = logs.get(entry.fork_of, [])
                origin = [commit for commit in source if commit.number == entry.fork_number]
                if [commit.head_commit for commit in origin] != [entry.parent]:
                    yield f"{branch!r} entry {entry.number}: it was not made from {entry.fork_of} {entry.fork_number}"
    firsts = {entry.commit for entry in logs.get(MAIN, [])[:1]}
    reach: set[str | None] = set(firsts)
    for commit in sorted(parents):  # ids rise from parent to child, so one pass is enough
        if parents[commit] in reach:
            reach.add(commit)
    for commit in sorted(parents.keys() - reach):
        yield f"commit {commit} does not reach the first: its parent is {parents[commit]}"


def _recovery_violations(parts: GraphContext, logs: Mapping[str, Sequence[Record]]) -> Iterator[str]:
    for listed in parts.store.list(paths.RECOVERY):
        yield f"{listed.path} is left over"
    everything = [entry for log in logs.values() for entry in log]
    carried = Counter(entry.intent for entry in everything if entry.intent is not None)
    aborted = Counter(intent for entry in everything for intent in entry.aborted)
    audited = Counter(entry.recovery.intent for entry in everything if entry.recovery is not None)
    for what, counts in (("carried", carried), ("aborted", aborted), ("audited", audited)):
        for intent, times in counts.items():
            if times > 1:
                yield f"intent {intent} was {what} {times} times"
    for intent in sorted(carried.keys() & aborted.keys()):
        yield f"intent {intent} was both carried out and declared dead"


def _table_violations(parts: GraphContext, logs: Mapping[str, Sequence[Record]]) -> Iterator[str]:
    for folder in (paths.NODES, paths.EDGES):
        for listed in parts.table_files.list(folder):
            if _ON_THE_LINEAGE.search(listed.path):
                version = _LATEST_POSSIBLE - int(listed.path.rsplit("/", 1)[1].removesuffix(".manifest"))
                if version != _FIRST_VERSION:
                    yield f"a table has moved on by itself: {listed.path} is its version {version}"
    seen: set[Pin] = set()
    for branch, log in logs.items():
        for entry in log:
            for key, pin in entry.tables.items():
                if pin not in seen:
                    seen.add(pin)
                    yield from _pin_violations(parts, f"{branch!r} entry {entry.number}: {key}", pin)


def _pin_violations(parts: GraphContext, where: str, pin: Pin) -> Iterator[str]:
    try:
        found = parts.tables.open(pin).scan(columns=["id"])["id"]
    except GraphError as fault:
        yield f"{where} cannot be read: {fault}"
        return
    if pin.rows not in (UNKNOWN, len(found)):
        yield f"{where} holds {len(found)} rows, its pin says {pin.rows}"
    if pc.count_distinct(found).as_py() != len(found):
        yield f"{where} holds an id twice: {sorted(map(str, found.to_pylist()))[:20]}"


def _content(parts: GraphContext, head: Record, key: str) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    rows = parts.snapshot(head).scan(key).sort_by("id")
    return tuple(rows.column_names), tuple(tuple(sorted(row.items())) for row in rows.to_pylist())


def _kinds(log: Sequence[Record]) -> tuple[CommitKind, ...]:
    found = []
    for entry in log:
        if entry.recovery is None:
            found.append(entry.kind)
        elif entry.intent is not None:
            found.append(entry.recovery.operation)
    return tuple(found)
