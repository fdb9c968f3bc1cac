"""Loads: rows in, as one commit."""

from typing import Annotated, Any

from fastapi import Query, Request, Response

from omnigraph.api.results import LoadResult
from omnigraph.errors import InvalidRequestError
from omnigraph.policy.rules import Action
from omnigraph.server.answers import answered
from omnigraph.server.bodies import LoadRoute, NdjsonRoute, parsed
from omnigraph.server.call import Call, Served
from omnigraph.server.documents import commit_told
from omnigraph.server.errors import Refusal
from omnigraph.server.requests import IngestRequest, LoadMode
from omnigraph.server.responses import GraphBatchLoadOutput, IngestOutput
from omnigraph.server.routes.mutations import IdempotencyKey
from omnigraph.server.routes.queries import superseded_by
from omnigraph.server.routing import WRITING, failing, graph_router
from omnigraph.transaction.said import check_expected_versions

NDJSON = "application/x-ndjson"
json_router = graph_router("mutations", route_class=LoadRoute)
router = graph_router("mutations", route_class=NdjsonRoute)
_LINES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {NDJSON: {"schema": {"type": "string", "description": "One JSON object per line."}}},
    }
}


@json_router.post("/load", operation_id="cluster_load", response_model=IngestOutput, responses=failing(*WRITING))
def load(body: IngestRequest, call: Served, idempotency_key: IdempotencyKey = None) -> Response:
    """Load rows that are a text within JSON, forgiving as loads of old were."""
    return answered(_ingested(call, body, idempotency_key))


@json_router.post(
    "/ingest",
    operation_id="cluster_ingest",
    response_model=IngestOutput,
    deprecated=True,
    responses=failing(*WRITING),
)
def ingest(body: IngestRequest, call: Served, idempotency_key: IdempotencyKey = None) -> Response:
    """Load rows, by the name of old; see `load`."""
    return answered(_ingested(call, body, idempotency_key), headers=superseded_by("load"))


@router.post(
    "/load/ndjson",
    operation_id="cluster_loadNdjson",
    response_model=GraphBatchLoadOutput,
    responses=failing(*WRITING),
    openapi_extra=_LINES,
)
async def load_ndjson(
    request: Request,
    call: Served,
    *,
    branch: str = "main",
    source: Annotated[str | None, Query(alias="from", description="Make the branch from this one.")] = None,
    mode: LoadMode = "merge",
    message: Annotated[str | None, Query(description="Why. Beyond the contract.")] = None,
    if_commit: Annotated[str | None, Query(description="Only at this head commit. Beyond the contract.")] = None,
    expected_table_versions: Annotated[
        str | None, Query(description="A JSON object; see mutate. Beyond the contract.")
    ] = None,
    prune_previous: Annotated[bool, Query(description="Beyond the contract; see mutate.")] = False,
    dry_run: Annotated[bool, Query(description="Check everything, write nothing. Beyond the contract.")] = False,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Load rows, one JSON object per line, strictly. Whether the caller may is decided before the body is read."""
    media, _, _ = request.headers.get("content-type", "").partition(";")
    if media.strip().lower() != NDJSON:
        raise Refusal(415, f"graph-batch load requires Content-Type: {NDJSON}")
    versions = _versions(expected_table_versions)
    async with call.turn():
        await call.server.threads.run(lambda: _authorize(call, branch, source, prunes=prune_previous))
    body = await request.body()
    try:
        body.decode()
    except UnicodeDecodeError:
        raise InvalidRequestError("graph-batch request body must be valid UTF-8") from None

    def run() -> Response:
        with call.admitted():
            done = call.graph.load(
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
        document = _document(call, done)
        del document["uri"]
        return answered(document)

    async with call.turn():
        return await call.server.threads.run(run)


def _ingested(call: Call, body: IngestRequest, idempotency_key: str | None) -> dict[str, Any]:
    where = "main" if body.branch is None else body.branch
    _authorize(call, where, body.from_)
    with call.admitted():
        done = call.graph.load(
            body.data.encode(),
            mode=body.mode,
            branch=where,
            from_branch=body.from_,
            strict=False,
            engine="local",
            format="jsonl",
            actor=call.actor,
            expected_table_versions=body.expected_table_versions,
            idempotency_key=idempotency_key,
        )
    return _document(call, done)


def _versions(text: str | None) -> dict[str, int] | None:
    if text is None:
        return None
    found = parsed(text.encode(errors="replace"), what="invalid expected_table_versions")
    check_expected_versions(found)
    return None if found is None else dict(found)


def _authorize(call: Call, branch: str, source: str | None, *, prunes: bool = False) -> None:
    call.authorize(Action.CHANGE, branch=branch)
    call.may_prune(prunes=prunes)
    if source is not None and branch not in call.graph.branches:
        call.authorize(Action.BRANCH_CREATE, branch=source, target_branch=branch)


def _document(call: Call, done: LoadResult) -> dict[str, Any]:
    call.ran(done.attempts)
    return {
        **done.to_dict(),
        "commit": None if done.entry is None else commit_told(done.entry),
        "base_branch": done.base_branch,
        "actor_id": call.actor,
        "replayed": done.replayed,
        "attempts": done.attempts,
        "warnings": list(done.warnings),
    }
