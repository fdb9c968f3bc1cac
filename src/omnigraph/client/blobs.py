"""Blobs of a graph on a server, read by byte range."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from omnigraph.api.blob import Blob, BlobName, ReadRange
from omnigraph.client.failures import unexpected_answer
from omnigraph.client.wire import SNAPSHOT, ServerRequest, Wire
from omnigraph.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class RemoteBlob(Blob):
    """A blob of a graph on a server; a read transfers only the requested bytes."""

    _wire: Wire = field(repr=False, compare=False)

    def _source(self) -> tuple[int, ReadRange]:
        if self.size is None:
            raise self._external_error()
        return self.size, self._pieces

    def _pieces(self, offset: int, length: int) -> Iterator[bytes]:
        if not length:
            return
        request = ServerRequest(
            "GET",
            "blob",
            params=self._name().to_dict() | {"snapshot": self.commit},
            headers={"Range": f"bytes={offset}-{offset + length - 1}"},
        )
        with self._wire.open_stream(request) as answer:
            yield from answer.iter_bytes()


def fetch_blob(wire: Wire, name: BlobName, *, branch: str | None, commit: str | None) -> RemoteBlob:
    """Look up a blob; see `omnigraph.Graph.blob`."""
    chosen = {**name.to_dict(), "branch": branch, "snapshot": commit}
    # A GET of the first byte instead of a HEAD, because errors of a GET have a body.
    request = ServerRequest("GET", "blob", params=chosen, headers={"Range": "bytes=0-0"})
    try:
        headers = wire.send(request).headers
    except InvalidRequestError as refused:
        if refused.code != "blob_range":
            raise
        headers = wire.send(replace(request, method="HEAD", headers=None)).headers  # the blob is empty
    if SNAPSHOT not in headers:
        raise unexpected_answer(200, b"")
    uri = headers.get("Location")
    size = None if uri is not None else _size(headers.get("Content-Range"), headers.get("Content-Length"))
    return RemoteBlob(
        entity=name.entity,
        type_name=name.type_name,
        id=name.id,
        property=name.property,
        kind="managed" if uri is None else "external",
        commit=headers[SNAPSHOT],
        branch=None if commit is not None else branch or "main",
        size=size,
        etag=headers.get("ETag"),
        uri=uri,
        _wire=wire,
    )


def _size(range: str | None, length: str | None) -> int:
    """Return the size of the whole blob from `Content-Range`, else from `Content-Length`."""
    return int(range.rpartition("/")[2]) if range is not None else int(length or 0)
