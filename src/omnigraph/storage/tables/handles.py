"""Open table versions, kept open: a version never changes, so an open one is good for ever.

All handles of the process share one Lance session, so that manifests, deletion vectors and index pages read by one are
known to the others.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from urllib.parse import quote, unquote

import lance
import pyarrow as pa
from lance import LanceDataset, Session  # type: ignore[attr-defined]  # public, missing from its __all__
from lance.fragment import FragmentMetadata

from omnigraph import limits
from omnigraph.lru import LruCache
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.blobs import has_blobs, plain_schema
from omnigraph.storage.tables.errors import mapped

# Local disk as if it were an object store. Lance's own way of writing a local file hands it from thread to thread for
# every call to the system, which takes longer than the calls; this way it is handed over once. The files are the same.
_LOCAL = "file-object-store://"


@cache
def shared_session() -> Session:
    """The one Lance session of this process."""
    return Session(
        index_cache_size_bytes=limits.INDEX_CACHE_BYTES_MAX, metadata_cache_size_bytes=limits.METADATA_CACHE_BYTES_MAX
    )


def plain_uri(dataset: LanceDataset) -> str:
    """Where a dataset lies, in words that any reader of Lance tables understands."""
    return _plain(str(dataset.uri))


@lru_cache(limits.OPEN_TABLES_MAX)
def _plain(uri: str) -> str:
    return unquote(uri.removeprefix(_LOCAL)) if uri.startswith(_LOCAL) else uri


def bytes_of(fragments: Iterable[FragmentMetadata]) -> int:
    """How large the data files of these fragments are."""
    return sum(file.file_size_bytes or 0 for fragment in fragments for file in fragment.files)


class Handle:
    """One open version of one table; caches what its manifest says, because each call into Lance is slow."""

    __slots__ = (
        "_bytes",
        "_has_blobs",
        "_rows",
        "_schema",
        "_taking",
        "dataset",
        "table",
        "uri",
        "version",
    )

    def __init__(
        self, table: str, dataset: LanceDataset, data_bytes: int | None = None, rows: int | None = None
    ) -> None:
        self.table = table
        self.uri = str(dataset.uri)
        self.version = int(dataset.version)
        self.dataset = dataset
        self._taking: LanceDataset | None = None
        self._bytes = data_bytes
        self._rows = rows
        self._schema: pa.Schema | None = None
        self._has_blobs = False

    def succeeded_by(self, dataset: LanceDataset, *, data_bytes: int, rows: int) -> "Handle":
        """The handle of a version that was made from this one and has the same columns."""
        made = Handle(self.table, dataset, data_bytes, rows)
        made._schema, made._has_blobs = self._schema, self._has_blobs
        return made

    @property
    def taking(self) -> LanceDataset:
        """The version, for many rows that lie apart: each is a read of its own, and an object is opened for each."""
        if not self.is_local:
            return self.dataset
        if self._taking is None:
            with mapped(self.table, self.version):
                self._taking = lance.dataset(self.folder, version=self.version, session=shared_session())
        return self._taking

    @property
    def is_local(self) -> bool:
        """Whether it lies on local disk."""
        return self.uri.startswith(_LOCAL)

    @property
    def folder(self) -> str:
        """Where it lies, in words that any reader of Lance tables understands."""
        return _plain(self.uri)

    @property
    def fragment_numbers(self) -> Collection[int]:
        """The numbers of its fragments."""
        with mapped(self.table, self.version):
            return self.dataset.fragment_ids()

    @property
    def schema(self) -> pa.Schema:
        """Its columns; blobs are bytes with a mark."""
        if self._schema is None:
            with mapped(self.table, self.version):
                self._schema = plain_schema(self.dataset.schema)
            self._has_blobs = has_blobs(self._schema)
        return self._schema

    @property
    def has_blobs(self) -> bool:
        """Whether a column of it is one of blobs."""
        return self.schema is not None and self._has_blobs

    @property
    def rows(self) -> int:
        """How many rows are alive in it; from the manifest alone."""
        if self._rows is None:
            with mapped(self.table, self.version):
                self._rows = self.dataset.count_rows()
        return self._rows

    @property
    def data_bytes(self) -> int:
        """How large its data files are; from the manifest alone, and counted once."""
        if self._bytes is None:
            self._bytes = bytes_of(self.fragments())
        return self._bytes

    def fragments(self) -> list[FragmentMetadata]:
        """Its fragments, as the manifest describes them."""
        with mapped(self.table, self.version):
            return [fragment.metadata for fragment in self.dataset.get_fragments()]

    def pin(self) -> Pin:
        """The pin that names it; its numbers come from the manifest, nothing is read."""
        return Pin(self.table, self.version, rows=self.rows, bytes=self.data_bytes)


class Handles:
    """The handles of one graph root, the least recently used dropped first."""

    def __init__(self, uri: str, *, storage_options: Mapping[str, str] | None, most: int) -> None:
        self._uri = uri.rstrip("/")
        self._options = dict(storage_options) if storage_options else None
        self._open: LruCache[tuple[str, int], Handle] = LruCache(most)

    @property
    def storage_options(self) -> dict[str, str] | None:
        """How to reach the store."""
        return self._options

    def uri_of(self, table: str) -> str:
        """Where a table lies, as this process opens it."""
        place = f"{self._uri}/{table}"
        return f"{_LOCAL}{quote(place)}" if self.is_local else place

    @property
    def is_local(self) -> bool:
        """Whether the tables lie on local disk."""
        return "://" not in self._uri

    def open(self, pin: Pin) -> Handle:
        """The handle of a pinned version, opened if it is not."""
        open_already = self._open.get((pin.table, pin.version))
        if open_already is not None:
            return open_already
        # Two threads may open the same version; either handle will do.
        with mapped(pin.table, pin.version):
            dataset = lance.dataset(
                self.uri_of(pin.table),
                version=pin.version,
                storage_options=self._options,
                session=shared_session(),
            )
        return self.keep(Handle(pin.table, dataset))

    def known(self, pin: Pin) -> Handle | None:
        """The handle of a pinned version, if it is open."""
        return self._open.get((pin.table, pin.version))

    def keep(self, handle: Handle) -> Handle:
        """Remember an open handle, so that who wants it next opens nothing."""
        self._open.put((handle.table, handle.version), handle)
        return handle
