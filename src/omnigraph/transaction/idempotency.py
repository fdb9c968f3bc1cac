"""One request, sent twice under one key, is done once: the second gets the first one's commit.

The log is the truth: a commit carries its key. A small note per key says from where in the log to look, so that the
cost does not grow with history. It is put before the first effect and brought up to date afterwards, best effort.
"""

import contextlib
import hashlib
import json

from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectExists, ObjectNotFound, OutcomeUnknown, StoreError
from omnigraph.transaction.parts import Parts


def earlier_use(parts: Parts, branch: str, key: str, base: Record) -> Record | None:
    """The commit that carries this key, if one does; otherwise notes that a write under it may follow `base`."""
    path = _path(branch, key)
    number = _noted(parts, path)
    if number is None:
        with contextlib.suppress(ObjectExists, OutcomeUnknown):  # then another's note is there, or ours after all
            parts.store.put_if_absent(path, _note(base.number))
            return None
        number = _noted(parts, path)
        if number is None:
            return None
    for entry in parts.log.between(branch, number, base.number):
        if entry.idempotency_key == key:
            return entry
    return None


def note_use(parts: Parts, branch: str, key: str, entry: Record) -> None:
    """Remember where the commit with this key is."""
    with contextlib.suppress(StoreError):  # the older note still leads to it
        parts.store.put(_path(branch, key), _note(entry.number))


def _path(branch: str, key: str) -> str:
    return paths.idempotency(branch, hashlib.sha256(key.encode()).hexdigest())


def _note(number: int) -> bytes:
    return json.dumps({"number": number}).encode()


def _noted(parts: Parts, path: str) -> int | None:
    try:
        found = json.loads(parts.store.get(path))
        return int(found["number"])
    except ObjectNotFound:
        return None
    except (ValueError, KeyError, TypeError):
        return 1  # scribbled over: look from the first entry on
