"""Texts that a cluster stores under their digests."""

from omnigraph.cluster import digests
from omnigraph.errors import FormatError, GraphError
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore


def payload(store: ObjectStore, path: str, digest: str) -> str:
    """A stored text.

    Raises:
        FormatError: it is not there, cannot be read, or is not what was applied.
    """
    try:
        body = store.get(path)
    except ObjectNotFound:
        raise FormatError(f"there is nothing at {path}", code="catalog_payload_missing") from None
    except GraphError as fault:
        raise FormatError(f"{path} cannot be read: {fault}", code="catalog_payload_read_error") from fault
    if digests.of_bytes(body) != digest:
        raise FormatError(f"{path} is not what was applied", code="catalog_payload_digest_mismatch")
    return body.decode()
