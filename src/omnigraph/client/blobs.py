"""Blobs of a graph on a server: as much of one as is asked for."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.client.failures import foreign
from omnigraph.client.wire import SNAPSHOT, Ask, Wire
from omnigraph.errors import InvalidRequestError
from omnigraph.transaction.said import text, whole_number, whole_number_or_nothing


@dataclass(frozen=True, slots=True)
class RemoteBlob:
    """A blob of one entity at one commit; see `omnigraph.Blob`.

    Attributes:
        entity: `node` or `edge`.
        type_name: of which type the entity is.
        id: of the entity.
        property: which of its properties.
        kind: `managed`, or `external` for one that lies elsewhere.
        commit: the commit it is read at.
        branch: the branch whose head that was when it was looked up; None where a commit was named.
        size: how many bytes it has; None for one that lies elsewhere.
        etag: in quotes; the same tag means the same bytes. None for one that lies elsewhere.
        uri: where it lies, if that is elsewhere; None for a managed one.
    """

    entity: str
    type_name: str
    id: str
    property: str
    kind: str
    commit: str
    branch: str | None
    size: int | None
    etag: str | None
    uri: str | None
    _wire: Wire = field(repr=False, compare=False)

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Some of its bytes; no others are sent.

        Args:
            offset (int): where to begin.
            length (int | None): how many at most; all that follow by default.

        Returns:
            bytes: fewer than `length` only at the end.
        """
        return b"".join(self.stream(offset, length))

    def stream(self, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The same bytes, some at a time, so that memory does not follow the size of the blob.

        Args:
            offset (int): where to begin.
            length (int | None): how many at most; all that follow by default.

        Returns:
            Iterator[bytes]: pieces, as they come.

        Raises:
            InvalidRequestError: the range begins after the end (`blob_range`), or the blob lies elsewhere
                (`external_blob`): a server does not fetch it for others.
        """
        whole_number(offset, "offset")
        whole_number_or_nothing(length, "length")
        if self.size is None:
            raise InvalidRequestError(f"the blob lies elsewhere, at {self.uri}", code="external_blob", uri=self.uri)
        wanted = self.size - offset if length is None else length
        if offset < 0 or wanted < 0 or offset > self.size:
            raise InvalidRequestError(
                f"the blob has {self.size} bytes: no range of it begins at {offset} and has {wanted}",
                code="blob_range",
                start=offset,
                end=offset + wanted,
                length=self.size,
            )
        return self._pieces(offset, min(wanted, self.size - offset))

    def _pieces(self, offset: int, length: int) -> Iterator[bytes]:
        if not length:
            return
        ask = Ask(
            "GET",
            "blob",
            params=selector(self.entity, self.type_name, self.id, self.property) | {"snapshot": self.commit},
            headers={"Range": f"bytes={offset}-{offset + length - 1}"},
        )
        with self._wire.streamed(ask) as answer:
            yield from answer.iter_bytes()

    def to_dict(self) -> dict[str, Any]:
        """As a JSON document; what there is not is left out."""
        facts = {"size": self.size, "etag": self.etag, "uri": self.uri}
        named = selector(self.entity, self.type_name, self.id, self.property)
        return {"selector": named, "kind": self.kind, **{k: v for k, v in facts.items() if v is not None}}


def selector(entity: str, type_name: str, id: str, property: str) -> dict[str, str]:
    """Which blob."""
    return {"entity": entity, "type": type_name, "id": id, "property": property}


def blob_of(
    wire: Wire,
    *,
    entity: str,
    type_name: str,
    id: str,
    property: str,
    branch: str | None,
    commit: str | None,
) -> RemoteBlob:
    """Look a blob up; see `omnigraph.Graph.blob`."""
    for what, given in {"entity": entity, "type_name": type_name, "id": id, "property": property}.items():
        text(given, what)
    chosen = selector(entity, type_name, id, property)
    # The first byte instead of a HEAD: its errors come with a body that says what they are.
    ask = Ask("GET", "blob", params=chosen | {"branch": branch, "snapshot": commit}, headers={"Range": "bytes=0-0"})
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
        entity=entity,
        type_name=type_name,
        id=id,
        property=property,
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
