"""A folder on a local disk.

An object is written to a file nobody lists, synced, and then given its name: by `rename` when it may replace another,
by `link` when it must not. A name therefore always shows a whole object, and of several links exactly one succeeds.

Invariants:
    No loss of power leaves a name without the bytes behind it, nor without a name given before it.
    A put that was answered survives losing power (with durability "power").
    After a folder could not be synced, nothing that was put there is called durable.
    A folder without objects in it does not exist, as far as the port tells.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import islice
from pathlib import Path

from omnigraph import limits
from omnigraph.storage.object_store import (
    Listed,
    ObjectExists,
    ObjectNotFound,
    OutcomeUnknown,
    StoreRefused,
    StoreTransient,
    check_path,
    check_prefix,
)
from omnigraph.storage.object_stores import sync
from omnigraph.storage.object_stores.local_listing import TRANSIENT_ERRNOS, leftovers, map_os_error, walk, walk_folders

_CANNOT_LINK = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
# A name and its `#` and 20 digits together must stay below the 255 bytes most file systems allow.
_TEMPORARY_STEM_CHARACTERS = 50


class Durability(StrEnum):
    """What an answered put survives.

    "process" waits for less only where the file system keeps the order of changes (see `sync.keeps_order`); on any
    other it is "power".
    """

    POWER = "power"
    PROCESS = "process"


class LocalStore:
    """Objects as files below one folder."""

    def __init__(self, root: str | Path, *, durability: Durability | str = Durability.POWER) -> None:
        # Links are followed once, here, so that two spellings of one folder are one root.
        self._root = Path(root).resolve()
        self._prefix = f"{self._root}/".replace("//", "/")
        self._durability = Durability(durability)
        self._settled: set[str] = set()
        self._unsynced: set[str] = set()

    @property
    def uri(self) -> str:
        """The folder, absolute, with no symbolic link in it."""
        return str(self._root)

    @property
    def is_fenced_outside(self) -> bool:
        """The file system's links decide."""
        return False

    def fence_id(self) -> None:
        """No external store decides here."""

    @property
    def is_near(self) -> bool:
        """It is a call of the system."""
        return True

    @property
    def table_options(self) -> Mapping[str, str]:
        """None are needed."""
        return {}

    def get(self, path: str) -> bytes:
        """The object's bytes."""
        check_path(path)
        try:
            # Without `Path` and buffering: every read of a branch's head comes through here.
            handle = os.open(f"{self._prefix}{path}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _read_whole(handle)
            finally:
                os.close(handle)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise ObjectNotFound(f"there is no object {path!r} in {self._root}", path=path) from None
        except OSError as error:
            raise map_os_error(self._root, error, "read", path) from error

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        """The objects below a folder, recursively, in order of their paths."""
        check_prefix(prefix)
        found = walk(self._root, prefix, in_full=limit is None)
        return found if limit is None else islice(found, limit)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """The names of the folders directly below `prefix` that hold an object, in order."""
        check_prefix(prefix)
        return walk_folders(self._root, prefix)

    def put(self, path: str, body: bytes) -> None:
        """Create or replace an object."""
        self._write(path, body, _rename)

    def put_if_absent(self, path: str, body: bytes) -> None:
        """Create an object; of several writers exactly one succeeds."""
        self._write(path, body, self._link)

    def copy(self, source: str, target: str) -> None:
        """Copy an object, replacing the target."""
        check_path(target)
        self.put(target, self.get(source))

    def delete(self, path: str) -> None:
        """Delete an object; deleting what is not there is no error.

        Its folder stays, though empty: the next put there then needs no new folder, which would have to be synced.
        """
        check_path(path)
        try:
            (self._root / path).unlink()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return
        except OSError as error:
            raise map_os_error(self._root, error, "delete", path) from error

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects, one after the other."""
        for path in paths:
            self.delete(path)

    def delete_prefix(self, prefix: str) -> None:
        """Delete every object below a folder, and with them the folders and files left by writers that died."""
        check_prefix(prefix)
        self._remove_below(self._root / prefix, prefix)
        if prefix:
            self._remove_folder(self._root / prefix)

    def leftovers(self, *, before_us: int, delete: bool) -> Sequence[Listed]:
        """Temporary files last written before a time; with `delete`, deleted."""
        return leftovers(self._root, before_us=before_us, delete=delete)

    def identity(self, path: str) -> tuple[int, ...] | None:
        """The file behind the name, and when it was written: numbers of files are used again, times are not."""
        try:
            found = os.stat(f"{self._prefix}{path}")  # noqa: PTH116  (asked at every look at a head: without a `Path`)
        except OSError:
            return ()
        return (found.st_dev, found.st_ino, found.st_mtime_ns)

    def make_durable(self, paths: Sequence[str]) -> None:
        """Sync these files, or all files of these folders, and the folders that lead to them."""
        for path in paths:
            check_path(path.removesuffix("/"))
            if f"{self._prefix}{path}".rpartition("/")[0] in self._unsynced:
                raise OutcomeUnknown(self._could_not_sync(path), path=path)
        files = [self._root / path for path in paths]
        try:
            if self._syncs:
                sync.sync_all(self._root, files, settled=self._settled)
            else:
                sync.write_out_all(files)
        except FileNotFoundError as error:
            raise ObjectNotFound(
                f"cannot sync what is not there: {error.filename}", path=str(error.filename)
            ) from error
        except OSError as error:
            # Never transient: after a failed sync the system may call the lost pages clean, and a second one succeeds.
            raise StoreRefused(f"cannot sync what was written in {self._root}: {error}", path=paths[0]) from error

    def sync_always(self) -> None:
        """Promise what durability "power" promises."""
        self._durability = Durability.POWER
        self.__dict__.pop("_syncs", None)  # decided anew

    def prove_put_if_absent(self) -> int:
        """Prove, under temporary names, that a second link is refused; returns the file system's time."""
        probe = f"__probe#{_digits()}"
        first, second = self._root / f"{probe}1", self._root / f"{probe}2"
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            self._prove_link(first, second)
            return first.stat().st_mtime_ns // 1_000
        except OSError as error:
            raise map_os_error(self._root, error, "create", probe) from error
        finally:
            for file in (first, second):
                with contextlib.suppress(OSError):
                    file.unlink()

    def _prove_link(self, first: Path, second: Path) -> None:
        first.touch(exist_ok=False)
        try:
            second.hardlink_to(first)
        except OSError as error:
            raise self._cannot_link(error, second.name) or error from error
        try:
            second.hardlink_to(first)
        except FileExistsError:
            return
        raise StoreRefused(f"the file system of {self._root} lets a link replace a file", path=second.name)

    @cached_property
    def _syncs(self) -> bool:
        """True if an answer waits for syncs; needs the root to exist."""
        return self._durability is Durability.POWER or not sync.keeps_order(self._root)

    def _write(self, path: str, body: bytes, place: Callable[[str, str, str], None]) -> None:
        """Write the bytes beside the target and let `place` give them the name."""
        check_path(path)
        # Texts, not `Path`: every commit comes through here.
        target = f"{self._prefix}{path}"
        folder, _, name = target.rpartition("/")
        if folder in self._unsynced:
            raise StoreRefused(self._could_not_sync(path), path=path)
        for _ in range(limits.LOCAL_PUT_ATTEMPTS_MAX):
            try:
                is_new = self._settle(folder)
                temporary = self._write_temporary(f"{folder}/{name[:_TEMPORARY_STEM_CHARACTERS]}#{_digits()}", body)
                try:
                    place(temporary, target, path)
                finally:
                    with contextlib.suppress(OSError):
                        os.unlink(temporary)  # noqa: PTH108  (a path object costs more than the call)
            except (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError) as error:
                if self._is_blocked(Path(target)):
                    raise StoreRefused(
                        f"cannot write {path!r} in {self._root}: a file or folder stands in its way", path=path
                    ) from error
                # Somebody removed the folder, and with it our file: build both again.
                self._settled.discard(folder)
                continue
            except OSError as error:
                raise map_os_error(self._root, error, "write", path) from error
            # The first of a folder is synced in any case, so that a graph or branch that was made is there.
            if self._syncs or is_new:
                self._sync_name(folder, path)
            return
        raise StoreTransient(f"the folder of {path!r} in {self._root} vanishes as often as it is made", path=path)

    def _is_blocked(self, target: Path) -> bool:
        """Whether there is a folder where the file should be, or a file where one of its folders should be."""
        return target.is_dir() or any(above.exists() and not above.is_dir() for above in target.parents)

    def _write_temporary(self, temporary: str, body: bytes) -> str:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            try:
                left = memoryview(body)
                while left:
                    left = left[os.write(handle, left) :]
                if self._syncs:
                    os.fsync(handle)
                else:
                    sync.write_out(handle)
            finally:
                os.close(handle)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108  (a path object costs more than the call)
            raise
        return temporary

    def _link(self, temporary: str, target: str, path: str) -> None:
        try:
            os.link(temporary, target)
        except FileNotFoundError:
            raise
        except OSError as error:
            # A file server may have made the link and lost its own answer: the file then has two names.
            if _has_two_names(temporary):
                return
            if isinstance(error, FileExistsError) and not Path(target).is_dir():
                raise ObjectExists(f"there is an object {path!r} in {self._root} already", path=path) from None
            if error.errno in TRANSIENT_ERRNOS:
                raise OutcomeUnknown(
                    f"linking {path!r} in {self._root} was not answered: {error}", path=path
                ) from error
            raise self._cannot_link(error, path) or error from error

    def _sync_name(self, folder: str, path: str) -> None:
        try:
            sync.sync_file(Path(folder))
        except OSError as error:
            self._unsynced.add(folder)
            raise OutcomeUnknown(
                f"{path!r} was written in {self._root}, but its folder could not be synced: {error}", path=path
            ) from error

    def _could_not_sync(self, path: str) -> str:
        """The message for a folder that failed to sync: a second sync may succeed though the first lost names."""
        return (
            f"the folder of {path!r} in {self._root} could not be synced before, so what was put there may not survive "
            f"losing power; check the disk, then open the graph again"
        )

    def _settle(self, folder: str) -> bool:
        """Make the folder where there is none, safe from losing power; True if it was made."""
        if folder in self._settled:
            return False
        is_new = not Path(folder).is_dir()
        Path(folder).mkdir(parents=True, exist_ok=True)
        if self._syncs or is_new:
            # Whoever made these folders may not have synced them yet. Once per folder and process is enough.
            for above in sync.folders_above(self._root, Path(folder)):
                sync.sync_file(above)
        self._settled.add(folder)
        return is_new

    def _remove_below(self, folder: Path, prefix: str) -> None:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        self._remove_below(Path(entry.path), f"{prefix}{entry.name}/")
                        self._remove_folder(Path(entry.path))
                    else:
                        Path(entry.path).unlink(missing_ok=True)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise map_os_error(self._root, error, "delete", prefix) from error

    def _remove_folder(self, folder: Path) -> None:
        self._settled.discard(str(folder))
        # Gone already, or somebody has just put an object into it: both are well.
        with contextlib.suppress(OSError):
            folder.rmdir()

    def _cannot_link(self, error: OSError, path: str) -> StoreRefused | None:
        if error.errno not in _CANNOT_LINK:
            return None
        return StoreRefused(
            f"the file system of {self._root} cannot link files ({error.strerror}), so it cannot tell which of two "
            f"writers came first; put the graph on another file system, or use an external store",
            path=path,
        )


def _rename(temporary: str, target: str, _path: str) -> None:
    os.rename(temporary, target)  # noqa: PTH104  (a path object costs more than the call)


def _digits() -> str:
    return str(int.from_bytes(os.urandom(8), "big"))


def _has_two_names(file: str) -> bool:
    try:
        return os.stat(file).st_nlink == 2  # noqa: PTH116  (a path object costs more than the call)
    except OSError:
        return False


def _read_whole(handle: int) -> bytes:
    """All bytes of an open file; an object does not change, so its size is known."""
    size = os.fstat(handle).st_size
    body = os.read(handle, size + 1)
    if len(body) == size:
        return body
    parts = [body]
    while body:
        body = os.read(handle, limits.LOCAL_READ_BYTES)
        parts.append(body)
    return b"".join(parts)
