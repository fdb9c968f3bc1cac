"""Which files of a graph are needed, found out in a simpler way than the sweep does, for comparison with it.

For a graph that nobody writes meanwhile. It knows nothing of candidates, ages, intents or leases.
"""

import re
from itertools import combinations

from tests.support import operations as op

from omnigraph import limits
from omnigraph.branch import tags
from omnigraph.branch.lineage import inherited
from omnigraph.branch.merge.ancestry import Ancestry
from omnigraph.branch.merge.base import best_common
from omnigraph.branch.sweep.files import Swept
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.storage import derived, paths
from omnigraph.storage.records.read import CUT_MARK
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.log import Log
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

AT_ONCE = Settings(durability="process", protection_s=0, log_cut_s=0, stale_s=0)
"""With which nothing has to grow old first."""

# What a sweep has nothing to do with, and what may stay whatever is kept.
_NEVER_SWEPT = re.compile(
    rf"{paths.STAMP}|{paths.SCHEMAS}|{paths.TAGS}|{paths.MIGRATIONS}|{paths.KEYS}|{paths.LOGS}[^/]*/{paths.HINT}\Z|"
    rf"{paths.LOGS}[^/]*\.[^/]*/|__derived/(?!adjacency|words)"
)


def kept_entries(parts: GraphContext) -> list[Record]:
    """Every entry that must be readable: of living branches from their floor on, tagged ones, fork points, merge bases.

    Returns:
        list[Record]: in no particular order.
    """
    log = Log(parts.store, clock=parts.clock)
    found: dict[tuple[str, int], Record] = {}
    tips: list[Record] = []
    for branch in log.branch_names():
        head = log.head(branch)
        if head is None or not head.is_live:
            continue
        for line in inherited(parts, [head]).values():
            past = [
                log.read(line.branch, number) for number in (*range(line.lowest, line.last + 1), line.ended_at or 0)
            ]
            found |= {(entry.branch, entry.number): entry for entry in past if entry is not None}
        forks = []
        for number in range(head.number, 0, -1):
            entry = log.read(branch, number)
            is_fork = entry is not None and entry.kind is CommitKind.FORK
            if entry is not None and (number >= head.pruned.floor or is_fork):
                found[branch, number] = entry
                forks += [entry] if is_fork else []
            if number == head.life:
                break
        tips += [head, *(found[key] for key in [(branch, max(head.pruned.floor, head.life or 1))] if key in found)]
        for fork in forks[-1:]:
            origin = log.read(fork.fork_of or "", fork.fork_number or 0)
            if origin is not None and origin.head_commit == fork.parent:
                found[origin.branch, origin.number] = origin
    for name in tags.names(parts):
        tag = tags.read(parts, name)
        tagged = log.read(tag.branch, tag.number)
        if tagged is not None and tagged.head_commit == tag.commit:
            found[tagged.branch, tagged.number] = tagged
            tips.append(tagged)
    for entry in _merge_bases(parts, tips):
        found[entry.branch, entry.number] = entry
    return list(found.values())


def _merge_bases(parts: GraphContext, tips: list[Record]) -> list[Record]:
    """The best common ancestors of any two entries, and where two have several of any two of these and the others."""
    ancestry = Ancestry(parts)
    commits = {ancestry.enter(entry) for entry in tips}
    found: dict[str, Record] = {}
    for _ in range(limits.MERGE_BASE_LEVELS + 1):
        several: set[str] = set()
        for one, other in combinations(sorted(commits), 2):
            best, _seen = best_common(one, other, ancestry.parents)
            several |= set(best) if len(best) > 1 else set()
            bases = {commit: ancestry.entry_of(commit) or ancestry.states.get(commit) for commit in best}
            found |= {commit: entry for commit, entry in bases.items() if entry is not None}
        if several <= commits:
            break
        commits |= several
    return list(found.values())


def needless_files(parts: GraphContext) -> list[str]:
    """The files that a sweep with nothing to wait for must have deleted.

    Returns:
        list[str]: their paths, in order; empty where files are exactly those that are needed.
    """
    needed: set[str] = set()
    entries: set[tuple[str, int | None]] = set()
    versions = set()
    logs = {}
    for entry in kept_entries(parts):
        entries.add((paths.segment(entry.branch), entry.number))
        needed |= {file for file in (entry.changes.file, entry.footprint.file) if file is not None}
        for pin in entry.tables.values():
            needed |= parts.tables.files(pin) | {paths.digests(pin.table)}
            versions.add((pin.table, pin.version))
    for name in tags.names(parts):
        tag = tags.read(parts, name)
        entries.add((paths.segment(tag.branch), tag.number + 1))  # tells how long it was the newest
    for branch in parts.log.branch_names():
        head = parts.log.head(branch)
        assert head is not None
        entries |= {(paths.segment(branch), number) for number in (1, head.number - 1, head.number)}
        logs[paths.segment(branch)] = head.pruned.floor
        floors = sorted(listed.path for listed in parts.store.list(paths.floor_folder(branch)))
        needed |= set(floors[:1])
        needed |= set(sorted(listed.path for listed in parts.store.list(paths.ancestry_folder(branch)))[:1])
    folders = tuple(path for path in needed if path.endswith("/"))

    def is_needed(path: str) -> bool:
        if path in needed or path.startswith(folders) or _NEVER_SWEPT.match(path):
            return True
        if path.startswith(paths.LOGS):
            folder, number = path.split("/")[2], paths.entry_number(path) or 0
            is_mark = (folder, number - 1) in entries and parts.store.get(path) == CUT_MARK
            return (folder, number) in entries or is_mark
        if path.startswith(paths.CHECKPOINTS):
            return (paths.entry_number(path) or 0) >= logs[path.split("/")[2]]
        return derived.version_of(path) in versions

    stores = [parts.store] if parts.store is parts.table_files else [parts.store, parts.table_files]
    return sorted(listed.path for store in stores for listed in store.list("") if not is_needed(listed.path))


def readable(parts: GraphContext) -> dict[tuple[str, int], object]:
    """Everything that every kept entry shows.

    Returns:
        dict[tuple[str, int], object]: the rows of each type, by branch and number of the entry.
    """
    return {
        (entry.branch, entry.number): {key: op.rows_at(parts, key, entry) for key in entry.tables}
        for entry in kept_entries(parts)
    }


def grow(parts: GraphContext, *, branch: str = MAIN, times: int = 5, options: WriteOptions | None = None) -> Record:
    """Write a few commits in which deletion vectors and data files come and go.

    Args:
        branch (str): where.
        times (int): how many.
        options (WriteOptions | None): of each.

    Returns:
        Record: the last.
    """
    for number in range(times):
        # Of rows written together, some are replaced and then the others.
        rows = {"a": number, "b": number} if number % 3 == 0 else {"a": number}
        receipt = write(parts, branch, op.upsert_many({op.PERSON: rows}), options)
    assert receipt.entry is not None
    return receipt.entry


def swept(parts: GraphContext) -> Swept:
    """Sweep, and see that the right files are left, that all of it is readable, and that nothing is left to do.

    Returns:
        Swept: what the first sweep did.

    Raises:
        AssertionError: something is not as it should be.
    """
    before = readable(parts)
    done = sweep(parts, older_than_s=0)
    assert not done.errors
    assert needless_files(parts) == []
    fresh = open_root(parts.store, settings=AT_ONCE, clock=ManualClock())
    after = readable(fresh)
    assert {key: after[key] for key in before} == before
    again = sweep(fresh, older_than_s=0)
    assert [file.path for file in again.deleted] == []
    return done
