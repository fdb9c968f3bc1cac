"""Bytes that lie elsewhere, at an address that a policy has allowed: looked at once, then read as they were seen.

Whoever reads in several steps has to read one thing: what was replaced or changed meanwhile is told as a fault of the
source, never put together from both. Web servers are asked by ourselves, because a redirect may lead to where no policy
allows anything.
"""

import http.client
import os
import stat
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import IO, Any

import obstore
from obstore.exceptions import PreconditionError

from omnigraph import limits
from omnigraph.errors import BlobSourceError, UnavailableError
from omnigraph.storage.input_files import is_remote, local_path, object_at
from omnigraph.storage.object_stores.obstore_backed import FOREIGN_ERRORS, reason
from omnigraph.web import opened

_WEB = ("http://", "https://")
_PARTIAL, _GONE = 206, frozenset({404, 410})
_CHANGED = "it changed while it was read"


class BlobSource(ABC):
    """What lies at an address, as it was when it was looked at.

    Attributes:
        uri: the address.
        size: how many bytes.
    """

    def __init__(self, uri: str, size: int) -> None:
        self.uri = uri
        self.size = size

    @abstractmethod
    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        """Read a range of the bytes in pieces, each when the caller takes it.

        Raises:
            BlobSourceError: they cannot be read, or are others by now.
        """

    def whole(self) -> bytes:
        """All bytes.

        Raises:
            BlobSourceError: they cannot be read, or are others by now.
        """
        return b"".join(self.pieces(0, self.size))


def source_at(uri: str) -> BlobSource:
    """What lies at an allowed address.

    Raises:
        BlobSourceError: nothing can be read there.
    """
    if uri.startswith(_WEB):
        return _WebPage(uri)
    return _StoredObject(uri) if is_remote(uri) else _LocalFile(uri)


class _LocalFile(BlobSource):
    def __init__(self, uri: str) -> None:
        with self._opened(uri) as file:
            found = os.fstat(file.fileno())
        super().__init__(uri, found.st_size)
        self._seen = _identity(found)

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        with self._opened(self.uri) as file:
            self._refuse_another(file)
            file.seek(offset)
            for step in _steps(length):
                piece = file.read(step)
                # Before it is handed over: a change since it was seen may have reached any byte of it.
                self._refuse_another(file)
                if len(piece) < step:
                    raise unreadable(self.uri, _CHANGED)
                yield piece

    @staticmethod
    def _opened(uri: str) -> IO[bytes]:
        try:
            # Not waiting for anybody: a pipe that nobody writes to would be waited for for ever.
            number = os.open(local_path(uri), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            file = os.fdopen(number, "rb")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise unreadable(uri, "there is nothing at that place") from None
        except OSError as fault:
            raise unreadable(uri, str(fault)) from fault
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise unreadable(uri, "there is nothing at that place")
        return file

    def _refuse_another(self, file: IO[bytes]) -> None:
        if _identity(os.fstat(file.fileno())) != self._seen:
            raise unreadable(self.uri, _CHANGED)


class _StoredObject(BlobSource):
    def __init__(self, uri: str) -> None:
        try:
            self._store, self._path = object_at(uri)
            found = obstore.head(self._store, self._path)
        except FileNotFoundError:
            raise unreadable(uri, "there is nothing at that place") from None
        except UnavailableError as fault:
            raise unreadable(uri, fault.message) from fault
        except FOREIGN_ERRORS as fault:
            raise unreadable(uri, f"cannot read {uri}: {reason(fault)}") from fault
        super().__init__(uri, int(found["size"]))
        self._tag = found["e_tag"]

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        for step in _steps(length):
            options: Any = {"range": (offset, offset + step)}
            if self._tag is not None:
                options["if_match"] = self._tag
            try:
                piece = bytes(obstore.get(self._store, self._path, options=options).bytes())
            except (PreconditionError, FileNotFoundError):
                raise unreadable(self.uri, _CHANGED) from None
            except FOREIGN_ERRORS as fault:
                raise unreadable(self.uri, f"cannot read {self.uri}: {reason(fault)}") from fault
            if len(piece) != step:
                raise unreadable(self.uri, _CHANGED)
            offset += step
            yield piece


class _WebPage(BlobSource):
    def __init__(self, uri: str) -> None:
        with self._answer(uri, "HEAD", {}) as answer:
            size = answer.headers.get("Content-Length", "")
            self._seen = _version(answer)
        if not (size.isascii() and size.isdigit()):
            raise unreadable(uri, "the server does not say how large it is")
        super().__init__(uri, int(size))

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        if not length:
            return
        headers = {"Range": f"bytes={offset}-{offset + length - 1}", "Accept-Encoding": "identity"}
        with self._answer(self.uri, "GET", headers) as answer:
            if _version(answer) != self._seen:
                raise unreadable(self.uri, _CHANGED)
            if answer.status != _PARTIAL and offset:
                raise unreadable(self.uri, "the server gives no parts of it")
            for step in _steps(length):
                try:
                    piece = answer.read(step)
                except (OSError, http.client.HTTPException) as fault:
                    raise unreadable(self.uri, str(fault) or type(fault).__name__) from fault
                if len(piece) < step:
                    raise unreadable(self.uri, "it broke off while it was read")
                yield piece

    @staticmethod
    def _answer(uri: str, method: str, headers: dict[str, str]) -> Any:  # noqa: ANN401  (an answer has no type of its own)
        request = urllib.request.Request(uri, headers=headers, method=method)
        try:
            return opened(request, timeout_s=limits.BLOB_SOURCE_TIMEOUT_S)
        except urllib.error.HTTPError as refused:
            with refused:
                elsewhere = refused.headers.get("Location")
            if refused.code in _GONE:
                raise unreadable(uri, "there is nothing at that place") from None
            if elsewhere is not None:
                raise unreadable(uri, f"it redirects to {elsewhere}, which is not followed") from None
            raise unreadable(uri, f"the server answers with status {refused.code}") from None
        except (OSError, http.client.HTTPException) as fault:
            raise unreadable(uri, str(fault) or type(fault).__name__) from fault


def unreadable(uri: str, why: str) -> BlobSourceError:
    """The error of a source that cannot be read."""
    return BlobSourceError(f"external blob source '{uri}' is unavailable: {why}", uri=uri, reason=why)


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _version(answer: Any) -> tuple[str | None, str | None]:  # noqa: ANN401  (an answer has no type of its own)
    return answer.headers.get("ETag"), answer.headers.get("Last-Modified")


def _steps(length: int) -> Iterator[int]:
    """So many bytes in pieces."""
    most = limits.BLOB_RANGE_BYTES_MAX
    yield from (min(most, length - start) for start in range(0, length, most))
