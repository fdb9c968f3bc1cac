"""`Graph`: everything under one root, all its branches.

What each member takes, returns and raises is documented in `omnigraph.api.interface`.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import pyarrow as pa

from omnigraph import limits
from omnigraph.api import diff, export, maintenance, merge, optimize, prune, verify, writes
from omnigraph.api import load as loads
from omnigraph.api.blob import Blob, BlobName
from omnigraph.api.blobs import find_blob
from omnigraph.api.history import Branches, ChangeFeed, Commits, Tags, entity_blame, entity_log
from omnigraph.api.interface.graph import NO_ROWS
from omnigraph.api.interface.reads import State
from omnigraph.api.interface.storage import StorageInterface
from omnigraph.api.load_options import LoadKeywords, load_options
from omnigraph.api.maintenance import DEFAULT_MAINTENANCE, Maintenance, MaintenanceReport
from omnigraph.api.merge_options import MergeRequest, Resolutions, choices_of
from omnigraph.api.neighbourhood import Neighbourhood
from omnigraph.api.optimize import OptimizeReport
from omnigraph.api.prepared import PreparedQuery, prepared
from omnigraph.api.prune import CleanupReport, Duration, PruneReport, SweepReport
from omnigraph.api.query_result import Result, ResultStream
from omnigraph.api.results import LoadResult, MergeResult, MutationResult, RevertResult, SchemaApplied, WriteResult
from omnigraph.api.schemas import Schemas
from omnigraph.api.snapshot import GraphReader, Snapshot
from omnigraph.api.spark import GraphSpark
from omnigraph.api.tail_compaction import TailCompaction
from omnigraph.api.verify import VerifyReport
from omnigraph.branch.arguments import checked_methods, first_and_last
from omnigraph.branch.clock_repair import CorrectedClock, repair_clock
from omnigraph.branch.diff import Diff
from omnigraph.branch.entity_change import change_filter
from omnigraph.branch.history_values import Blame, EntityEvent
from omnigraph.branch.point import PointKeywords
from omnigraph.errors import InvalidRequestError
from omnigraph.execution.engine import EngineStats
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.model.commit import MAIN
from omnigraph.model.schema import Schema
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.pipeline.export.formats import Destination, Exported
from omnigraph.storage import paths
from omnigraph.storage.tables.table import LanceDataset
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.leases import leased
from omnigraph.transaction.mode import Mode, mode_named
from omnigraph.transaction.options import WriteKeywords, WriteOptions, write_options


@checked_methods
class Graph(StorageInterface):
    """An open graph. Safe to share between threads; made by `omnigraph.open` and `omnigraph.init`.

    Every read sees one commit. Every write becomes visible as one commit, or leaves no trace.
    """

    def __init__(
        self, parts: GraphContext, schemas: Schemas, *, cache_bytes: int = limits.QUERY_CACHE_BYTES_MAX
    ) -> None:
        self._tails: TailCompaction | None = None
        if parts.settings.auto_compact and not parts.read_only:
            self._tails = TailCompaction(parts, lambda digest: schemas.of(digest).schema)
            parts = replace(parts, published=self._tails.schedule_after)
        self._reader = GraphReader.of(parts, schemas, cache_bytes=cache_bytes)
        self._parts = self._reader.parts
        self._schemas = schemas
        self._closed = False

    @property
    def uri(self) -> str:
        return self._parts.store.uri

    @property
    def read_only(self) -> bool:
        return self._parts.read_only

    @property
    def branches(self) -> Branches:
        return Branches(self._open())

    @property
    def tags(self) -> Tags:
        return Tags(self._open())

    @property
    def commits(self) -> Commits:
        return Commits(self._open())

    @property
    def changes(self) -> ChangeFeed:
        self._open()
        return ChangeFeed(self._reader)

    @property
    def spark(self) -> GraphSpark:
        return GraphSpark(self._open(), self._schemas)

    def stats(self) -> EngineStats:
        self._open()
        return self._reader.engine.stats()

    def close(self) -> None:
        self._closed = True
        if self._tails is not None:
            self._tails.close()

    def __repr__(self) -> str:
        return f"<Graph at {self.uri}{', read-only' if self.read_only else ''}>"

    # -- reads --------------------------------------------------------------------------------------------------------

    def snapshot(self, **point: Unpack[PointKeywords]) -> Snapshot:
        self._open()
        return self._reader.snapshot(**point)

    def schema(self, *, branch: str = MAIN) -> Schema:
        return self.snapshot(branch=branch).schema

    def schema_text(self, *, branch: str = MAIN) -> str:
        self._open()
        return self._reader.schema_text(branch=branch)

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
        engine: str = "auto",
        nodes: str = "id",
        **point: Unpack[PointKeywords],
    ) -> Result:
        self._open()
        return self._reader.query(query, params, name=name, limits=limits, engine=engine, nodes=nodes, **point)

    def stream(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
        nodes: str = "id",
        **point: Unpack[PointKeywords],
    ) -> ResultStream:
        return self.snapshot(**point).stream(query, params, name=name, limits=limits, nodes=nodes)

    def prepare(self, query: str | PreparedQuery, *, name: str | None = None, branch: str = MAIN) -> PreparedQuery:
        return prepared(query, name, lambda: self.schema(branch=branch))

    def explain(self, query: str | PreparedQuery, *, name: str | None = None, **point: Unpack[PointKeywords]) -> str:
        return self.snapshot(**point).explain(query, name=name)

    def count(self, type_name: str, **point: Unpack[PointKeywords]) -> int:
        return self.snapshot(**point).count(type_name)

    def get_many(
        self, type_name: str, ids: Iterable[str], **point: Unpack[PointKeywords]
    ) -> list[dict[str, Any] | None]:
        return self.snapshot(**point).get_many(type_name, ids)

    def neighbourhood(
        self,
        type_name: str,
        entity_id: str,
        *,
        edges: Iterable[str] = (),
        depth: int = 1,
        limit: int = NEIGHBOURHOOD_NODES,
        vectors: bool = False,
        **point: Unpack[PointKeywords],
    ) -> Neighbourhood:
        return self.snapshot(**point).neighbourhood(
            type_name, entity_id, edges=edges, depth=depth, limit=limit, vectors=vectors
        )

    def blob(self, entity: str, type_name: str, id: str, property: str, **point: Unpack[PointKeywords]) -> Blob:
        return find_blob(self._parts, self.snapshot(**point), BlobName(entity, type_name, id, property))

    def export(
        self,
        to: Destination,
        *,
        format: str = "jsonl",
        types: Iterable[str] | None = None,
        files: int | None = None,
        **point: Unpack[PointKeywords],
    ) -> Exported:
        return export.export(self._open(), self.snapshot(**point), to, format=format, types=types, files=files)

    def export_lines(
        self, *, types: Iterable[str] | None = None, **point: Unpack[PointKeywords]
    ) -> Iterator[pa.Buffer]:
        return export.lines(self._open(), self.snapshot(**point), types=types)

    def export_arrow(
        self, type_name: str, *, columns: Sequence[str] | None = None, **point: Unpack[PointKeywords]
    ) -> pa.RecordBatchReader:
        return self.snapshot(**point).export_arrow(type_name, columns=columns)

    def lance_table(self, type_name: str, **point: Unpack[PointKeywords]) -> LanceDataset:
        return self.snapshot(**point).lance_table(type_name)

    @contextmanager
    def lease(self, *, seconds: float = 600.0, **point: Unpack[PointKeywords]) -> Iterator[Snapshot]:
        snapshot = self.snapshot(**point)
        with leased(self._open(), snapshot.record, seconds):
            yield snapshot

    # -- history ------------------------------------------------------------------------------------------------------

    def diff(
        self,
        older: State,
        newer: State,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        merge_base: bool = False,
        engine: str = "auto",
    ) -> Diff:
        wanted = change_filter(kinds, types, ops)
        return diff.diff(self._open(), older, newer, wanted, engine=engine, merge_base=merge_base)

    def log_of(
        self, type_name: str, entity_id: str, *, branch: str = MAIN, limit: int | None = None
    ) -> list[EntityEvent]:
        return entity_log(self._reader, self.snapshot(branch=branch), type_name, entity_id, limit)

    def blame(self, type_name: str, entity_id: str, *, branch: str = MAIN) -> Blame:
        return entity_blame(self._reader, self.snapshot(branch=branch), type_name, entity_id)

    # -- writes -------------------------------------------------------------------------------------------------------

    def mutate(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str = MAIN,
        **write: Unpack[WriteKeywords],
    ) -> MutationResult:
        return writes.mutate(
            self._open(), self._schemas, query, params, name=name, branch=branch, options=write_options(write)
        )

    def write(
        self,
        nodes: Mapping[str, object] = NO_ROWS,
        edges: Mapping[str, object] = NO_ROWS,
        *,
        mode: Mode | str = Mode.APPEND,
        branch: str = MAIN,
        **write: Unpack[WriteKeywords],
    ) -> WriteResult:
        return writes.write_rows(
            self._open(),
            self._schemas,
            nodes,
            edges,
            mode=mode_named(mode, can_patch=True),
            branch=branch,
            options=write_options(write),
        )

    def load(self, data: object, *, mode: Mode | str, branch: str = MAIN, **load: Unpack[LoadKeywords]) -> LoadResult:
        return loads.load(self._open(), self._schemas, data, *load_options(mode, branch, load))

    def schema_plan(
        self, text: str, *, branch: str = MAIN, allow_data_loss: bool = False, validated: bool = False
    ) -> SchemaPlan:
        self._open()
        accepted = self._schemas.at_head(paths.branch_name(branch))
        return writes.plan_schema(accepted.schema, text, allow_data_loss=allow_data_loss, validated=validated)

    def schema_apply(
        self,
        text: str,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        validated: bool = False,
        **write: Unpack[WriteKeywords],
    ) -> SchemaApplied:
        options = write_options(write, without=("expected_table_versions",))
        allowed = {"allow_data_loss": allow_data_loss, "validated": validated}
        return writes.apply_schema(self._open(), self._schemas, text, branch=branch, options=options, **allowed)

    def merge(
        self,
        source: str,
        *,
        into: str = MAIN,
        by: str = "row",
        prefer: str | None = None,
        resolutions: Resolutions | None = None,
        base: str | None = None,
        preview: bool = False,
        delete_branch: bool = False,
        if_source_commit: str | None = None,
        engine: str = "auto",
        **write: Unpack[WriteKeywords],
    ) -> MergeResult:
        choices = choices_of(by, prefer, resolutions, base)
        request = MergeRequest(source, into, choices, preview, delete_branch, if_source_commit, engine)
        options = write_options(write, without=("expected_table_versions", "idempotency_key"))
        return merge.merge(self._open(), self._schemas, request, options)

    def revert(
        self, commit: str | tuple[str, str], *, branch: str = MAIN, **write: Unpack[WriteKeywords]
    ) -> RevertResult:
        options = write_options(write, without=("expected_table_versions",))
        return writes.revert(self._open(), self._schemas, *first_and_last(commit), branch=branch, options=options)

    # -- maintenance --------------------------------------------------------------------------------------------------

    def optimize(
        self,
        branch: str = MAIN,
        *,
        types: Sequence[str] | None = None,
        purge: bool = False,
        actor: str | None = None,
        message: str | None = None,
        engine: str = "auto",
    ) -> OptimizeReport:
        self._open().refuse_read_only()
        options = WriteOptions(actor, message)
        return optimize.optimize_branch(self._reader, branch, types=types, purge=purge, options=options, engine=engine)

    def verify(self, *, deep: bool = False, branch: str | None = None, quarantine: bool = False) -> VerifyReport:
        return verify.verify_graph(self._open(), self._schemas, deep=deep, branch=branch, quarantine=quarantine)

    def repair_clock(self, *, actor: str | None = None) -> tuple[CorrectedClock, ...]:
        return tuple(repair_clock(self._open(), actor=actor))

    def prune(
        self,
        branch: str | None = None,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        commits: Sequence[str] = (),
        now: bool = False,
        shared: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> PruneReport:
        prune_branches = partial(prune.prune_branches, self._open(), branch, keep=keep, older_than=older_than, now=now)
        purge = partial(self.optimize, purge=True, actor=actor)
        return prune_branches(commits=commits, shared=shared, dry_run=dry_run, actor=actor, purge=purge)

    def sweep(self, *, older_than: Duration | None = None, dry_run: bool = False, engine: str = "auto") -> SweepReport:
        return prune.sweep_files(self._open(), older_than=older_than, dry_run=dry_run, engine=engine)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        confirm: bool = False,
        actor: str | None = None,
    ) -> CleanupReport:
        return prune.clean_up(self._open(), keep=keep, older_than=older_than, confirm=confirm, actor=actor)

    def maintain_once(self, policy: Maintenance = DEFAULT_MAINTENANCE) -> MaintenanceReport:
        parts = self._open()
        parts.refuse_read_only()
        return maintenance.run_pass(self, parts, policy)

    def maintain(
        self, every: Duration = 600.0, policy: Maintenance = DEFAULT_MAINTENANCE, *, stop: threading.Event | None = None
    ) -> Iterator[MaintenanceReport]:
        parts = self._open()
        parts.refuse_read_only()
        run = partial(self.maintain_once, policy)
        return maintenance.run_passes(run, every, stop, is_closed=lambda: self._closed, clock=parts.clock)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _open(self) -> GraphContext:
        if self._closed:
            raise InvalidRequestError("the graph was closed", code="closed")
        return self._parts
