"""What only the store on local disk does: temporary files, syncs, links, permissions, folders."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from omnigraph.storage.object_store import (
    ObjectExists,
    ObjectNotFound,
    OutcomeUnknown,
    StoreRefused,
    StoreTransient,
)
from omnigraph.storage.object_stores import Durability, LocalStore
from omnigraph.storage.object_stores import sync as sync_module

NOBODY = 65534
BEFORE_THE_LINK = ((errno.ENOSPC, StoreRefused), (errno.EDQUOT, StoreRefused), (errno.EIO, StoreTransient))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "graph"


@pytest.fixture
def store(root: Path) -> LocalStore:
    return LocalStore(root, durability=Durability.PROCESS)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike those pytest makes."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def without_privileges() -> Iterator[None]:
    """As a user to whom permissions apply; root passes through all of them."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


class TestTemporaryFiles:
    def test_are_not_listed_not_addressable_and_make_no_folder(self, store: LocalStore, root: Path) -> None:
        store.put("recovery/01H.json", b"")
        (root / "recovery" / "01H.json#3").write_bytes(b"")
        (root / "under way").mkdir()
        (root / "under way" / "a#18446744073709551615").write_bytes(b"")
        assert [listed.path for listed in store.list("")] == ["recovery/01H.json"]
        assert list(store.list_folders("")) == ["recovery"]
        with pytest.raises(StoreRefused, match="file under way"):
            store.get("recovery/01H.json#3")

    def test_look_like_no_other_name(self, store: LocalStore) -> None:
        for name in ("a#b", "a#1b", "#", "a#", "a#1.json"):
            store.put(f"names/{name}", b"")
        assert len(list(store.list("names/"))) == 5

    def test_go_with_their_folder(self, store: LocalStore, root: Path) -> None:
        store.put("a/b/1", b"")
        (root / "a" / "b" / "2#7").write_bytes(b"")
        store.delete_prefix("a/")
        assert list(root.iterdir()) == []

    def test_are_gone_after_every_put_however_it_ended(
        self, store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.put("a", b"1")
        store.put_if_absent("b", b"1")
        with pytest.raises(ObjectExists):
            store.put_if_absent("b", b"2")
        monkeypatch.setattr(os, "write", failing(errno.ENOSPC))
        with pytest.raises(StoreRefused):
            store.put("c", b"3")
        assert files_below(root) == ["a", "b"]

    def test_of_very_long_names_are_not_longer_still(self, store: LocalStore) -> None:
        name = "x" * 250
        store.put_if_absent(name, b"1")
        assert store.get(name) == b"1"
        with pytest.raises(StoreRefused, match="too long"):
            store.put("x" * 300, b"")


class TestFailures:
    @pytest.mark.parametrize(("number", "error"), BEFORE_THE_LINK)
    @pytest.mark.parametrize("call", ["write", "fsync"])
    def test_before_the_name_appears_nothing_was_done(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception], call: str
    ) -> None:
        store = LocalStore(root)
        store.put("there", b"old")
        monkeypatch.setattr(os, call, failing(number))
        with pytest.raises(error, match=f"'new' in {root}: {os.strerror(number)}"):
            store.put_if_absent("new", b"1")
        with pytest.raises(error):
            store.put("there", b"new")
        assert files_below(root) == ["there"]
        assert store.get("there") == b"old"

    @pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
    def test_after_the_name_appeared_the_outcome_is_unknown(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        store = LocalStore(root)
        store.put("folder/settled", b"")
        store.put("other/settled", b"")
        monkeypatch.setattr(sync_module, "sync_file", failing(number))
        with pytest.raises(OutcomeUnknown):
            store.put_if_absent("folder/new", b"1")
        with pytest.raises(OutcomeUnknown):
            store.put("other/settled", b"2")
        assert (store.get("folder/new"), store.get("other/settled")) == (b"1", b"2")

    def test_of_a_link_that_is_not_answered_leave_the_outcome_unknown(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "link", failing(errno.ETIMEDOUT))
        with pytest.raises(OutcomeUnknown):
            store.put_if_absent("a", b"1")

    @pytest.mark.parametrize("number", [errno.EEXIST, errno.ETIMEDOUT])
    def test_of_a_link_that_was_made_all_the_same_are_none(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        real_link = os.link

        def link_and_lose_the_answer(*arguments: str) -> None:
            real_link(*arguments)
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "link", link_and_lose_the_answer)
        store.put_if_absent("a", b"1")
        assert store.get("a") == b"1"

    @pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
    def test_to_link_at_all_are_told_plainly(
        self, store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        foreign = root / "__probe#1"
        root.mkdir()
        foreign.write_bytes(b"somebody else's")
        monkeypatch.setattr(os, "link", failing(number))
        with pytest.raises(StoreRefused, match="cannot link files"):
            store.prove_put_if_absent()
        with pytest.raises(StoreRefused, match="cannot link files"):
            store.put_if_absent("a", b"1")
        assert files_below(root) == ["__probe#1"]

    def test_of_a_file_system_that_links_over_a_file_are_told_plainly(
        self, store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "link", shutil.copyfile)
        with pytest.raises(StoreRefused, match="lets a link replace"):
            store.prove_put_if_absent()
        assert files_below(root) == []

    def test_in_a_folder_that_may_not_be_written_are_loud(self, open_folder: Path) -> None:
        store = LocalStore(open_folder)
        store.put("folder/a", b"1")
        (open_folder / "folder").chmod(0o555)
        with without_privileges():
            assert store.get("folder/a") == b"1"
            writes: tuple[Callable[[], object], ...] = (
                lambda: store.put("folder/b", b""),
                lambda: store.put_if_absent("folder/b", b""),
                lambda: store.put("new/b", b""),
                lambda: store.delete("folder/a"),
                lambda: store.delete_prefix("folder/"),
                store.prove_put_if_absent,
            )
            for write in writes:
                with pytest.raises(StoreRefused, match="Permission denied"):
                    write()
        assert files_below(open_folder) == ["folder/a"]

    def test_to_read_are_not_taken_for_absence(self, open_folder: Path) -> None:
        store = LocalStore(open_folder)
        store.put("closed/a", b"")
        store.put("file", b"")
        (open_folder / "file").chmod(0o000)
        (open_folder / "closed").chmod(0o000)
        reads: tuple[Callable[[], object], ...] = (
            lambda: store.get("file"),
            lambda: store.get("closed/a"),
            lambda: list(store.list("closed/")),
            lambda: list(store.list("")),
            lambda: list(store.list_folders("")),
            lambda: store.copy("file", "copy"),
        )
        with without_privileges():
            for read in reads:
                with pytest.raises(StoreRefused, match="Permission denied"):
                    read()
        (open_folder / "closed").chmod(0o755)


class TestFolders:
    def test_that_are_empty_are_nothing(self, store: LocalStore, root: Path) -> None:
        (root / "empty" / "below").mkdir(parents=True)
        assert list(store.list("")) == []
        assert list(store.list_folders("")) == []
        with pytest.raises(ObjectNotFound):
            store.get("empty")

    def test_that_vanish_are_made_again(self, store: LocalStore, root: Path) -> None:
        store.put("a/b/1", b"")
        shutil.rmtree(root)
        store.put_if_absent("a/b/2", b"")
        assert [listed.path for listed in store.list("")] == ["a/b/2"]

    @pytest.mark.parametrize("call", ["mkdir", "open", "link", "rename"])
    def test_deleted_under_a_writer_at_any_moment_are_made_again(
        self, store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        real = getattr(os, call)
        moments = [True, True, True]

        def delete_and_go_on(*arguments: object, **options: object) -> object:
            if moments.pop(0) if moments else False:
                LocalStore(root).delete_prefix("a/")
            return real(*arguments, **options)

        monkeypatch.setattr(os, call, delete_and_go_on)
        write = store.put if call == "rename" else store.put_if_absent
        write("a/b/c/1", b"1")
        assert moments == []
        assert store.get("a/b/c/1") == b"1"
        assert files_below(root) == ["a/b/c/1"]

    def test_that_never_stay_are_given_up_on(
        self, store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = os.link

        def delete_and_go_on(*arguments: str) -> None:
            shutil.rmtree(root)
            real(*arguments)

        monkeypatch.setattr(os, "link", delete_and_go_on)
        with pytest.raises(StoreTransient, match="vanishes"):
            store.put_if_absent("a/b", b"")

    def test_and_files_do_not_share_a_name(self, store: LocalStore) -> None:
        store.put("file", b"")
        store.put("folder/a", b"")
        writes: tuple[Callable[[], None], ...] = (
            lambda: store.put("file/below", b""),
            lambda: store.put_if_absent("file/below", b""),
            lambda: store.put("folder", b""),
            lambda: store.put_if_absent("folder", b""),
        )
        for write in writes:
            with pytest.raises(StoreRefused, match="stands in its way"):
                write()
        assert [listed.path for listed in store.list("")] == ["file", "folder/a"]

    def test_that_are_links_are_neither_listed_nor_emptied(self, store: LocalStore, root: Path, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "precious").write_bytes(b"")
        store.put("a/1", b"")
        (root / "a" / "link").symlink_to(outside)
        (root / "a" / "file link").symlink_to(outside / "precious")
        assert [listed.path for listed in store.list("")] == ["a/1"]
        store.delete_prefix("a/")
        assert files_below(outside) == ["precious"]


class TestRoot:
    def test_has_one_name_however_it_is_spelled(
        self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root.mkdir()
        (tmp_path / "link").symlink_to(root)
        monkeypatch.chdir(tmp_path)
        spellings = (root, tmp_path / "link", "graph", "./link/", f"{tmp_path}/other/../graph/")
        assert {LocalStore(spelling).uri for spelling in spellings} == {str(root.resolve())}

    def test_is_made_by_the_first_write_and_not_by_reading(self, store: LocalStore, root: Path) -> None:
        assert list(store.list("")) == []
        with pytest.raises(ObjectNotFound):
            store.get("a")
        assert not root.exists()
        store.put("a", b"")
        assert files_below(root) == ["a"]


class TestSyncs:
    @pytest.fixture
    def events(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What is done to the disk, in order: syncs by the name of what was synced, and naming."""
        seen: list[str] = []
        real_sync, real_link, real_rename = os.fsync, os.link, os.rename

        def sync(handle: int) -> None:
            name = Path(f"/proc/self/fd/{handle}").readlink().name
            seen.append("sync temporary" if "#" in name else f"sync {name}")
            real_sync(handle)

        def link(*arguments: str) -> None:
            seen.append("link")
            real_link(*arguments)

        def rename(*arguments: str) -> None:
            seen.append("rename")
            real_rename(*arguments)

        monkeypatch.setattr(os, "fsync", sync)
        monkeypatch.setattr(os, "link", link)
        monkeypatch.setattr(os, "rename", rename)
        return seen

    def test_come_before_the_name_and_after_it(self, root: Path, events: list[str]) -> None:
        store = LocalStore(root)
        store.put("log/main/0", b"")
        events.clear()
        store.put_if_absent("log/main/1", b"1")
        assert events == ["sync temporary", "link", "sync main"]
        events.clear()
        store.put("log/main/hint", b"1")
        assert events == ["sync temporary", "rename", "sync main"]

    def test_reach_every_new_folder_once_per_process(self, root: Path, events: list[str]) -> None:
        LocalStore(root).put("log/main/0", b"")
        assert events == [
            *("sync log", "sync graph", f"sync {root.parent.name}"),
            *("sync temporary", "rename", "sync main"),
        ]
        events.clear()
        # Another process may have made these folders a moment ago.
        LocalStore(root).put("log/main/1", b"")
        assert "sync log" in events

    def test_give_way_to_writing_out_where_the_file_system_keeps_order_and_only_the_process_may_die(
        self, root: Path, events: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def write_out(handle: int) -> None:
            name = Path(f"/proc/self/fd/{handle}").readlink().name
            events.append("write temporary" if "#" in name else f"write {name}")

        monkeypatch.setattr(sync_module, "keeps_order", lambda _: True)
        monkeypatch.setattr(sync_module, "write_out", write_out)
        store = LocalStore(root, durability="process")
        store.put("a/b", b"1")
        assert events[-3:] == ["write temporary", "rename", "sync a"], "a folder that was made stays"
        events.clear()
        store.put("a/b", b"2")
        store.put_if_absent("a/c", b"1")
        store.make_durable(["a"])
        assert events[:4] == ["write temporary", "rename", "write temporary", "link"]
        assert sorted(events[4:]) == ["write b", "write c"]

    def test_are_all_made_on_a_file_system_that_keeps_no_order(
        self, root: Path, events: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sync_module, "keeps_order", lambda _: False)
        store = LocalStore(root, durability="process")
        store.put("log/main/0", b"")
        events.clear()
        store.put_if_absent("log/main/1", b"1")
        assert events == ["sync temporary", "link", "sync main"]

    def test_of_a_few_files_touch_them_and_their_folders_only(self, root: Path, events: list[str]) -> None:
        store = LocalStore(root)
        (root / "nodes" / "t" / "data").mkdir(parents=True)
        for name in ("1.lance", "2.lance"):
            (root / "nodes" / "t" / "data" / name).write_bytes(b"rows")
        store.make_durable(["nodes/t/data/1.lance"])
        folders = ("data", "graph", "nodes", "t", root.parent.name)
        assert sorted(events) == sorted(f"sync {name}" for name in ("1.lance", *folders))
        events.clear()
        store.make_durable(["nodes/t/data/2.lance"])
        assert events == ["sync 2.lance", "sync data"]

    def test_of_a_folder_reach_every_file_in_it(self, root: Path, events: list[str]) -> None:
        store = LocalStore(root)
        (root / "nodes" / "t" / "data").mkdir(parents=True)
        (root / "nodes" / "t" / "top").write_bytes(b"")
        (root / "nodes" / "t" / "data" / "deep").write_bytes(b"")
        store.make_durable(["nodes/t/"])
        assert {"sync top", "sync deep", "sync data", "sync t", "sync nodes", "sync graph"} <= set(events)

    def test_of_many_files_are_one_for_the_whole_file_system(
        self, root: Path, events: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls: list[Path] = []
        real = sync_module._sync_file_system

        def sync_file_system(folder: Path) -> None:
            calls.append(folder)
            real(folder)

        monkeypatch.setattr(sync_module, "_sync_file_system", sync_file_system)
        (root / "data").mkdir(parents=True)
        paths = [f"data/{number}" for number in range(20)]
        for path in paths:
            (root / path).write_bytes(b"")
        LocalStore(root).make_durable(paths)
        assert calls == [root]
        assert events == []
        with pytest.raises(ObjectNotFound):
            LocalStore(root).make_durable([*paths, "data/missing"])

    def test_of_what_is_not_there_say_so(self, root: Path) -> None:
        root.mkdir()
        with pytest.raises(ObjectNotFound, match="missing"):
            LocalStore(root).make_durable(["data/missing"])

    def test_that_fail_are_never_worth_repeating(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        store = LocalStore(root)
        store.put("a", b"")
        monkeypatch.setattr(os, "fsync", failing(errno.EIO))
        with pytest.raises(StoreRefused):
            store.make_durable(["a"])

    def test_of_a_name_that_failed_are_not_made_good_by_a_second_one(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = LocalStore(root)
        store.put("log/1", b"")
        real = os.fsync

        def sync(handle: int) -> None:
            if Path(f"/proc/self/fd/{handle}").readlink().name == "log":
                raise OSError(errno.EIO, "lost pages")
            real(handle)

        with monkeypatch.context() as failing_disk:
            failing_disk.setattr(os, "fsync", sync)
            with pytest.raises(OutcomeUnknown):
                store.put_if_absent("log/2", b"")
        with pytest.raises(OutcomeUnknown, match="could not be synced before"):
            store.make_durable(["log/2"])
        with pytest.raises(StoreRefused, match="open the graph again"):
            store.put_if_absent("log/3", b"")
        LocalStore(root).put_if_absent("log/3", b"")


class TestOrder:
    def test_is_not_kept_by_what_only_lies_in_memory(self) -> None:
        assert not sync_module.keeps_order(Path("/proc"))

    def test_files_written_out_are_whole(self, root: Path) -> None:
        (root / "below").mkdir(parents=True)
        for name in ("empty", "below/full"):
            (root / name).write_bytes(b"" if name == "empty" else b"rows" * 5_000)
        sync_module.write_out_all([root])
        with pytest.raises(FileNotFoundError):
            sync_module.write_out_all([root / "missing"])
