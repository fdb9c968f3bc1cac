"""Writing to a graph."""

import os
from collections.abc import Callable, Mapping

from omnigraph.api import evolving, loading
from omnigraph.api.graph_base import OpenGraph
from omnigraph.api.loading import LoadOptions
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.params import json_params
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.receipts import LoadResult, MutationResult, SchemaApplied, WriteResult
from omnigraph.errors import InternalError, InvalidRequestError
from omnigraph.execution.mutate import Affected, mutation
from omnigraph.language.query import bind_params, compile, wrong_under_any_schema
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.pipeline.load.how_far import LoadProgress
from omnigraph.storage import paths
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.incoming import Frame
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.write import Receipt, write
from omnigraph.transaction.write_rows import RowsToWrite, rows_to_write

_NO_ROWS: Mapping[str, object] = {}


class GraphWrites(OpenGraph):
    """What can be written to a graph. Every write becomes visible whole, as one commit, or leaves no trace."""

    def mutate(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str = MAIN_BRANCH,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        expected_table_versions: Mapping[str, int] | None = None,
        idempotency_key: str | None = None,
        prune_previous: bool = False,
    ) -> MutationResult:
        """Carry out a mutation: all its statements in order, as one commit, or nothing.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str): where.
            actor (str | None): who.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            expected_table_versions (Mapping[str, int] | None): only if these tables are at these versions, by type key
                like `node:Person`; see `Snapshot.table_versions`.
            idempotency_key (str | None): the same key again does nothing and returns what the first call did.
            prune_previous (bool): in the same step, show earlier commits of the branch no more. Their data is deleted
                later: when a prune has passed them that comes after the protection window, by a sweep.

        Returns:
            MutationResult: how much changed, and the commit; no commit where nothing had to change.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query only reads, a parameter is missing, or a value does not fit.
            ConstraintError: a rule of the schema would be broken.
            ConflictError: others changed what an update or delete had read (`read_set_conflict`), or a table is not at
                its expected version.
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only.
        """
        parts = self._open()
        parts.refuse_read_only()
        where = paths.branch_name(branch)
        text, chosen = as_text(query, name)
        given, now_ms = json_params(params), parts.clock.now_us() // 1_000
        blobs = BlobIngress(parts.settings.external_blobs)
        options = WriteOptions(
            actor=actor,
            message=message,
            if_commit=if_commit,
            expected_table_versions=expected_table_versions,
            idempotency_key=idempotency_key,
            prune_previous=prune_previous,
        )

        def under(accepted: Accepted) -> tuple[str, Affected, Receipt]:
            compiled = compile(text, accepted.schema, name=chosen)
            values = bind_params(compiled, given)
            bound = mutation(accepted, compiled, values, now_ms=now_ms, ids=parts.ids, blobs=blobs)
            receipt = write(parts, where, bound.operation, options)
            return compiled.name, bound.affected(receipt.entry), receipt

        query_name, done, receipt = self._schemas.under_the_branch_schema(
            where, under, wrong_under_any=lambda: wrong_under_any_schema(text, chosen)
        )
        return MutationResult(
            query_name=query_name,
            branch=where,
            affected_nodes=done.nodes,
            affected_edges=done.edges,
            commit=None if receipt.entry is None else receipt.entry.commit,
            head=receipt.head.head_commit,
            number=None if receipt.entry is None else receipt.entry.number,
            replayed=receipt.replayed,
            attempts=receipt.attempts,
            warnings=receipt.warnings,
            entry=receipt.entry,
        )

    def write(
        self,
        nodes: Mapping[str, object] = _NO_ROWS,
        edges: Mapping[str, object] = _NO_ROWS,
        *,
        mode: Mode | str = Mode.APPEND,
        branch: str = MAIN_BRANCH,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        expected_table_versions: Mapping[str, int] | None = None,
        idempotency_key: str | None = None,
        prune_previous: bool = False,
    ) -> WriteResult:
        """Write rows of any number of types as one commit.

        Args:
            nodes (Mapping[str, object]): by node type, rows: an Arrow table, reader or stream, a pandas or polars
                frame, or a sequence of dictionaries. Columns are the properties, and `id` where ids do not come from
                a key.
            edges (Mapping[str, object]): likewise by edge type, with the ids of the nodes in `from` and `to` (or `src`
                and `dst`). Edges may name nodes of the same call.
            mode (Mode | str): `append` refuses entities that exist; `merge` puts the new row in the place of the old;
                `overwrite` makes the rows the whole content of the types given, and leaves other types alone.
            branch (str): where.
            actor (str | None): who.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            expected_table_versions (Mapping[str, int] | None): only if these tables are at these versions, by type key
                like `node:Person`; see `Snapshot.table_versions`.
            idempotency_key (str | None): the same key again does nothing and returns the first commit.
            prune_previous (bool): in the same step, show earlier commits of the branch no more. Their data is deleted
                later: when a prune has passed them that comes after the protection window, by a sweep.

        Returns:
            WriteResult: the commit.

        Raises:
            InvalidRequestError: an unknown mode, type or column, or a value that does not fit.
            ConstraintError: a rule of the schema would be broken.
            ConflictError: an entity exists already (`key_conflict`), others changed what the write had read, or a
                table is not at its expected version.
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only.
        """
        parts = self._open()
        parts.refuse_read_only()
        name = paths.branch_name(branch)
        options = WriteOptions(
            actor=actor,
            message=message,
            if_commit=if_commit,
            expected_table_versions=expected_table_versions,
            idempotency_key=idempotency_key,
            prune_previous=prune_previous,
        )
        # Read here and only once: a stream gives its rows a single time.
        blobs = BlobIngress(parts.settings.external_blobs, keeps_references=mode == Mode.OVERWRITE)
        node_rows = {given: Frame(rows, f"node:{given}", blobs) for given, rows in _by_type(nodes, "nodes").items()}
        edge_rows = {given: Frame(rows, f"edge:{given}", blobs) for given, rows in _by_type(edges, "edges").items()}

        def under(accepted: Accepted) -> tuple[RowsToWrite, Receipt]:
            rows = rows_to_write(accepted, node_rows, edge_rows, mode=mode, ids=parts.ids)
            return rows, write(parts, name, rows.operation, options)

        rows, receipt = self._schemas.under_the_branch_schema(name, under)
        if receipt.entry is None:
            raise InternalError("a write of rows made no commit")
        return WriteResult(
            branch=name,
            mode=Mode(mode).value,
            commit=receipt.entry.commit,
            number=receipt.entry.number,
            nodes=rows.nodes,
            edges=rows.edges,
            replayed=receipt.replayed,
            attempts=receipt.attempts,
            warnings=receipt.warnings,
        )

    # -- loading files -------------------------------------------------------------------------------------------------

    def load(
        self,
        data: object,
        *,
        mode: Mode | str,
        branch: str = MAIN_BRANCH,
        from_branch: str | None = None,
        type_name: str | None = None,
        edge: str | None = None,
        from_column: str | None = None,
        to_column: str | None = None,
        format: str | None = None,
        strict: bool = True,
        engine: str = "spark",
        rejects: "str | os.PathLike[str] | None" = None,
        max_rejects: int | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        expected_table_versions: Mapping[str, int] | None = None,
        idempotency_key: str | None = None,
        prune_previous: bool = False,
        spark: object = None,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> LoadResult:
        """Load files, of any size and over any number of types, as one commit, or leave no trace.

        Args:
            data (object): a file, folder, pattern or address in an object store, a sequence of these, bytes, or an
                open file. JSON lines name the types of their records; CSV and Parquet hold rows of one type.
            mode (Mode | str): `append` refuses entities that exist; `merge` puts the new row in the place of the old;
                `overwrite` makes the records the whole content of the types they are of.
            branch (str): where.
            from_branch (str | None): make the branch from this one, where it is not there yet.
            type_name (str | None): of files with columns, the node type.
            edge (str | None): of files with columns, the edge type.
            from_column (str | None): of edges, the column with the id of the node they leave; `from` by default.
            to_column (str | None): of edges, the column with the id of the node they reach; `to` by default.
            format (str | None): `jsonl`, `csv` or `parquet`; by the files' names by default.
            strict (bool): False reads a stream of JSON values and forgives, as scripts of old expect.
            engine (str): `spark`, or `local` for what fits into this process's memory.
            rejects (str | os.PathLike[str] | None): a folder; records that cannot be loaded are written there with
                reason and place, and the others are loaded.
            max_rejects (int | None): how many of them at most.
            dry_run (bool): check everything and write nothing.
            actor (str | None): who.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            expected_table_versions (Mapping[str, int] | None): only if these tables are at these versions, by type key
                like `node:Person`; see `Snapshot.table_versions`.
            idempotency_key (str | None): the same key again does nothing and returns the first commit.
            prune_previous (bool): in the same step, show earlier commits of the branch no more; see `mutate`.
            spark (object): a Spark session, or `SparkSettings` to make one with.
            progress (Callable[[LoadProgress], None] | None): told how far the load is.

        Returns:
            LoadResult: counts by type, and the commit.

        Raises:
            InvalidRequestError: a record is wrong; the message says which and why.
            ConstraintError: a rule of the schema would be broken.
            ConflictError: an entity exists already (`key_conflict`), others changed what the load had read, or a
                table is not at its expected version.
            LimitError: more records would have to be put aside than may be (`too_many_rejects`).
            NotFoundError: there is no such file, branch or type.
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only.
        """
        options = LoadOptions(
            mode=mode,
            branch=branch,
            from_branch=from_branch,
            type_name=type_name,
            edge=edge,
            from_column=from_column,
            to_column=to_column,
            format=format,
            strict=strict,
            engine=engine,
            rejects=rejects,
            max_rejects=max_rejects,
            dry_run=dry_run,
            spark=spark,
            progress=progress,
        )
        said = WriteOptions(
            actor=actor,
            message=message,
            if_commit=if_commit,
            expected_table_versions=expected_table_versions,
            idempotency_key=idempotency_key,
            prune_previous=prune_previous,
        )
        return loading.load(self._open(), self._schemas, data, options, said)

    # -- the schema ---------------------------------------------------------------------------------------------------

    def schema_plan(
        self, text: str, *, branch: str = MAIN_BRANCH, allow_data_loss: bool = False, validated: bool = False
    ) -> SchemaPlan:
        """What applying a schema text would do; nothing is written.

        Args:
            text (str): the schema the branch is to have.
            branch (str): which branch.
            allow_data_loss (bool): whether what is dropped shall be gone from history too: where something is, earlier
                commits of the branch are pruned in the same step. Other branches and tags keep what they name.
            validated (bool): plan changes too that are right only where the data allows them.

        Returns:
            SchemaPlan: the steps, those that cannot be made among them.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: a rename hint names nothing, or something it cannot mean.
            NotFoundError: there is no such branch.
        """
        self._open()
        return evolving.planned(self._schemas, branch, text, allow_data_loss=allow_data_loss, validated=validated)

    def schema_apply(
        self,
        text: str,
        *,
        branch: str = MAIN_BRANCH,
        allow_data_loss: bool = False,
        validated: bool = False,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        prune_previous: bool = False,
    ) -> SchemaApplied:
        """Give a branch another schema, as one commit. Older commits keep theirs; other branches too, until merged.

        Args:
            text (str): the schema the branch is to have.
            branch (str): which branch.
            allow_data_loss (bool): whether what is dropped shall be gone from history too: where something is, earlier
                commits of the branch are pruned in the same step. Other branches and tags keep what they name.
            validated (bool): make changes too that are right only where the data allows them, having looked.
            actor (str | None): who.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            idempotency_key (str | None): the same key again does nothing and returns the first commit.
            prune_previous (bool): in the same step, show earlier commits of the branch no more; see `mutate`.

        Returns:
            SchemaApplied: the steps, and the commit; no commit where nothing had to change.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: a change cannot be made.
            ConstraintError: the data does not allow a change; it says how many entities are in the way.
            ConflictError: others keep changing the branch.
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only.
        """
        options = WriteOptions(
            actor=actor,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            prune_previous=prune_previous,
        )
        return evolving.applied(
            self._open(), self._schemas, branch, text, options, allow_data_loss=allow_data_loss, validated=validated
        )


def _by_type(rows: Mapping[str, object], what: str) -> Mapping[str, object]:
    if not isinstance(rows, Mapping):
        raise InvalidRequestError(f"{what} must be rows by type, like {{'Person': rows}}, got {type(rows).__name__}")
    return rows
