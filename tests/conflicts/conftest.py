from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fast_folder import fast_folder


@pytest.fixture(scope="module")
def module_folder() -> Iterator[Path]:
    """A folder of the module's own."""
    with fast_folder() as made:
        yield made
