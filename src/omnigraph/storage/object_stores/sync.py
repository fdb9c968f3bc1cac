"""Making files survive a loss of power."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path


def sync_file(path: Path) -> None:
    """Sync one file, or one folder's list of names."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def folders_between(root: Path, folder: Path) -> Iterator[Path]:
    """The folders above `folder`, up to the one that holds `root`."""
    for above in folder.parents:
        yield above
        if above == root.parent:
            return


def sync_all(root: Path, paths: Sequence[Path]) -> None:
    """Sync these files, or all files in these folders, and every folder from each of them up to the root."""
    files: list[Path] = []
    folders: set[Path] = set()
    for path in paths:
        if path.is_dir():
            for below, _, names in os.walk(path):
                folders.add(Path(below))
                files.extend(Path(below, name) for name in names)
        else:
            files.append(path)
            folders.add(path.parent)
    for folder in tuple(folders):
        folders.update(folders_between(root, folder))
    for each in (*files, *sorted(folders, reverse=True)):
        sync_file(each)
