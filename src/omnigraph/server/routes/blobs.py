"""Blobs: conditional and range requests for large binary values."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from omnigraph.api.blob import Blob
from omnigraph.server.errors import Refusal
from omnigraph.server.graph_call import CurrentCall, GraphCall
from omnigraph.server.point_params import PointParams
from omnigraph.server.responses import ChunkedResponse, fetch_first
from omnigraph.server.routing import READ_ERRORS, error_responses, graph_router

router = graph_router("blobs")
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.IGNORECASE)
_ETAG = re.compile(r'(W/)?"([^"]*)"')
OCTETS = "application/octet-stream"
Entity = Annotated[Literal["node", "edge"], Query(description="Kind of the entity.")]
TypeName = Annotated[str, Query(alias="type", description="Type of the entity.")]
Id = Annotated[str, Query(description="Id of the entity.")]
Property = Annotated[str, Query(description="Property that holds the blob.")]
_BINARY = {"content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}}
_RESPONSES = {
    **error_responses(*READ_ERRORS, 412, 416, 424),
    200: {"description": "The whole blob.", **_BINARY},
    206: {"description": "The requested range.", **_BINARY},
    302: {"description": "The blob is external, at the `Location`."},
    304: {"description": "The caller already has it."},
}


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes from `start` up to, not including, `end`."""

    start: int
    end: int


@router.get("/blob", operation_id="cluster_getBlob", response_class=Response, responses=_RESPONSES)
def get_blob(
    call: CurrentCall,
    request: Request,
    *,
    entity: Entity,
    type_name: TypeName,
    id: Id,
    property: Property,
    branch: str | None = None,
    snapshot: str | None = None,
) -> Response:
    """Return the bytes of a blob, or a range of them."""
    blob = _find_blob(call, entity, type_name, id, property, branch=branch, snapshot=snapshot)
    response = _respond_without_bytes(request, blob)
    if response is not None:
        return response
    assert blob.size is not None
    requested = read_range(request, blob.etag or "", blob.size)
    headers = _headers(blob)
    if requested is None:
        return _bytes_response(blob, ByteRange(0, blob.size), 200, headers)
    headers["Content-Range"] = f"bytes {requested.start}-{requested.end - 1}/{blob.size}"
    return _bytes_response(blob, requested, 206, headers)


@router.head("/blob", operation_id="cluster_headBlob", response_class=Response, responses=_RESPONSES)
def head_blob(
    call: CurrentCall,
    request: Request,
    *,
    entity: Entity,
    type_name: TypeName,
    id: Id,
    property: Property,
    branch: str | None = None,
    snapshot: str | None = None,
) -> Response:
    """Return the headers of a blob without its bytes."""
    blob = _find_blob(call, entity, type_name, id, property, branch=branch, snapshot=snapshot)
    response = _respond_without_bytes(request, blob)
    if response is not None:
        return response
    return Response(headers=_headers(blob) | {"Content-Length": str(blob.size)}, media_type=OCTETS)


def _find_blob(
    call: GraphCall, entity: str, type_name: str, id: str, property: str, *, branch: str | None, snapshot: str | None
) -> Blob:
    point = call.authorize_read_at(PointParams(branch, snapshot))
    return call.graph.blob(entity, type_name, id, property, **point)


def _respond_without_bytes(request: Request, blob: Blob) -> Response | None:
    """Return the response if no bytes need to be sent: the blob is external, or the caller already has it."""
    if blob.uri is not None:
        headers = {"Location": blob.uri, "Cache-Control": "no-store", "Omnigraph-Snapshot-Id": blob.commit}
        return Response(status_code=302, headers=headers)
    if is_unchanged(request, blob.etag or ""):
        return Response(status_code=304, headers=_headers(blob))
    return None


def _headers(blob: Blob) -> dict[str, str]:
    return {"Accept-Ranges": "bytes", "ETag": blob.etag or "", "Omnigraph-Snapshot-Id": blob.commit}


def _bytes_response(blob: Blob, chosen: ByteRange, status: int, headers: dict[str, str]) -> Response:
    headers["Content-Length"] = str(chosen.end - chosen.start)
    chunks = fetch_first(blob.stream(chosen.start, chosen.end - chosen.start))
    return ChunkedResponse(chunks, media_type=OCTETS, status=status, headers=headers)


# --- conditions and ranges --------------------------------------------------------------------------------------------


def is_unchanged(request: Request, etag: str) -> bool:
    """Evaluate `If-Match` and `If-None-Match`; return whether the caller already has the bytes.

    Raises:
        Refusal: the entity tag does not match `If-Match`.
    """
    required = _read_list(request, "if-match")
    if required is not None and not _is_among(etag, required, weak=False):
        raise Refusal(412, "the blob is not the one that If-Match names", code="conflict")
    known = _read_list(request, "if-none-match")
    return known is not None and _is_among(etag, known, weak=True)


def read_range(request: Request, etag: str, size: int) -> ByteRange | None:
    """Evaluate `Range` and `If-Range`; return None for the whole blob: no range, several, or an invalid one.

    Raises:
        Refusal: the range is outside the blob.
    """
    match = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if match is None or not (match[1] or match[2]):
        return None
    if request.headers.get("if-range", etag).strip() != etag:
        return None
    if not match[1]:
        suffix = int(match[2])
        start, end = max(0, size - suffix), size
        if suffix == 0:
            start = size
    else:
        start, end = int(match[1]), min(size, int(match[2]) + 1) if match[2] else size
        if match[2] and int(match[2]) < start:
            return None
    if start >= size:
        raise Refusal(
            416,
            f"the blob has {size} bytes, and no range of it begins at {start}",
            details={"blob_range": {"start": start, "end": max(start, end), "length": size}},
            headers={"Content-Range": f"bytes */{size}"},
        )
    return ByteRange(start, end)


def _read_list(request: Request, name: str) -> str | None:
    values = request.headers.getlist(name)
    return ", ".join(values) if values else None


def _is_among(etag: str, listed: str, *, weak: bool) -> bool:
    if listed.strip() == "*":
        return True
    return any(f'"{tag}"' == etag and (weak or not is_weak) for is_weak, tag in _ETAG.findall(listed))
