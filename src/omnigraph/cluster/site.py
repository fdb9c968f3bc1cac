"""A cluster as a command finds it: its configuration, its storage, and who else is at work."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.clock import Clock, SystemClock
from omnigraph.cluster import layout
from omnigraph.cluster.approvals import Approvals
from omnigraph.cluster.catalog import payloads
from omnigraph.cluster.desired import Configuration, read_configuration, read_place
from omnigraph.cluster.diagnostics import Diagnostics, StoppedError
from omnigraph.cluster.graphs import ClusterGraphs, Stores
from omnigraph.cluster.ledger import Ledger, Written
from omnigraph.cluster.lock import Held, Lock, LockFaultError
from omnigraph.cluster.sidecars import Sidecars
from omnigraph.cluster.state import LedgerFaultError, State
from omnigraph.errors import FormatError, GraphError
from omnigraph.ids import IdSource, UlidSource
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.open import open_store

# What whoever compares with the ledger calls it.
_AS_LEDGER_SAYS = {"catalog_payload_digest_mismatch": "catalog_payload_mismatch"}


@dataclass(frozen=True, slots=True)
class Means:
    """What commands work with.

    Attributes:
        stores: from an address to a store.
        clock: the source of time.
        ids: the source of identifiers.
    """

    stores: Stores
    clock: Clock
    ids: IdSource


def usual_means() -> Means:
    """Real stores and real time."""
    clock = SystemClock()
    return Means(open_store, clock, UlidSource(clock))


class Site:
    """One cluster, for the time of one command.

    Attributes:
        folder: of its configuration.
        said: what there is to say so far.
        configuration: what it should be; None where it could not be read.
    """

    def __init__(self, folder: Path, means: Means, *, said: Diagnostics, reads_files: bool = True) -> None:
        """Read the configuration in a folder, and see where the cluster lies.

        Args:
            folder: the folder.
            means: what to work with.
            said: gets everything that is wrong.
            reads_files: read the files it names too; who only looks at the ledger needs none of them.

        Raises:
            StoppedError: there is no such storage.
        """
        self.folder = folder
        self.said = said
        self.means = means
        read = read_configuration if reads_files else read_place
        self.configuration: Configuration | None = read(folder, said)
        self._written: Written | None = None
        self._found_lock: Held | None = None
        self._own_lock: Held | None = None
        self._open_storage()

    def _open_storage(self) -> None:
        self.root = str(self.folder) if self.configuration is None else self.configuration.storage
        try:
            self.store: ObjectStore = self.means.stores(self.root)
        except GraphError as fault:
            self.said.error("storage_root_invalid", "storage", f"the storage cannot be used: {fault}")
            raise StoppedError from None
        self.root = self.store.uri
        clock, ids = self.means.clock, self.means.ids
        self.ledger = Ledger(self.store)
        self.lock = Lock(self.store, clock=clock, ids=ids)
        self.approvals = Approvals(self.store)
        self.sidecars = Sidecars(self.store)
        self.graphs = ClusterGraphs(self.root, self.means.stores, clock=clock, ids=ids)

    def require_configuration(self) -> None:
        """See that it is known where the cluster lies, whatever else is wrong.

        Raises:
            StoppedError: it is not.
        """
        if self.configuration is None:
            raise StoppedError

    @property
    def usable(self) -> Configuration:
        """The configuration, if nothing is wrong with it.

        Raises:
            StoppedError: something is.
        """
        if self.configuration is None or not self.said.is_ok:
            raise StoppedError
        return self.configuration

    def read(self) -> Written:
        """The ledger as it is now.

        Raises:
            StoppedError: it cannot be read.
        """
        try:
            self._written = self.ledger.read()
        except LedgerFaultError as fault:
            self.said.error(fault.code, layout.STATE, str(fault))
            raise StoppedError from None
        return self._written

    def require(self) -> Written:
        """The ledger, which must be there.

        Raises:
            StoppedError: it is not, or cannot be read.
        """
        written = self.read()
        if not written.is_there:
            message = "this cluster has no ledger yet; run: omnigraph cluster import"
            self.said.error("state_missing", layout.STATE, message)
            raise StoppedError
        return written

    def write(self, base: Written, state: State | None) -> None:
        """Put the next state; None where the one there is stays.

        Raises:
            StoppedError: it cannot be put, or somebody was faster.
        """
        self.check_lock()
        try:
            if state is None:
                self.ledger.copy(base)
            else:
                self._written = self.ledger.write(base, state)
        except LedgerFaultError as fault:
            self.said.error(fault.code, layout.STATE, str(fault))
            raise StoppedError from None

    @contextmanager
    def locked(self, operation: str) -> Iterator[None]:
        """Hold the lock meanwhile, if the configuration wants one.

        Raises:
            StoppedError: somebody else holds it.
        """
        if self.configuration is not None and not self.configuration.declared.uses_lock:
            message = "the lock is turned off: see that nobody else is at work"
            self.said.warning("state_lock_disabled", "state.lock", message)
            yield
            return
        try:
            own = self._own_lock = self.lock.take(operation, self.said)
        except LockFaultError as fault:
            self.look_at_lock()
            self.said.error(fault.code, layout.LOCK, str(fault))
            raise StoppedError from None
        try:
            with self.lock.living(own):
                yield
        except (Exception, KeyboardInterrupt):
            # Not `finally`: whoever dies gives nothing back, and tests die here too.
            self.lock.give_back(own, self.said)
            raise
        self.lock.give_back(own, self.said)

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
            self.said.error(fault.code, layout.LOCK, str(fault))
            raise StoppedError from None

    def look_at_lock(self) -> None:
        """See who holds the lock, for `observations`."""
        try:
            self._found_lock = self.lock.read()
        except LockFaultError as fault:
            self.said.warning(fault.code, layout.LOCK, str(fault))

    def lost_payloads(self, state: State) -> dict[str, tuple[str, str]]:
        """The resources whose stored text is not as the ledger says, with a diagnostic's code and the reason."""
        return {
            address: (_AS_LEDGER_SAYS.get(damage.code, damage.code), damage.message)
            for address, damage in payloads(self.store, state.digests).items()
            if isinstance(damage, FormatError)
        }

    def observations(self) -> dict[str, Any]:
        """What there is to know about the ledger and the lock."""
        written = self._written or Written(State())
        state = written.state
        found: dict[str, Any] = {
            "state_path": layout.storage_path(self.root, layout.STATE),
            "lock_path": layout.storage_path(self.root, layout.LOCK),
            "state_found": written.is_there,
        }
        if state.config_digest is not None:
            found["applied_config_digest"] = state.config_digest
        found["state_revision"] = state.revision
        if written.cas is not None:
            found["state_cas"] = written.cas
        found["resource_count"] = len(state.resources)
        found["locked"] = self._found_lock is not None
        found["lock_acquired"] = self._own_lock is not None
        if self._own_lock is not None:
            found["acquired_lock_id"] = self._own_lock.lock_id
        return found if self._found_lock is None else {**found, **self.lock.observed(self._found_lock)}

    def warn_of_pending_work(self) -> list[str]:
        """Say what an earlier command left under way; the graphs it is about."""
        try:
            pending, faults = self.sidecars.left_behind()
        except GraphError as fault:
            self.said.error("recovery_sidecar_read_error", layout.RECOVERIES, str(fault))
            return []
        for path, reason in faults:
            self.said.warning("recovery_sidecar_read_error", path, reason)
        for each in pending:
            message = f"{each.kind} of {each.started_at} was not finished; run: omnigraph cluster apply"
            self.said.warning("cluster_recovery_pending", f"graph.{each.graph_id}", message)
        return [each.graph_id for each in pending]
