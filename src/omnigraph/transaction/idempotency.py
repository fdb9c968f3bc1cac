"""One request, sent twice under one key, is done once: the second gets the first one's commit.

The log is the truth: a commit carries its key. A small note per key says from where in the log to look, so that the
cost does not grow with history. It is put before the first effect and brought up to date afterwards, best effort. A
sweep that is about to cut entries away brings the notes of their keys up to date, and cuts nothing where it cannot: so
a key whose note names no commit, and which no entry carries that is left, was never used.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omnigraph.errors import FormatError, UnavailableError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.storage import paths
from omnigraph.storage.conditional_put import put_or_read
from omnigraph.storage.object_store import ObjectNotFound, OutcomeUnknown, StoreError
from omnigraph.transaction.graph_context import GraphContext


@dataclass(frozen=True, slots=True)
class _Note:
    """What is noted of a key."""

    number: int  # the entry from which to look for its commit
    commit: str | None = None  # the commit, once there is one; it is then the entry of that number

    def tells_of(self, born: int) -> bool:
        """Whether it names a commit of the life of a branch that began with an entry."""
        return self.commit is not None and self.number >= born


def earlier_use(context: GraphContext, branch: str, key: str, base: Record) -> Record | None:
    """The commit that carries this key, if one does; otherwise notes that a write under it may follow `base`."""
    path = _path(branch, key)
    try:
        note = _read(put_or_read(context.store, path, _note(base.number), clock=context.clock))
    except OutcomeUnknown as fault:
        raise UnavailableError(f"the idempotency key could not be noted, so nothing was done: {fault}") from fault
    # What was done in an earlier life of the branch is not done in this one.
    born, floor = base.life or 1, base.pruned.floor
    start = max(note.number, born)
    found = _carrying(key, (*context.log.between(branch, max(start, floor), base.number_before), base))
    if found is None and start < floor:
        if not note.tells_of(born):
            found = _carrying(key, _not_yet_cut(context, branch, start, floor - 1))
            # In this order: what is not in the log any more was noted before it was cut away.
            note = note if found is not None else _read(context.store.get(path))
        if note.tells_of(born):
            found = _pruned_use(branch, key, base, note)
    return found


def _carrying(key: str, entries: Iterable[Record]) -> Record | None:
    """The last of some entries that carries a key."""
    found = None
    for entry in entries:
        if entry.kind is CommitKind.FORK:
            found = None  # the name was used again: what was done in its earlier life is not done in this one
        elif entry.idempotency_key == key:
            found = entry
    return found


def _not_yet_cut(context: GraphContext, branch: str, first: int, last: int) -> list[Record]:
    """Entries that were pruned, as far as no sweep has cut them away."""
    first = max(first, context.log.floors.highest(branch))
    while first <= last:
        try:
            return context.log.between(branch, first, last)
        except FormatError as fault:
            if fault.code != "entry_missing":
                raise
            first = fault.details["number"] + 1  # cut away just now, and with it whatever lies below
    return []


def _pruned_use(branch: str, key: str, base: Record, note: _Note) -> Record:
    """Return what is still known of a pruned commit: its note outlives it, its changes do not."""
    assert note.commit is not None
    return Record(
        commit=note.commit,
        branch=branch,
        number=note.number,
        kind=CommitKind.MUTATION,
        parent=None,
        schema=base.schema,
        tables=base.tables,
        created_at_us=base.created_at_us,
        idempotency_key=key,
        pruned=base.pruned,
    )


def note_use(context: GraphContext, branch: str, key: str, entry: Record) -> None:
    """Remember where the commit with this key is."""
    with contextlib.suppress(StoreError):  # the older note still leads to it
        context.store.put(_path(branch, key), _note(entry.number, entry.commit))


def note_before_cut(context: GraphContext, branch: str, entries: Iterable[Record], sizes: Mapping[str, int]) -> None:
    """Make sure that the note of every key that entries carry names their commit: soon they will be gone.

    `sizes` are those of notes, by path, where known: in the first life of a branch only a complete one is so long.
    If a note cannot be put, nothing must be cut.
    """
    for entry in entries:
        if entry.idempotency_key is None:
            continue
        path, note = _path(branch, entry.idempotency_key), _note(entry.number, entry.commit)
        # In a later life the note may be one of an earlier life, complete too, which nobody has brought up to date.
        if entry.life == 1 and sizes.get(path) == len(note):
            continue
        with contextlib.suppress(ObjectNotFound):
            # The branch may have been deleted, made again and written under this key since the sweep looked.
            if _read(context.store.get(path)).tells_of(entry.number):
                continue
        context.store.put(path, note)


def _path(branch: str, key: str) -> str:
    return paths.idempotency(branch, hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest())


def _note(number: int, commit: str | None = None) -> bytes:
    return json.dumps({"number": number} | ({} if commit is None else {"commit": commit})).encode()


def _read(note: bytes) -> _Note:
    try:
        found = json.loads(note)
        commit = found.get("commit")
        return _Note(max(1, int(found["number"])), commit if isinstance(commit, str) else None)
    except (ValueError, KeyError, TypeError, AttributeError):
        return _Note(1)  # scribbled over: look from the first entry on
