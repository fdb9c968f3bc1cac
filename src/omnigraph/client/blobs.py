"""Blobs of a graph on a server: as much of one as is asked for."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from omnigraph.api.blob import Blob, BlobName, Pieces
from omnigraph.client.failures import foreign
from omnigraph.client.wire import SNAPSHOT, Ask, Wire
from omnigraph.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class RemoteBlob(Blob):
    """A blob of a graph on a server: the bytes that are asked for are sent, and no others."""

    _wire: Wire = field(repr=False, compare=False)

    def _bytes(self) -> tuple[int, Pieces]:
        if self.size is None:
            raise self._lies_elsewhere()
        return self.size, self._pieces

    def _pieces(self, offset: int, length: int) -> Iterator[bytes]:
        if not length:
            return
        ask = Ask(
            "GET",
            "blob",
            params=self._name().to_dict() | {"snapshot": self.commit},
            headers={"Range": f"bytes={offset}-{offset + length - 1}"},
        )
        with self._wire.streamed(ask) as answer:
            yield from answer.iter_bytes()


def blob_of(wire: Wire, name: BlobName, *, branch: str | None, commit: str | None) -> RemoteBlob:
    """Look a blob up; see `omnigraph.Graph.blob`."""
    chosen = {**name.to_dict(), "branch": branch, "snapshot": commit}
    # The first byte instead of a HEAD: its errors come with a body that says what they are.
    ask = Ask("GET", "blob", params=chosen, headers={"Range": "bytes=0-0"})
    try:
        headers = wire.whole(ask).headers
    except InvalidRequestError as refused:
        if refused.code != "blob_range":
            raise
        headers = wire.whole(replace(ask, method="HEAD", headers=None)).headers  # there is no first byte
    if SNAPSHOT not in headers:
        raise foreign(200, b"")
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
    """How many bytes there are: after the slash of a range, or all that come."""
    return int(range.rpartition("/")[2]) if range is not None else int(length or 0)
