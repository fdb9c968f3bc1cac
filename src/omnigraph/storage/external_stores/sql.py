"""The statements of an external store that speaks SQL. Each is one transaction of its own."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from omnigraph import limits
from omnigraph.storage.external_store import ExternalEntry
from omnigraph.storage.object_store import ObjectExists, OutcomeUnknown, StoreTransient

TABLE = "omnigraph_entries"
_BEHIND_ALL_PATHS = chr(0x10FFFF)


class SqlExternalStore(ABC):
    """Entries as rows of one table with the key (root, path).

    Subclasses hold the connection: they make the table, run statements and say what went wrong.
    """

    # How this database writes a value to be filled in.
    _value: ClassVar[str]

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def get(self, root: str, path: str) -> ExternalEntry | None:
        """The entry of an object, or None."""
        v = self._value
        return _one(self._read(path, f"SELECT path, location FROM {TABLE} WHERE root = {v} AND path = {v}", root, path))

    def put_if_absent(self, root: str, path: str, staged: str) -> None:
        """Create an entry that names a staged object; of several writers exactly one succeeds."""
        v = self._value
        statement = f"INSERT INTO {TABLE} VALUES ({v}, {v}, {v}) ON CONFLICT DO NOTHING RETURNING path"
        if not self._write(path, statement, root, path, staged):
            raise ObjectExists(f"there is an entry for {path!r} already", path=path)

    def replace(self, root: str, path: str, *, expected: str, location: str) -> bool:
        """Let an entry name another location, if it still names the expected one; whether it did."""
        v = self._value
        statement = f"UPDATE {TABLE} SET location = {v} WHERE root = {v} AND path = {v} AND location = {v}"
        return bool(self._write(path, f"{statement} RETURNING path", location, root, path, expected))

    def unfinished(self, root: str, prefix: str) -> Sequence[ExternalEntry]:
        """The entries below a folder that still name a staged object, in order of their paths."""
        v = self._value
        statement = (
            f"SELECT path, location FROM {TABLE} WHERE root = {v} AND path >= {v} AND path < {v} AND location <> path"
        )
        rows = self._read(prefix, f"{statement} ORDER BY path", root, *_bounds(prefix))
        return [ExternalEntry(*row) for row in rows]

    def delete(self, root: str, path: str, *, expected: str | None = None) -> ExternalEntry | None:
        """Remove an entry, if given only while it names the expected location; the entry that was removed."""
        v = self._value
        statement = f"DELETE FROM {TABLE} WHERE root = {v} AND path = {v} AND location = coalesce({v}, location)"
        return _one(self._write(path, f"{statement} RETURNING path, location", root, path, expected))

    def delete_prefix(self, root: str, prefix: str) -> None:
        """Remove every entry below a folder."""
        v = self._value
        statement = f"DELETE FROM {TABLE} WHERE root = {v} AND path >= {v} AND path < {v} RETURNING path"
        self._write(prefix, statement, root, *_bounds(prefix))

    def __del__(self) -> None:
        # One that was opened by its address has nobody else to close it.
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Give back what the store holds open. A request after that opens it again."""

    def _read(self, path: str, statement: str, *values: str | None) -> Sequence[tuple[str, ...]]:
        """The rows of a query; an answer that does not come is transient."""
        try:
            return self._run(path, statement, values)
        except OutcomeUnknown as error:
            raise StoreTransient(str(error), path=path) from error

    def _write(self, path: str, statement: str, *values: str | None) -> Sequence[tuple[str, ...]]:
        """The rows a change returns; an answer that does not come leaves the outcome unknown."""
        return self._run(path, statement, values)

    @contextmanager
    def _alone(self, path: str) -> Iterator[None]:
        """Hold the one connection; a thread waits no longer for the others than it would for the database."""
        if not self._lock.acquire(timeout=limits.EXTERNAL_WAIT_S):
            raise StoreTransient(f"the external store is busy with other requests than that for {path!r}", path=path)
        try:
            yield
        finally:
            self._lock.release()

    @abstractmethod
    def _run(self, path: str, statement: str, values: Sequence[str | None]) -> Sequence[tuple[str, ...]]:
        """Run a statement and return its rows; failures are errors of stores."""


def _bounds(prefix: str) -> tuple[str, str]:
    """The first path below a folder, and the first behind all of them."""
    return (prefix, prefix[:-1] + chr(ord("/") + 1)) if prefix else ("", _BEHIND_ALL_PATHS)


def _one(rows: Sequence[tuple[str, ...]]) -> ExternalEntry | None:
    return ExternalEntry(*rows[0]) if rows else None
