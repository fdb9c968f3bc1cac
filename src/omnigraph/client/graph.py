"""`RemoteGraph`: a graph on a server, with the interface of a graph in this process.

What each member takes, returns and raises is documented in `omnigraph.api.interface`. What needs the storage itself is
left out: Spark, Lance tables, Arrow exports, and maintenance.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from omnigraph.api.blob import BlobName
from omnigraph.api.interface.graph import NO_ROWS, GraphInterface
from omnigraph.api.interface.reads import State
from omnigraph.api.load_options import LoadKeywords, load_options
from omnigraph.api.merge_options import Resolutions, choices_of
from omnigraph.api.neighbourhood import Neighbourhood
from omnigraph.api.params import json_params
from omnigraph.api.prepared import PreparedQuery, as_text, prepared
from omnigraph.api.query_result import Result, ResultStream
from omnigraph.api.results import LoadResult, MergeResult, MutationResult, RevertResult, SchemaApplied, WriteResult
from omnigraph.branch.arguments import checked_methods, first_and_last
from omnigraph.branch.entity_change import change_filter
from omnigraph.branch.history_values import Blame, EntityEvent
from omnigraph.branch.merge.choices import resolutions_document
from omnigraph.branch.point import Point, PointKeywords, point_of
from omnigraph.client import loads, values
from omnigraph.client.blobs import RemoteBlob, fetch_blob
from omnigraph.client.diff import RemoteDiff, fetch_diff
from omnigraph.client.history import RemoteBranches, RemoteChangeFeed, RemoteCommits, RemoteTags
from omnigraph.client.requests import (
    fetch_entities,
    fetch_neighbourhood,
    query_body,
    refuse_actor,
    send_mutation,
    write_fields,
)
from omnigraph.client.rows import fetch_rows, stream_rows
from omnigraph.client.snapshot import RemoteSnapshot
from omnigraph.client.wire import NDJSON, ServerRequest, Wire, quote_segment, without_nones
from omnigraph.errors import InvalidRequestError
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.language.schema import plan
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.model.commit import MAIN
from omnigraph.model.schema import Schema
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.model.schema_change_document import load_steps
from omnigraph.model.schema_document import from_document
from omnigraph.pipeline.export.destination import file_or_stream
from omnigraph.pipeline.export.formats import Destination, Exported, ExportFormat, as_format, chosen_entities
from omnigraph.transaction.mode import Mode, mode_named
from omnigraph.transaction.options import WriteKeywords, WriteOptions, write_options
from omnigraph.transaction.validation import require_schema_request, require_text


@checked_methods
class RemoteGraph(GraphInterface):
    """A graph on a server. Safe to share between threads; made by `omnigraph.connect`.

    Every read sees one commit. Every write becomes visible as one commit, or leaves no trace; if an answer is lost, the
    write is sent again under its idempotency key and done once.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._closed = False

    @property
    def uri(self) -> str:
        return self._wire.base

    @property
    def read_only(self) -> bool:
        return False

    @property
    def actor(self) -> str | None:
        """The actor that the server recognises; None before its first answer, and if the server has no actors."""
        return self._wire.actor

    @property
    def branches(self) -> RemoteBranches:
        return RemoteBranches(self._open())

    @property
    def tags(self) -> RemoteTags:
        return RemoteTags(self._open())

    @property
    def commits(self) -> RemoteCommits:
        return RemoteCommits(self._open())

    @property
    def changes(self) -> RemoteChangeFeed:
        return RemoteChangeFeed(self._open())

    def close(self) -> None:
        self._closed = True
        self._wire.close()

    def __repr__(self) -> str:
        return f"<Graph at {self.uri}>"

    # -- reads --------------------------------------------------------------------------------------------------------

    def snapshot(self, **point: Unpack[PointKeywords]) -> RemoteSnapshot:
        return self._at(point_of(point))

    def schema(self, *, branch: str = MAIN) -> Schema:
        return self._at(Point(branch=branch)).schema

    def schema_text(self, *, branch: str = MAIN) -> str:
        return str(self._open().get("schema", branch=branch)["schema_source"])

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
        at = point_of(point)
        return fetch_rows(self._open(), query_body(query, params, name, limits, at, engine=engine, nodes=nodes))

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
        return stream_rows(self._open(), query_body(query, params, name, limits, point_of(point), nodes=nodes))

    def prepare(self, query: str | PreparedQuery, *, name: str | None = None, branch: str = MAIN) -> PreparedQuery:
        return prepared(query, name, lambda: self.schema(branch=branch))

    def explain(self, query: str | PreparedQuery, *, name: str | None = None, **point: Unpack[PointKeywords]) -> str:
        written, chosen = as_text(query, name)
        body = {"query": written, "name": chosen, **values.point_fields(point_of(point))}
        return "\n".join(self._open().post("explain", body)["plan"])

    def count(self, type_name: str, **point: Unpack[PointKeywords]) -> int:
        return int(self._open().get("count", type=type_name, **values.point_fields(point_of(point)))["count"])

    def get_many(
        self, type_name: str, ids: Iterable[str], **point: Unpack[PointKeywords]
    ) -> list[dict[str, Any] | None]:
        return fetch_entities(self._open(), type_name, ids, point_of(point))

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
        around = {"edge": tuple(edges), "depth": depth, "limit": limit, "vectors": vectors}
        return fetch_neighbourhood(self._open(), type_name, entity_id, around, point_of(point))

    def blob(self, entity: str, type_name: str, id: str, property: str, **point: Unpack[PointKeywords]) -> RemoteBlob:
        at = point_of(point)
        if at.number is not None or at.tag is not None or at.at is not None:
            at = Point(commit=self._at(at).commit)
        name = BlobName(entity, type_name, id, property)
        return fetch_blob(self._open(), name, branch=at.branch, commit=at.commit)

    def export(
        self,
        to: Destination,
        *,
        format: str = "jsonl",
        types: Iterable[str] | None = None,
        files: int | None = None,
        **point: Unpack[PointKeywords],
    ) -> Exported:
        if as_format(format) is not ExportFormat.JSONL or files is not None:
            raise InvalidRequestError(
                "a server exports JSON lines, as one file; other formats are made at the graph's storage",
                code="json_lines_only",
            )
        snapshot = self.snapshot(**point)
        entities = chosen_entities(snapshot.schema, types)
        with file_or_stream(to) as stream:
            for piece in self.export_lines(types=types, commit=snapshot.commit):
                stream.write(piece)
        counts = {entity.type_key: snapshot.count(entity.type_key) for entity in entities}
        return Exported(snapshot.commit, format, counts, (str(to),) if isinstance(to, str | Path) else ())

    def export_lines(
        self, *, types: Iterable[str] | None = None, **point: Unpack[PointKeywords]
    ) -> Iterator[pa.Buffer]:
        body = without_nones({"type_names": types, **values.point_fields(point_of(point))})
        return map(pa.py_buffer, self._open().stream(ServerRequest("POST", "export", json=body, media=NDJSON)))

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
        engine: str = "auto",  # noqa: ARG002  (the server decides)
    ) -> RemoteDiff:
        wanted = change_filter(kinds, types, ops)
        return fetch_diff(self._open(), self._state(older), self._state(newer), wanted, merge_base=merge_base)

    def log_of(
        self, type_name: str, entity_id: str, *, branch: str = MAIN, limit: int | None = None
    ) -> list[EntityEvent]:
        found = self._open().get("entity/log", type=type_name, id=entity_id, branch=branch, limit=limit)
        return [values.parse_entity_event(event) for event in found["events"]]

    def blame(self, type_name: str, entity_id: str, *, branch: str = MAIN) -> Blame:
        return values.parse_blame(self._open().get("entity/blame", type=type_name, id=entity_id, branch=branch))

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
        written, chosen = as_text(query, name)
        options = write_options(write)
        body = {"query": written, "name": chosen, "params": json_params(params), "branch": branch}
        return values.parse_mutation_result(send_mutation(self._wire_for(options), "mutate", body, options))

    def write(
        self,
        nodes: Mapping[str, object] = NO_ROWS,
        edges: Mapping[str, object] = NO_ROWS,
        *,
        mode: Mode | str = Mode.APPEND,
        branch: str = MAIN,
        **write: Unpack[WriteKeywords],
    ) -> WriteResult:
        options = write_options(write)
        return loads.write_rows(
            self._wire_for(options), nodes, edges, mode=mode_named(mode), branch=branch, options=options
        )

    def load(self, data: object, *, mode: Mode | str, branch: str = MAIN, **load: Unpack[LoadKeywords]) -> LoadResult:
        options, write = load_options(mode, branch, load)
        return loads.load_files(self._wire_for(write), data, options, write)

    def schema_plan(
        self, text: str, *, branch: str = MAIN, allow_data_loss: bool = False, validated: bool = False
    ) -> SchemaPlan:
        require_schema_request(text, allow_data_loss=allow_data_loss, validated=validated)
        steps = plan(self._types(branch), text, validated=validated)
        return steps.with_data_loss() if allow_data_loss else steps

    def schema_apply(
        self,
        text: str,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        validated: bool = False,
        **write: Unpack[WriteKeywords],
    ) -> SchemaApplied:
        require_schema_request(text, allow_data_loss=allow_data_loss, validated=validated)
        options = write_options(write, without=("expected_table_versions",))
        body = {"schema_source": text, "branch": branch, "allow_data_loss": allow_data_loss, "validated": validated}
        done = self._wire_for(options).write("schema/apply", body | write_fields(options), options.idempotency_key)
        steps = SchemaPlan(load_steps(done), self._types(branch))
        return SchemaApplied(done["branch"], steps, done["graph_commit_id"], done["graph_manifest_version"])

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
        engine: str = "auto",  # noqa: ARG002  (the server decides)
        **write: Unpack[WriteKeywords],
    ) -> MergeResult:
        choices = choices_of(by, prefer, resolutions, base)
        options = write_options(write, without=("expected_table_versions", "idempotency_key"))
        wire = self._wire_for(options)
        body = {
            "source": source,
            "target": into,
            "by": choices.by,
            "prefer": choices.prefer,
            "resolve": resolutions_document(choices.resolutions) or None,
            "base": choices.base,
            "preview": preview,
            "delete_branch": delete_branch,
            "if_source_commit": if_source_commit,
            **write_fields(options),
        }
        path = "branches/merge"
        return values.parse_merge_result(wire.post(path, body) if preview else wire.act("POST", path, body))

    def revert(
        self, commit: str | tuple[str, str], *, branch: str = MAIN, **write: Unpack[WriteKeywords]
    ) -> RevertResult:
        options = write_options(write, without=("expected_table_versions",))
        first, last = first_and_last(commit)
        body = {"commit": first, "last": last, "branch": branch, **write_fields(options)}
        return values.parse_revert_result(self._wire_for(options).write("revert", body, options.idempotency_key))

    # -- stored queries -----------------------------------------------------------------------------------------------

    def stored_queries(self) -> list[dict[str, Any]]:
        """List the queries that are stored on the server: name, whether it writes, and parameters of each."""
        return list(self._open().get("queries")["queries"])

    def invoke(
        self,
        name: str,
        params: Mapping[str, object] | None = None,
        *,
        branch: str | None = None,
        commit: str | None = None,
        expect_mutation: bool | None = None,
        if_commit: str | None = None,
        expected_table_versions: Mapping[str, int] | None = None,
        idempotency_key: str | None = None,
    ) -> dict[str, Any]:
        """Run a stored query or mutation.

        Args:
            params: values of its parameters.
            branch: by default `main`.
            commit: for a query, read at this commit instead.
            expect_mutation: refuse the call if the stored query is not what the caller takes it for.
            if_commit: for a mutation, only if this is the head commit of the branch.
            expected_table_versions: for a mutation, only if these tables are at these versions, by type key.
            idempotency_key: for a mutation; see `WriteOptions`.

        Returns:
            Of a query, its rows as in `Result.to_json`; of a mutation, its result.

        Raises:
            NotFoundError: there is no such query, or the caller may not run it.
            InvalidRequestError: it is not what was expected, or a parameter does not fit.
            PreconditionError: the head is not `if_commit`.
        """
        options = WriteOptions(
            if_commit=if_commit, expected_table_versions=expected_table_versions, idempotency_key=idempotency_key
        )
        body = {"params": json_params(params), "branch": branch, "snapshot": commit, "expect_mutation": expect_mutation}
        return dict(send_mutation(self._open(), f"queries/{quote_segment(name)}", body, options))

    # -- inside -------------------------------------------------------------------------------------------------------

    def _open(self) -> Wire:
        if self._closed:
            raise InvalidRequestError("the graph was closed", code="closed")
        return self._wire

    def _wire_for(self, options: WriteOptions) -> Wire:
        wire = self._open()
        refuse_actor(options.actor, wire)
        return wire

    def _at(self, point: Point) -> RemoteSnapshot:
        wire = self._open()
        record = values.parse_snapshot_record(wire.get("snapshot", **values.point_fields(point)))
        return RemoteSnapshot(wire, record, head_of=record.branch if point.is_head else None)

    def _state(self, state: State) -> str:
        if isinstance(state, RemoteSnapshot):
            return state.commit
        if isinstance(state, Point):
            return self._at(state).commit
        return require_text(state, "a state")  # type: ignore[arg-type]  # a snapshot of another graph is refused like any object

    def _types(self, branch: str) -> Schema:
        return from_document(self._open().get("schema/resolved", branch=branch)["schema"])
