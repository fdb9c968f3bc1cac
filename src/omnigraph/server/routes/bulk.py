"""Bulk data: loads as one commit, exports as JSON lines."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from fastapi import Query, Request, Response

from omnigraph.api.documents import full_commit_document
from omnigraph.api.results import LoadResult
from omnigraph.errors import InvalidRequestError
from omnigraph.policy.rules import Action
from omnigraph.server.errors import Refusal
from omnigraph.server.graph_call import CurrentCall, GraphCall
from omnigraph.server.request_models import (
    ChangeBaselineRequest,
    ExportRequest,
    IngestRequest,
    LoadQuery,
    write_options,
)
from omnigraph.server.response_models import GraphBatchLoadOutput, IngestOutput
from omnigraph.server.responses import NDJSON_UTF8, ChunkedResponse, fetch_first, json_response
from omnigraph.server.routes.mutations import IdempotencyKey
from omnigraph.server.routes.queries import deprecation_headers
from omnigraph.server.routing import (
    BODY_ERRORS,
    READ_ERRORS,
    WRITE_ERRORS,
    LoadRoute,
    NdjsonRoute,
    error_responses,
    graph_router,
)
from omnigraph.transaction.options import WriteOptions

NDJSON = "application/x-ndjson"
json_router = graph_router("mutations", route_class=LoadRoute)
ndjson_router = graph_router("mutations", route_class=NdjsonRoute)
export_router = graph_router()
_NDJSON_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {NDJSON: {"schema": {"type": "string", "description": "One JSON object per line."}}},
    }
}

_EXPORT_RESPONSES: dict[int | str, dict[str, Any]] = {
    **error_responses(*READ_ERRORS, *BODY_ERRORS),
    200: {
        "description": "One JSON object per line. Discard a stream that breaks off.",
        "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
    },
}


@json_router.post(
    "/load", operation_id="cluster_load", response_model=IngestOutput, responses=error_responses(*WRITE_ERRORS)
)
def load(body: IngestRequest, call: CurrentCall, idempotency_key: IdempotencyKey = None) -> Response:
    """Load rows from a string within JSON, leniently."""
    return json_response(_load_json(call, body, idempotency_key))


@json_router.post(
    "/ingest",
    operation_id="cluster_ingest",
    response_model=IngestOutput,
    deprecated=True,
    responses=error_responses(*WRITE_ERRORS),
)
def ingest(body: IngestRequest, call: CurrentCall, idempotency_key: IdempotencyKey = None) -> Response:
    """Load rows, deprecated; see `load`."""
    return json_response(_load_json(call, body, idempotency_key), headers=deprecation_headers("load"))


@ndjson_router.post(
    "/load/ndjson",
    operation_id="cluster_loadNdjson",
    response_model=GraphBatchLoadOutput,
    responses=error_responses(*WRITE_ERRORS),
    openapi_extra=_NDJSON_BODY,
)
async def load_ndjson(
    request: Request,
    call: CurrentCall,
    *,
    query: Annotated[LoadQuery, Query()],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Load rows, one JSON object per line, strictly. The caller is authorized before the body is read."""
    media, _, _ = request.headers.get("content-type", "").partition(";")
    if media.strip().lower() != NDJSON:
        raise Refusal(415, f"graph-batch load requires Content-Type: {NDJSON}")
    options = write_options(query, actor=call.actor, idempotency_key=idempotency_key)
    async with call.slot():
        await call.server.threads.run(lambda: _authorize(call, query.branch, query.from_, options))
    body = await request.body()
    try:
        body.decode()
    except UnicodeDecodeError:
        raise InvalidRequestError("graph-batch request body must be valid UTF-8") from None

    def run() -> Response:
        with call.admit():
            result = call.graph.load(
                body,
                mode=query.mode,
                branch=query.branch,
                from_branch=query.from_,
                engine="local",
                format="jsonl",
                dry_run=query.dry_run,
                write=options,
            )
        document = _load_document(call, result)
        del document["uri"]
        return json_response(document)

    async with call.slot():
        return await call.server.threads.run(run)


def _load_json(call: GraphCall, body: IngestRequest, idempotency_key: str | None) -> dict[str, Any]:
    branch = "main" if body.branch is None else body.branch
    options = write_options(body, actor=call.actor, idempotency_key=idempotency_key)
    _authorize(call, branch, body.from_, options)
    with call.admit():
        result = call.graph.load(
            body.data.encode(),
            mode=body.mode,
            branch=branch,
            from_branch=body.from_,
            strict=False,
            engine="local",
            format="jsonl",
            write=options,
        )
    return _load_document(call, result)


def _authorize(call: GraphCall, branch: str, source: str | None, options: WriteOptions) -> None:
    call.authorize(Action.CHANGE, branch=branch)
    call.authorize_options(options)
    if source is not None and branch not in call.graph.branches:
        call.authorize(Action.BRANCH_CREATE, branch=source, target_branch=branch)


def _load_document(call: GraphCall, result: LoadResult) -> dict[str, Any]:
    call.count_retries(result.attempts)
    return {
        **result.to_dict(),
        "commit": None if result.entry is None else full_commit_document(result.entry),
        "base_branch": result.base_branch,
        "actor_id": call.actor,
        "replayed": result.replayed,
        "attempts": result.attempts,
        "warnings": list(result.warnings),
    }


# --- exports ----------------------------------------------------------------------------------------------------------


@export_router.post(
    "/export", operation_id="cluster_export", tags=["queries"], response_class=Response, responses=_EXPORT_RESPONSES
)
def export(body: ExportRequest, call: CurrentCall) -> Response:
    """Export the entities of one commit as JSON lines that a load accepts."""
    point = call.authorize_at(Action.EXPORT, body)

    def chunks() -> Iterator[bytes]:
        return (chunk.to_pybytes() for chunk in call.graph.export_lines(types=body.type_names, **point))

    return _stream(call, chunks)


@export_router.post(
    "/changes/baseline",
    operation_id="cluster_captureChangeBaseline",
    tags=["changes"],
    response_class=Response,
    responses=_EXPORT_RESPONSES,
)
def baseline(body: ChangeBaselineRequest, call: CurrentCall) -> Response:
    """Export a whole branch, followed by the cursor that continues exactly after it."""
    branch = "main" if body.branch is None else body.branch
    call.authorize(Action.EXPORT, branch=branch)
    return _stream(
        call, lambda: call.graph.changes.baseline(branch, kinds=body.kind, types=body.type, ops=body.op).lines()
    )


def _stream(call: GraphCall, open_chunks: Callable[[], Iterator[bytes]]) -> Response:
    release = call.server.streams.take(call.served.id)
    try:
        with call.admit():
            chunks = fetch_first(open_chunks())
    except BaseException:
        release()
        raise
    return ChunkedResponse(chunks, media_type=NDJSON_UTF8, on_close=release)
