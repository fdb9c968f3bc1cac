"""What every external store must do, and one class per implementation that does it."""

import gc
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from tests.support.postgres_server import PostgresServer

from omnigraph import limits
from omnigraph.ids import UlidSource
from omnigraph.storage.external_store import ExternalEntry, ExternalStore
from omnigraph.storage.external_stores import SqliteExternalStore
from omnigraph.storage.external_stores.postgres import PostgresExternalStore
from omnigraph.storage.external_stores.sql import SqlExternalStore
from omnigraph.storage.object_store import (
    ObjectExists,
    OutcomeUnknown,
    StoreRefused,
    StoreTransient,
)

RACERS = 6


class ExternalStoreContract:
    """What every ExternalStore must do."""

    @pytest.fixture
    def external(self) -> ExternalStore:
        raise NotImplementedError("each implementation gives its own")

    @pytest.fixture
    def root(self) -> str:
        return f"memory://{UlidSource().new()}"

    def test_an_entry_is_found_as_it_was_put(self, external: ExternalStore, root: str) -> None:
        external.put_if_absent(root, "a/é %2F'\"", "staged")
        assert external.get(root, "a/é %2F'\"") == ExternalEntry("a/é %2F'\"", "staged")
        assert external.get(root, "a/other") is None

    def test_a_second_entry_for_one_path_is_refused(self, external: ExternalStore, root: str) -> None:
        external.put_if_absent(root, "a", "first")
        with pytest.raises(ObjectExists) as refused:
            external.put_if_absent(root, "a", "second")
        assert refused.value.path == "a"
        assert external.get(root, "a") == ExternalEntry("a", "first")

    def test_roots_know_nothing_of_each_other(self, external: ExternalStore, root: str) -> None:
        external.put_if_absent(root, "a", "here")
        external.put_if_absent(f"{root}/other", "a", "there")
        external.delete_prefix(f"{root}/other", "")
        assert external.get(root, "a") == ExternalEntry("a", "here")
        assert external.get(f"{root}/other", "a") is None

    def test_an_entry_is_replaced_only_if_it_is_as_expected(self, external: ExternalStore, root: str) -> None:
        external.put_if_absent(root, "a", "staged")
        assert not external.replace(root, "a", expected="another", location="a")
        assert external.get(root, "a") == ExternalEntry("a", "staged")
        assert external.replace(root, "a", expected="staged", location="a")
        assert not external.replace(root, "a", expected="staged", location="a")
        assert not external.replace(root, "nothing", expected="staged", location="nothing")
        entry = external.get(root, "a")
        assert entry is not None
        assert entry.is_final

    def test_unfinished_entries_are_listed_by_folder_in_order(self, external: ExternalStore, root: str) -> None:
        for path in ("b/1", "a/é", "a/2", "a/B", "a/b/3", "ab/1", "a.json", "a/done"):
            external.put_if_absent(root, path, f"staged {path}")
        external.replace(root, "a/done", expected="staged a/done", location="a/done")
        assert [entry.path for entry in external.unfinished(root, "a/")] == ["a/2", "a/B", "a/b/3", "a/é"]
        assert [entry.path for entry in external.unfinished(root, "")] == [
            *("a.json", "a/2", "a/B", "a/b/3", "a/é", "ab/1", "b/1"),
        ]
        assert external.unfinished(root, "a/b/") == [ExternalEntry("a/b/3", "staged a/b/3")]
        assert list(external.unfinished(root, "nowhere/")) == []

    def test_deleting_gives_back_what_was_deleted(self, external: ExternalStore, root: str) -> None:
        external.put_if_absent(root, "a", "staged")
        assert external.delete(root, "a", expected="another") is None
        assert external.delete(root, "a") == ExternalEntry("a", "staged")
        assert external.delete(root, "a") is None
        external.put_if_absent(root, "a", "again")
        assert external.delete(root, "a", expected="again") == ExternalEntry("a", "again")

    def test_deleting_a_folder_deletes_all_below_and_nothing_beside(self, external: ExternalStore, root: str) -> None:
        for path in ("a/1", "a/b/2", "ab/1", "a.json"):
            external.put_if_absent(root, path, "staged")
        external.delete_prefix(root, "a/")
        external.delete_prefix(root, "a/")
        assert [entry.path for entry in external.unfinished(root, "")] == ["a.json", "ab/1"]
        external.delete_prefix(root, "")
        assert list(external.unfinished(root, "")) == []

    def test_of_many_threads_exactly_one_creates_an_entry(self, external: ExternalStore, root: str) -> None:
        start = threading.Barrier(RACERS)

        def race(racer: int) -> bool:
            start.wait()
            try:
                external.put_if_absent(root, "a", f"{racer}")
            except ObjectExists:
                return False
            return True

        with ThreadPoolExecutor(RACERS) as threads:
            won = list(threads.map(race, range(RACERS)))

        assert won.count(True) == 1
        assert external.get(root, "a") == ExternalEntry("a", f"{won.index(True)}")

    def test_a_request_waits_no_longer_for_other_threads_than_for_the_store(
        self, external: ExternalStore, root: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert isinstance(external, SqlExternalStore)
        with monkeypatch.context() as patched, external._alone("another"):
            patched.setattr(limits, "EXTERNAL_WAIT_S", 0.01)
            with pytest.raises(StoreTransient, match="busy"):
                external.get(root, "a")
        assert external.get(root, "a") is None

    def test_a_closed_store_opens_again(self, external: ExternalStore, root: str) -> None:
        external.put_if_absent(root, "a", "staged")
        external.close()
        external.close()
        assert external.get(root, "a") == ExternalEntry("a", "staged")


class TestSqliteExternalStore(ExternalStoreContract):
    @pytest.fixture
    def external(self, tmp_path: Path) -> Iterator[ExternalStore]:
        store = SqliteExternalStore(tmp_path / "external.db")
        yield store
        store.close()

    def test_a_file_held_by_another_is_transient(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "EXTERNAL_WAIT_S", 0.01)
        store, other = (SqliteExternalStore(tmp_path / "external.db") for _ in range(2))
        store.put_if_absent("root", "a", "staged")
        connection = other._connect()
        connection.execute("BEGIN EXCLUSIVE")
        try:
            with pytest.raises(StoreTransient, match="locked"):
                store.put_if_absent("root", "b", "staged")
            connection.execute("ROLLBACK")
        finally:
            connection.close()
        store.put_if_absent("root", "b", "staged")
        store.close()

    def test_a_file_that_is_no_database_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "external.db").write_bytes(b"something else entirely, and long enough to be looked at" * 100)
        with pytest.raises(StoreRefused, match="not a database"):
            SqliteExternalStore(tmp_path / "external.db").get("root", "a")

    def test_every_change_is_synced(self, tmp_path: Path) -> None:
        connection = SqliteExternalStore(tmp_path / "external.db")._connect()
        try:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        finally:
            connection.close()


