"""The port over any store that obstore knows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from itertools import islice

import obstore
from obstore import exceptions
from obstore.store import MemoryStore as ForeignMemoryStore
from obstore.store import ObjectStore as ForeignStore

from omnigraph import limits
from omnigraph.ids import IdSource, UlidSource
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
    prove_by_trying,
)
from omnigraph.storage.object_stores.forwarding import RequestKind

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
    def is_fenced_outside(self) -> bool:
        """The store's own conditional puts decide."""
        return False

    def fence_id(self) -> None:
        """No external store decides here."""

    @property
    def is_near(self) -> bool:
        """Somewhere in a network, as a rule."""
        return False

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
            raise mapped(error, RequestKind.GET, path, uri=self._uri) from error

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
            raise mapped(error, RequestKind.LIST, prefix, uri=self._uri) from error
        return iter(sorted(folder[len(prefix) :] for folder in folders))

    def put(self, path: str, body: bytes) -> None:
        """Create or replace an object."""
        check_path(path)
        try:
            obstore.put(self._inner, path, body, use_multipart=False)
        except FOREIGN_ERRORS as error:
            raise mapped(error, RequestKind.PUT, path, uri=self._uri) from error

    def put_if_absent(self, path: str, body: bytes) -> None:
        """Create an object; of several writers exactly one succeeds."""
        check_path(path)
        try:
            obstore.put(self._inner, path, body, mode="create", use_multipart=False)
        except FOREIGN_ERRORS as error:
            raise mapped(error, RequestKind.PUT_IF_ABSENT, path, uri=self._uri) from error

    def copy(self, source: str, target: str) -> None:
        """Copy an object, replacing the target."""
        check_path(source)
        check_path(target)
        try:
            obstore.copy(self._inner, source, target)
        except FOREIGN_ERRORS as error:
            raise mapped(error, RequestKind.COPY, source, uri=self._uri) from error

    def delete(self, path: str) -> None:
        """Delete an object; deleting what is not there is no error."""
        check_path(path)
        self._delete([path])

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects, as many at once as the store takes."""
        for path in paths:
            check_path(path)
        for start in range(0, len(paths), limits.STORE_LIST_PAGE_KEYS_MAX):
            self._delete(paths[start : start + limits.STORE_LIST_PAGE_KEYS_MAX])

    def delete_prefix(self, prefix: str) -> None:
        """Delete every object below a folder, recursively; doing it twice is no error."""
        check_prefix(prefix)
        found = self._listed(prefix, None)
        while page := [listed.path for listed in islice(found, limits.STORE_LIST_PAGE_KEYS_MAX)]:
            self._delete(page)

    def leftovers(self, *, before_us: int, delete: bool) -> Sequence[Listed]:
        """Objects with names of temporary files: left by a copy of a folder, since writers here make none."""
        try:
            found = [entry for page in obstore.list(self._inner) for entry in page if is_temporary(entry["path"])]
        except FOREIGN_ERRORS as error:
            raise mapped(error, RequestKind.LIST, "", uri=self._uri) from error
        listed = [
            Listed(entry["path"], entry["size"], (entry["last_modified"] - _EPOCH) // _MICROSECOND) for entry in found
        ]
        old = [entry for entry in listed if entry.modified_us < before_us]
        if delete and old:
            self._delete([entry.path for entry in old])
        return old

    def identity(self, path: str) -> tuple[int, ...] | None:  # noqa: ARG002  (the port's signature; nobody here knows)
        """Only a request could tell."""
        return None

    def make_durable(self, paths: Sequence[str]) -> None:
        """Nothing to do: an answered put is durable here."""

    def sync_always(self) -> None:
        """Nothing to do: an answered put is durable here."""

    def prove_put_if_absent(self) -> int:
        """Put one fresh path twice; the second must be refused. Returns the store's time."""
        return prove_by_trying(self, self._ids)

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
            raise mapped(error, RequestKind.LIST, prefix, uri=self._uri) from error

    def _delete(self, paths: Sequence[str]) -> None:
        try:
            obstore.delete(self._inner, paths[0] if len(paths) == 1 else paths)
        except FOREIGN_ERRORS as error:
            if is_missing_object(error):
                # Some stores say so, and then may not have deleted the others.
                for path in paths if len(paths) > 1 else ():
                    self._delete([path])
                return
            raise mapped(error, RequestKind.DELETE, paths[0], uri=self._uri) from error


