"""Digests: of bytes, and of values in their one spelling."""

import hashlib
import json
from collections.abc import Mapping


def of_bytes(body: bytes) -> str:
    """The digest of a file."""
    return hashlib.sha256(body).hexdigest()


def of_values(document: Mapping[str, object]) -> str:
    """The digest of plain values, whatever the order of their keys."""
    return of_bytes(json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())


def of_graph(
    *, schema: str, queries: Mapping[str, str], provider: str | None, external_blobs: Mapping[str, object] | None
) -> str:
    """The digest of a graph: that of all that belongs to it.

    Args:
        schema: digest of its schema.
        queries: digests of its stored queries, by name.
        provider: of embeddings.
        external_blobs: places outside for its blobs.
    """
    return of_values(
        {"schema": schema, "queries": dict(queries), "embedding_provider": provider, "external_blobs": external_blobs}
    )
