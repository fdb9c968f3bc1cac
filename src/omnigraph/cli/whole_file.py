"""Files that appear when they are whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from omnigraph.errors import InvalidRequestError


@contextmanager
def whole_file(path: Path, what: str) -> Iterator[IO[bytes]]:
    """A file to write to, which is at its place once all of it was written.

    Args:
        path (Path): its place.
        what (str): what it holds, for the error.

    Raises:
        InvalidRequestError: it cannot be written there.
    """
    if not path.name:
        raise InvalidRequestError(f"{what} cannot be written to {path}: that names no file", code="output_unwritable")
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    except OSError as fault:
        raise InvalidRequestError(
            f"{what} cannot be written to {path}: {fault.strerror or fault}", code="output_unwritable"
        ) from None
    finally:
        unfinished.unlink(missing_ok=True)
