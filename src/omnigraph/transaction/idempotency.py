"""One request, sent twice under one key, is done once: the second gets the first one's commit.

The log is the truth: a commit carries its key. A small note per key says from where in the log to look, so that the
cost does not grow with history. It is put before the first effect and brought up to date afterwards, best effort.
"""

import contextlib
import hashlib
import json

from omnigraph import limits
from omnigraph.errors import UnavailableError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectExists, ObjectNotFound, OutcomeUnknown, StoreError
from omnigraph.transaction.parts import Parts


def earlier_use(parts: Parts, branch: str, key: str, base: Record) -> Record | None:
    """The commit that carries this key, if one does; otherwise notes that a write under it may follow `base`."""
    number = _noted_before(parts, _path(branch, key), base)
    if number is None:
        return None
    found = None
    for entry in parts.log.between(branch, number, base.number):
        if entry.kind is CommitKind.FORK:
            found = None  # the name was used again: what was done in its earlier life is not done in this one
        elif entry.idempotency_key == key:
            found = entry
    return found


def note_use(parts: Parts, branch: str, key: str, entry: Record) -> None:
    """Remember where the commit with this key is."""
    with contextlib.suppress(StoreError):  # the older note still leads to it
        parts.store.put(_path(branch, key), _note(entry.number))


def _noted_before(parts: Parts, path: str, base: Record) -> int | None:
    """From which entry on to look for the key; None where nobody used it, and then our own note is on the store."""
    for _ in range(limits.STORE_RETRY_ATTEMPTS_MAX):
        number = _noted(parts, path)
        if number is not None:
            return number
        # Another's note is there, or perhaps ours, or the request was lost: the next look tells.
        with contextlib.suppress(ObjectExists, OutcomeUnknown):
            parts.store.put_if_absent(path, _note(base.number))
            return None
    # Without the note a second request under the key would not find the first.
    raise UnavailableError(f"the store did not say whether the idempotency key was noted; try again ({path})")


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
