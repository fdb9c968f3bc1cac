"""Parse JSON documents of a server into the values that an embedded graph returns."""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from omnigraph.api.neighbourhood import NearEdge, NearNode, Neighbourhood
from omnigraph.api.results import ChangeCounts, LoadResult, MergeResult, MutationResult, RevertResult
from omnigraph.branch.entity_change import ChangeFilter, EntityChange, EntityKind, Image, Op
from omnigraph.branch.history_values import Blame, Block, CommitChangesPage, EntityEvent, FeedPage, Tag
from omnigraph.branch.point import Instant, Point, check_point
from omnigraph.client.failures import parse_merge_conflict
from omnigraph.model.change import Changes, TypeChange
from omnigraph.model.commit import MAIN, CommitKind, Pin, Record
from omnigraph.model.schema_cost import CostedStep
from omnigraph.storage.records.commit_v1 import read_recovery

Document = Mapping[str, Any]


def format_instant(at: Instant | None) -> str | None:
    """Format a time; without a zone it is UTC."""
    if at is None or isinstance(at, str):
        return at
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat()


def point_fields(point: Point) -> dict[str, str | int | None]:
    """Return the fields of a request that name a state.

    Raises:
        InvalidRequestError: the point is not valid.
    """
    check_point(point)
    return {
        "branch": point.branch,
        "snapshot": point.commit,
        "number": point.number,
        "tag": point.tag,
        "at": format_instant(point.at),
    }


def filter_fields(filter: ChangeFilter) -> dict[str, tuple[str, ...]]:
    """Return the fields of a request that filter changes."""
    return {"kind": tuple(sorted(filter.kinds)), "type": tuple(sorted(filter.types)), "op": tuple(sorted(filter.ops))}


# -- commits ----------------------------------------------------------------------------------------------------------


def parse_record(document: Document, *, tables: dict[str, Pin] | None = None) -> Record:
    """Parse the document of a commit; fields that only the store has stay empty."""
    return Record(
        commit=document["graph_commit_id"],
        branch=document["graph_branch"] or MAIN,
        number=document["graph_manifest_version"],
        kind=CommitKind(document["kind"]),
        parent=document["parent_commit_id"],
        merged_parent=document["merged_parent_commit_id"],
        actor=document["actor_id"],
        message=document["message"],
        created_at_us=document["created_at"],
        schema="",
        tables=tables or {},
        changes=Changes(parse_type_changes(document["changes"])),
        recovery=None if document.get("recovery") is None else read_recovery(document["recovery"]),
    )


def parse_snapshot_record(document: Document) -> Record:
    """Parse the document of a snapshot, with the tables of all types."""
    tables = {
        f"{table['entity_kind']}:{table['type_name']}": Pin(
            table["dataset_path"], int(table["published_dataset_version"]), table["entity_count"], table["bytes"]
        )
        for table in document["datasets"]
    }
    return parse_record(document["entry"], tables=tables)


def parse_type_changes(document: Document) -> dict[str, TypeChange]:
    """Parse counts of changes by type key."""
    return {
        key: TypeChange(counts["inserted"], counts["updated"], counts["deleted"]) for key, counts in document.items()
    }


def _record_of_cause(cause: Document) -> Record:
    """Parse the commit of a feed block; the feed has only some of its fields."""
    return Record(
        commit=cause["graph_commit_id"],
        branch=cause["authored_branch"],
        number=0,
        kind=CommitKind(cause.get("kind", CommitKind.MUTATION)),
        parent=cause.get("parent_commit_id"),
        merged_parent=cause.get("merged_parent_commit_id"),
        actor=cause.get("actor_id"),
        message=cause.get("message"),
        created_at_us=cause["authored_at"],
        schema="",
        tables={},
    )


# -- changes ----------------------------------------------------------------------------------------------------------


def parse_entity_change(document: Document) -> EntityChange:
    """Parse a change of one entity."""
    return EntityChange(
        EntityKind(document["kind"]),
        document["type"]["id"],
        document["type"]["name"],
        document["id"],
        Op(document["op"]),
        _image(document.get("before")),
        _image(document.get("after")),
    )


def _image(document: Document | None) -> Image | None:
    if document is None:
        return None
    ends = document.get("endpoints", {})
    return Image(document["properties"], ends.get("from"), ends.get("to"))


def parse_commit_changes(document: Document) -> CommitChangesPage:
    """Parse a page of the changes of one commit."""
    changes = [parse_entity_change(change) for change in document["changes"]]
    return CommitChangesPage(_record_of_cause(document["cause"]), changes, document.get("next_page_token"))


