"""The port over any store that obstore knows."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

import obstore
from obstore.store import ObjectStore as ForeignStore

from omnigraph import limits
from omnigraph.ids import UlidSource
from omnigraph.storage.object_store import (
    Listed,
    check_path,
    check_prefix,
    is_temporary,
)
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.obstore_errors import FOREIGN_ERRORS, is_missing_object, mapped
from omnigraph.storage.object_stores.proof import prove_by_trying

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
        """Objects with the names of files under way: left by a copy of a folder, since writers here make none."""
        try:
            found = [each for page in obstore.list(self._inner) for each in page if is_temporary(each["path"])]
        except FOREIGN_ERRORS as error:
            raise mapped(error, RequestKind.LIST, "", uri=self._uri) from error
        listed = [
            Listed(each["path"], each["size"], (each["last_modified"] - _EPOCH) // _MICROSECOND) for each in found
        ]
        old = [each for each in listed if each.modified_us < before_us]
        if delete and old:
            self._delete([each.path for each in old])
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
