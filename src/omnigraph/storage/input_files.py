"""Read input files of users: on local disk, or in an object store with the environment's keys."""

import fnmatch
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import unquote

import obstore
from obstore.store import from_url

from omnigraph import limits
from omnigraph.errors import NotFoundError, UnavailableError
from omnigraph.storage.object_stores.obstore_backed import FOREIGN_ERRORS, reason
from omnigraph.storage.object_stores.s3 import S3Options, time_limits

_MAGIC = "*?["


def is_remote(where: str) -> bool:
    """Whether an address is one of an object store."""
    return "://" in where and not where.startswith("file://")


def storage_options_for(where: str) -> tuple[tuple[str, str], ...]:
    """How this process reaches an address, as pairs that can be sent along to processes that know less.

    Returns:
        Not to be shown, keys may be among them; none where the environment decides.
    """
    if not where.startswith("s3://"):
        return ()
    return tuple(sorted(S3Options.from_environment().as_storage_options().items()))


def local_path(where: str) -> str:
    """The path that an address on local disk means."""
    return unquote(where.removeprefix("file://").removeprefix("localhost")) if where.startswith("file://") else where


def remote_size(uri: str) -> int | None:
    """How many bytes an object has.

    Raises:
        UnavailableError: the store does not answer.
    """
    store, path = object_at(uri)
    try:
        return int(obstore.head(store, path)["size"])
    except FileNotFoundError:
        return None
    except FOREIGN_ERRORS as error:
        raise UnavailableError(f"cannot read {uri}: {reason(error)}") from error


def remote_files(where: str) -> list[tuple[str, str, int]]:
    """The objects below a folder, or those that fit a pattern.

    Returns:
        Path below the folder, address and size of each, in order.

    Raises:
        UnavailableError: the store does not answer.
    """
    plain = where[: min((where.find(mark) for mark in _MAGIC if mark in where), default=len(where))]
    folder = plain if plain.endswith("/") or plain == where else plain[: plain.rfind("/") + 1]
    store, prefix = object_at(folder.rstrip("/") + "/")
    root = where[: len(where) - len(object_at(where)[1])]
    try:
        found = [file for page in obstore.list(store, prefix.rstrip("/") + "/" if prefix else None) for file in page]
    except FOREIGN_ERRORS as error:
        raise UnavailableError(f"cannot list {where}: {reason(error)}") from error
    named = [(file["path"], int(file["size"])) for file in found]
    if plain != where:
        named = [file for file in named if fnmatch.fnmatchcase(root + file[0], where)]
    return [(path.removeprefix(prefix).lstrip("/"), root + path, size) for path, size in sorted(named)]


@contextmanager
def opened(uri: str, size: int, options: tuple[tuple[str, str], ...] = ()) -> Iterator[IO[bytes]]:
    """A file, open for reading anywhere in it.

    Args:
        options: how to reach it; by default what the environment says.

    Raises:
        NotFoundError: it is not there.
        UnavailableError: the store does not answer.
    """
    if is_remote(uri):
        with io.BufferedReader(_Remote(uri, size, options), buffer_size=limits.LOAD_REMOTE_READ_BYTES) as remote:
            yield remote
        return
    try:
        file = open(uri, "rb")  # noqa: PTH123, SIM115  (a path as any other, closed below)
    except FileNotFoundError:
        raise NotFoundError(f"no file to load at {uri}", code="data_not_found") from None
    with file:
        yield file


class _Remote(io.RawIOBase):
    """An object, a range at a time."""

    def __init__(self, uri: str, size: int, options: tuple[tuple[str, str], ...]) -> None:
        self._store, self._path = object_at(uri, dict(options))
        self._uri = uri
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  (whatever can be written into)
        into = memoryview(buffer).cast("B")
        stop = min(self._at + len(into), self._size)
        if stop <= self._at:
            return 0
        try:
            found = memoryview(obstore.get_range(self._store, self._path, start=self._at, end=stop))
        except FOREIGN_ERRORS as error:
            raise UnavailableError(f"cannot read {self._uri}: {reason(error)}") from error
        into[: len(found)] = found
        self._at += len(found)
        return len(found)


def object_at(uri: str, given: Mapping[str, str] | None = None) -> tuple[Any, str]:
    """The store an address is in, and the path there."""
    scheme, _, rest = uri.partition("://")
    bucket, _, path = rest.partition("/")
    client_options: dict[str, Any] = {**time_limits()}
    options: dict[str, Any] = {"client_options": client_options}
    if scheme == "s3":
        s3 = S3Options.from_storage_options(given) if given else S3Options.from_environment()
        config = {name: value for name, value in s3.as_storage_options().items() if name != "allow_http"}
        options["config"] = config
        client_options["allow_http"] = s3.allow_http
    elif scheme == "http":
        client_options["allow_http"] = True
    try:
        return from_url(f"{scheme}://{bucket}", **options), path
    except FOREIGN_ERRORS as error:
        raise UnavailableError(f"cannot use {uri}: {reason(error)}") from error
