"""Blobs: large values that are read apart from the rows they belong to, as much of them as is wanted."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from omnigraph import limits
from omnigraph.api.pruning import as_reclaimed
from omnigraph.api.snapshot import Snapshot
from omnigraph.errors import FormatError, InvalidRequestError, NotFoundError
from omnigraph.model.schema import EntityType
from omnigraph.storage.blob_sources import BlobSource, source_at
from omnigraph.storage.blob_values import HEAD_BYTES, cell_head
from omnigraph.storage.external_blobs import ExternalBlobPolicy
from omnigraph.storage.tables.tables import StoredBlob
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.said import text, whole_number, whole_number_or_nothing

_ENTITIES = ("node", "edge")


@dataclass(frozen=True, slots=True)
class Blob:
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
    _stored: StoredBlob = field(repr=False, compare=False)
    _skipped: int = field(repr=False, compare=False)
    _policy: ExternalBlobPolicy = field(repr=False, compare=False)

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Some of its bytes; no others are read.

        Args:
            offset (int): where to begin.
            length (int | None): how many at most; all that follow by default.

        Returns:
            bytes: fewer than `length` only at the end.

        Raises:
            InvalidRequestError: the range begins after the end (`blob_range`), or the blob lies elsewhere, at a place
                that the graph was not opened for (`external_blob`).
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
                that the graph was not opened for (`external_blob`).
            BlobSourceError: it lies elsewhere and cannot be read there.
        """
        whole_number(offset, "offset")
        whole_number_or_nothing(length, "length")
        elsewhere = None if self.uri is None else self._elsewhere(self.uri)
        size = self.size if elsewhere is None else elsewhere.size
        assert size is not None
        wanted = size - offset if length is None else length
        if offset < 0 or wanted < 0 or offset > size:
            raise InvalidRequestError(
                f"the blob has {size} bytes: no range of it begins at {offset} and has {wanted}",
                code="blob_range",
                start=offset,
                end=offset + wanted,
                length=size,
            )
        if elsewhere is not None:
            return elsewhere.pieces(offset, min(wanted, size - offset))
        return self._stored.chunks(self._skipped + offset, wanted)

    def _elsewhere(self, uri: str) -> BlobSource:
        if not self._policy.lets_read(uri):
            raise InvalidRequestError(f"the blob lies elsewhere, at {uri}", code="external_blob", uri=uri)
        return source_at(uri)

    def to_dict(self) -> dict[str, Any]:
        """As a JSON document; what there is not is left out."""
        selector = {"entity": self.entity, "type": self.type_name, "id": self.id, "property": self.property}
        facts = {"size": self.size, "etag": self.etag, "uri": self.uri}
        return {"selector": selector, "kind": self.kind, **{k: v for k, v in facts.items() if v is not None}}


def blob_of(parts: Parts, snapshot: Snapshot, *, entity: str, type_name: str, id: str, property: str) -> Blob:
    """Look a blob up; see `Graph.blob`."""
    for what, given in {"entity": entity, "type_name": type_name, "id": id, "property": property}.items():
        text(given, what)
    of = _type_of(snapshot, entity, type_name)
    found = of.property_named(property)
    if found is None:
        raise InvalidRequestError(f"{entity} type '{type_name}' has no property '{property}'", code="no_such_property")
    if not found.type.is_blob:
        raise InvalidRequestError(f"property '{type_name}.{property}' is not a Blob", code="no_blob_property")
    try:
        stored = snapshot.stored_blob(of.type_key, id, property)
        if stored is None:
            raise NotFoundError(f"{entity} '{id}' of type '{type_name}' has no '{property}'", code="blob_is_null")
        head = cell_head(stored.read(0, HEAD_BYTES))
        uri = stored.read(head.skipped, limits.BLOB_URI_BYTES_MAX).decode() if head.is_reference else None
    except FormatError as fault:
        raise as_reclaimed(parts, snapshot.record, fault) from fault
    return Blob(
        entity=entity,
        type_name=type_name,
        id=id,
        property=property,
        kind="managed" if uri is None else "external",
        commit=snapshot.commit,
        branch=snapshot.head_of,
        size=stored.size - head.skipped if uri is None else None,
        etag=f'"{stored.identity}"' if uri is None else None,
        uri=uri,
        _stored=stored,
        _skipped=head.skipped,
        _policy=parts.settings.external_blobs,
    )


def _type_of(snapshot: Snapshot, entity: str, type_name: str) -> EntityType:
    if entity not in _ENTITIES:
        raise InvalidRequestError(f"an entity is a node or an edge, not '{entity}'", code="no_such_kind")
    of = snapshot.schema.node(type_name) if entity == "node" else snapshot.schema.edge(type_name)
    if of is None:
        raise InvalidRequestError(f"unknown {entity} type '{type_name}'", code="no_such_type")
    return of
