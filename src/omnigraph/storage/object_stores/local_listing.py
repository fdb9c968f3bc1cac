"""List the objects below a folder on local disk."""

import contextlib
import errno
import heapq
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from omnigraph.storage.object_store import Listed, StoreError, StoreRefused, StoreTransient, is_temporary

TRANSIENT_ERRNOS = frozenset(
    {errno.EIO, errno.EINTR, errno.ETIMEDOUT, errno.EAGAIN, errno.EBUSY, errno.ESTALE, errno.EMFILE, errno.ENFILE}
)


def map_os_error(root: Path, error: OSError, verb: str, path: str) -> StoreError:
    """The error of the port for an error of the system."""
    message = f"cannot {verb} {path!r} in {root}: {error.strerror or error}"
    return (StoreTransient if error.errno in TRANSIENT_ERRNOS else StoreRefused)(message, path=path)


def walk(root: Path, prefix: str, *, in_full: bool) -> Iterator[Listed]:
    """The objects below a folder, in order of their paths; unless `in_full`, quick for the first few."""
    entries = _entries(root, prefix)
    for name in sorted(entries) if in_full else _from_heap(entries):
        path = prefix + name
        if name.endswith("/"):
            yield from walk(root, path, in_full=in_full)
            continue
        try:
            status = entries[name].stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # deleted while we listed
        except OSError as error:
            raise map_os_error(root, error, "list", path) from error
        yield Listed(path, status.st_size, status.st_mtime_ns // 1_000)


def _entries(root: Path, prefix: str) -> Mapping[str, os.DirEntry[str]]:
    """What lies directly in a folder; folders with `/` at their end, which puts them where their paths sort."""
    found = {}
    try:
        with os.scandir(root / prefix) as entries:
            for entry in entries:
                if is_temporary(entry.name):
                    continue
                if entry.is_file(follow_symlinks=False):
                    found[entry.name] = entry
                elif entry.is_dir(follow_symlinks=False):
                    found[f"{entry.name}/"] = entry
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise map_os_error(root, error, "list", prefix) from error
    return found


def walk_folders(root: Path, prefix: str) -> Iterator[str]:
    """The names of the folders directly below `prefix` that hold an object, in order."""
    for name in sorted(name[:-1] for name in _entries(root, prefix) if name.endswith("/")):
        if next(walk(root, f"{prefix}{name}/", in_full=False), None) is not None:
            yield name


def leftovers(root: Path, *, before_us: int, delete: bool) -> Sequence[Listed]:
    """Temporary files last written before a time, whose writers died; with `delete`, deleted."""
    found = []
    try:
        for folder, _, names in os.walk(root):
            for name in names:
                file = Path(folder) / name
                path = str(file.relative_to(root))
                if not is_temporary(path):
                    continue
                with contextlib.suppress(FileNotFoundError):  # its writer lives, and has just given it its name
                    status = file.stat(follow_symlinks=False)
                    if status.st_mtime_ns // 1_000 < before_us:
                        if delete:
                            file.unlink()
                        found.append(Listed(path, status.st_size, status.st_mtime_ns // 1_000))
    except OSError as error:
        raise map_os_error(root, error, "list", "") from error
    return sorted(found, key=lambda listed: listed.path)


def _from_heap(names: Iterable[str]) -> Iterator[str]:
    # The first few of ten thousand without sorting them all.
    heap = list(names)
    heapq.heapify(heap)
    while heap:
        yield heapq.heappop(heap)
