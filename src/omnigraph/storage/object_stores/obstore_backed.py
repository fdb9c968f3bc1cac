"""The port over any store that obstore knows."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

import obstore
from obstore import exceptions
from obstore.store import ObjectStore as ForeignStore

from omnigraph import limits
from omnigraph.ids import UlidSource
from omnigraph.storage.object_store import (
    Listed,
    ObjectExists,
    ObjectNotFound,
    OutcomeUnknown,
    StoreError,
    StoreRefused,
    StoreTransient,
    check_path,
    check_prefix,
    is_temporary,
)

# What obstore raises; connection failures, timeouts and server errors all arrive as GenericError.
FOREIGN_ERRORS = (exceptions.BaseError, OSError, ValueError)
_REFUSED = (
    exceptions.PermissionDeniedError,
    exceptions.UnauthenticatedError,
    exceptions.NotSupportedError,
    exceptions.InvalidPathError,
    exceptions.UnknownConfigurationKeyError,
    ValueError,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class ObstoreStore:
    """Objects in a store that has conditional puts of its own."""

    def __init__(self, inner: ForeignStore, *, uri: str, table_options: Mapping[str, str] | None = None) -> None:
        self._inner = inner
        self._uri = uri
        self._table_options = dict(table_options or {})
        self._ids = UlidSource()

    @property
    def uri(self) -> str:
        """Where the root is."""
        return self._uri

    @property
    def table_options(self) -> Mapping[str, str]:
        """With which options the table library opens the same place."""
        return self._table_options

    def get(self, path: str) -> bytes:
        """The object's bytes."""
        check_path(path)
        try:
            return obstore.get(self._inner, path).bytes().to_bytes()
        except FOREIGN_ERRORS as error:
            raise self._mapped(error, "read", path) from error

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        """The objects below a folder, recursively, in order of their paths."""
        check_prefix(prefix)
        return self._listed(prefix, limit)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """The names of the folders directly below `prefix`, in order."""
        check_prefix(prefix)
        try:
            folders = obstore.list_with_delimiter(self._inner, prefix or None)["common_prefixes"]
        except FOREIGN_ERRORS as error:
            raise self._mapped(error, "list", prefix) from error
        return iter(sorted(folder[len(prefix) :] for folder in folders))

    def put(self, path: str, body: bytes) -> None:
        """Create or replace an object."""
        check_path(path)
        try:
            obstore.put(self._inner, path, body, use_multipart=False)
        except FOREIGN_ERRORS as error:
            raise self._mapped(error, "write", path) from error

    def put_if_absent(self, path: str, body: bytes) -> None:
        """Create an object; of several writers exactly one succeeds."""
        check_path(path)
        try:
            obstore.put(self._inner, path, body, mode="create", use_multipart=False)
        except FOREIGN_ERRORS as error:
            mapped = self._mapped(error, "create", path)
            if isinstance(mapped, StoreTransient):
                # The request may have arrived: sent again, it could be refused because of itself.
                raise OutcomeUnknown(str(mapped), path=path) from error
            raise mapped from error

    def copy(self, source: str, target: str) -> None:
        """Copy an object, replacing the target."""
        check_path(source)
        check_path(target)
        try:
            obstore.copy(self._inner, source, target)
        except FOREIGN_ERRORS as error:
            raise self._mapped(error, "copy", source) from error

    def delete(self, path: str) -> None:
        """Delete an object; deleting what is not there is no error."""
        check_path(path)
        self._delete([path])

    def delete_prefix(self, prefix: str) -> None:
        """Delete every object below a folder, recursively; doing it twice is no error."""
        check_prefix(prefix)
        found = self._listed(prefix, None)
        while page := [listed.path for listed in islice(found, limits.STORE_LIST_PAGE_KEYS_MAX)]:
            self._delete(page)

    def make_durable(self, paths: Sequence[str]) -> None:
        """Nothing to do: an answered put is durable here."""

    def prove_put_if_absent(self) -> None:
        """Put one fresh path twice; the second must be refused."""
        probe = f"__probe/{self._ids.new()}"
        self.put_if_absent(probe, b"first")
        try:
            self.put_if_absent(probe, b"second")
        except ObjectExists:
            return
        finally:
            self.delete(probe)
        raise StoreRefused(
            f"{self._uri} takes a conditional put of a path that exists, so it cannot tell which of two writers came "
            "first; use an external store",
            path=probe,
        )

    def _listed(self, prefix: str, limit: int | None) -> Iterator[Listed]:
        left = limit
        chunk = limits.STORE_LIST_PAGE_KEYS_MAX if limit is None else min(limit, limits.STORE_LIST_PAGE_KEYS_MAX)
        if chunk < 1:
            return
        try:
            for page in obstore.list(self._inner, prefix or None, chunk_size=chunk):
                for found in page:
                    if is_temporary(found["path"]):
                        continue
                    yield Listed(found["path"], found["size"], (found["last_modified"] - _EPOCH) // _MICROSECOND)
                    if left is not None:
                        left -= 1
                        if left == 0:
                            return
        except FOREIGN_ERRORS as error:
            raise self._mapped(error, "list", prefix) from error

    def _delete(self, paths: Sequence[str]) -> None:
        try:
            obstore.delete(self._inner, paths[0] if len(paths) == 1 else paths)
        except FileNotFoundError:
            return
        except FOREIGN_ERRORS as error:
            raise self._mapped(error, "delete", paths[0]) from error

    def _mapped(self, error: Exception, verb: str, path: str) -> StoreError:
        # Below its first line obstore prints the insides of its error.
        reason = str(error).partition("\n")[0]
        message = f"cannot {verb} {path!r} in {self._uri}: {reason}"
        match error:
            case FileNotFoundError():
                return ObjectNotFound(message, path=path)
            case exceptions.AlreadyExistsError() | exceptions.PreconditionError():
                return ObjectExists(message, path=path)
            case _ if isinstance(error, _REFUSED):
                return StoreRefused(message, path=path)
            case _:
                return StoreTransient(message, path=path)
