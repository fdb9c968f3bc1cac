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
from omnigraph.transaction.pruning.retention import check_kept
from omnigraph.transaction.validation import require_seconds as seconds_of

_FORMAT = 1
_RENEWALS = 3  # in the time a lease was given


@dataclass(frozen=True, slots=True)
class Lease:
    """The record of one lease."""

    id: str
    branch: str  # in whose log the commit's entry is
    number: int
    commit: str  # the commit the entry shows
    seconds: float  # for how long it is good without being renewed


@dataclass(frozen=True, slots=True)
class FoundLease:
    """A lease on the store."""

    lease: Lease
    modified_us: int  # when it was last renewed, by the store's clock

    def is_good(self, now_us: int) -> bool:
        """Whether it still holds something, at a time by the store's clock."""
        return now_us - self.modified_us <= self.lease.seconds * 1_000_000


@contextlib.contextmanager
def leased(context: GraphContext, entry: Record, seconds: float) -> Iterator[Lease]:
    """Hold a commit that is still kept while the block runs, and for `seconds` longer if the process dies in it."""
    context.refuse_read_only()
    if not 0 < seconds_of(seconds, "a lease") <= limits.LEASE_S_MAX:
        raise InvalidRequestError(f"a lease is for more than 0 and at most {limits.LEASE_S_MAX} seconds")
    lease = Lease(context.ids.new(), entry.branch, entry.number, entry.head_commit, seconds)
    body = json.dumps({"format": _FORMAT} | asdict(lease)).encode()
    path = paths.lease(lease.id)

    def renew() -> None:
        context.store.put(path, body)

    renewing = Heartbeat(renew, every_s=seconds / _RENEWALS, name="lease")
    renew()
    try:
        reached(Failpoint.LEASE_PUT)
        # Put first, asked then: whoever sweeps from here on sees the lease, and who began before has spared the commit.
        check_kept(context, entry)
        renewing.begin()
        yield lease
    finally:
        renewing.fall_silent()
        with contextlib.suppress(StoreError):  # it runs out by itself
            context.store.delete(path)


def leases(context: GraphContext) -> list[FoundLease]:
    """Every lease on the store, run out or not."""
    found = (read_lease(context, listed) for listed in context.store.list(paths.LEASES))
    return [lease for lease in found if lease is not None]


def read_lease(context: GraphContext, listed: Listed) -> FoundLease | None:
    """One lease; None where it was given back meanwhile."""
    where = paths.absolute(context.store, listed.path)
    try:
        document = json.loads(context.store.get(listed.path))
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