@pytest.mark.postgres
class TestPostgresExternalStore(ExternalStoreContract):
    @pytest.fixture
    def external(self, postgres_server: PostgresServer) -> Iterator[ExternalStore]:
        store = PostgresExternalStore(postgres_server.address)
        yield store
        store.close()

    def test_a_connection_that_breaks_leaves_a_write_unknown_and_a_read_transient(
        self, postgres_server: PostgresServer, root: str
    ) -> None:
        store = PostgresExternalStore(postgres_server.address)
        other = PostgresExternalStore(postgres_server.address)

        def break_connection() -> None:
            assert store._connection is not None
            other._read("", "SELECT pg_terminate_backend(%s)::text", str(store._connection.info.backend_pid))

        store.put_if_absent(root, "a", "staged")
        break_connection()
        with pytest.raises(OutcomeUnknown):
            store.put_if_absent(root, "b", "staged")
        assert store.get(root, "b") is None
        break_connection()
        with pytest.raises(StoreTransient):
            store.get(root, "a")
        assert store.get(root, "a") == ExternalEntry("a", "staged")
        store.close()
        other.close()

    def test_a_server_that_is_not_there_is_transient(self, tmp_path: Path) -> None:
        store = PostgresExternalStore(f"postgresql:///postgres?host={tmp_path}")
        with pytest.raises(StoreTransient, match="cannot reach"):
            store.put_if_absent("root", "a", "staged")

    def test_a_database_that_may_not_be_written_is_refused(self, postgres_server: PostgresServer, root: str) -> None:
        store = PostgresExternalStore(f"{postgres_server.address}&options=-cdefault_transaction_read_only%3Don")
        with pytest.raises(StoreRefused):
            store.put_if_absent(root, "a", "staged")
        store.close()

    def test_a_store_that_nobody_closes_closes_itself(self, postgres_server: PostgresServer) -> None:
        store = PostgresExternalStore(postgres_server.address)
        store.get("root", "a")
        connection = store._connection
        assert connection is not None
        del store
        gc.collect()
        assert connection.closed

    def test_a_database_that_does_not_wait_for_its_disk_is_made_to(self, postgres_server: PostgresServer) -> None:
        store = PostgresExternalStore(f"{postgres_server.address}&options=-csynchronous_commit%3Doff")
        assert store._read("", "SELECT current_setting('synchronous_commit')") == [("on",)]
        store.close()

    def test_many_that_make_the_table_at_once_do_not_disturb_each_other(self, postgres_server: PostgresServer) -> None:
        schema = f"s{UlidSource().new().lower()}"
        with psycopg.connect(postgres_server.address, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        address = f"{postgres_server.address}&options=-csearch_path%3D{schema}"
        start = threading.Barrier(RACERS)

        def put(racer: int) -> None:
            store = PostgresExternalStore(address)
            start.wait()
            store.put_if_absent("root", f"{racer}", "staged")
            store.close()

        with ThreadPoolExecutor(RACERS) as threads:
            list(threads.map(put, range(RACERS)))
        store = PostgresExternalStore(address)
        assert [entry.path for entry in store.unfinished("root", "")] == [f"{racer}" for racer in range(RACERS)]
        store.close()

    def test_a_backend_that_hangs_ends_the_request_and_not_the_process(
        self, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "EXTERNAL_WAIT_S", 1.0)
        store = PostgresExternalStore(postgres_server.address)
        store.get("root", "a")
        assert store._connection is not None
        backend = store._connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        try:
            with pytest.raises(StoreTransient):
                store.get("root", "a")
        finally:
            os.kill(backend, signal.SIGCONT)
        assert store.get("root", "a") is None
