import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cuts import Copies
from tests.support.fast_folder import fast_folder
from tests.support.write_kinds import opened, prepare

from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.transaction.graph_context import GraphContext


@pytest.fixture(scope="session")
def _fast_folder() -> Iterator[Path]:
    """A folder of these tests' own."""
    with fast_folder() as made:
        yield made


@pytest.fixture(scope="session")
def _template(_fast_folder: Path) -> Path:
    """The prepared graph that tests spoil copies of."""
    prepare(LocalStore(_fast_folder / "template", durability=Durability.PROCESS))
    return _fast_folder / "template"


@pytest.fixture
def folder(_fast_folder: Path) -> Iterator[Path]:
    """A folder of the test's own."""
    made = Path(tempfile.mkdtemp(dir=_fast_folder))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def copies(_template: Path, folder: Path) -> Copies:
    """Any number of copies of the prepared graph."""
    return Copies(_template, folder)


@pytest.fixture
def empty(folder: Path) -> Copies:
    """Any number of places where no graph is yet."""
    return Copies(folder / "nowhere", folder / "empty")


@pytest.fixture
def root(_template: Path, folder: Path) -> Path:
    """A copy of the prepared graph."""
    return Path(shutil.copytree(_template, folder / "graph"))


@pytest.fixture
def parts(root: Path) -> GraphContext:
    """The same, opened."""
    return opened(LocalStore(root, durability=Durability.PROCESS))
