import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of the test's own, in memory where the system has such a place: these tests make many small files."""
    if not _IN_MEMORY.is_dir():
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(prefix="omnigraph-", dir=_IN_MEMORY))
    yield made
    shutil.rmtree(made, ignore_errors=True)
