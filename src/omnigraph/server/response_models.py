"""Models of response bodies, for the API document."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

EntityKind = Literal["node", "edge"]


class ResponseModel(BaseModel):
    """Base of response bodies."""

    model_config = ConfigDict(populate_by_name=True)


class ErrorOutput(BaseModel):
    """An error. Empty details are omitted."""

    model_config = ConfigDict(extra="allow")

    error: str = Field(description="For people.")
    code: str | None = Field(None, description="Stable; absent if the status is enough.")
    kind: str | None = Field(None, description="Error class of the Python API. Beyond the contract.")
    reason: str | None = Field(None, description="Error code of the Python API. Beyond the contract.")


class HealthOutput(ResponseModel):
    """The process is up."""

    status: Literal["ok"]
    version: str
    internal_schema_version: int
    source_version: str | None = None


class ReadyOutput(ResponseModel):
    """Whether every served graph can be read."""

    status: Literal["ready", "unready"]
    graphs: dict[str, str]


class GraphEntry(ResponseModel):
    """One graph."""

    graph_id: str
    uri: str


class GraphListResponse(ResponseModel):
    """Served graphs by id."""

    graphs: list[GraphEntry]


class TableOutcome(ResponseModel):
    """What the recovery of an interrupted write did to one table."""

    table_key: str
    from_version: str
    to_version: str


class RecoveryOutput(ResponseModel):
    """The audit of an interrupted write."""

    recovery_kind: Literal["RolledForward", "RolledBack"]
    operation_id: str
    operation: str = Field(description="What kind of write it was.")
    recovery_for_actor: str | None = Field(description="Who had begun it.")
    tables: list[TableOutcome]


class CommitOutput(ResponseModel):
    """A commit."""

    graph_commit_id: str
    graph_branch: str | None = Field(description="null for `main`.")
    graph_manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int = Field(description="Microseconds since 1970.")
    created: str | None = Field(None, description="The same time, like `2026-01-31T12:00:00Z`. Beyond the contract.")
    kind: str | None = Field(None, description="What made it. Beyond the contract.")
    message: str | None = Field(None, description="Commit message. Beyond the contract.")
    changes: dict[str, "Counts"] | None = Field(None, description="Change counts by type key. Beyond the contract.")
    recovery: RecoveryOutput | None = Field(
        None, description="On commits that ended an interrupted write. Beyond the contract."
    )


class Dataset(ResponseModel):
    """The table of one type."""

    entity_kind: EntityKind
    type_name: str
    dataset_path: str
    published_dataset_version: str = Field(description="A whole number of up to 64 bits, as a text.")
    native_dataset_branch: str | None
    entity_count: int
    bytes: int | None = Field(None, description="Size of its data files. Beyond the contract.")


class SnapshotOutput(ResponseModel):
    """Contents of a branch by type."""

    graph_branch: str
    graph_manifest_version: int
    internal_schema_version: int
    datasets: list[Dataset]
    graph_commit_id: str | None = Field(None, description="Beyond the contract.")
    entry: CommitOutput | None = Field(None, description="Log entry of the commit. Beyond the contract.")


class ReadTarget(ResponseModel):
    """The branch or commit that was read."""

    branch: str | None
    snapshot: str | None


class LegacyReadOutput(ResponseModel):
    """Rows of a query."""

    query_name: str
    target: ReadTarget
    row_count: int
    columns: list[str] | None = None
    rows: list[dict[str, Any]]


class ReadOutput(LegacyReadOutput):
    """Rows of a query, and their commit."""

    graph_commit_id: str | None = None


class ExplainOutput(ResponseModel):
    """Plan of a query."""

    plan: list[str]


class EntitiesOutput(ResponseModel):
    """Whole nodes or edges, in the order of the ids; null for each that does not exist."""

    entities: list[dict[str, Any] | None]
    graph_commit_id: str


class ChangeOutput(ResponseModel):
    """Result of a mutation."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitOutput | None
    head: str | None = Field(None, description="Head commit afterwards. Beyond the contract.")
    replayed: bool | None = Field(
        None, description="An earlier call with the same idempotency key made the commit. Beyond the contract."
    )
    attempts: int | None = Field(None, description="Number of attempts. Beyond the contract.")
    warnings: list[str] | None = Field(None, description="Beyond the contract.")


