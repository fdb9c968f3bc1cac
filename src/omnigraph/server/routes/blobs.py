"""Blobs: as much of one as is asked for."""

from typing import Annotated, Literal

from fastapi import Query, Request, Response

from omnigraph.api.blob import Blob
from omnigraph.server.call import Call, Served
from omnigraph.server.conditions import Range, range_of, refuse_mismatch
from omnigraph.server.routing import READING, failing, graph_router
from omnigraph.server.states import StateParameters
from omnigraph.server.streams import PieceStream, begun

router = graph_router("blobs")
OCTETS = "application/octet-stream"
Entity = Annotated[Literal["node", "edge"], Query(description="Whether it belongs to a node or an edge.")]
TypeName = Annotated[str, Query(alias="type", description="Of which type.")]
Id = Annotated[str, Query(description="Which entity.")]
Property = Annotated[str, Query(description="Which of its properties.")]
_BYTES = {"content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}}
_ANSWERS = {
    **failing(*READING, 412, 416, 424),
    200: {"description": "All of it.", **_BYTES},
    206: {"description": "The range that was asked for.", **_BYTES},
    302: {"description": "It lies elsewhere, at the `Location`."},
    304: {"description": "The caller has it already."},
}


@router.get("/blob", operation_id="cluster_getBlob", response_class=Response, responses=_ANSWERS)
def get_blob(
    call: Served,
    request: Request,
    *,
    entity: Entity,
    type_name: TypeName,
    id: Id,
    property: Property,
    branch: str | None = None,
    snapshot: str | None = None,
) -> Response:
    """The bytes of a blob, or a range of them."""
    blob = _blob(call, entity, type_name, id, property, branch=branch, snapshot=snapshot)
    answer = _without_bytes(request, blob)
    if answer is not None:
        return answer
    assert blob.size is not None
    chosen = range_of(request, blob.etag or "", blob.size)
    headers = _headers(blob)
    if chosen is None:
        return _bytes(blob, Range(0, blob.size), 200, headers)
    headers["Content-Range"] = f"bytes {chosen.start}-{chosen.end - 1}/{blob.size}"
    return _bytes(blob, chosen, 206, headers)


@router.head("/blob", operation_id="cluster_headBlob", response_class=Response, responses=_ANSWERS)
def head_blob(
    call: Served,
    request: Request,
    *,
    entity: Entity,
    type_name: TypeName,
    id: Id,
    property: Property,
    branch: str | None = None,
    snapshot: str | None = None,
) -> Response:
    """What there is to know of a blob without its bytes."""
    blob = _blob(call, entity, type_name, id, property, branch=branch, snapshot=snapshot)
    answer = _without_bytes(request, blob)
    if answer is not None:
        return answer
    return Response(headers=_headers(blob) | {"Content-Length": str(blob.size)}, media_type=OCTETS)


def _blob(
    call: Call, entity: str, type_name: str, id: str, property: str, *, branch: str | None, snapshot: str | None
) -> Blob:
    where = call.reads_at(StateParameters(branch, snapshot))
    return call.graph.blob(entity, type_name, id, property, **where)


def _without_bytes(request: Request, blob: Blob) -> Response | None:
    """The answer where no bytes are to be sent: it lies elsewhere, or the caller has it."""
    if blob.uri is not None:
        headers = {"Location": blob.uri, "Cache-Control": "no-store", "Omnigraph-Snapshot-Id": blob.commit}
        return Response(status_code=302, headers=headers)
    if refuse_mismatch(request, blob.etag or ""):
        return Response(status_code=304, headers=_headers(blob))
    return None


def _headers(blob: Blob) -> dict[str, str]:
    return {"Accept-Ranges": "bytes", "ETag": blob.etag or "", "Omnigraph-Snapshot-Id": blob.commit}


def _bytes(blob: Blob, chosen: Range, status: int, headers: dict[str, str]) -> Response:
    headers["Content-Length"] = str(chosen.end - chosen.start)
    pieces = begun(blob.stream(chosen.start, chosen.end - chosen.start))
    return PieceStream(pieces, media_type=OCTETS, status=status, headers=headers)
