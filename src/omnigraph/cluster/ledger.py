"""Where the ledger lies, and how exactly one of several writers changes it.

Every state is put under its own number, if nobody put one there: that put is the fence, and whoever loses it changed
nothing. `state.json` is a copy of the newest, for people and for whoever looks only there; a writer that died before it
made the copy is made up for by the next one.
"""

import re
from contextlib import suppress
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.cluster import digests, layout
from omnigraph.cluster.state import LedgerFaultError, State, read_state
from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.storage.object_store import ObjectExists, ObjectNotFound, ObjectStore, OutcomeUnknown, StoreError
from omnigraph.storage.object_stores.open import open_store

_PLACE = re.compile(rf"(?P<root>.*?)/?{layout.GRAPHS}[^/]+\.omni/?")


@dataclass(frozen=True, slots=True)
class StoredState:
    """A state as it was found.

    Attributes:
        state: the state; an empty one where there is no ledger.
        body: its bytes; None where there is none.
        is_copied: whether `state.json` says the same.
    """

    state: State
    body: bytes | None = None
    is_mirrored: bool = True

    @property
    def exists(self) -> bool:
        """Whether there is a ledger."""
        return self.body is not None

    @property
    def cas(self) -> str | None:
        """What a writer must find unchanged."""
        return None if self.body is None else digests.of_bytes(self.body)


class Ledger:
    """The ledger of one cluster."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def read(self) -> StoredState:
        """The newest state.

        Raises:
            LedgerFaultError: it cannot be read.
        """
        try:
            copy, newest = self._get(layout.STATE), self._newest()
        except GraphError as fault:
            raise LedgerFaultError("state_read_error", f"the ledger cannot be read: {fault}") from fault
        if copy is None:
            # Whoever wrote the newest died before the copy was made, or the copy was lost.
            return (
                StoredState(State()) if newest is None else StoredState(read_state(newest), newest, is_mirrored=False)
            )
        found = StoredState(read_state(copy), copy)
        if newest is not None and newest != copy:
            numbered = read_state(newest)
            if numbered.revision > found.state.revision:
                return StoredState(numbered, newest, is_mirrored=False)
        return found

    def exists(self) -> bool:
        """Whether there is a ledger, whatever it says."""
        return self._get(layout.STATE) is not None or any(self._store.list(layout.REVISIONS, limit=1))

    def write(self, base: StoredState, state: State) -> StoredState:
        """Put the state that follows one that was read.

        Args:
            base: the state that was read.
            state: the one to follow, with the next number.

        Returns:
            As it was written.

        Raises:
            LedgerFaultError: somebody else's state follows that one already, or the store refuses.
        """
        body = state.to_bytes()
        try:
            if self.read().cas != base.cas:
                raise _changed_meanwhile()
            self._put(layout.revision(state.revision), body)
            self._store.put(layout.STATE, body)
        except GraphError as fault:
            raise LedgerFaultError("state_write_error", f"the ledger cannot be written: {fault}") from fault
        self._delete_old_revisions()
        return StoredState(state, body)

    def copy(self, stored: StoredState) -> None:
        """Make the copy that whoever wrote a state did not live to make.

        Raises:
            LedgerFaultError: the store refuses.
        """
        if stored.body is None or stored.is_mirrored:
            return
        try:
            self._store.put(layout.STATE, stored.body)
        except GraphError as fault:
            raise LedgerFaultError("state_write_error", f"the ledger cannot be written: {fault}") from fault

    def _put(self, path: str, body: bytes) -> None:
        for _ in range(limits.CLUSTER_PUT_ATTEMPTS_MAX):
            try:
                self._store.put_if_absent(path, body)
            except ObjectExists:
                # It may be our own, from a try whose answer was lost.
                if self._get(path) != body:
                    raise _changed_meanwhile() from None
            except OutcomeUnknown:
                continue
            return
        raise LedgerFaultError("state_write_error", "the store never said whether the ledger was written")

    def _newest(self) -> bytes | None:
        for _ in range(limits.CLUSTER_PUT_ATTEMPTS_MAX):
            listed = next(iter(self._store.list(layout.REVISIONS, limit=1)), None)
            if listed is None:
                return None
            body = self._get(listed.path)
            if body is not None:  # else it was old enough by now to be forgotten
                return body
        raise LedgerFaultError("state_read_error", "the ledger changes faster than it can be read")

    def _get(self, path: str) -> bytes | None:
        try:
            return self._store.get(path)
        except ObjectNotFound:
            return None

    def _delete_old_revisions(self) -> None:
        with suppress(StoreError):  # the next writer will
            for old in list(self._store.list(layout.REVISIONS))[limits.CLUSTER_REVISIONS_KEPT :]:
                self._store.delete(old.path)


def _changed_meanwhile() -> LedgerFaultError:
    return LedgerFaultError("state_cas_mismatch", "somebody else changed the ledger meanwhile; run it again")


def refuse_managed_graph(uri: str, what: str) -> None:
    """Stop what would go past the cluster that a graph belongs to.

    Args:
        uri: of the graph.
        what: is to be done instead.

    Raises:
        InvalidRequestError: the graph lies where a cluster keeps its own.
    """
    found = _PLACE.fullmatch(uri)
    if found is None:
        return
    root = found["root"] or ("/" if uri.startswith("/") else ".")
    try:
        managed = Ledger(open_store(root, read_only=True)).exists()
    except GraphError:
        return  # whatever is wrong there is told by what is done next
    if managed:
        raise InvalidRequestError(
            f"{uri} belongs to the cluster at {root}: {what}, then run: omnigraph cluster apply",
            code="cluster_managed",
        )
