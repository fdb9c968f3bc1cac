"""Blobs of an open graph, read by byte range."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from omnigraph import limits
from omnigraph.api.blob import Blob, BlobName, ReadRange
from omnigraph.api.prune import as_reclaimed
from omnigraph.api.snapshot import Snapshot
from omnigraph.errors import FormatError, InvalidRequestError, NotFoundError
from omnigraph.model.schema import EntityType
from omnigraph.storage.blob_sources import source_at
from omnigraph.storage.blob_values import HEAD_BYTES, cell_head
from omnigraph.storage.external_blobs import ExternalBlobPolicy
from omnigraph.storage.tables.tables import StoredBlob
from omnigraph.transaction.graph_context import GraphContext

_ENTITIES = ("node", "edge")


@dataclass(frozen=True, slots=True)
class BlobInStorage(Blob):
    """A blob of an open graph: in its storage, or at an external address that it may read."""

    _stored: StoredBlob = field(repr=False, compare=False)
    _skipped: int = field(repr=False, compare=False)
    _policy: ExternalBlobPolicy = field(repr=False, compare=False)

    def _source(self) -> tuple[int, ReadRange]:
        if self.uri is None:
            return self._stored.size - self._skipped, self._pieces
        if not self._policy.lets_read(self.uri):
            raise self._external_error()
        source = source_at(self.uri)
        return source.size, source.pieces

    def _pieces(self, offset: int, length: int) -> Iterator[bytes]:
        return self._stored.chunks(self._skipped + offset, length)


def find_blob(parts: GraphContext, snapshot: Snapshot, name: BlobName) -> Blob:
    """Look up a blob; see `Graph.blob`."""
    entity, type_name, property = name.entity, name.type_name, name.property
    entity_type = _type_of(snapshot, entity, type_name)
    found = entity_type.property_named(property)
    if found is None:
        raise InvalidRequestError(f"{entity} type '{type_name}' has no property '{property}'", code="no_such_property")
    if not found.type.is_blob:
        raise InvalidRequestError(f"property '{type_name}.{property}' is not a Blob", code="no_blob_property")
    try:
        stored = snapshot.stored_blob(entity_type.type_key, name.id, property)
        if stored is None:
            raise NotFoundError(f"{entity} '{name.id}' of type '{type_name}' has no '{property}'", code="blob_is_null")
        head = cell_head(stored.read(0, HEAD_BYTES))
        uri = stored.read(head.skipped, limits.BLOB_URI_BYTES_MAX).decode() if head.is_reference else None
    except FormatError as fault:
        raise as_reclaimed(parts, snapshot.record, fault) from fault
    return BlobInStorage(
        entity=entity,
        type_name=type_name,
        id=name.id,
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
    entity_type = snapshot.schema.node(type_name) if entity == "node" else snapshot.schema.edge(type_name)
    if entity_type is None:
        raise InvalidRequestError(f"unknown {entity} type '{type_name}'", code="no_such_type")
    return entity_type
