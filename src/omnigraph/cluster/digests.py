"""Digests of bytes and of canonical JSON."""

import hashlib
import json
from collections.abc import Mapping


def of_bytes(body: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(body).hexdigest()


def of_values(document: Mapping[str, object]) -> str:
    """Return the digest of JSON values, independent of key order."""
    return of_bytes(json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())


def of_graph(
    *, schema: str, queries: Mapping[str, str], provider: str | None, external_blobs: Mapping[str, object] | None
) -> str:
    """Return the digest of a graph, over everything that belongs to it."""
    return of_values(
        {"schema": schema, "queries": dict(queries), "embedding_provider": provider, "external_blobs": external_blobs}
    )
