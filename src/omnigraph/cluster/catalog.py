"""Query and policy texts, stored under their digests."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from omnigraph import limits
from omnigraph.cluster import digests, layout
from omnigraph.cluster.addresses import Kind, parse
from omnigraph.errors import FormatError, GraphError
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore


def payload_path(address: str, digest: str) -> str | None:
    """Return the path of a resource's stored text; None for kinds without a text."""
    parsed = parse(address)
    if parsed is not None and parsed.kind is Kind.QUERY:
        return layout.query_payload(parsed.graph, parsed.name, digest)
    if parsed is not None and parsed.kind is Kind.POLICY:
        return layout.policy_payload(parsed.name, digest)
    return None


def read_payload(store: ObjectStore, path: str, digest: str) -> str:
    """Read a stored text and verify its digest."""
    try:
        body = store.get(path)
    except ObjectNotFound:
        raise FormatError(f"{path} does not exist", code="catalog_payload_missing") from None
    except GraphError as fault:
        raise FormatError(f"{path} cannot be read: {fault}", code="catalog_payload_read_error") from fault
    actual = digests.of_bytes(body)
    if actual != digest:
        message = f"{path} was changed after it was applied: its digest is {actual}"
        raise FormatError(message, code="catalog_payload_digest_mismatch")
    return body.decode()


def read_payloads(store: ObjectStore, wanted: Mapping[str, str]) -> dict[str, str | FormatError]:
    """Read the stored texts of many resources concurrently."""
    paths = {address: payload_path(address, digest) for address, digest in wanted.items()}

    def read(address: str, path: str) -> str | FormatError:
        try:
            return read_payload(store, path, wanted[address])
        except FormatError as damage:
            return damage

    stored = {address: path for address, path in paths.items() if path is not None}
    if not stored:
        return {}
    with ThreadPoolExecutor(limits.CLUSTER_READS_AT_ONCE) as pool:
        return dict(zip(stored, pool.map(read, stored, stored.values()), strict=True))
