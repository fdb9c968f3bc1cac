"""Read and write the ledger with compare-and-swap.

Every state is put under its own revision number if that does not exist yet: this put is the fence, and a writer that
loses it has changed nothing. `state.json` mirrors the newest revision for people and simple readers; if a writer dies
before updating it, the next writer does.
"""

import re
from contextlib import suppress
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.clock import Clock, SystemClock
from omnigraph.cluster import digests, layout
from omnigraph.cluster.state import LedgerFaultError, State, read_state
from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.storage.conditional_put import put_or_read
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore, StoreError
from omnigraph.storage.object_stores.open import open_store

_MANAGED_GRAPH = re.compile(rf"(?P<root>.*?)/?{layout.GRAPHS}[^/]+\.omni/?")


@dataclass(frozen=True, slots=True)
class StoredState:
    """Ledger state as read from the store."""

    state: State  # parsed contents; an empty state if there is no ledger
    body: bytes | None = None  # raw bytes; None if there is no ledger
    is_mirrored: bool = True  # whether `state.json` has the same bytes

    @property
    def exists(self) -> bool:
        """True if there is a ledger."""
        return self.body is not None

    @property
    def cas(self) -> str | None:
        """Compare-and-swap token: the digest of the bytes."""
        return None if self.body is None else digests.of_bytes(self.body)


class Ledger:
    """Ledger of one cluster."""

    def __init__(self, store: ObjectStore, *, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or SystemClock()

    def read(self) -> StoredState:
        """Read the newest state."""
        try:
            mirror, newest = self._get(layout.STATE), self._read_newest()
        except GraphError as fault:
            raise LedgerFaultError("state_read_error", f"the ledger cannot be read: {fault}") from fault
        if mirror is None:
            # The writer of the newest revision died before updating the mirror, or the mirror was lost.
            return (
                StoredState(State()) if newest is None else StoredState(read_state(newest), newest, is_mirrored=False)
            )
        found = StoredState(read_state(mirror), mirror)
        if newest is not None and newest != mirror:
            numbered = read_state(newest)
            if numbered.revision > found.state.revision:
                return StoredState(numbered, newest, is_mirrored=False)
        return found

    def exists(self) -> bool:
        """True if there is a ledger, valid or not."""
        return self._get(layout.STATE) is not None or any(self._store.list(layout.REVISIONS, limit=1))

    def write(self, base: StoredState, state: State) -> StoredState:
        """Write the successor of a state that was read."""
        body = state.to_bytes()
        try:
            if self.read().cas != base.cas:
                raise _changed_meanwhile()
            if put_or_read(self._store, layout.revision(state.revision), body, clock=self._clock) != body:
                raise _changed_meanwhile()
            self._store.put(layout.STATE, body)
        except GraphError as fault:
            raise LedgerFaultError("state_write_error", f"the ledger cannot be written: {fault}") from fault
        self._delete_old_revisions()
        return StoredState(state, body)

    def update_mirror(self, stored: StoredState) -> None:
        """Update `state.json` if its writer died before doing so."""
        if stored.body is None or stored.is_mirrored:
            return
        try:
            self._store.put(layout.STATE, stored.body)
        except GraphError as fault:
            raise LedgerFaultError("state_write_error", f"the ledger cannot be written: {fault}") from fault

    def _read_newest(self) -> bytes | None:
        for _ in range(limits.CLUSTER_PUT_ATTEMPTS_MAX):
            listed = next(iter(self._store.list(layout.REVISIONS, limit=1)), None)
            if listed is None:
                return None
            body = self._get(listed.path)
            if body is not None:  # else it was deleted meanwhile as an old revision
                return body
        raise LedgerFaultError("state_read_error", "the ledger changes faster than it can be read")

    def _get(self, path: str) -> bytes | None:
        try:
            return self._store.get(path)
        except ObjectNotFound:
            return None

    def _delete_old_revisions(self) -> None:
        with suppress(StoreError):  # the next writer retries
            for old in list(self._store.list(layout.REVISIONS))[limits.CLUSTER_REVISIONS_KEPT :]:
                self._store.delete(old.path)


def _changed_meanwhile() -> LedgerFaultError:
    return LedgerFaultError("state_cas_mismatch", "another process changed the ledger meanwhile; run it again")


def refuse_managed_graph(uri: str, what: str) -> None:
    """Refuse a direct change of a graph that a cluster manages."""
    found = _MANAGED_GRAPH.fullmatch(uri)
    if found is None:
        return
    root = found["root"] or ("/" if uri.startswith("/") else ".")
    try:
        managed = Ledger(open_store(root, read_only=True)).exists()
    except GraphError:
        return  # the next operation reports the problem
    if managed:
        raise InvalidRequestError(
            f"{uri} belongs to the cluster at {root}: {what}, then run: omnigraph cluster apply",
            code="cluster_managed",
        )
