"""Documents of answers, as the values an embedded graph returns."""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from omnigraph.api.neighbourhood import NearEdge, NearNode, Neighbourhood
from omnigraph.api.results import ChangeCounts, LoadResult, MergeResult, MutationResult, RevertResult
from omnigraph.branch.entity_change import ChangeFilter, EntityChange, EntityKind, Image, Op
from omnigraph.branch.point import Instant, Point, check_point
from omnigraph.branch.told import Blame, Block, CommitChangesPage, EntityEvent, FeedPage, Tag
from omnigraph.client.failures import merge_conflict
from omnigraph.model.change import Changes, TypeChange
from omnigraph.model.commit import MAIN, CommitKind, Pin, Record
from omnigraph.model.schema_cost import CostedStep

Document = Mapping[str, Any]


def instant(at: Instant | None) -> str | None:
    """A time as a text; without a zone it is UTC."""
    if at is None or isinstance(at, str):
        return at
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat()


def state(point: Point) -> dict[str, str | int | None]:
    """The members of a request that name a state, whatever it asks for.

    Raises:
        InvalidRequestError: they name none, as an open graph finds it.
    """
    check_point(point)
    return {
        "branch": point.branch,
        "snapshot": point.commit,
        "number": point.number,
        "tag": point.tag,
        "at": instant(point.at),
    }


def changes_wanted(wanted: ChangeFilter) -> dict[str, tuple[str, ...]]:
    """The members of a request that say which changes."""
    return {"kind": tuple(sorted(wanted.kinds)), "type": tuple(sorted(wanted.types)), "op": tuple(sorted(wanted.ops))}


# -- commits ----------------------------------------------------------------------------------------------------------


def record_of(document: Document, *, tables: dict[str, Pin] | None = None) -> Record:
    """The entry of the log that a commit's document tells of; without what only the store knows."""
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
        changes=Changes(type_changes(document["changes"])),
    )


def snapshot_record(document: Document) -> Record:
    """The entry of the log that a snapshot's document tells of, with the table of every type."""
    tables = {
        f"{each['entity_kind']}:{each['type_name']}": Pin(
            each["dataset_path"], each["published_dataset_version"], each["entity_count"], each["bytes"]
        )
        for each in document["datasets"]
    }
    return record_of(document["entry"], tables=tables)


def type_changes(document: Document) -> dict[str, TypeChange]:
    """Counts of changes, by type key."""
    return {key: TypeChange(each["inserted"], each["updated"], each["deleted"]) for key, each in document.items()}


def _record_of_cause(cause: Document) -> Record:
    """The entry of the log, as far as the feed tells of it."""
    return Record(
        commit=cause["graph_commit_id"],
        branch=cause["authored_branch"],
        number=0,
        kind=CommitKind.MUTATION,
        parent=cause.get("parent_commit_id"),
        merged_parent=cause.get("merged_parent_commit_id"),
        actor=cause.get("actor_id"),
        created_at_us=cause["authored_at"],
        schema="",
        tables={},
    )


# -- changes ----------------------------------------------------------------------------------------------------------


def entity_change(document: Document) -> EntityChange:
    """A change of one entity."""
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


def commit_changes(document: Document) -> CommitChangesPage:
    """Changes of one commit."""
    changes = [entity_change(each) for each in document["changes"]]
    return CommitChangesPage(_record_of_cause(document["cause"]), changes, document.get("next_page_token"))


def feed_page(document: Document) -> FeedPage:
    """What one poll gave."""
    blocks = [
        Block(_record_of_cause(each["cause"]), [entity_change(change) for change in each["changes"]])
        for each in document["blocks"]
    ]
    return FeedPage(blocks, document.get("next_page_token"), document.get("cursor"), document.get("caught_up"))


def entity_event(document: Document) -> EntityEvent:
    """What one commit did to one entity."""
    before, after = _image(document.get("before")), _image(document.get("after"))
    return EntityEvent(record_of(document["commit"]), Op(document["op"]), before, after)


def blame(document: Document) -> Blame:
    """Who made an entity what it is."""
    created, last = document["created"], document["last"]
    return Blame(
        document["entity_id"],
        {name: record_of(each) for name, each in document["properties"].items()},
        None if created is None else record_of(created),
        None if last is None else record_of(last),
        tuple(document.get("pruned", ())),
    )


# -- what writes return -----------------------------------------------------------------------------------------------


def mutation_result(document: Document) -> MutationResult:
    """What came of a mutation."""
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


def load_result(document: Document, uri: str) -> LoadResult:
    """What came of a load."""
    commit = document["commit"]
    return LoadResult(
        uri=uri,
        branch=document["branch"],
        mode=document["mode"],
        nodes={each["name"]: each["entities_loaded"] for each in document["nodes"]},
        edges={each["name"]: each["entities_loaded"] for each in document["edges"]},
        commit=None if commit is None else commit["graph_commit_id"],
        entry=None if commit is None else record_of(commit),
        base_branch=document["base_branch"],
        branch_created=document["branch_created"],
        replayed=document["replayed"],
        attempts=document["attempts"],
        warnings=tuple(document["warnings"]),
    )


def merge_result(document: Document) -> MergeResult:
    """What came of a merge, or would come of it."""
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
        conflicts=tuple(merge_conflict(each) for each in document.get("conflicts", ())),
        changes={key: ChangeCounts(**counts) for key, counts in document["changes"].items()},
        resolved=document["resolved"],
        schema_steps=tuple(CostedStep.from_dict(step) for step in document.get("schema_steps", ())),
        is_preview=document.get("preview", False),
        branch_deleted=document.get("branch_deleted", False),
        branch_delete_error=document.get("branch_delete_error"),
        attempts=document["attempts"],
        warnings=tuple(document["warnings"]),
    )


def revert_result(document: Document) -> RevertResult:
    """What came of undoing commits."""
    commit = document["commit"]
    return RevertResult(
        branch=document["branch"],
        first=document["first"],
        last=document["last"],
        commit=None if commit is None else commit["graph_commit_id"],
        number=None if commit is None else commit["graph_manifest_version"],
        head=document["head"],
        changes=type_changes(document["changes"]),
        replayed=document["replayed"],
        attempts=document["attempts"],
        warnings=tuple(document["warnings"]),
    )


# -- names and surroundings -------------------------------------------------------------------------------------------


def tag(document: Document) -> Tag:
    """A name for a commit."""
    return Tag(
        name=document["name"],
        commit=document["graph_commit_id"],
        branch=document["graph_branch"],
        number=document["graph_manifest_version"],
        actor=document["actor_id"],
        created_at_us=document["created_at"],
    )


def neighbourhood(document: Document) -> Neighbourhood:
    """What surrounds a node."""
    nodes = tuple(
        NearNode(each["type"], each["id"], each["properties"], each["distance"]) for each in document["nodes"]
    )
    edges = tuple(
        NearEdge(
            each["type"],
            each["id"],
            (each["from"]["type"], each["from"]["id"]),
            (each["to"]["type"], each["to"]["id"]),
            each["properties"],
        )
        for each in document["edges"]
    )
    return Neighbourhood(document["graph_commit_id"], nodes, edges, document["is_cut"])
