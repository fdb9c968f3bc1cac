"""Folders for tests that make very many small files: in memory, where the system has such a place."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_IN_MEMORY = Path("/dev/shm")


def new_fast_folder() -> Path:
    """A folder that nobody else has; whoever asks for it removes it."""
    return Path(tempfile.mkdtemp(prefix="omnigraph-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None))


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A folder that nobody else has, for as long as the block runs."""
    folder = new_fast_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