def parse_feed_page(document: Document) -> FeedPage:
    """Parse a page of the change feed."""
    blocks = [
        Block(_record_of_cause(block["cause"]), [parse_entity_change(change) for change in block["changes"]])
        for block in document["blocks"]
    ]
    return FeedPage(blocks, document.get("next_page_token"), document.get("cursor"), document.get("caught_up"))


def parse_entity_event(document: Document) -> EntityEvent:
    """Parse a change of one entity by one commit."""
    before, after = _image(document.get("before")), _image(document.get("after"))
    return EntityEvent(parse_record(document["commit"]), Op(document["op"]), before, after)


def parse_blame(document: Document) -> Blame:
    """Parse the commits that last changed an entity and each of its properties."""
    created, last = document["created"], document["last"]
    return Blame(
        document["entity_id"],
        {name: parse_record(commit) for name, commit in document["properties"].items()},
        None if created is None else parse_record(created),
        None if last is None else parse_record(last),
        tuple(document.get("pruned", ())),
    )


# -- results of writes ------------------------------------------------------------------------------------------------


def parse_mutation_result(document: Document) -> MutationResult:
    """Parse the result of a mutation."""
    commit = document["commit"]
    return MutationResult(
        query_name=document["query_name"],
        branch=document["branch"],
        affected_nodes=document["affected_nodes"],
        affected_edges=document["affected_edges"],
        commit=None if commit is None else commit["graph_commit_id"],
        head=document["head"],
        number=None if commit is None else commit["graph_manifest_version"],
        replayed=document["replayed"],
        attempts=document["attempts"],
        warnings=tuple(document["warnings"]),
    )


def parse_load_result(document: Document, uri: str) -> LoadResult:
    """Parse the result of a load."""
    commit = document["commit"]
    return LoadResult(
        uri=uri,
        branch=document["branch"],
        mode=document["mode"],
        nodes={type["name"]: type["entities_loaded"] for type in document["nodes"]},
        edges={type["name"]: type["entities_loaded"] for type in document["edges"]},
        commit=None if commit is None else commit["graph_commit_id"],
        entry=None if commit is None else parse_record(commit),
        base_branch=document["base_branch"],
        branch_created=document["branch_created"],
        replayed=document["replayed"],
        attempts=document["attempts"],
        warnings=tuple(document["warnings"]),
    )


def parse_merge_result(document: Document) -> MergeResult:
    """Parse the result of a merge, or of its preview."""
    commit = document["commit"]
    return MergeResult(
        outcome=document["outcome"],
        source=document["source"],
        into=document["target"],
        base=document["base"],
        source_commit=document["source_commit"],
        commit=None if commit is None else commit["graph_commit_id"],
        number=None if commit is None else commit["graph_manifest_version"],
        head=document["head"],
        conflicts=tuple(parse_merge_conflict(conflict) for conflict in document.get("conflicts", ())),
        changes={key: ChangeCounts(**counts) for key, counts in document["changes"].items()},
        resolved=document["resolved"],
        schema_steps=tuple(CostedStep.from_dict(step) for step in document.get("schema_steps", ())),
        is_preview=document.get("preview", False),
        branch_deleted=document.get("branch_deleted", False),
        branch_delete_error=document.get("branch_delete_error"),
        attempts=document["attempts"],
        warnings=tuple(document["warnings"]),
    )


def parse_revert_result(document: Document) -> RevertResult:
    """Parse the result of a revert."""
    commit = document["commit"]
    return RevertResult(
        branch=document["branch"],
        first=document["first"],
        last=document["last"],
        commit=None if commit is None else commit["graph_commit_id"],
        number=None if commit is None else commit["graph_manifest_version"],
        head=document["head"],
        changes=parse_type_changes(document["changes"]),
        replayed=document["replayed"],
        attempts=document["attempts"],
        warnings=tuple(document["warnings"]),
    )


# -- tags and neighbourhoods ------------------------------------------------------------------------------------------


def parse_tag(document: Document) -> Tag:
    """Parse a tag."""
    return Tag(
        name=document["name"],
        commit=document["graph_commit_id"],
        branch=document["graph_branch"],
        number=document["graph_manifest_version"],
        actor=document["actor_id"],
        created_at_us=document["created_at"],
    )


def parse_neighbourhood(document: Document) -> Neighbourhood:
    """Parse the neighbourhood of a node."""
    nodes = tuple(
        NearNode(node["type"], node["id"], node["properties"], node["distance"]) for node in document["nodes"]
    )
    edges = tuple(
        NearEdge(
            edge["type"],
            edge["id"],
            (edge["from"]["type"], edge["from"]["id"]),
            (edge["to"]["type"], edge["to"]["id"]),
            edge["properties"],
        )
        for edge in document["edges"]
    )
    return Neighbourhood(document["graph_commit_id"], nodes, edges, document["is_cut"])
