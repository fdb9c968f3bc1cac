"""The port to object storage: the few requests everything else is built from.

Paths are relative to the store's root, with `/` between segments. Every foreign error is mapped to one of the five
classes below, by what it tells the caller; none other leaves an implementation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


class StoreError(Exception):
    """The base of what a store can answer instead of a result.

    Attributes:
        path: what the request was about.
    """

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class ObjectNotFound(StoreError):  # noqa: N818  (an answer, not a fault)
    """There is no object at the path."""


class ObjectExists(StoreError):  # noqa: N818  (an answer, not a fault)
    """A conditional put found an object at the path. It may be our own, from an earlier try."""


class StoreTransient(StoreError):  # noqa: N818
    """Nothing was done, or the request can be sent again without harm: try again later."""


class StoreRefused(StoreError):  # noqa: N818
    """The store says no for good: permission, full disk, a read-only directory, a wrong address."""


class OutcomeUnknown(StoreError):  # noqa: N818
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
        """Delete an object; deleting what is not there is no error."""
        ...

    def delete_prefix(self, prefix: str) -> None:
        """Delete every object below a folder, recursively; doing it twice is no error."""
        ...

    def make_durable(self, paths: Sequence[str]) -> None:
        """Return only when these files, written beside this port by the table library, would survive losing power."""
        ...
