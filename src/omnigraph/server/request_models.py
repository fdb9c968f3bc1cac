"""Models of request bodies. Fields beyond the contract say so."""

from dataclasses import fields, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from omnigraph import limits
from omnigraph.server import point_params
from omnigraph.server.routing import parse_json
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.validation import require_table_versions

_VERSION_DIGITS = 20
_OPTIONS = frozenset(field.name for field in fields(WriteOptions))


class RequestModel(BaseModel):
    """Base of request bodies: strict types, unknown fields ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", populate_by_name=True)


def write_options(
    body: RequestModel, *, actor: str | None, idempotency_key: str | None = None, if_commit: str | None = None
) -> WriteOptions:
    """Combine the write options in the fields of a body with those from headers and token."""
    given = {name: getattr(body, name) for name in type(body).model_fields if name in _OPTIONS}
    if isinstance(body, LoadQuery):
        given["expected_table_versions"] = _parse_versions(body.expected_table_versions)
    options = WriteOptions(actor=actor, idempotency_key=idempotency_key, **given)
    return options if if_commit is None else replace(options, if_commit=if_commit)


class WriteRequest(RequestModel):
    """Options that every write takes in its body."""

    message: str | None = Field(None, description="Commit message. Beyond the contract.")
    prune_previous: bool = Field(
        default=False, description="Drop earlier commits of the branch from history. Beyond the contract."
    )


class PointRequest(RequestModel):
    """A body that names a point in time."""

    branch: str | None = Field(None, description=point_params.BRANCH_TEXT)
    snapshot: str | None = Field(None, description=point_params.COMMIT_TEXT)
    number: int | None = Field(None, description=point_params.NUMBER_TEXT)
    tag: str | None = Field(None, description=point_params.TAG_TEXT)
    at: str | None = Field(None, description=point_params.TIME_TEXT)


Nodes = Annotated[
    Literal["id", "object"],
    Field(description="Return nodes as ids, or as objects with their properties. Beyond the contract."),
]


class QueryRequest(PointRequest):
    """A query to run."""

    query: str = Field(description="Text in the query language.")
    name: str | None = Field(None, description="Name of the query in the text; optional if there is only one.")
    params: dict[str, Any] | None = Field(None, description="Parameter values.")
    engine: Literal["auto", "local", "spark"] = Field(
        "auto", description="Where it runs; on Spark only if the server was started with --spark."
    )
    nodes: Nodes = "id"


class EntitiesRequest(PointRequest):
    """Nodes or edges to return whole."""

    type: str = Field(description="A node type, else an edge type.")
    ids: list[str] = Field(description="Their ids.", max_length=limits.ID_FILTER_IDS_MAX)


class ReadRequest(RequestModel):
    """A query to run, with the deprecated field names."""

    query_source: str
    query_name: str | None = None
    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: str | None = None


class ExplainRequest(PointRequest):
    """A query or mutation to explain."""

    query: str
    name: str | None = None


def _parse_version(version: object) -> object:
    """Accept a version as a text of digits, as responses have it, or as a number."""
    is_digits = isinstance(version, str) and version.isascii() and version.isdigit() and len(version) <= _VERSION_DIGITS
    return int(version) if is_digits and isinstance(version, str) else version


Versions = Annotated[
    dict[str, Annotated[int, BeforeValidator(_parse_version, json_schema_input_type=str | int)]] | None,
    Field(description="Only if these tables are at these versions, by type key. Beyond the contract."),
]


class ChangeRequest(WriteRequest):
    """A mutation to run."""

    query: str | None = Field(None, description="Text in the query language.")
    query_source: str | None = Field(None, description="Deprecated name of `query`.")
    name: str | None = Field(None, description="Name of the query in the text; optional if there is only one.")
    query_name: str | None = Field(None, description="Deprecated name of `name`.")
    params: dict[str, Any] | None = Field(None, description="Parameter values.")
    branch: str | None = Field(None, description="Branch to write to; `main` by default.")
    expected_table_versions: Versions = None


class InvokeStoredQueryRequest(RequestModel):
    """Arguments of a stored query."""

    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: str | None = None
    expect_mutation: bool | None = Field(
        None, description="Refuse the call unless the query is, or is not, a mutation."
    )
    expected_table_versions: Versions = None
    nodes: Nodes = "id"


LoadMode = Literal["overwrite", "append", "merge"]


class IngestRequest(RequestModel):
    """Rows to load."""

    branch: str | None = Field(None, description="Branch to write to; `main` by default.")
    from_: str | None = Field(None, alias="from", description="Create the branch from this one if it does not exist.")
    mode: LoadMode = Field("merge", description="How to treat existing entities.")
    data: str = Field(description="JSON lines, one entity each.")
    expected_table_versions: Versions = None


class LoadQuery(WriteRequest):
    """Query parameters of a load of JSON lines."""

    model_config = ConfigDict(strict=False, extra="ignore", populate_by_name=True)

    branch: str = "main"
    from_: str | None = Field(None, alias="from", description="Create the branch from this one.")
    mode: LoadMode = "merge"
    if_commit: str | None = Field(None, description="Only at this head commit. Beyond the contract.")
    expected_table_versions: str | None = Field(None, description="A JSON object; see mutate. Beyond the contract.")
    dry_run: bool = Field(default=False, description="Validate everything, write nothing. Beyond the contract.")


class ExportRequest(PointRequest):
    """What to export."""

    model_config = ConfigDict(strict=True, extra="forbid")

    snapshot: str | None = Field(None, description=f"{point_params.COMMIT_TEXT} Beyond the contract.")
    type_names: list[str] | None = Field(None, description="Only these types; all by default.")


class SchemaApplyRequest(WriteRequest):
    """A schema to apply."""

    schema_source: str
    allow_data_loss: bool = False
    branch: str | None = Field(None, description="Branch to change; `main` by default. Beyond the contract.")
    validated: bool = Field(
        default=False, description="Allow changes that existing data must satisfy. Beyond the contract."
    )
    if_commit: str | None = Field(None, description="Only at this head commit. Beyond the contract.")


class BranchCreateRequest(RequestModel):
    """A branch to create."""

    name: str
    from_: str | None = Field(None, alias="from", description="The branch it starts from; `main` by default.")
    commit: str | None = Field(None, description="The commit it starts from instead. Beyond the contract.")
    number: int | None = Field(
        None, description="Start after the source's commit with this number. Beyond the contract."
    )
    tag: str | None = Field(None, description="The tag it starts from instead. Beyond the contract.")
    at: str | None = Field(None, description="Start from the source as of this time. Beyond the contract.")


class BranchMergeRequest(WriteRequest):
    """A branch to merge."""

    source: str
    target: str | None = Field(None, description="`main` by default.")
    delete_branch: bool = Field(default=False, description="Delete the source afterwards.")
    preview: bool = Field(default=False, description="Compute the result without writing it. Beyond the contract.")
    by: Literal["row", "property"] = Field("row", description="Granularity of conflicts. Beyond the contract.")
    prefer: Literal["source", "target"] | None = Field(
        None, description="Side to take if both changed a row. Beyond the contract."
    )
    resolve: dict[str, dict[str, Any] | list[dict[str, Any]]] | None = Field(
        None,
        description='By type and id, "source", "target", a row, null to delete, or {"$properties": {name: "source", '
        '"target" or {"value": …}}}; or by type a list of {"id" or "key", "decision"}. Beyond the contract.',
    )
    base: str | None = Field(None, description="The commit to compare both sides with. Beyond the contract.")
    if_commit: str | None = Field(None, description="Only at this head of the target. Beyond the contract.")
    if_source_commit: str | None = Field(None, description="Only at this head of the source. Beyond the contract.")


class ChangeBaselineRequest(RequestModel):
    """A baseline to capture."""

    branch: str | None = None
    kind: list[str] = Field(default_factory=list)
    type: list[str] = Field(default_factory=list)
    op: list[str] = Field(default_factory=list)


class RevertRequest(WriteRequest):
    """Commits to revert."""

    commit: str = Field(description="The commit, or the first of a range.")
    last: str | None = Field(None, description="The last of a range.")
    branch: str | None = None
    if_commit: str | None = Field(None, description="Only if this is the head commit of the branch.")


class TagCreateRequest(RequestModel):
    """A tag to create."""

    name: str
    branch: str | None = None
    commit: str | None = None
    number: int | None = None
    at: str | None = None


def _parse_versions(text: str | None) -> dict[str, int] | None:
    if text is None:
        return None
    versions = parse_json(text.encode(errors="replace"), prefix="invalid expected_table_versions")
    if isinstance(versions, dict):
        versions = {key: _parse_version(version) for key, version in versions.items()}
    require_table_versions(versions)
    return None if versions is None else dict(versions)
