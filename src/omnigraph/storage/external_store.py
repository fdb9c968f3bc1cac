"""The port to a key-value store that decides races where the object store itself cannot.

Some object stores have no put-if-absent. Beside them stands a small store that has: for every object created with
put-if-absent it holds one entry, (root, path) → where the object's bytes are. First that is a staged object, and from
then on the object exists; once the bytes have been copied to their final place the entry names that, its own path.

Failures are those of the object store's port: ObjectExists, StoreTransient, StoreRefused, OutcomeUnknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ExternalEntry:
    """What the external store knows about one object.

    Attributes:
        path: of the object.
        location: where its bytes are: at a staged path, or at `path` itself.
    """

    path: str
    location: str

    @property
    def is_final(self) -> bool:
        """Whether the bytes are where they belong."""
        return self.location == self.path


class ExternalStore(Protocol):
    """What every external store must do. Every request is atomic and, once answered, durable."""

    def get(self, root: str, path: str) -> ExternalEntry | None:
        """The entry of an object, or None."""
        ...

    def put_if_absent(self, root: str, path: str, staged: str) -> None:
        """Create an entry that names a staged object; of several writers exactly one succeeds.

        Raises:
            ObjectExists: there is one already. It may be our own, from an earlier try.
            OutcomeUnknown: the answer was lost.
        """
        ...

    def replace(self, root: str, path: str, *, expected: str, location: str) -> bool:
        """Let an entry name another location, if it still names the expected one; whether it did."""
        ...

    def unfinished(self, root: str, prefix: str) -> Sequence[ExternalEntry]:
        """The entries below a folder that still name a staged object, in order of their paths."""
        ...

    def delete(self, root: str, path: str, *, expected: str | None = None) -> ExternalEntry | None:
        """Remove an entry, if given only while it names the expected location; the entry that was removed."""
        ...

    def delete_prefix(self, root: str, prefix: str) -> None:
        """Remove every entry below a folder."""
        ...

    def close(self) -> None:
        """Give back what the store holds open. A request after that opens it again."""
        ...
