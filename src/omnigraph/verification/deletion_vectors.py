"""Make damaged deletion vectors again: change sets name the rows that each commit took out of older fragments.

From the newest earlier version that shows the fragment under a vector that can be read, or under none, every commit up
to the damaged one is followed. What is left must be as many rows as the version says; otherwise nothing is done.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from omnigraph.errors import GraphError
from omnigraph.model.change import TypeChange
from omnigraph.model.commit import CommitKind, Pin, Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import StoreError
from omnigraph.storage.records.change_file import read_change_file
from omnigraph.storage.tables.addresses import vector_bytes
from omnigraph.storage.tables.examine import Examiner
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.verification.findings import Finding, FindingKind


def rebuild_deletion_vectors(parts: GraphContext, findings: Iterable[Finding]) -> frozenset[str]:
    """Write damaged deletion vectors again where the log tells what was in them; the damaged ones are put aside.

    Args:
        findings: of a verification just now.

    Returns:
        frozenset[str]: the paths of those that were written. Their bytes may differ from what was there before.
    """
    damaged = [finding for finding in findings if finding.kind is FindingKind.DELETIONS and finding.certain]
    paths_damaged = {finding.path for finding in damaged}
    aside = f"{paths.QUARANTINE}{parts.ids.new()}/"
    done = set()
    for finding in damaged:
        try:
            body = _rebuilt(parts, finding, paths_damaged)
        except GraphError:
            continue  # something else is damaged as well; the fragment is done without
        if body is None:
            continue
        with suppress(StoreError):  # it may be missing
            parts.table_files.copy(finding.path, f"{aside}{finding.path}")
        parts.table_files.put(finding.path, body)
        done.add(finding.path)
    return frozenset(done)


def _rebuilt(parts: GraphContext, finding: Finding, damaged: set[str]) -> bytes | None:
    at = finding.affected[0]
    entry = parts.log.read(at.branch, at.number)
    if entry is None or at.type_key not in entry.tables:
        return None
    pin, examiner = entry.tables[at.type_key], Examiner(parts.tables)
    files = examiner.open(pin).files_under(finding.path)
    live = None if files is None else _live_ids(_backwards(parts, entry), parts, pin, files, damaged)
    deleted = None if live is None else examiner.open(pin).deleted_rows(finding.path, live)
    return None if deleted is None else vector_bytes(finding.path, deleted)


def _live_ids(
    entries: Iterator[Record], parts: GraphContext, pin: Pin, files: tuple[str, ...], damaged: set[str]
) -> set[str] | None:
    """The ids of the rows that a fragment shows under a damaged vector, by what is known of it before."""
    examiner = Examiner(parts.tables)
    gone: set[str] = set()
    for earlier in entries:
        key, before = next(
            ((key, other) for key, other in earlier.tables.items() if other.table == pin.table), ("", None)
        )
        if before is None:
            return None
        shown = examiner.open(before).ids_in(files, damaged)
        if shown is not None:
            return shown - gone
        change = _changes(parts, earlier).get(key, TypeChange(0, 0, 0))
        if (change.updated and change.updated_ids is None) or (change.deleted and change.deleted_ids is None):
            return None
        gone |= {*(change.updated_ids or ()), *(change.deleted_ids or ())}
    return None


def _backwards(parts: GraphContext, entry: Record) -> Iterator[Record]:
    """The entries of a branch from one on, newest first, and of the branches it was made from."""
    while True:
        fork = entry
        for earlier in parts.log.backwards(entry.branch, start=entry.number):
            yield earlier
            fork = earlier
            if earlier.kind is CommitKind.FORK:
                break
        if fork.fork_of is None or fork.fork_number is None:
            return
        origin = parts.log.read(fork.fork_of, fork.fork_number)
        if origin is None:
            return
        entry = origin


def _changes(parts: GraphContext, entry: Record) -> dict[str, TypeChange]:
    path = entry.changes.file
    if path is None:
        return dict(entry.changes.types)
    return read_change_file(parts.store.get(path), path=paths.absolute(parts.store, path))
