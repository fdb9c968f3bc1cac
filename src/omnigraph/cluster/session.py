"""A cluster as a command finds it: its configuration, its storage, and who else is at work."""

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

# What whoever compares with the ledger calls it.
_AS_LEDGER_SAYS = {"catalog_payload_digest_mismatch": "catalog_payload_mismatch"}


@dataclass(frozen=True, slots=True)
class Environment:
    """What commands work with.

    Attributes:
        stores: from an address to a store.
        clock: the source of time.
        ids: the source of identifiers.
    """

    stores: Stores
    clock: Clock
    ids: IdSource


def default_environment() -> Environment:
    """Real stores and real time."""
    clock = SystemClock()
    return Environment(open_store, clock, UlidSource(clock))


class ClusterSession:
    """One cluster, for the time of one command.

    Attributes:
        folder: of its configuration.
        diagnostics: what there is to say so far.
        configuration: what it should be; None where it could not be read.
    """

    def __init__(
        self, folder: Path, environment: Environment, *, diagnostics: Diagnostics, reads_files: bool = True
    ) -> None:
        """Read the configuration in a folder, and see where the cluster lies.

        Args:
            folder: the folder.
            environment: what to work with.
            diagnostics: gets everything that is wrong.
            reads_files: read the files it names too; who only looks at the ledger needs none of them.

        Raises:
            StoppedError: there is no such storage.
        """
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
        self.ledger = Ledger(self.store)
        self.lock = Lock(self.store, clock=clock, ids=ids)
        self.approvals = Approvals(self.store)
        self.sidecars = Sidecars(self.store)
        self.graphs = ClusterGraphs(self.root, self.environment.stores, clock=clock, ids=ids)

    def require_configuration(self) -> None:
        """See that it is known where the cluster lies, whatever else is wrong.

        Raises:
            StoppedError: it is not.
        """
        if self.configuration is None:
            raise StoppedError

    @property
    def valid_configuration(self) -> Configuration:
        """The configuration, if nothing is wrong with it.

        Raises:
            StoppedError: something is.
        """
        if self.configuration is None or not self.diagnostics.is_ok:
            raise StoppedError
        return self.configuration

    def read_ledger(self) -> StoredState:
        """The ledger as it is now.

        Raises:
            StoppedError: it cannot be read.
        """
        try:
            self._stored_state = self.ledger.read()
        except LedgerFaultError as fault:
            self.diagnostics.error(fault.code, layout.STATE, str(fault))
            raise StoppedError from None
        return self._stored_state

    def require_ledger(self) -> StoredState:
        """The ledger, which must be there.

        Raises:
            StoppedError: it is not, or cannot be read.
        """
        stored = self.read_ledger()
        if not stored.exists:
            message = "this cluster has no ledger yet; run: omnigraph cluster import"
            self.diagnostics.error("state_missing", layout.STATE, message)
            raise StoppedError
        return stored

    def write_ledger(self, base: StoredState, state: State | None) -> None:
        """Put the next state; None where the one there is stays.

        Raises:
            StoppedError: it cannot be put, or somebody was faster.
        """
        self.check_lock()
        try:
            if state is None:
                self.ledger.copy(base)
            else:
                self._stored_state = self.ledger.write(base, state)
        except LedgerFaultError as fault:
            self.diagnostics.error(fault.code, layout.STATE, str(fault))
            raise StoppedError from None

    @contextmanager
    def hold_lock(self, operation: str) -> Iterator[None]:
        """Hold the lock meanwhile, if the configuration wants one.

        Raises:
            StoppedError: somebody else holds it.
        """
        if self.configuration is not None and not self.configuration.declared.uses_lock:
            message = "the lock is turned off: see that nobody else is at work"
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
            # Not `finally`: whoever dies gives nothing back, and tests die here too.
            self.lock.release(own, self.diagnostics)
            raise
        self.lock.release(own, self.diagnostics)

    def check_lock(self) -> None:
        """See, before something is changed, that nobody took the lock away meanwhile.

        Raises:
            StoppedError: somebody did.
        """
        if self._own_lock is None:
            return
        try:
            self.lock.check(self._own_lock)
        except LockFaultError as fault:
            self.diagnostics.error(fault.code, layout.LOCK, str(fault))
            raise StoppedError from None

    def observe_lock(self) -> None:
        """See who holds the lock, for `observations`."""
        try:
            self._found_lock = self.lock.read()
        except LockFaultError as fault:
            self.diagnostics.warning(fault.code, layout.LOCK, str(fault))

    def damaged_payloads(self, state: State) -> dict[str, tuple[str, str]]:
        """The resources whose stored text is not as the ledger says, with a diagnostic's code and the reason."""
        return {
            address: (_AS_LEDGER_SAYS.get(damage.code, damage.code), damage.message)
            for address, damage in read_payloads(self.store, state.digests).items()
            if isinstance(damage, FormatError)
        }

    def observations(self) -> dict[str, Any]:
        """What there is to know about the ledger and the lock."""
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
        """Say what an earlier command left under way; the graphs it is about."""
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
