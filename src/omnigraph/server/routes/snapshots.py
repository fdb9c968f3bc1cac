"""What a branch holds."""

from typing import Annotated

from fastapi import Query, Response

from omnigraph.server.answers import answered
from omnigraph.server.call import Served
from omnigraph.server.documents import snapshot_told
from omnigraph.server.responses import SnapshotOutput
from omnigraph.server.routes.queries import refuse_two_targets
from omnigraph.server.routing import READING, failing, graph_router

router = graph_router("snapshots")
AtCommit = Annotated[str | None, Query(description="At this commit instead. Beyond the contract.")]
AtTag = Annotated[str | None, Query(description="At the commit of this tag instead. Beyond the contract.")]
AtTime = Annotated[str | None, Query(description="The branch as it was at this time. Beyond the contract.")]
AtNumber = Annotated[int | None, Query(description="A place in the branch's log. Beyond the contract.")]


@router.get(
    "/snapshot",
    operation_id="cluster_getSnapshot",
    response_model=SnapshotOutput,
    responses=failing(*READING),
)
def snapshot(
    call: Served,
    *,
    branch: str | None = None,
    snapshot: AtCommit = None,
    number: AtNumber = None,
    tag: AtTag = None,
    at: AtTime = None,
) -> Response:
    """What a branch holds, type by type."""
    refuse_two_targets(branch, snapshot)
    call.reads_at(branch=branch, commit=snapshot, tag=tag)
    found = call.graph.snapshot(branch=branch, commit=snapshot, number=number, tag=tag, at=at)
    return answered(snapshot_told(found.record))
