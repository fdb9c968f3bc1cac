"""An external store in a SQLite file: for any number of processes on one machine."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import ClassVar

from omnigraph import limits
from omnigraph.storage.external_stores.sql import TABLE, SqlExternalStore
from omnigraph.storage.object_store import OutcomeUnknown, StoreError, StoreRefused, StoreTransient

_SETUP = f"""
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS {TABLE} (
        root TEXT NOT NULL, path TEXT NOT NULL, location TEXT NOT NULL, PRIMARY KEY (root, path)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS {TABLE}_unfinished ON {TABLE} (root, path) WHERE location <> path;
"""
# Somebody else holds the file: nothing was done.
_BUSY = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED"})
# The disk failed under the statement: what is in the journal then decides whether it happened.
_UNCLEAR = frozenset({"SQLITE_IOERR", "SQLITE_INTERRUPT"})


class SqliteExternalStore(SqlExternalStore):
    """Entries in one table of one file, which is made when it is first needed."""

    _value: ClassVar[str] = "?"

    def __init__(self, file: str | Path) -> None:
        super().__init__()
        self._file = Path(file).resolve()
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the file. A request after that opens it again."""
        with self._lock:
            self._close()

    def _run(self, path: str, statement: str, values: Sequence[str | None]) -> Sequence[tuple[str, ...]]:
        with self._alone(path):
            try:
                if self._connection is None:
                    self._connection = self._connect()
                with closing(self._connection.execute(statement, values)) as cursor:
                    return cursor.fetchall()
            except sqlite3.Error as error:
                self._close()
                raise self._mapped(error, path) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._file, timeout=limits.EXTERNAL_WAIT_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.executescript(_SETUP)
        except BaseException:
            connection.close()
            raise
        return connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _mapped(self, error: sqlite3.Error, path: str) -> StoreError:
        message = f"the external store {self._file} failed on {path!r}: {error}"
        # Extended names begin with the general one: SQLITE_IOERR_FSYNC.
        general = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
        if general in _BUSY:
            return StoreTransient(message, path=path)
        if general in _UNCLEAR:
            return OutcomeUnknown(message, path=path)
        return StoreRefused(message, path=path)
