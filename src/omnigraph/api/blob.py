"""Blobs: large values that are read separately from their rows, by byte range.

Subclasses read the bytes: of an open graph (`blobs.py`) or of a graph on a server (`client`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import InvalidRequestError
from omnigraph.transaction.validation import require_optional_whole_number, require_text, require_whole_number

# Reads a byte range: offset and length.
ReadRange = Callable[[int, int], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class BlobName:
    """The name of a blob: a property of an entity.

    Attributes:
        entity: `node` or `edge`.
        type_name: the node or edge type.
        id: the id of the node or edge.
        property: the property that holds the blob.
    """

    entity: str
    type_name: str
    id: str
    property: str

    def __post_init__(self) -> None:
        for what in ("entity", "type_name", "id", "property"):
            require_text(getattr(self, what), what)

    def to_dict(self) -> dict[str, str]:
        """Return a JSON document."""
        return {"entity": self.entity, "type": self.type_name, "id": self.id, "property": self.property}


@dataclass(frozen=True, slots=True)
class Blob(ABC):
    """A blob of one entity at one commit. Its bytes never change, and are read on demand.

    Attributes:
        entity: `node` or `edge`.
        type_name: the node or edge type.
        id: the id of the node or edge.
        property: the property that holds the blob.
        kind: `managed`, or `external` for one that is stored outside of the graph.
        commit: the commit it is read at.
        branch: the branch whose head was `commit` when the blob was looked up; None if a commit was given.
        size: in bytes; None for an external blob.
        etag: in quotes; the same tag means the same bytes. None for an external blob, which may change.
        uri: the address of an external blob; None for a managed one.
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

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Read a byte range; no other bytes are read.

        Args:
            offset (int): the first byte.
            length (int | None): the maximum number of bytes; by default all that follow.

        Returns:
            bytes: fewer than `length` only at the end.

        Raises:
            InvalidRequestError: the range begins after the end (`blob_range`), or the blob is external and the graph
                was not opened with permission to read it there (`external_blob`); a server never reads external blobs.
            BlobSourceError: an external blob cannot be read at its address.
        """
        return b"".join(self.stream(offset, length))

    def stream(self, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Read a byte range in pieces, in constant memory.

        Args:
            offset (int): the first byte.
            length (int | None): the maximum number of bytes; by default all that follow.

        Returns:
            Iterator[bytes]: pieces, read on demand.

        Raises:
            InvalidRequestError: the range begins after the end (`blob_range`), or the blob is external and the graph
                was not opened with permission to read it there (`external_blob`); a server never reads external blobs.
            BlobSourceError: an external blob cannot be read at its address.
        """
        require_whole_number(offset, "offset")
        require_optional_whole_number(length, "length")
        size, read_range = self._source()
        wanted = size - offset if length is None else length
        if offset < 0 or wanted < 0 or offset > size:
            raise InvalidRequestError(
                f"the blob has {size} bytes: no range of it begins at {offset} and has {wanted}",
                code="blob_range",
                start=offset,
                end=offset + wanted,
                length=size,
            )
        return read_range(offset, min(wanted, size - offset))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document without absent fields."""
        optional = {"size": self.size, "etag": self.etag, "uri": self.uri}
        present = {name: value for name, value in optional.items() if value is not None}
        return {"selector": self._name().to_dict(), "kind": self.kind, **present}

    def _name(self) -> BlobName:
        return BlobName(self.entity, self.type_name, self.id, self.property)

    def _external_error(self) -> InvalidRequestError:
        return InvalidRequestError(f"the blob is external, at {self.uri}", code="external_blob", uri=self.uri)

    # -- for subclasses ----------------------------------------------------------------------------------------------

    @abstractmethod
    def _source(self) -> tuple[int, ReadRange]:
        """Return the size and a function that reads a range; raise if the blob cannot be read from here."""
