"""Where an export goes: a stream, a file that appears when it is whole, or a folder that does."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow

from omnigraph.errors import AlreadyExistsError, InvalidRequestError
from omnigraph.storage.input_files import is_remote, local_path

# A stream of Arrow's does what a stream of Python's does, and the stubs do not know it.
_compressing: Any = pyarrow.CompressedOutputStream

_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


@contextmanager
def file_or_stream(to: "str | Path | IO[bytes]") -> Iterator[IO[bytes]]:
    """Something to write bytes to.

    Args:
        to: a stream, which stays open, or the path of a file, which takes the place of what
            was there once everything is written; `.gz` and `.zst` at its end compress it.

    Yields:
        IO[bytes]: for writing.

    Raises:
        InvalidRequestError: it is neither a path nor a stream of bytes, or the path cannot be written.
    """
    if not isinstance(to, str | Path):
        if not hasattr(to, "write"):
            raise InvalidRequestError("export to a path or to a stream of bytes")
        yield to
        return
    path = local_destination(to)
    part = _part_of(path)
    if path.is_dir():
        raise InvalidRequestError(f"{path} is a folder: name a file in it")
    compression = _COMPRESSIONS.get(path.suffix)
    try:
        with _opened(part) as raw:
            if compression is None:
                yield raw
            else:
                with _compressing(raw, compression) as packed:
                    yield packed
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder that appears whole or not at all.

    Args:
        path: where it shall be; an empty folder may be there.

    Yields:
        Path: a folder to fill, which is then moved to its place.

    Raises:
        AlreadyExistsError: something is there already.
        InvalidRequestError: the path cannot be written.
    """
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise AlreadyExistsError(f"there is something at {path} already; export to a new folder")
    part = _part_of(path)
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
    except OSError as fault:
        raise InvalidRequestError(f"{path} cannot be written: {fault.strerror}") from fault
    try:
        yield part
        if path.is_dir():
            path.rmdir()
        part.replace(path)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def local_destination(to: "str | Path") -> Path:
    """A path of this machine.

    Args:
        to: as the caller spells it.

    Returns:
        Path: the same.

    Raises:
        InvalidRequestError: it is an address of something else.
    """
    text = str(to)
    if is_remote(text):
        raise InvalidRequestError(
            f"an export goes to a path of this machine or to a stream, and {text} is neither: export to a file, and "
            "copy that"
        )
    return Path(local_path(text))


def _part_of(path: Path) -> Path:
    """Where it lies until it is whole."""
    if not path.name or "\0" in str(path):
        raise InvalidRequestError(f"{path} cannot be written: it is the name of no file")
    return path.with_name(f".{path.name}.part")


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("wb")
    except OSError as fault:
        raise InvalidRequestError(f"{path.parent} cannot be written: {fault.strerror}") from fault
