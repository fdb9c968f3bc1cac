"""Blobs: large values that are read apart from the rows they belong to, wherever the graph is.

Where its bytes come from is the matter of a graph that is open (`blobs.py`) and of one on a server (`client`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import InvalidRequestError
from omnigraph.transaction.validation import require_optional_whole_number, require_text, require_whole_number

# Reads some bytes: from which on, and how many.
Pieces = Callable[[int, int], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class BlobName:
    """Which blob.

    Attributes:
        entity: `node` or `edge`.
        type_name: of which type the entity is.
        id: of the entity.
        property: which of its properties.
    """

    entity: str
    type_name: str
    id: str
    property: str

    def __post_init__(self) -> None:
        for what in ("entity", "type_name", "id", "property"):
            require_text(getattr(self, what), what)

    def to_dict(self) -> dict[str, str]:
        """As requests and documents name it."""
        return {"entity": self.entity, "type": self.type_name, "id": self.id, "property": self.property}


@dataclass(frozen=True, slots=True)
class Blob(ABC):
    """A blob of one entity at one commit. Its bytes never change and are read when they are asked for.

    Attributes:
        entity: `node` or `edge`.
        type_name: of which type the entity is.
        id: of the entity.
        property: which of its properties.
        kind: `managed`, or `external` for one that lies elsewhere.
        commit: the commit it is read at.
        branch: the branch whose head that was when it was looked up; None where a commit was named.
        size: how many bytes it has; None for one that lies elsewhere.
        etag: in quotes; the same tag means the same bytes. None for one that lies elsewhere: nobody here knows whether
            what lies there is still the same.
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

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Some of its bytes; no others are read.

        Args:
            offset (int): where to begin.
            length (int | None): how many at most; all that follow by default.

        Returns:
            bytes: fewer than `length` only at the end.

        Raises:
            InvalidRequestError: the range begins after the end (`blob_range`), or the blob lies elsewhere, at a place
                that the graph was not opened for (`external_blob`); a server fetches none of these for others.
            BlobSourceError: it lies elsewhere and cannot be read there.
        """
        return b"".join(self.stream(offset, length))

    def stream(self, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The same bytes, some at a time, so that memory does not follow the size of the blob.

        Args:
            offset (int): where to begin.
            length (int | None): how many at most; all that follow by default.

        Returns:
            Iterator[bytes]: pieces, each read when it is asked for.

        Raises:
            InvalidRequestError: the range begins after the end (`blob_range`), or the blob lies elsewhere, at a place
                that the graph was not opened for (`external_blob`); a server fetches none of these for others.
            BlobSourceError: it lies elsewhere and cannot be read there.
        """
        require_whole_number(offset, "offset")
        require_optional_whole_number(length, "length")
        size, pieces = self._bytes()
        wanted = size - offset if length is None else length
        if offset < 0 or wanted < 0 or offset > size:
            raise InvalidRequestError(
                f"the blob has {size} bytes: no range of it begins at {offset} and has {wanted}",
                code="blob_range",
                start=offset,
                end=offset + wanted,
                length=size,
            )
        return pieces(offset, min(wanted, size - offset))

    def to_dict(self) -> dict[str, Any]:
        """As a JSON document; what there is not is left out."""
        facts = {"size": self.size, "etag": self.etag, "uri": self.uri}
        told = {name: value for name, value in facts.items() if value is not None}
        return {"selector": self._name().to_dict(), "kind": self.kind, **told}

    def _name(self) -> BlobName:
        return BlobName(self.entity, self.type_name, self.id, self.property)

    def _lies_elsewhere(self) -> InvalidRequestError:
        return InvalidRequestError(f"the blob lies elsewhere, at {self.uri}", code="external_blob", uri=self.uri)

    # -- where its bytes come from ------------------------------------------------------------------------------------

    @abstractmethod
    def _bytes(self) -> tuple[int, Pieces]:
        """How many there are, and what reads them; raises where they are not to be read from here."""
