"""What every object store must do, and one class per implementation that does it."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.support.interleaving import race_in_processes
from tests.support.postgres_server import PostgresServer
from tests.support.s3_server import S3Server
from tests.support.unfenced_store import UnfencedStore

from omnigraph.storage.external_stores import SqliteExternalStore
from omnigraph.storage.external_stores.postgres import PostgresExternalStore
from omnigraph.storage.object_store import ObjectExists, ObjectNotFound, ObjectStore, StoreRefused
from omnigraph.storage.object_stores import (
    Durability,
    ExternallyFencedStore,
    LocalStore,
    MemoryStore,
    RetryingStore,
    S3Store,
    open_store,
)
from omnigraph.testing.stores import CountingStore, DelayingStore, FaultyStore

BUCKET = "omnigraph-tests"
U64_MAX = 2**64 - 1
AWKWARD_NAMES = (
    "a b",
    "a%2Fb",
    "a%20b",
    "a+b",
    "é",
    "ü/ß",
    "日本",
    "x~!@$&*()[]{}^`'\"<>|\\;=?,:",
    "a#b",
    "#1a",
    "-",
    "_",
)
NOT_PATHS = ("", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "a/../b", "../a", "a\nb", "a\x00b", "a#1", "a#12/b", "#0")
NOT_FOLDERS = ("a", "/", "a//", "../", "./", "a/../", "a\n/", "a#1/")
RACERS = 6
PROCESSES = 3


def paths(store: ObjectStore, prefix: str = "", *, limit: int | None = None) -> list[str]:
    return [listed.path for listed in store.list(prefix, limit=limit)]


class ObjectStoreContract:
    """What every ObjectStore must do."""

    @pytest.fixture
    def store(self) -> ObjectStore:
        raise NotImplementedError("each implementation gives its own")

    def test_what_was_put_is_what_is_read(self, store: ObjectStore) -> None:
        store.put("a/b.json", b"bytes \x00\xff")
        assert store.get("a/b.json") == b"bytes \x00\xff"

    def test_a_put_replaces_what_is_there(self, store: ObjectStore) -> None:
        store.put("a", b"a longer first one")
        store.put("a", b"second")
        assert store.get("a") == b"second"

    def test_an_empty_object_is_an_object(self, store: ObjectStore) -> None:
        store.put("empty/put", b"")
        store.put_if_absent("empty/created", b"")
        assert store.get("empty/put") == b""
        assert [(listed.path, listed.size) for listed in store.list("empty/")] == [
            ("empty/created", 0),
            ("empty/put", 0),
        ]

    def test_a_large_object_survives(self, store: ObjectStore) -> None:
        body = bytes(range(256)) * 16_384
        store.put_if_absent("large", body)
        assert store.get("large") == body

    def test_reading_what_is_not_there_says_so_and_names_it(self, store: ObjectStore) -> None:
        with pytest.raises(ObjectNotFound) as missing:
            store.get("a/nothing")
        assert missing.value.path == "a/nothing"
        assert "a/nothing" in str(missing.value)

    def test_a_folder_is_not_an_object(self, store: ObjectStore) -> None:
        store.put("folder/a", b"1")
        with pytest.raises(ObjectNotFound):
            store.get("folder")
        store.delete("folder")
        assert store.get("folder/a") == b"1"

    def test_an_object_is_not_a_folder(self, store: ObjectStore) -> None:
        store.put("a", b"1")
        assert paths(store, "a/") == []
        with pytest.raises(ObjectNotFound):
            store.get("a/b")

    def test_put_if_absent_refuses_a_path_that_exists(self, store: ObjectStore) -> None:
        store.put_if_absent("a", b"1")
        with pytest.raises(ObjectExists) as refused:
            store.put_if_absent("a", b"2")
        assert refused.value.path == "a"
        assert store.get("a") == b"1"

    def test_put_if_absent_refuses_a_path_that_a_plain_put_made(self, store: ObjectStore) -> None:
        store.put("a", b"1")
        with pytest.raises(ObjectExists):
            store.put_if_absent("a", b"2")
        assert store.get("a") == b"1"

    def test_an_object_is_told_from_the_one_put_in_its_place_or_nothing_is_told(self, store: ObjectStore) -> None:
        assert store.identity("a/b") in ((), None)
        store.put("a/b", b"1")
        first = store.identity("a/b")
        assert first == store.identity("a/b") != ()
        store.delete("a/b")
        assert store.identity("a/b") in ((), None)
        store.put("a/b", b"1")
        assert first is None or store.identity("a/b") not in (first, ())

    def test_a_deleted_path_can_be_created_again(self, store: ObjectStore) -> None:
        store.put_if_absent("a/b", b"1")
        store.delete("a/b")
        store.put_if_absent("a/b", b"2")
        assert store.get("a/b") == b"2"

    def test_of_many_threads_exactly_one_creates_a_path(self, store: ObjectStore) -> None:
        start = threading.Barrier(RACERS)
        races = [f"race/{number}" for number in range(10)]

        def race(racer: int) -> list[str]:
            won = []
            for path in races:
                start.wait()
                try:
                    store.put_if_absent(path, f"{racer}".encode())
                except ObjectExists:
                    continue
                won.append(path)
            return won

        with ThreadPoolExecutor(RACERS) as threads:
            winners = list(threads.map(race, range(RACERS)))

        assert sorted(path for won in winners for path in won) == sorted(races)
        for racer, won in enumerate(winners):
            assert [store.get(path) for path in won] == [f"{racer}".encode()] * len(won)
        assert paths(store, "race/") == sorted(races)

    def test_a_listing_is_in_order_of_whole_paths(self, store: ObjectStore) -> None:
        # Sorted folder by folder, `a.json` would come behind everything in `a/`.
        ordered = ["a-b/1", "a.json", "a/b.json", "a/b/c", "a/c", "a0", "ab/1", "b"]
        for path in reversed(ordered):
            store.put(path, path.encode())
        assert paths(store) == ordered

    def test_the_newest_log_entry_is_listed_first(self, store: ObjectStore) -> None:
        for number in range(12):
            store.put_if_absent(f"log/main/{U64_MAX - number:020}.json", b"")
        assert paths(store, "log/main/", limit=2) == [f"log/main/{U64_MAX - number:020}.json" for number in (11, 10)]

    def test_a_listing_takes_the_whole_folder_name(self, store: ObjectStore) -> None:
        for path in ("a/1", "a/x/2", "ab/1", "b/a/1", "a.txt"):
            store.put(path, b"")
        assert paths(store, "a/") == ["a/1", "a/x/2"]
        assert paths(store, "a/x/") == ["a/x/2"]

    @pytest.mark.parametrize("limit", [0, 1, 3, 5, 100])
    def test_a_listing_gives_no_more_than_asked_for(self, store: ObjectStore, limit: int) -> None:
        there = [f"a/{number}" for number in range(5)]
        for path in there:
            store.put(path, b"")
        assert paths(store, "a/", limit=limit) == there[:limit]
        assert paths(store, "", limit=limit) == there[:limit]

    def test_a_listing_tells_size_and_time(self, store: ObjectStore) -> None:
        store.put("first", b"123")
        store.put_if_absent("second", b"12345")
        first, second = store.list("")
        assert (first.size, second.size) == (3, 5)
        assert first.modified_us > 0
        assert second.modified_us >= first.modified_us

    def test_where_nothing_is_nothing_is_listed(self, store: ObjectStore) -> None:
        assert paths(store) == []
        assert paths(store, "nowhere/") == []
        assert list(store.list_folders("")) == []
        assert list(store.list_folders("nowhere/")) == []

    def test_a_folder_exists_as_long_as_an_object_in_it(self, store: ObjectStore) -> None:
        store.put("a/b/c", b"")
        assert list(store.list_folders("")) == ["a"]
        assert list(store.list_folders("a/")) == ["b"]
        store.delete("a/b/c")
        assert paths(store, "a/") == []
        assert list(store.list_folders("")) == []
        assert list(store.list_folders("a/")) == []

    def test_folders_are_listed_by_name_in_order_and_without_objects(self, store: ObjectStore) -> None:
        for path in ("x/b/1", "x/b/2", "x/a/deep/1", "x/ab/1", "x/file", "xy/c/1", "x/a%2Fc/1"):
            store.put(path, b"")
        assert list(store.list_folders("x/")) == ["a", "a%2Fc", "ab", "b"]
        assert list(store.list_folders("")) == ["x", "xy"]

    @pytest.mark.parametrize("name", AWKWARD_NAMES)
    def test_a_name_is_kept_as_it_is(self, store: ObjectStore, name: str) -> None:
        path = f"names/{name}"
        store.put_if_absent(path, name.encode())
        assert store.get(path) == name.encode()
        assert paths(store, "names/") == [path]
        with pytest.raises(ObjectExists):
            store.put_if_absent(path, b"")
        store.copy(path, f"copies/{name}")
        assert store.get(f"copies/{name}") == name.encode()
        store.delete(path)
        assert paths(store) == [f"copies/{name}"]
        store.delete_prefix("copies/")
        assert paths(store) == []

    def test_a_copy_is_a_second_object(self, store: ObjectStore) -> None:
        store.put_if_absent("a/1", b"first")
        store.put("b/2", b"replaced")
        store.copy("a/1", "b/2")
        store.delete("a/1")
        assert store.get("b/2") == b"first"

    def test_nothing_cannot_be_copied(self, store: ObjectStore) -> None:
        with pytest.raises(ObjectNotFound):
            store.copy("nothing", "target")
        assert paths(store) == []

    def test_deleting_twice_is_no_error(self, store: ObjectStore) -> None:
        store.put("a/b", b"")
        store.delete("a/b")
        store.delete("a/b")
        store.delete("never/there")
        assert paths(store) == []

    def test_many_are_deleted_at_once_and_those_that_are_not_there_are_no_error(self, store: ObjectStore) -> None:
        for number in range(12):
            store.put(f"a/{number:02d}", b"")
        store.put_if_absent("a/created", b"")
        store.delete_many([*(f"a/{number:02d}" for number in range(1, 12)), "a/created", "never/there"])
        store.delete_many([])
        assert paths(store) == ["a/00"]

    def test_deleting_a_folder_deletes_all_below_and_nothing_beside(self, store: ObjectStore) -> None:
        for path in ("a/1", "a/b/2", "a/b/c/3", "ab/1", "a.json"):
            store.put(path, b"")
        store.put_if_absent("a/created", b"")
        store.delete_prefix("a/")
        store.delete_prefix("a/")
        store.delete_prefix("nowhere/")
        assert paths(store) == ["a.json", "ab/1"]
        store.put_if_absent("a/created", b"again")
        assert store.get("a/created") == b"again"

    def test_deleting_the_root_folder_deletes_everything(self, store: ObjectStore) -> None:
        store.put("a/1", b"")
        store.put_if_absent("b", b"")
        store.delete_prefix("")
        assert paths(store) == []
        store.put_if_absent("b", b"")

    @pytest.mark.parametrize("path", NOT_PATHS)
    def test_what_is_no_path_is_refused_everywhere(self, store: ObjectStore, path: str) -> None:
        store.put("source", b"")
        requests: tuple[Callable[[], object], ...] = (
            lambda: store.get(path),
            lambda: store.put(path, b""),
            lambda: store.put_if_absent(path, b""),
            lambda: store.copy("source", path),
            lambda: store.copy(path, "target"),
            lambda: store.delete(path),
        )
        for request in requests:
            with pytest.raises(StoreRefused):
                request()
        assert paths(store) == ["source"]

    @pytest.mark.parametrize("prefix", NOT_FOLDERS)
    def test_what_is_no_folder_is_refused_everywhere(self, store: ObjectStore, prefix: str) -> None:
        requests: tuple[Callable[[], object], ...] = (
            lambda: store.list(prefix),
            lambda: store.list_folders(prefix),
            lambda: store.delete_prefix(prefix),
        )
        for request in requests:
            with pytest.raises(StoreRefused):
                request()

    def test_proving_conditional_puts_leaves_nothing_behind(self, store: ObjectStore) -> None:
        store.put("a", b"")
        store.prove_put_if_absent()
        store.prove_put_if_absent()
        assert paths(store) == ["a"]
        assert list(store.list_folders("")) == []

    def test_what_was_written_can_be_made_durable(self, store: ObjectStore) -> None:
        store.put("a/b/1", b"")
        store.put("a/2", b"")
        store.make_durable([])
        store.make_durable(["a/b/1"])
        store.make_durable(["a"])
        assert paths(store) == ["a/2", "a/b/1"]

    def test_a_store_says_where_it_is(self, store: ObjectStore) -> None:
        assert store.uri
        assert not store.uri.endswith("/") or store.uri.endswith("://")
        assert all(isinstance(name, str) and isinstance(value, str) for name, value in store.table_options.items())


class TestLocalStore(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path / "graph")


class TestLocalStoreThatDoesNotSync(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path / "graph", durability=Durability.PROCESS)


class TestMemoryStore(ObjectStoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore()


@pytest.mark.s3
class TestS3Store(ObjectStoreContract):
    @pytest.fixture
    def store(self, s3_store: S3Store) -> ObjectStore:
        return s3_store


class TestRetryingStore(ObjectStoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return RetryingStore(MemoryStore())


class TestCountingStore(ObjectStoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return CountingStore(MemoryStore())


class TestDelayingStore(ObjectStoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return DelayingStore(MemoryStore(), seconds=0.0001)


class TestFaultyStoreWithNoFaultArmed(ObjectStoreContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return FaultyStore(MemoryStore())


class TestStoreFencedBySqlite(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[ObjectStore]:
        external = SqliteExternalStore(tmp_path / "external.db")
        yield ExternallyFencedStore(UnfencedStore(MemoryStore()), external)
        external.close()


class TestLocalStoreFencedBySqlite(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[ObjectStore]:
        external = SqliteExternalStore(tmp_path / "external.db")
        inner = LocalStore(tmp_path / "graph", durability=Durability.PROCESS)
        yield ExternallyFencedStore(UnfencedStore(inner), external)
        external.close()


@pytest.mark.postgres
class TestStoreFencedByPostgres(ObjectStoreContract):
    @pytest.fixture
    def store(self, postgres_server: PostgresServer, s3_prefix: str) -> Iterator[ObjectStore]:
        external = PostgresExternalStore(postgres_server.address)
        yield ExternallyFencedStore(UnfencedStore(MemoryStore(s3_prefix)), external)
        external.close()


def assert_one_process_wins_each_race(make_store: Callable[[], ObjectStore]) -> None:
    races = [f"race/{number:02}" for number in range(30)]

    winners = race_in_processes(make_store, races, processes=PROCESSES)

    assert sorted(path for won in winners for path in won) == races
    store = make_store()
    for racer, won in enumerate(winners):
        assert [store.get(path) for path in won] == [f"{racer}".encode()] * len(won)


class TestRacesBetweenProcesses:
    def test_exactly_one_process_creates_a_path_on_local_disk(self, tmp_path: Path) -> None:
        assert_one_process_wins_each_race(partial(LocalStore, tmp_path))

    @pytest.mark.s3
    def test_exactly_one_process_creates_a_path_on_s3(self, s3_server: S3Server, s3_prefix: str) -> None:
        assert_one_process_wins_each_race(partial(S3Store, BUCKET, s3_prefix, options=s3_server.options))

    def test_exactly_one_process_creates_a_path_where_sqlite_decides(self, tmp_path: Path) -> None:
        external = f"sqlite://{tmp_path}/external.db"
        assert_one_process_wins_each_race(partial(open_store, str(tmp_path / "graph"), external=external))

    @pytest.mark.postgres
    def test_exactly_one_process_creates_a_path_where_postgres_decides(
        self, tmp_path: Path, postgres_server: PostgresServer
    ) -> None:
        external = postgres_server.address
        assert_one_process_wins_each_race(partial(open_store, str(tmp_path / "graph"), external=external))
