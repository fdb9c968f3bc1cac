"""Models of response bodies about history, for the API document."""

from typing import Any, Literal

from pydantic import Field

from omnigraph.server.response_models import CommitOutput, Counts, EntityKind, ResponseModel


class CommitListOutput(ResponseModel):
    """Commits, newest first."""

    commits: list[CommitOutput]
    next_page_token: str | None = Field(None, description="Token of the next page. Beyond the contract.")


class ChangeCause(ResponseModel):
    """The commit of changes."""

    graph_commit_id: str
    parent_commit_id: str | None = None
    merged_parent_commit_id: str | None = None
    authored_branch: str
    actor_id: str | None = None
    authored_at: int = Field(description="Microseconds since 1970.")
    kind: str | None = Field(None, description="What made it. Beyond the contract.")
    message: str | None = Field(None, description="Commit message. Beyond the contract.")


class TypeRef(ResponseModel):
    """A type: its stable id and its current name."""

    id: str
    name: str


class Endpoints(ResponseModel):
    """End nodes of an edge."""

    from_: str = Field(alias="from")
    to: str


class Image(ResponseModel):
    """An entity before or after a change."""

    properties: dict[str, Any]
    endpoints: Endpoints | None = None


class EntityChange(ResponseModel):
    """One change of one entity."""

    kind: EntityKind
    type: TypeRef
    id: str
    op: Literal["insert", "update", "delete"]
    before: Image | None = None
    after: Image | None = None


class CommitChangesOutput(ResponseModel):
    """Changes of one commit."""

    cause: ChangeCause
    changes: list[EntityChange]
    next_page_token: str | None = None


class ChangeBlock(ResponseModel):
    """Changes of one commit, possibly a part."""

    cause: ChangeCause
    changes: list[EntityChange]


class ChangeFeedOutput(ResponseModel):
    """Result of one poll of the change feed."""

    blocks: list[ChangeBlock]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None


class DiffOutput(ResponseModel):
    """Differences between two points in time."""

    from_commit_id: str
    to_commit_id: str
    stats: dict[str, Counts] = Field(description="Change counts by type key.")
    changes: list[EntityChange] | None = None
    is_cut: bool | None = Field(None, description="True if there are more changes.")


class HistoryOutput(ResponseModel):
    """Commits of all branches, with branch heads and tags."""

    branches: dict[str, str | None] = Field(description="Head commit by branch.")
    tags: dict[str, str] = Field(description="Commit by tag.")
    commits: list[CommitOutput]


class RevertOutput(ResponseModel):
    """Result of a revert."""

    branch: str
    first: str
    last: str
    actor_id: str | None
    commit: CommitOutput | None
    head: str
    changes: dict[str, Counts]
    replayed: bool
    attempts: int
    warnings: list[str]


class NodeRef(ResponseModel):
    """A node by type and id."""

    type: str
    id: str


class NearNode(NodeRef):
    """A node of a neighbourhood."""

    distance: int
    properties: dict[str, Any]


class NearEdge(NodeRef):
    """An edge of a neighbourhood."""

    from_: NodeRef = Field(alias="from")
    to: NodeRef
    properties: dict[str, Any]


class NeighbourhoodOutput(ResponseModel):
    """Neighbourhood of a node."""

    nodes: list[NearNode]
    edges: list[NearEdge]
    is_cut: bool
    graph_commit_id: str


class CountOutput(ResponseModel):
    """Number of entities of a type."""

    type: str
    count: int


class EntityEventOutput(ResponseModel):
    """Change of one entity by one commit."""

    commit: CommitOutput
    op: Literal["insert", "update", "delete"]
    changed: list[str]
    before: Image | None = None
    after: Image | None = None


class EntityLogOutput(ResponseModel):
    """Changes of one entity, newest first."""

    events: list[EntityEventOutput]


class BlameOutput(ResponseModel):
    """The commit that last set each property."""

    entity_id: str
    properties: dict[str, CommitOutput]
    created: CommitOutput | None
    last: CommitOutput | None
    pruned: list[str]


class TagOutput(ResponseModel):
    """A tag of a commit."""

    name: str
    graph_commit_id: str
    graph_branch: str
    graph_manifest_version: int
    actor_id: str | None
    created_at: int


class TagListOutput(ResponseModel):
    """Tags by name."""

    tags: list[TagOutput]


class QueryParameterOutput(ResponseModel):
    """A parameter of a stored query."""

    name: str
    kind: Literal["string", "bool", "int", "bigint", "float", "date", "datetime", "blob", "vector", "list"]
    item_kind: str | None = None
    vector_dim: int | None = None
    nullable: bool


class StoredQueryOutput(ResponseModel):
    """A stored query."""

    name: str
    tool_name: str
    description: str | None = None
    instruction: str | None = None
    mutation: bool
    params: list[QueryParameterOutput]


class QueriesCatalogOutput(ResponseModel):
    """Catalogue of stored queries."""

    queries: list[StoredQueryOutput]
