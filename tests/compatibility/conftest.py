import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

_HERE = Path(__file__).parent


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """Gives a copy of one of the kept graphs, to be opened for writing."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(_HERE / name, tmp_path / name))

    return copy


@pytest.fixture
def kept() -> Callable[[str], Path]:
    """Gives one of the kept graphs itself, to be looked at only."""
    return lambda name: _HERE / name