class LoadedType(ResponseModel):
    """Number of entities of one type."""

    name: str
    entities_loaded: int


class GraphBatchLoadOutput(ResponseModel):
    """Result of a load."""

    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    nodes: list[LoadedType]
    edges: list[LoadedType]
    total_entities: int
    actor_id: str | None
    commit: CommitOutput | None
    replayed: bool | None = Field(
        None, description="An earlier call with the same idempotency key made the commit. Beyond the contract."
    )
    attempts: int | None = Field(None, description="Number of attempts. Beyond the contract.")
    warnings: list[str] | None = Field(None, description="Beyond the contract.")


class IngestOutput(GraphBatchLoadOutput):
    """Result of a load, with the graph's address."""

    uri: str


class SchemaOutput(ResponseModel):
    """Accepted schema source."""

    schema_source: str


class ResolvedSchemaOutput(ResponseModel):
    """Types of the schema, with ids."""

    model_config = ConfigDict(protected_namespaces=())

    schema_: dict[str, Any] = Field(alias="schema")


class SchemaPlanOutput(ResponseModel):
    """Steps that applying a schema would take."""

    uri: str
    supported: bool
    step_count: int
    steps: list[Any]


class SchemaApplyOutput(SchemaPlanOutput):
    """Result of applying a schema."""

    applied: bool
    graph_manifest_version: int
    branch: str | None = Field(None, description="Beyond the contract.")
    graph_commit_id: str | None = Field(None, description="Commit id, if a commit was made. Beyond the contract.")


class BranchListOutput(ResponseModel):
    """Branches in order."""

    branches: list[str]


class BranchCreateOutput(ResponseModel):
    """A created branch."""

    uri: str
    from_: str = Field(alias="from")
    name: str
    actor_id: str | None
    graph_commit_id: str | None = Field(None, description="Commit it starts from. Beyond the contract.")


class BranchDeleteOutput(ResponseModel):
    """A deleted branch."""

    uri: str
    name: str
    actor_id: str | None


class MergeConflictOutput(ResponseModel):
    """One conflict of a merge."""

    entity_kind: str
    type_name: str | None
    entity_id: str | None
    kind: str
    message: str
    base: dict[str, Any] | None = None
    source: dict[str, Any] | None = None
    target: dict[str, Any] | None = None
    properties: list[str] | None = Field(
        None, description="Properties that both sides set to different values. Beyond the contract."
    )


class Counts(ResponseModel):
    """Change counts."""

    inserted: int
    updated: int
    deleted: int


class BranchMergeOutput(ResponseModel):
    """Result or preview of a merge."""

    source: str
    target: str
    outcome: Literal["already_up_to_date", "fast_forward", "merged"]
    actor_id: str | None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None
    commit: CommitOutput | None = Field(None, description="Beyond the contract.")
    preview: bool | None = Field(None, description="True if nothing was written. Beyond the contract.")
    base: str | None = Field(None, description="Merge base commit. Beyond the contract.")
    source_commit: str | None = Field(None, description="Beyond the contract.")
    head: str | None = Field(None, description="Beyond the contract.")
    conflicts: list[MergeConflictOutput] | None = Field(
        None, description="Conflicts of a preview. Beyond the contract."
    )
    changes: dict[str, Counts] | None = Field(None, description="Change counts by type key. Beyond the contract.")
    resolved: int | None = Field(None, description="Beyond the contract.")
    schema_steps: list[dict[str, Any]] | None = Field(
        None, description="Changes of the target's schema, with lost rows and values. Beyond the contract."
    )
    attempts: int | None = Field(None, description="Beyond the contract.")
    warnings: list[str] | None = Field(None, description="Beyond the contract.")
