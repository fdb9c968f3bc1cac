"""One request, sent twice under one key, is done once: the second gets the first one's commit.

The log is the truth: a commit carries its key. A small note per key says from where in the log to look, so that the
cost does not grow with history. It is put before the first effect and brought up to date afterwards, best effort.
"""

import contextlib
import hashlib
import json

from omnigraph.errors import UnavailableError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import OutcomeUnknown, StoreError
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.settle import settled


def earlier_use(parts: Parts, branch: str, key: str, base: Record) -> Record | None:
    """The commit that carries this key, if one does; otherwise notes that a write under it may follow `base`.

    Raises:
        UnavailableError: the key cannot be noted; without the note a second request would not find the first.
    """
    path = _path(branch, key)
    try:
        number = _number(settled(parts.store, path, _note(base.number), clock=parts.clock))
    except OutcomeUnknown as fault:
        raise UnavailableError(f"the idempotency key could not be noted, so nothing was done: {fault}") from fault
    found = None
    # A key is remembered as long as the entry that carries it.
    for entry in (*parts.log.between(branch, max(number, base.pruned.floor), base.number - 1), base):
        if entry.kind is CommitKind.FORK:
            found = None  # the name was used again: what was done in its earlier life is not done in this one
        elif entry.idempotency_key == key:
            found = entry
    return found


def note_use(parts: Parts, branch: str, key: str, entry: Record) -> None:
    """Remember where the commit with this key is."""
    with contextlib.suppress(StoreError):  # the older note still leads to it
        parts.store.put(_path(branch, key), _note(entry.number))


def _path(branch: str, key: str) -> str:
    return paths.idempotency(branch, hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest())


def _note(number: int) -> bytes:
    return json.dumps({"number": number}).encode()


def _number(note: bytes) -> int:
    try:
        return max(1, int(json.loads(note)["number"]))
    except (ValueError, KeyError, TypeError):
        return 1  # scribbled over: look from the first entry on
