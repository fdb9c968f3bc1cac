import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_IN_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of the module's own, in memory where the system has such a place: these tests make many small files."""
    if not _IN_MEMORY.is_dir():
        yield tmp_path_factory.mktemp("graphs")
        return
    made = Path(tempfile.mkdtemp(prefix="omnigraph-", dir=_IN_MEMORY))
    yield made
    shutil.rmtree(made, ignore_errors=True)
