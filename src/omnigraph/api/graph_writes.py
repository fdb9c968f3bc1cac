"""Writing to an open graph."""

from collections.abc import Mapping

from omnigraph.api import evolving, loading
from omnigraph.api.graph_base import OpenGraph
from omnigraph.api.receipts import LoadResult, MutationResult, SchemaApplied, WriteResult
from omnigraph.api.reshaping import Reshaping
from omnigraph.api.writing import LoadOptions, Writing
from omnigraph.errors import InternalError
from omnigraph.execution.mutate import Affected, mutation
from omnigraph.language.query import bind_params, compile, wrong_under_any_schema
from omnigraph.model.schema import Schema
from omnigraph.storage import paths
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.incoming import Frame
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.write import Receipt, write
from omnigraph.transaction.write_rows import RowsToWrite, rows_to_write


class GraphWrites(OpenGraph, Writing, Reshaping):
    """How an open graph is written to."""

    def _mutate(
        self, text: str, name: str | None, params: Mapping[str, object] | None, branch: str, options: WriteOptions
    ) -> MutationResult:
        parts = self._open()
        parts.refuse_read_only()
        where, now_ms = paths.branch_name(branch), parts.clock.now_us() // 1_000
        blobs = BlobIngress(parts.settings.external_blobs)

        def under(accepted: Accepted) -> tuple[str, Affected, Receipt]:
            compiled = compile(text, accepted.schema, name=name)
            values = bind_params(compiled, params)
            bound = mutation(accepted, compiled, values, now_ms=now_ms, ids=parts.ids, blobs=blobs)
            receipt = write(parts, where, bound.operation, options)
            return compiled.name, bound.affected(receipt.entry), receipt

        query_name, done, receipt = self._schemas.under_the_branch_schema(
            where, under, wrong_under_any=lambda: wrong_under_any_schema(text, name)
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

    def _write(
        self, nodes: Mapping[str, object], edges: Mapping[str, object], mode: Mode, branch: str, options: WriteOptions
    ) -> WriteResult:
        parts = self._open()
        parts.refuse_read_only()
        name = paths.branch_name(branch)
        # Read here and only once: a stream gives its rows a single time.
        blobs = BlobIngress(parts.settings.external_blobs, keeps_references=mode is Mode.OVERWRITE)
        node_rows = {given: Frame(rows, f"node:{given}", blobs) for given, rows in nodes.items()}
        edge_rows = {given: Frame(rows, f"edge:{given}", blobs) for given, rows in edges.items()}

        def under(accepted: Accepted) -> tuple[RowsToWrite, Receipt]:
            rows = rows_to_write(accepted, node_rows, edge_rows, mode=mode, ids=parts.ids)
            return rows, write(parts, name, rows.operation, options)

        rows, receipt = self._schemas.under_the_branch_schema(name, under)
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

    def _load(self, data: object, options: LoadOptions, said: WriteOptions) -> LoadResult:
        return loading.load(self._open(), self._schemas, data, options, said)

    def _schema_now(self, branch: str) -> Schema:
        self._open()
        return self._schemas.at_head(paths.branch_name(branch)).schema

    def _schema_apply(
        self, text: str, branch: str, options: WriteOptions, *, allow_data_loss: bool, validated: bool
    ) -> SchemaApplied:
        return evolving.applied(
            self._open(), self._schemas, branch, text, options, allow_data_loss=allow_data_loss, validated=validated
        )
