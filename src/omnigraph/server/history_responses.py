"""The bodies of answers about history, as the API document describes them."""

from typing import Any, Literal

from pydantic import Field

from omnigraph.server.responses import Answer, CommitOutput, Counts, EntityKind


class CommitListOutput(Answer):
    """Commits, newest first."""

    commits: list[CommitOutput]
    next_page_token: str | None = Field(None, description="For the rest. Beyond the contract.")


class ChangeCause(Answer):
    """The commit that changes belong to."""

    graph_commit_id: str
    parent_commit_id: str | None = None
    merged_parent_commit_id: str | None = None
    authored_branch: str
    actor_id: str | None = None
    authored_at: int = Field(description="Microseconds since 1970.")


class TypeRef(Answer):
    """A type: what it is known by, whatever it is called, and what it is called."""

    id: str
    name: str


class Endpoints(Answer):
    """The nodes an edge joins."""

    from_: str = Field(alias="from")
    to: str


class Image(Answer):
    """An entity as it was, or became."""

    properties: dict[str, Any]
    endpoints: Endpoints | None = None


class EntityChange(Answer):
    """What happened to one entity."""

    kind: EntityKind
    type: TypeRef
    id: str
    op: Literal["insert", "update", "delete"]
    before: Image | None = None
    after: Image | None = None


class CommitChangesOutput(Answer):
    """What a commit did to entities."""

    cause: ChangeCause
    changes: list[EntityChange]
    next_page_token: str | None = None


class ChangeBlock(Answer):
    """The changes of one commit, or some of them."""

    cause: ChangeCause
    changes: list[EntityChange]


class ChangeFeedOutput(Answer):
    """What one poll gives."""

    blocks: list[ChangeBlock]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None


class DiffOutput(Answer):
    """What lies between two states."""

    from_commit_id: str
    to_commit_id: str
    stats: dict[str, Counts] = Field(description="By type key.")
    changes: list[EntityChange] | None = None
    is_cut: bool | None = Field(None, description="There are more changes.")


class HistoryOutput(Answer):
    """Commits of all branches, with where names point."""

    branches: dict[str, str | None] = Field(description="The head commit of each branch.")
    tags: dict[str, str] = Field(description="The commit of each tag.")
    commits: list[CommitOutput]


class RevertOutput(Answer):
    """What came of undoing commits."""

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


class NodeRef(Answer):
    """Which node."""

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


class NeighbourhoodOutput(Answer):
    """What surrounds a node."""

    nodes: list[NearNode]
    edges: list[NearEdge]
    is_cut: bool
    graph_commit_id: str


class CountOutput(Answer):
    """How many entities of a type."""

    type: str
    count: int


class EntityEventOutput(Answer):
    """What one commit did to one entity."""

    commit: CommitOutput
    op: Literal["insert", "update", "delete"]
    changed: list[str]
    before: Image | None = None
    after: Image | None = None


class EntityLogOutput(Answer):
    """What happened to one entity, newest first."""

    events: list[EntityEventOutput]


class BlameOutput(Answer):
    """Which commit last set each property."""

    entity_id: str
    properties: dict[str, CommitOutput]
    created: CommitOutput | None
    last: CommitOutput | None
    pruned: list[str]


class TagOutput(Answer):
    """A name for a commit."""

    name: str
    graph_commit_id: str
    graph_branch: str
    graph_manifest_version: int
    actor_id: str | None
    created_at: int


class TagListOutput(Answer):
    """The tags, by name."""

    tags: list[TagOutput]


class QueryParameterOutput(Answer):
    """A parameter of a stored query."""

    name: str
    kind: Literal["string", "bool", "int", "bigint", "float", "date", "datetime", "blob", "vector", "list"]
    item_kind: str | None = None
    vector_dim: int | None = None
    nullable: bool


class StoredQueryOutput(Answer):
    """A stored query."""

    name: str
    tool_name: str
    description: str | None = None
    instruction: str | None = None
    mutation: bool
    params: list[QueryParameterOutput]


class QueriesCatalogOutput(Answer):
    """The stored queries there are."""

    queries: list[StoredQueryOutput]
