"""The port to object storage: the few requests everything else is built from.

Paths are relative to the store's root, with `/` between segments. Every foreign error is mapped to one of the five
classes below, by what it tells the caller; none other leaves an implementation.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from omnigraph import limits
from omnigraph.errors import (
    AlreadyExistsError,
    GraphError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from omnigraph.ids import IdSource

# `name#7`: how files under way are named beside their targets, by us on local disk and by the table library.
_TEMPORARY = re.compile(r"#[0-9]+(?=/|\Z)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class StoreError(GraphError):
    """The base of what a store can answer instead of a result; each is also the error a caller of the graph meets.

    Attributes:
        path: what the request was about.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        # The default is for errors that travel between processes: they are made first and given the rest afterwards.
        super().__init__(message, path=path)
        self.path = path


class ObjectNotFound(StoreError, NotFoundError):  # noqa: N818  (an answer, not a fault)
    """There is no object at the path."""


class ObjectExists(StoreError, AlreadyExistsError):  # noqa: N818  (an answer, not a fault)
    """A conditional put found an object at the path. It may be our own, from an earlier try."""


class StoreTransient(StoreError, UnavailableError):  # noqa: N818  (named for what happened; callers know them by it)
    """Nothing was done, or the request can be sent again without harm: try again later."""


class StoreRefused(StoreError, UnavailableError):  # noqa: N818  (named for what happened; callers know them by it)
    """The store says no for good: permission, full disk, a read-only directory, a wrong address."""


class OutcomeUnknown(StoreError, OutcomeUnknownError):  # noqa: N818  (named for what happened; callers know them by it)
    """A write was sent and its answer lost: it may have happened. Read back before concluding anything."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One object of a listing."""

    path: str
    size: int
    modified_us: int


class ObjectStore(Protocol):
    """What every store must do."""

    @property
    def uri(self) -> str:
        """Where the root is, for messages and for opening tables: a folder, `memory://…` or `s3://bucket/prefix`."""
        ...

    @property
    def is_fenced_outside(self) -> bool:
        """Whether an external store, not this one, decides who comes first in a conditional put."""
        ...

    def fence_id(self) -> str | None:
        """The id of the external store that decides; None where none does."""
        ...

    @property
    def is_near(self) -> bool:
        """Whether a request is answered as fast as a call, so that to make several at once gains nothing."""
        ...

    @property
    def table_options(self) -> Mapping[str, str]:
        """With which options the table library opens the same place: endpoint, region, keys; nothing on local disk."""
        ...

    def get(self, path: str) -> bytes:
        """The object's bytes.

        Raises:
            ObjectNotFound: there is none.
        """
        ...

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        """The objects below a folder (`prefix` ends with `/` or is empty), recursively, in order of their paths.

        Temporary files of writes under way are not objects and never listed. With `limit`, at most that many, and no
        more requests than those need.
        """
        ...

    def list_folders(self, prefix: str) -> Iterator[str]:
        """The names of the folders directly below `prefix`, in order."""
        ...

    def put(self, path: str, body: bytes) -> None:
        """Create or replace an object."""
        ...

    def put_if_absent(self, path: str, body: bytes) -> None:
        """Create an object; of several writers exactly one succeeds.

        Raises:
            ObjectExists: there is one already.
            OutcomeUnknown: the answer was lost.
        """
        ...

    def copy(self, source: str, target: str) -> None:
        """Copy an object, replacing the target."""
        ...

    def delete(self, path: str) -> None:
        """Delete an object; deleting what is not there is no error. Losing power may bring the object back."""
        ...

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects in as few requests as the store allows; where it fails, some may be gone and some not."""
        ...

    def delete_prefix(self, prefix: str) -> None:
        """Delete every object below a folder, recursively; doing it twice is no error."""
        ...

    def leftovers(self, *, before_us: int, delete: bool) -> Sequence[Listed]:
        """Temporary files, which listings omit, last written before a time: their writers died.

        With `delete` they are deleted, too.
        """
        ...

    def identity(self, path: str) -> tuple[int, ...] | None:
        """What tells an object from any that is put in its place later; empty where there is none.

        Never a request: None where only one could tell.
        """
        ...

    def make_durable(self, paths: Sequence[str]) -> None:
        """Return only when these files, written beside this port by the table library, would survive losing power."""
        ...

    def sync_always(self) -> None:
        """From now on, let every answered put survive losing power; nothing to do where it does anyway."""
        ...

    def prove_put_if_absent(self) -> int:
        """Show that of two conditional puts of one path the second is refused, and leave nothing behind.

        Returns the time by the store's own clock, in microseconds since 1970. Cheap on local disk; four requests
        elsewhere. For whoever is about to write for the first time.

        Raises:
            StoreRefused: the store cannot, or does not, refuse the second.
        """
        ...


def is_temporary(path: str) -> bool:
    """True if a segment of the path has the shape of a temporary file, `name#7`."""
    return _TEMPORARY.search(path) is not None


@lru_cache(maxsize=limits.NAMES_REMEMBERED_MAX)
def check_path(path: str) -> None:
    """Let only paths through that mean the same object in every store.

    Raises:
        StoreRefused: an empty segment, `.` or `..`, a control character, or the shape of a file under way.
    """
    if any(segment in {"", ".", ".."} for segment in path.split("/")):
        raise StoreRefused(f"{path!r} is not a path: it has an empty segment, '.' or '..'", path=path)
    if _CONTROL.search(path):
        raise StoreRefused(f"{path!r} is not a path: it has a control character", path=path)
    if is_temporary(path):
        raise StoreRefused(f"{path!r} cannot be addressed: the name is that of a file under way", path=path)


def check_prefix(prefix: str) -> None:
    """Let only folders through: nothing (the root), or a path with a `/` at its end.

    Raises:
        StoreRefused: anything else.
    """
    if prefix == "":
        return
    if not prefix.endswith("/"):
        raise StoreRefused(f"{prefix!r} is not a folder: it has no '/' at its end", path=prefix)
    check_path(prefix[:-1])


PROBE_FOLDER = "__probe/"
_STALE_PROBE_US = 3_600_000_000


def prove_by_trying(store: ObjectStore, ids: IdSource) -> int:
    """Put one fresh path twice, and delete it again; returns the time the store has given it, in microseconds.

    Raises:
        StoreRefused: the second put was not refused, or what was put is not listed.
    """
    probe = f"{PROBE_FOLDER}{ids.new()}"
    store.put_if_absent(probe, b"first")
    try:
        store.put_if_absent(probe, b"second")
    except ObjectExists:
        probes = {listed.path: listed.modified_us for listed in store.list(PROBE_FOLDER)}
        if probe in probes:
            for path, modified_us in probes.items():
                if probes[probe] - modified_us > _STALE_PROBE_US:
                    store.delete(path)  # of a process that died while it tried
            return probes[probe]
        raise StoreRefused(f"{store.uri} does not list what was just put there", path=probe) from None
    finally:
        store.delete(probe)
    raise StoreRefused(
        f"{store.uri} takes a conditional put of a path that exists, so it cannot tell which of two writers came "
        "first; use an external store",
        path=probe,
    )
