"""Open a graph for queries, and import nothing that only writes and maintenance need."""

import os

from omnigraph.api.options import OpenOptions
from omnigraph.api.schemas import Schemas
from omnigraph.api.snapshot import GraphReader
from omnigraph.errors import InvalidRequestError
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.open import open_store
from omnigraph.transaction import root
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.validation import require_optional_seconds

_DEFAULTS = OpenOptions()


def open_reader(uri: "str | os.PathLike[str] | ObjectStore", *, options: OpenOptions = _DEFAULTS) -> GraphReader:
    """Open a graph read-only; like `omnigraph.open`, but it starts faster and only reads.

    Raises:
        NotFoundError: there is no graph at the address.
        FormatError: the graph is newer than this release, damaged, or was never completed.
    """
    parts = root.open_root(store_at(uri, options, read_only=True), read_only=True, settings=settings_of(options))
    return GraphReader.of(parts, Schemas(parts), cache_bytes=options.cache_bytes)


def settings_of(options: OpenOptions) -> Settings:
    """Convert options to the settings of the lower layers.

    Raises:
        InvalidRequestError: the protection window is not a number of seconds.
    """
    require_optional_seconds(options.protection_s, "the protection window")
    return Settings(
        durability=options.durability,
        auto_compact=options.auto_compact,
        tail_fragments_max=options.tail_fragments_max,
        protection_s=options.protection_s,
        external_blobs=options.external_blobs,
        embeddings=options.embeddings,
    )


def store_at(uri: "str | os.PathLike[str] | ObjectStore", options: OpenOptions, *, read_only: bool) -> ObjectStore:
    """Open the store at an address; a store is returned as it is."""
    if not isinstance(uri, str | os.PathLike):
        if not hasattr(uri, "put_if_absent"):
            raise InvalidRequestError(f"an address is a text, a path or a store, got {type(uri).__name__}")
        return uri
    return open_store(
        os.fspath(uri),
        read_only=read_only,
        durability=options.durability,
        s3=options.s3,
        external=options.external,
    )
