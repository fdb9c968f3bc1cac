"""Leases: a reader or a long job notes that it still uses a commit, so that no sweep takes it away.

Optional: without one, what is pruned stays readable for the protection window. A lease is renewed while its holder
lives; one that was not renewed for as long as it was given is worth nothing, so a dead holder holds nothing for ever.
Ages are told by the store's own clock.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from omnigraph import limits
from omnigraph.errors import FormatError, InvalidRequestError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import Listed, ObjectNotFound, StoreError
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.liveness import Heartbeat
from omnigraph.transaction.retention import check_kept
from omnigraph.transaction.validation import require_seconds as seconds_of

_FORMAT = 1
_RENEWALS = 3  # in the time a lease was given


@dataclass(frozen=True, slots=True)
class Lease:
    """The record of one lease.

    Attributes:
        id: its ULID.
        branch: in whose log the commit's entry is.
        number: the entry's number.
        commit: the commit the entry shows.
        seconds: for how long it is good without being renewed.
    """

    id: str
    branch: str
    number: int
    commit: str
    seconds: float


@dataclass(frozen=True, slots=True)
class FoundLease:
    """A lease on the store.

    Attributes:
        lease: what it says.
        modified_us: when it was last renewed, by the store's clock.
    """

    lease: Lease
    modified_us: int

    def is_good(self, now_us: int) -> bool:
        """Whether it still holds something, at a time by the store's clock."""
        return now_us - self.modified_us <= self.lease.seconds * 1_000_000


@contextlib.contextmanager
def leased(parts: GraphContext, entry: Record, seconds: float) -> Iterator[Lease]:
    """Hold a commit while the block runs, and for `seconds` longer if the process dies in it.

    Args:
        entry: what to hold.
        seconds: for how long the lease is good without being renewed.

    Raises:
        ReclaimedError: a prune has passed the entry already.
        NotFoundError: its branch is gone.
        InvalidRequestError: nobody can have a lease for so long.
    """
    parts.refuse_read_only()
    if not 0 < seconds_of(seconds, "a lease") <= limits.LEASE_S_MAX:
        raise InvalidRequestError(f"a lease is for more than 0 and at most {limits.LEASE_S_MAX} seconds")
    lease = Lease(parts.ids.new(), entry.branch, entry.number, entry.head_commit, seconds)
    body = json.dumps({"format": _FORMAT} | asdict(lease)).encode()
    path = paths.lease(lease.id)

    def renew() -> None:
        parts.store.put(path, body)

    renewing = Heartbeat(renew, every_s=seconds / _RENEWALS, name="lease")
    renew()
    try:
        reached(Failpoint.LEASE_PUT)
        # Put first, asked then: whoever sweeps from here on sees the lease, and who began before has spared the commit.
        check_kept(parts, entry)
        renewing.begin()
        yield lease
    finally:
        renewing.fall_silent()
        with contextlib.suppress(StoreError):  # it runs out by itself
            parts.store.delete(path)


def leases(parts: GraphContext) -> list[FoundLease]:
    """Every lease on the store, run out or not.

    Raises:
        FormatError: one cannot be read, so nobody can say what it holds.
    """
    found = (read_lease(parts, listed) for listed in parts.store.list(paths.LEASES))
    return [lease for lease in found if lease is not None]


def read_lease(parts: GraphContext, listed: Listed) -> FoundLease | None:
    """One lease; None where it was given back meanwhile.

    Raises:
        FormatError: it cannot be read.
    """
    where = paths.absolute(parts.store, listed.path)
    try:
        document = json.loads(parts.store.get(listed.path))
        if document.pop("format") > _FORMAT:
            raise FormatError(
                f"the lease {where} is of a newer format: upgrade omnigraph first", code="format_newer", path=where
            )
        document.pop("stages", None)  # of earlier releases
        lease = replace(Lease(**document), number=int(document["number"]), seconds=float(document["seconds"]))
    except ObjectNotFound:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise FormatError(f"the lease {where} is damaged: {fault}", path=where) from fault
    return FoundLease(lease, listed.modified_us)
