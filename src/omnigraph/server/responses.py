"""The bodies of answers, as the API document describes them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

EntityKind = Literal["node", "edge"]


class Answer(BaseModel):
    """A body."""

    model_config = ConfigDict(populate_by_name=True)


class ErrorOutput(BaseModel):
    """What went wrong. Details that say nothing are left out."""

    model_config = ConfigDict(extra="allow")

    error: str = Field(description="For people.")
    code: str | None = Field(None, description="Stable; absent where the status says it all.")
    kind: str | None = Field(None, description="The class of the error in the Python API. Beyond the contract.")
    reason: str | None = Field(None, description="The fine code of the error. Beyond the contract.")


class HealthOutput(Answer):
    """That the process answers."""

    status: Literal["ok"]
    version: str
    internal_schema_version: int
    source_version: str | None = None


class ReadyOutput(Answer):
    """Whether every graph that is served can be read."""

    status: Literal["ready", "unready"]
    graphs: dict[str, str]


class GraphEntry(Answer):
    """One graph."""

    graph_id: str
    uri: str


class GraphListResponse(Answer):
    """The graphs that are served, by id."""

    graphs: list[GraphEntry]


class CommitOutput(Answer):
    """A commit."""

    graph_commit_id: str
    graph_branch: str | None = Field(description="null for `main`.")
    graph_manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int = Field(description="Microseconds since 1970.")
    kind: str | None = Field(None, description="Why it was made. Beyond the contract.")
    message: str | None = Field(None, description="In the writer's words. Beyond the contract.")
    changes: dict[str, "Counts"] | None = Field(None, description="By type key. Beyond the contract.")


class Dataset(Answer):
    """The table of one type."""

    entity_kind: EntityKind
    type_name: str
    dataset_path: str
    published_dataset_version: int
    native_dataset_branch: str | None
    entity_count: int
    bytes: int | None = Field(None, description="Of its data files. Beyond the contract.")


class SnapshotOutput(Answer):
    """What a branch holds, type by type."""

    graph_branch: str
    graph_manifest_version: int
    internal_schema_version: int
    datasets: list[Dataset]
    graph_commit_id: str | None = Field(None, description="Beyond the contract.")
    entry: CommitOutput | None = Field(None, description="The entry of the log. Beyond the contract.")


class ReadTarget(Answer):
    """What was read."""

    branch: str | None
    snapshot: str | None


class LegacyReadOutput(Answer):
    """The rows of a query."""

    query_name: str
    target: ReadTarget
    row_count: int
    columns: list[str] | None = None
    rows: list[dict[str, Any]]


class ReadOutput(LegacyReadOutput):
    """The rows of a query, and the commit they are of."""

    graph_commit_id: str | None = None


class ExplainOutput(Answer):
    """How a query would be carried out."""

    plan: list[str]


class ChangeOutput(Answer):
    """What came of a mutation."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitOutput | None
    head: str | None = Field(None, description="The head commit afterwards. Beyond the contract.")
    replayed: bool | None = Field(None, description="A call with the same key had made it. Beyond the contract.")
    attempts: int | None = Field(None, description="How often the write ran. Beyond the contract.")
    warnings: list[str] | None = Field(None, description="Beyond the contract.")


class LoadedType(Answer):
    """How much of one type."""

    name: str
    entities_loaded: int


class GraphBatchLoadOutput(Answer):
    """What came of a load."""

    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    nodes: list[LoadedType]
    edges: list[LoadedType]
    total_entities: int
    actor_id: str | None
    commit: CommitOutput | None
    replayed: bool | None = Field(None, description="A call with the same key had made it. Beyond the contract.")
    attempts: int | None = Field(None, description="How often the write ran. Beyond the contract.")
    warnings: list[str] | None = Field(None, description="Beyond the contract.")


class IngestOutput(GraphBatchLoadOutput):
    """What came of a load, and where."""

    uri: str


class SchemaOutput(Answer):
    """The accepted schema, as it was written."""

    schema_source: str


class ResolvedSchemaOutput(Answer):
    """The types there are."""

    model_config = ConfigDict(protected_namespaces=())

    schema_: dict[str, Any] = Field(alias="schema")


class SchemaPlanOutput(Answer):
    """What a schema would change."""

    uri: str
    supported: bool
    step_count: int
    steps: list[Any]


class SchemaApplyOutput(SchemaPlanOutput):
    """What a schema changed."""

    applied: bool
    graph_manifest_version: int
    branch: str | None = Field(None, description="Beyond the contract.")
    graph_commit_id: str | None = Field(None, description="Of the commit, if one was made. Beyond the contract.")


class BranchListOutput(Answer):
    """The branches, in order."""

    branches: list[str]


class BranchCreateOutput(Answer):
    """A branch that was made."""

    uri: str
    from_: str = Field(alias="from")
    name: str
    actor_id: str | None
    graph_commit_id: str | None = Field(None, description="Where it starts. Beyond the contract.")


class BranchDeleteOutput(Answer):
    """A branch that was deleted."""

    uri: str
    name: str
    actor_id: str | None


class MergeConflictOutput(Answer):
    """Something two branches did that cannot both stand."""

    entity_kind: str
    type_name: str | None
    entity_id: str | None
    kind: str
    message: str
    base: dict[str, Any] | None = None
    source: dict[str, Any] | None = None
    target: dict[str, Any] | None = None
    properties: list[str] | None = Field(None, description="What both set, differently. Beyond the contract.")


class Counts(Answer):
    """How many entities."""

    inserted: int
    updated: int
    deleted: int


class BranchMergeOutput(Answer):
    """What came of a merge, or would come of it."""

    source: str
    target: str
    outcome: Literal["already_up_to_date", "fast_forward", "merged"]
    actor_id: str | None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None
    commit: CommitOutput | None = Field(None, description="Beyond the contract.")
    preview: bool | None = Field(None, description="Nothing was written. Beyond the contract.")
    base: str | None = Field(None, description="The commit both were compared with. Beyond the contract.")
    source_commit: str | None = Field(None, description="Beyond the contract.")
    head: str | None = Field(None, description="Beyond the contract.")
    conflicts: list[MergeConflictOutput] | None = Field(None, description="Of a preview. Beyond the contract.")
    changes: dict[str, Counts] | None = Field(None, description="By type key. Beyond the contract.")
    resolved: int | None = Field(None, description="Beyond the contract.")
    schema_steps: list[dict[str, Any]] | None = Field(
        None, description="Of the target's schema, with the rows and values lost. Beyond the contract."
    )
    attempts: int | None = Field(None, description="Beyond the contract.")
    warnings: list[str] | None = Field(None, description="Beyond the contract.")
