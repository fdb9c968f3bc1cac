"""Bulk data: loads as one commit, exports as JSON lines."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from fastapi import Query, Request, Response

from omnigraph.api.results import LoadResult
from omnigraph.errors import InvalidRequestError
from omnigraph.policy.rules import Action
from omnigraph.server.errors import Refusal
from omnigraph.server.graph_call import CurrentCall, GraphCall
from omnigraph.server.request_models import ChangeBaselineRequest, ExportRequest, IngestRequest, LoadMode
from omnigraph.server.response_models import GraphBatchLoadOutput, IngestOutput
from omnigraph.server.responses import NDJSON_UTF8, ChunkedResponse, commit_document, fetch_first, json_response
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
    parse_json,
)
from omnigraph.transaction.validation import require_table_versions

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
    branch: str = "main",
    source: Annotated[str | None, Query(alias="from", description="Create the branch from this one.")] = None,
    mode: LoadMode = "merge",
    message: Annotated[str | None, Query(description="Commit message. Beyond the contract.")] = None,
    if_commit: Annotated[str | None, Query(description="Only at this head commit. Beyond the contract.")] = None,
    expected_table_versions: Annotated[
        str | None, Query(description="A JSON object; see mutate. Beyond the contract.")
    ] = None,
    prune_previous: Annotated[bool, Query(description="Beyond the contract; see mutate.")] = False,
    dry_run: Annotated[bool, Query(description="Validate everything, write nothing. Beyond the contract.")] = False,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Load rows, one JSON object per line, strictly. The caller is authorized before the body is read."""
    media, _, _ = request.headers.get("content-type", "").partition(";")
    if media.strip().lower() != NDJSON:
        raise Refusal(415, f"graph-batch load requires Content-Type: {NDJSON}")
    versions = _parse_versions(expected_table_versions)
    async with call.slot():
        await call.server.threads.run(lambda: _authorize(call, branch, source, prunes=prune_previous))
    body = await request.body()
    try:
        body.decode()
    except UnicodeDecodeError:
        raise InvalidRequestError("graph-batch request body must be valid UTF-8") from None

    def run() -> Response:
        with call.admit():
            result = call.graph.load(
                body,
                mode=mode,
                branch=branch,
                from_branch=source,
                engine="local",
                format="jsonl",
                actor=call.actor,
                message=message,
                if_commit=if_commit,
                expected_table_versions=versions,
                idempotency_key=idempotency_key,
                prune_previous=prune_previous,
                dry_run=dry_run,
            )
        document = _load_document(call, result)
        del document["uri"]
        return json_response(document)

    async with call.slot():
        return await call.server.threads.run(run)


def _load_json(call: GraphCall, body: IngestRequest, idempotency_key: str | None) -> dict[str, Any]:
    branch = "main" if body.branch is None else body.branch
    _authorize(call, branch, body.from_)
    with call.admit():
        result = call.graph.load(
            body.data.encode(),
            mode=body.mode,
            branch=branch,
            from_branch=body.from_,
            strict=False,
            engine="local",
            format="jsonl",
            actor=call.actor,
            expected_table_versions=body.expected_table_versions,
            idempotency_key=idempotency_key,
        )
    return _load_document(call, result)


def _parse_versions(text: str | None) -> dict[str, int] | None:
    if text is None:
        return None
    versions = parse_json(text.encode(errors="replace"), prefix="invalid expected_table_versions")
    require_table_versions(versions)
    return None if versions is None else dict(versions)


def _authorize(call: GraphCall, branch: str, source: str | None, *, prunes: bool = False) -> None:
    call.authorize(Action.CHANGE, branch=branch)
    call.authorize_prune(prunes=prunes)
    if source is not None and branch not in call.graph.branches:
        call.authorize(Action.BRANCH_CREATE, branch=source, target_branch=branch)


def _load_document(call: GraphCall, result: LoadResult) -> dict[str, Any]:
    call.count_retries(result.attempts)
    return {
        **result.to_dict(),
        "commit": None if result.entry is None else commit_document(result.entry),
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