# All that obstore raises: its own, and a few of Python's.
FOREIGN_ERRORS = (exceptions.BaseError, OSError, ValueError)

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
# Asked for keys because none were given, and the machine has none to give.
_NO_KEYS = re.compile(r"latest/api/token|latest/meta-data")
_NEVER_SENT = "kind: Connect,"
_NO_BUCKET = "<Code>NoSuchBucket</Code>"
_WRONG_REGION = "redirect without LOCATION"
# The server says that it did nothing and may be asked again, whatever the request was.
_TURNED_AWAY = frozenset({"SlowDown", "ConditionalRequestConflict", "OperationAborted", "RequestTimeout"})
_TURNED_AWAY_STATUS = frozenset({425, 429})
_REFUSED = (
    exceptions.PermissionDeniedError,
    exceptions.UnauthenticatedError,
    exceptions.NotSupportedError,
    exceptions.InvalidPathError,
    exceptions.UnknownConfigurationKeyError,
    ValueError,
)
_REFUSED_STATUS = frozenset({501, 507})
_TAKEN_STATUS = frozenset({409, 412})
_FINDS_NOTHING = frozenset({RequestKind.GET, RequestKind.COPY})


def mapped(error: Exception, kind: RequestKind, path: str, *, uri: str) -> StoreError:
    """The port's error for one of obstore's."""
    text = str(error)
    message = f"cannot {kind.replace('_', ' ')} {path!r} in {uri}: {reason(error)}"
    found_status = _STATUS.search(text)
    found_code = _CODE.search(text)
    status = int(found_status.group(1)) if found_status else 0
    code = found_code.group(1) if found_code else ""

    if _NO_KEYS.search(text):
        return StoreRefused(f"{message}; no keys were given and this machine has none", path=path)
    if _NO_BUCKET in text or _WRONG_REGION in text:
        return StoreRefused(message, path=path)
    if code in _TURNED_AWAY or status in _TURNED_AWAY_STATUS or _NEVER_SENT in text:
        return StoreTransient(message, path=path)
    if kind is RequestKind.PUT_IF_ABSENT and (
        status in _TAKEN_STATUS or isinstance(error, exceptions.AlreadyExistsError | exceptions.PreconditionError)
    ):
        return ObjectExists(message, path=path)
    if kind in _FINDS_NOTHING and is_missing_object(error):
        return ObjectNotFound(message, path=path)
    if isinstance(error, (*_REFUSED, FileNotFoundError)) or _is_no(status):
        return StoreRefused(message, path=path)
    if kind is RequestKind.PUT_IF_ABSENT:
        # The request may have arrived: sent again, it could be refused because of itself.
        return OutcomeUnknown(message, path=path)
    return StoreTransient(message, path=path)


def is_missing_object(error: Exception) -> bool:
    """Whether obstore says that there is no such object (and not: no such bucket)."""
    return isinstance(error, FileNotFoundError) and _NO_BUCKET not in str(error)


def _is_no(status: int) -> bool:
    return (400 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT) or status in _REFUSED_STATUS


def reason(error: Exception) -> str:
    """The part of an obstore error that is for people: one line, without the server's document."""
    return str(error).partition("\n")[0].partition(": <")[0]


class MemoryStore(ObstoreStore):
    """Objects in memory."""

    def __init__(self, name: str = "", *, ids: IdSource | None = None) -> None:
        # One without a name gets one: whatever lies elsewhere for it, as tables do, must not be taken for another's.
        super().__init__(ForeignMemoryStore(), uri=f"memory://{name or (ids or UlidSource()).new()}")

    def identity(self, path: str) -> tuple[int, ...] | None:
        """The number of the put that made it; to look here is no request."""
        try:
            return (int((obstore.head(self._inner, path)["e_tag"] or "0").strip('"')),)
        except FileNotFoundError:
            return ()
