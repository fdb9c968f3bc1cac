"""Listing branches and tags, on every kind of store alike."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import operations as op

from omnigraph.branch import branches, tags
from omnigraph.ids import UlidSource
from omnigraph.model.commit import MAIN
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores import S3Store
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.storage.object_stores.open import open_store
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.root import open_root

NAMES = ["a", "a-b", "a/b", "a.b", "a0", "a b", "ä", "z" * 180]


class BranchListingContract:
    """What must hold wherever a graph lies."""

    def test_names_are_listed_whatever_became_of_them(self, store: ObjectStore) -> None:
        parts = op.new_graph(store)
        for name in NAMES:
            branches.create(parts, name)
            tags.create(parts, name, parts.log.live_head(name))
        assert branches.names(parts) == sorted([*NAMES, MAIN])
        assert tags.names(parts) == sorted(NAMES)
        for name in NAMES[::2]:
            branches.delete(parts, name)
            tags.delete(parts, name)
        for name in NAMES[::4]:
            branches.create(parts, name)
            tags.create(parts, name, parts.log.live_head(name))
        left = sorted({*NAMES[1::2], *NAMES[::4]})
        for looking in (open_root(store, read_only=True), parts, open_root(store)):
            assert branches.names(looking) == sorted([*left, MAIN])
            assert tags.names(looking) == left


class TestInMemory(BranchListingContract):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore(f"listing-{UlidSource().new()}")


class TestOnLocalDisk(BranchListingContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path / "graph", durability=Durability.PROCESS)


class TestFencedOutside(BranchListingContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return open_store(str(tmp_path / "graph"), durability="process", external=f"sqlite://{tmp_path / 'fence.db'}")


class TestOnS3(BranchListingContract):
    @pytest.fixture
    def store(self, s3_store: S3Store) -> ObjectStore:
        return s3_store


def test_a_thousand_branches_are_listed_without_looking_into_a_log(tmp_path: Path) -> None:
    made: Callable[[int], str] = "branch/{:04d}".format
    store = LocalStore(tmp_path / "graph", durability=Durability.PROCESS)
    parts = op.new_graph(store)
    for number in range(1_000):
        branches.create(parts, made(number))
    counting = CountingStore(store)
    looking = open_root(counting, read_only=True)
    counting.reset()
    assert branches.names(looking) == sorted([MAIN, *map(made, range(1_000))])
    assert counting.counts() == {RequestKind.LIST: 1}
