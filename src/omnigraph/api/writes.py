"""Small writes: mutations, rows, schema changes and reverts. Each is compiled against the schema of the branch."""

from collections.abc import Mapping

from omnigraph.api.params import json_params, require_rows_by_type
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.results import MutationResult, RevertResult, SchemaApplied, WriteResult
from omnigraph.api.schemas import Schemas
from omnigraph.branch.revert import revert_operation, to_revert
from omnigraph.errors import InternalError
from omnigraph.execution.mutate import Affected, mutation
from omnigraph.language.query import bind_params, compile, wrong_under_any_schema
from omnigraph.language.schema import plan
from omnigraph.model.schema import Schema
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.storage import paths
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.evolve import evolution
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.incoming import Frame
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.schema_files import store_schema
from omnigraph.transaction.validation import require_schema_request
from omnigraph.transaction.write import Receipt, write
from omnigraph.transaction.write_rows import RowsToWrite, rows_to_write


def mutate(
    parts: GraphContext,
    schemas: Schemas,
    query: str | PreparedQuery,
    params: Mapping[str, object] | None,
    *,
    name: str | None,
    branch: str,
    options: WriteOptions,
) -> MutationResult:
    """Run a mutation as one commit; see `Graph.mutate`."""
    text, chosen = as_text(query, name)
    values = json_params(params)
    parts.refuse_read_only()
    where, now_ms = paths.branch_name(branch), parts.clock.now_us() // 1_000
    blobs = BlobIngress(parts.settings.external_blobs)

    def under(accepted: Accepted) -> tuple[str, Affected, Receipt]:
        compiled = compile(text, accepted.schema, name=chosen)
        bound = mutation(accepted, compiled, bind_params(compiled, values), now_ms=now_ms, ids=parts.ids, blobs=blobs)
        receipt = write(parts, where, bound.operation, options)
        return compiled.name, bound.affected(receipt.entry), receipt

    query_name, affected, receipt = schemas.under_the_branch_schema(
        where, under, wrong_under_any=lambda: wrong_under_any_schema(text, chosen)
    )
    return MutationResult(
        query_name=query_name,
        branch=where,
        affected_nodes=affected.nodes,
        affected_edges=affected.edges,
        commit=None if receipt.entry is None else receipt.entry.commit,
        head=receipt.head.head_commit,
        number=None if receipt.entry is None else receipt.entry.number,
        replayed=receipt.replayed,
        attempts=receipt.attempts,
        warnings=receipt.warnings,
        entry=receipt.entry,
    )


def write_rows(
    parts: GraphContext,
    schemas: Schemas,
    nodes: Mapping[str, object],
    edges: Mapping[str, object],
    *,
    mode: Mode,
    branch: str,
    options: WriteOptions,
) -> WriteResult:
    """Write rows as one commit; see `Graph.write`."""
    require_rows_by_type(nodes, edges)
    parts.refuse_read_only()
    name = paths.branch_name(branch)
    # Read here and only once: a stream gives its rows a single time.
    blobs = BlobIngress(parts.settings.external_blobs, keeps_references=mode is Mode.OVERWRITE)
    node_rows = {type_name: Frame(rows, f"node:{type_name}", blobs) for type_name, rows in nodes.items()}
    edge_rows = {type_name: Frame(rows, f"edge:{type_name}", blobs) for type_name, rows in edges.items()}

    def under(accepted: Accepted) -> tuple[RowsToWrite, Receipt]:
        rows = rows_to_write(accepted, node_rows, edge_rows, mode=mode, ids=parts.ids)
        return rows, write(parts, name, rows.operation, options)

    rows, receipt = schemas.under_the_branch_schema(name, under)
    if receipt.entry is None:
        raise InternalError("a write of rows made no commit")
    return WriteResult(
        branch=name,
        mode=mode.value,
        commit=receipt.entry.commit,
        number=receipt.entry.number,
        nodes=rows.nodes,
        edges=rows.edges,
        replayed=receipt.replayed,
        attempts=receipt.attempts,
        warnings=receipt.warnings,
    )


def plan_schema(schema: Schema, text: str, *, allow_data_loss: bool, validated: bool) -> SchemaPlan:
    """Plan the steps from a schema to a schema text; see `Graph.schema_plan`."""
    require_schema_request(text, allow_data_loss=allow_data_loss, validated=validated)
    steps = plan(schema, text, validated=validated)
    return steps.with_data_loss() if allow_data_loss else steps


def apply_schema(
    parts: GraphContext,
    schemas: Schemas,
    text: str,
    *,
    branch: str,
    options: WriteOptions,
    allow_data_loss: bool,
    validated: bool,
) -> SchemaApplied:
    """Change the schema of a branch as one commit; see `Graph.schema_apply`."""
    require_schema_request(text, allow_data_loss=allow_data_loss, validated=validated)
    parts.refuse_read_only()
    name = paths.branch_name(branch)

    def under(accepted: Accepted) -> tuple[SchemaPlan, Receipt]:
        steps = plan(accepted.schema, text, validated=validated)
        steps.require_supported()
        if steps.is_empty:
            # That nothing has to change may only be said if the branch still has this schema.
            head = parts.log.live_head(name)
            schemas.refuse_moved(accepted, head.schema)
            return steps, Receipt(None, head)
        chosen = options
        if allow_data_loss:
            steps = steps.with_data_loss()
            # In the same put: there is no moment at which the drop is done and the dropped can be read in history.
            chosen = options.dropping_history() if steps.drops_hard else options
        digest = store_schema(parts.store, text, steps.schema)
        return steps, write(parts, name, evolution(parts, accepted, steps, digest), chosen)

    steps, receipt = schemas.under_the_branch_schema(name, under)
    entry = receipt.entry
    return SchemaApplied(name, steps, None if entry is None else entry.commit, (entry or receipt.head).number)


def revert(
    parts: GraphContext, schemas: Schemas, first: str, last: str | None, *, branch: str, options: WriteOptions
) -> RevertResult:
    """Undo a commit or a range of commits; see `Graph.revert`."""
    parts.refuse_read_only()
    name = paths.branch_name(branch)
    head = parts.log.live_head(name)
    reverted = to_revert(parts, first, last, branch=name)

    def under(accepted: Accepted) -> Receipt:
        last_schema = schemas.of(reverted.last.schema)
        return write(parts, name, revert_operation(parts, accepted, last_schema, reverted, head), options)

    receipt = schemas.under_the_branch_schema(name, under)
    entry = receipt.entry
    return RevertResult(
        branch=name,
        first=reverted.first.commit,
        last=reverted.last.commit,
        commit=None if entry is None else entry.commit,
        number=None if entry is None else entry.number,
        head=receipt.head.head_commit,
        changes={} if entry is None else dict(entry.changes.types),
        replayed=receipt.replayed,
        attempts=receipt.attempts,
        warnings=receipt.warnings,
    )
