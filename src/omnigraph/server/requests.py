"""The bodies of requests. What goes beyond the contract says so."""

from dataclasses import fields, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from omnigraph.server import states
from omnigraph.transaction.options import WriteOptions


class Body(BaseModel):
    """A body: members of the right type, unknown ones passed over."""

    model_config = ConfigDict(strict=True, extra="ignore", populate_by_name=True)


def write_options(
    body: Body, *, actor: str | None, idempotency_key: str | None = None, if_commit: str | None = None
) -> WriteOptions:
    """Bring together the write options that a body has fields for, and those that the request says elsewhere."""
    given = {name: getattr(body, name) for name in type(body).model_fields if name in _OPTIONS}
    options = WriteOptions(actor=actor, idempotency_key=idempotency_key, **given)
    return options if if_commit is None else replace(options, if_commit=if_commit)


_OPTIONS = frozenset(field.name for field in fields(WriteOptions))


class StateRequest(Body):
    """A body that names the state it is about."""

    branch: str | None = Field(None, description=states.HEAD)
    snapshot: str | None = Field(None, description=states.COMMIT)
    number: int | None = Field(None, description=states.NUMBER)
    tag: str | None = Field(None, description=states.TAG)
    at: str | None = Field(None, description=states.TIME)


class QueryRequest(StateRequest):
    """A query to answer."""

    query: str = Field(description="A text in the query language.")
    name: str | None = Field(None, description="Which query of the text; not needed where there is only one.")
    params: dict[str, Any] | None = Field(None, description="Values of its parameters.")


class ReadRequest(Body):
    """A query to answer, in the words of old."""

    query_source: str
    query_name: str | None = None
    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: str | None = None


class ExplainRequest(StateRequest):
    """A query or mutation whose plan is wanted."""

    query: str
    name: str | None = None


Versions = Annotated[
    dict[str, int] | None,
    Field(description="Only if these tables are at these versions, by type key. Beyond the contract."),
]


class ChangeRequest(Body):
    """A mutation to carry out."""

    query: str | None = Field(None, description="A text in the query language.")
    query_source: str | None = Field(None, description="The same, in the word of old.")
    name: str | None = Field(None, description="Which query of the text; not needed where there is only one.")
    query_name: str | None = Field(None, description="The same, in the word of old.")
    params: dict[str, Any] | None = Field(None, description="Values of its parameters.")
    branch: str | None = Field(None, description="Where; `main` by default.")
    message: str | None = Field(None, description="Why, kept with the commit. Beyond the contract.")
    expected_table_versions: Versions = None
    prune_previous: bool = Field(
        default=False, description="Show earlier commits of the branch no more. Beyond the contract."
    )


class InvokeStoredQueryRequest(Body):
    """How a stored query is called."""

    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: str | None = None
    expect_mutation: bool | None = Field(None, description="Refuse it where it is not what the caller takes it for.")
    expected_table_versions: Versions = None


LoadMode = Literal["overwrite", "append", "merge"]


class IngestRequest(Body):
    """Rows to load."""

    branch: str | None = Field(None, description="Where; `main` by default.")
    from_: str | None = Field(None, alias="from", description="Make the branch from this one if it is not there.")
    mode: LoadMode = Field("merge", description="What becomes of entities that are there already.")
    data: str = Field(description="JSON, one entity after the other.")
    expected_table_versions: Versions = None


class ExportRequest(StateRequest):
    """What to export."""

    model_config = ConfigDict(strict=True, extra="forbid")

    snapshot: str | None = Field(None, description=f"{states.COMMIT} Beyond the contract.")
    type_names: list[str] | None = Field(None, description="Only these types; all by default.")


class SchemaApplyRequest(Body):
    """A schema that the graph is to have."""

    schema_source: str
    allow_data_loss: bool = False
    branch: str | None = Field(None, description="Which branch; `main` by default. Beyond the contract.")
    validated: bool = Field(default=False, description="Changes too that the data must allow. Beyond the contract.")
    prune_previous: bool = Field(default=False, description="Beyond the contract; see mutate.")
    message: str | None = Field(None, description="Why. Beyond the contract.")
    if_commit: str | None = Field(None, description="Only at this head commit. Beyond the contract.")


class BranchCreateRequest(Body):
    """A branch to make."""

    name: str
    from_: str | None = Field(None, alias="from", description="The branch it starts from; `main` by default.")
    commit: str | None = Field(None, description="The commit it starts from instead. Beyond the contract.")
    number: int | None = Field(None, description="A place in the log of the source. Beyond the contract.")
    tag: str | None = Field(None, description="The tag it starts from instead. Beyond the contract.")
    at: str | None = Field(None, description="The source as it was at this time. Beyond the contract.")


class BranchMergeRequest(Body):
    """Branches to bring together."""

    source: str
    target: str | None = Field(None, description="`main` by default.")
    delete_branch: bool = Field(default=False, description="Delete the source afterwards.")
    preview: bool = Field(default=False, description="Work it out and write nothing. Beyond the contract.")
    by: Literal["row", "property"] = Field("row", description="What must differ to conflict. Beyond the contract.")
    prefer: Literal["source", "target"] | None = Field(
        None, description="Whose row to take where both changed it. Beyond the contract."
    )
    resolve: dict[str, dict[str, Any] | list[dict[str, Any]]] | None = Field(
        None,
        description='By type and id, "source", "target", a row, null to delete, or {"$properties": {name: "source", '
        '"target" or {"value": …}}}; or by type a list of {"id" or "key", "decision"}. Beyond the contract.',
    )
    base: str | None = Field(None, description="The commit to compare both sides with. Beyond the contract.")
    message: str | None = Field(None, description="Why. Beyond the contract.")
    if_commit: str | None = Field(None, description="Only at this head of the target. Beyond the contract.")
    if_source_commit: str | None = Field(None, description="Only at this head of the source. Beyond the contract.")
    prune_previous: bool = Field(default=False, description="Beyond the contract; see mutate.")


class ChangeBaselineRequest(Body):
    """A whole state to begin from."""

    branch: str | None = None
    kind: list[str] = Field(default_factory=list)
    type: list[str] = Field(default_factory=list)
    op: list[str] = Field(default_factory=list)


class RevertRequest(Body):
    """Commits to undo."""

    commit: str = Field(description="The commit, or the first of a range.")
    last: str | None = Field(None, description="The last of a range.")
    branch: str | None = None
    message: str | None = None
    if_commit: str | None = Field(None, description="Only if this is the head commit of the branch.")
    prune_previous: bool = False


class TagCreateRequest(Body):
    """A commit to name."""

    name: str
    branch: str | None = None
    commit: str | None = None
    number: int | None = None
    at: str | None = None
