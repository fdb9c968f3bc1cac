"""An external store in PostgreSQL: for any number of machines. Needs the extra `omnigraph[postgres]`."""

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import ClassVar

import psycopg
from psycopg import errors

from omnigraph import limits
from omnigraph.storage.external_stores.sql import TABLE, SqlExternalStore
from omnigraph.storage.object_store import OutcomeUnknown, StoreError, StoreRefused, StoreTransient

# Paths sort by their bytes here as they do in object stores, whatever language the database speaks.
_SETUP = (
    f"""
    CREATE TABLE IF NOT EXISTS {TABLE} (
        root TEXT COLLATE "C" NOT NULL, path TEXT COLLATE "C" NOT NULL, location TEXT COLLATE "C" NOT NULL,
        PRIMARY KEY (root, path)
    )""",
    f"CREATE INDEX IF NOT EXISTS {TABLE}_unfinished ON {TABLE} (root, path) WHERE location <> path",
)
# A database set up to lose its last transactions with its power would lose commits.
_DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
# What waits for a lock is ended by the server, and then certainly not done; a server that hangs, by `_time_limit`.
_BOUNDED = f"SELECT set_config('statement_timeout', '{int(limits.EXTERNAL_WAIT_S * 1000)}', false)"
# Two processes that make the table at once: one of them is told so in one of these ways.
_MADE_BY_ANOTHER = (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject)
# How much longer than the server's own limit a client waits.
_PATIENCE = 1.5
# The statement was rolled back, or never began.
_NOT_DONE = (errors.TransactionRollback, errors.QueryCanceled, errors.LockNotAvailable, errors.TooManyConnections)


class PostgresExternalStore(SqlExternalStore):
    """Entries in one table of the database, which is made when it is first needed."""

    _value: ClassVar[str] = "%s"

    def __init__(self, address: str) -> None:
        """A store in the database at `address`.

        Args:
            address: a connection string: `postgresql://user@host/database`, or `key=value` pairs.
        """
        super().__init__()
        self._address = address
        self._connection: psycopg.Connection[tuple[str, ...]] | None = None

    def close(self) -> None:
        """Close the connection. A request after that makes a new one."""
        with self._lock:
            self._close()

    def _run(self, path: str, statement: str, values: Sequence[str | None]) -> Sequence[tuple[str, ...]]:
        with self._alone(path):
            connection = self._connected(path)
            try:
                # The text is put together from constants only; every value goes beside it.
                with _time_limit(connection):
                    return connection.execute(statement, values).fetchall()
            except psycopg.Error as error:
                self._close()
                raise _mapped(error, path) from error

    def _connected(self, path: str) -> psycopg.Connection[tuple[str, ...]]:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        try:
            self._connection = self._connect()
        except psycopg.OperationalError as error:
            # Nothing was asked yet. A server that starts or is out of connections looks the same as a wrong address.
            raise StoreTransient(f"cannot reach the external store: {error}", path=path) from error
        except psycopg.Error as error:
            raise StoreRefused(f"cannot use the external store: {error}", path=path) from error
        return self._connection

    def _connect(self) -> psycopg.Connection[tuple[str, ...]]:
        connection: psycopg.Connection[tuple[str, ...]] = psycopg.connect(
            self._address,
            autocommit=True,
            connect_timeout=int(limits.EXTERNAL_WAIT_S),
            client_encoding="utf8",  # else a database without an encoding of its own answers in bytes
        )
        try:
            with _time_limit(connection):
                connection.execute(_DURABLE)
                connection.execute(_BOUNDED)
                for statement in _SETUP:
                    with suppress(*_MADE_BY_ANOTHER):
                        connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@contextmanager
def _time_limit(connection: psycopg.Connection[tuple[str, ...]]) -> Iterator[None]:
    """Hang up on a server that does not answer: the driver itself would wait for as long as it takes."""

    def hang_up() -> None:
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(limits.EXTERNAL_WAIT_S * _PATIENCE, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _mapped(error: psycopg.Error, path: str) -> StoreError:
    message = f"the external store failed on {path!r}: {error}"
    if isinstance(error, _NOT_DONE):
        return StoreTransient(message, path=path)
    if isinstance(error, psycopg.OperationalError) and not isinstance(error, errors.DiskFull):
        return OutcomeUnknown(message, path=path)
    return StoreRefused(message, path=path)
