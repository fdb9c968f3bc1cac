"""Configuration, storage and lock of a cluster for the duration of one command."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.clock import Clock, SystemClock
from omnigraph.cluster import layout
from omnigraph.cluster.approvals import Approvals
from omnigraph.cluster.catalog import read_payloads
from omnigraph.cluster.desired import Configuration, read_configuration, read_location
from omnigraph.cluster.diagnostics import Diagnostics, StoppedError
from omnigraph.cluster.graphs import ClusterGraphs, Stores
from omnigraph.cluster.ledger import Ledger, StoredState
from omnigraph.cluster.lock import Lock, LockFaultError, LockRecord
from omnigraph.cluster.sidecars import Sidecars
from omnigraph.cluster.state import LedgerFaultError, State
from omnigraph.errors import FormatError, GraphError
from omnigraph.ids import IdSource, UlidSource
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.open import open_store

# Diagnostic codes of commands that compare the catalog with the ledger.
_LEDGER_CODES = {"catalog_payload_digest_mismatch": "catalog_payload_mismatch"}


@dataclass(frozen=True, slots=True)
class Environment:
    """Dependencies of the commands."""

    stores: Stores  # opens the store of an address
    clock: Clock  # source of timestamps
    ids: IdSource  # source of ULIDs


def default_environment() -> Environment:
    """Return real stores, the system clock and fresh ids."""
    clock = SystemClock()
    return Environment(open_store, clock, UlidSource(clock))


class ClusterSession:
    """One cluster for the duration of one command.

    Attributes:
        folder: configuration folder.
        diagnostics: problems found so far.
        configuration: desired state; None if it could not be read.
    """

    def __init__(
        self, folder: Path, environment: Environment, *, diagnostics: Diagnostics, reads_files: bool = True
    ) -> None:
        """Read the configuration and open the storage of the cluster."""
        self.folder = folder
        self.diagnostics = diagnostics
        self.environment = environment
        read = read_configuration if reads_files else read_location
        self.configuration: Configuration | None = read(folder, diagnostics)
        self._stored_state: StoredState | None = None
        self._found_lock: LockRecord | None = None
        self._own_lock: LockRecord | None = None
        self._open_storage()

    def _open_storage(self) -> None:
        self.root = str(self.folder) if self.configuration is None else self.configuration.storage
        try:
            self.store: ObjectStore = self.environment.stores(self.root)
        except GraphError as fault:
            self.diagnostics.error("storage_root_invalid", "storage", f"the storage cannot be used: {fault}")
            raise StoppedError from None
        self.root = self.store.uri
        clock, ids = self.environment.clock, self.environment.ids
        self.ledger = Ledger(self.store, clock=clock)
        self.lock = Lock(self.store, clock=clock, ids=ids)
        self.approvals = Approvals(self.store)
        self.sidecars = Sidecars(self.store)
        self.graphs = ClusterGraphs(self.root, self.environment.stores, clock=clock, ids=ids)

    def require_configuration(self) -> None:
        """Check that the storage root is known, whatever else is wrong with the configuration."""
        if self.configuration is None:
            raise StoppedError

    @property
    def valid_configuration(self) -> Configuration:
        """Configuration without errors."""
        if self.configuration is None or not self.diagnostics.is_ok:
            raise StoppedError
        return self.configuration

    def read_ledger(self) -> StoredState:
        """Read the current ledger."""
        try:
            self._stored_state = self.ledger.read()
        except LedgerFaultError as fault:
            self.diagnostics.error(fault.code, layout.STATE, str(fault))
            raise StoppedError from None
        return self._stored_state

    def require_ledger(self) -> StoredState:
        """Read the current ledger, which must exist."""
        stored = self.read_ledger()
        if not stored.exists:
            message = "this cluster has no ledger yet; run: omnigraph cluster import"
            self.diagnostics.error("state_missing", layout.STATE, message)
            raise StoppedError
        return stored

    def write_ledger(self, base: StoredState, state: State | None) -> None:
        """Write the next state; with None, only complete the mirror of the current one."""
        self.check_lock()
        try:
            if state is None:
                self.ledger.update_mirror(base)
            else:
                self._stored_state = self.ledger.write(base, state)
        except LedgerFaultError as fault:
            self.diagnostics.error(fault.code, layout.STATE, str(fault))
            raise StoppedError from None

    @contextmanager
    def hold_lock(self, operation: str) -> Iterator[None]:
        """Hold the lock while the block runs, unless the configuration turns it off."""
        if self.configuration is not None and not self.configuration.declared.uses_lock:
            message = "the lock is turned off: make sure that no other command runs"
            self.diagnostics.warning("state_lock_disabled", "state.lock", message)
            yield
            return
        try:
            own = self._own_lock = self.lock.acquire(operation, self.diagnostics)
        except LockFaultError as fault:
            self.observe_lock()
            self.diagnostics.error(fault.code, layout.LOCK, str(fault))
            raise StoppedError from None
        try:
            with self.lock.keep_alive(own):
                yield
        except (Exception, KeyboardInterrupt):
            # Not `finally`: a killed process releases nothing, and tests simulate that here.
            self.lock.release(own, self.diagnostics)
            raise
        self.lock.release(own, self.diagnostics)

    def check_lock(self) -> None:
        """Check before a change that the lock has not been taken over."""
        if self._own_lock is None:
            return
        try:
            self.lock.check(self._own_lock)
        except LockFaultError as fault:
            self.diagnostics.error(fault.code, layout.LOCK, str(fault))
            raise StoppedError from None

    def observe_lock(self) -> None:
        """Read the lock for `observations`."""
        try:
            self._found_lock = self.lock.read()
        except LockFaultError as fault:
            self.diagnostics.warning(fault.code, layout.LOCK, str(fault))

    def damaged_payloads(self, state: State) -> dict[str, tuple[str, str]]:
        """Return the resources whose stored text is missing or damaged, with diagnostic code and reason."""
        return {
            address: (_LEDGER_CODES.get(damage.code, damage.code), damage.message)
            for address, damage in read_payloads(self.store, state.digests).items()
            if isinstance(damage, FormatError)
        }

    def observations(self) -> dict[str, Any]:
        """Return the ledger and the lock in the JSON form of `state_observations`."""
        stored = self._stored_state or StoredState(State())
        state = stored.state
        found: dict[str, Any] = {
            "state_path": layout.storage_path(self.root, layout.STATE),
            "lock_path": layout.storage_path(self.root, layout.LOCK),
            "state_found": stored.exists,
        }
        if state.config_digest is not None:
            found["applied_config_digest"] = state.config_digest
        found["state_revision"] = state.revision
        if stored.cas is not None:
            found["state_cas"] = stored.cas
        found["resource_count"] = len(state.resources)
        found["locked"] = self._found_lock is not None
        found["lock_acquired"] = self._own_lock is not None
        if self._own_lock is not None:
            found["acquired_lock_id"] = self._own_lock.lock_id
        return found if self._found_lock is None else {**found, **self.lock.to_observation(self._found_lock)}

    def warn_of_pending_work(self) -> list[str]:
        """Warn of unfinished operations of earlier commands, and return their graphs."""
        try:
            pending, faults = self.sidecars.read_all()
        except GraphError as fault:
            self.diagnostics.error("recovery_sidecar_read_error", layout.RECOVERIES, str(fault))
            return []
        for path, reason in faults:
            self.diagnostics.warning("recovery_sidecar_read_error", path, reason)
        for sidecar in pending:
            message = f"{sidecar.kind} of {sidecar.started_at} was not finished; run: omnigraph cluster apply"
            self.diagnostics.warning("cluster_recovery_pending", f"graph.{sidecar.graph_id}", message)
        return [sidecar.graph_id for sidecar in pending]
