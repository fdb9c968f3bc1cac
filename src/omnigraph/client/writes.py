"""Writing to a graph on a server. Every write carries an idempotency key, so that a lost answer costs nothing."""

import json
from collections.abc import Mapping

from omnigraph.api.receipts import LoadResult, MutationResult, SchemaApplied, WriteResult
from omnigraph.api.reshaping import Reshaping
from omnigraph.api.writing import LoadOptions, Writing
from omnigraph.client.base import RemoteBase
from omnigraph.client.bodies import lines_of_files, lines_of_rows
from omnigraph.client.values import load_result, mutation_result
from omnigraph.client.wire import KEY, NDJSON, Ask, Wire
from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import Schema
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.model.schema_change_document import steps_from_document
from omnigraph.model.schema_document import from_document
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.options import WriteOptions

IF_COMMIT = "Omnigraph-If-Graph-Commit"
# What may be said of a load only where it is read at the graph's storage.
_AT_THE_STORAGE = ("type_name", "edge", "from_column", "to_column", "rejects", "max_rejects")


class RemoteWrites(RemoteBase, Writing, Reshaping):
    """How a graph on a server is written to: as one commit or not at all, and once, however often it was sent."""

    def _mutate(
        self, text: str, name: str | None, params: Mapping[str, object] | None, branch: str, options: WriteOptions
    ) -> MutationResult:
        wire = self._as_told(options)
        body = {
            "query": text,
            "name": name,
            "params": params,
            "branch": branch,
            "message": options.message,
            "expected_table_versions": _versions(options),
            "prune_previous": options.prune_previous,
        }
        if options.if_commit is None:
            return mutation_result(wire.write("mutate", body, options.idempotency_key))
        condition = {IF_COMMIT: options.if_commit}
        return mutation_result(wire.write("mutate/if-graph-commit", body, options.idempotency_key, condition))

    def _write(
        self, nodes: Mapping[str, object], edges: Mapping[str, object], mode: Mode, branch: str, options: WriteOptions
    ) -> WriteResult:
        wire = self._as_told(options)
        lines = lines_of_rows(nodes, edges)
        if mode is Mode.OVERWRITE:
            _refuse_emptying(nodes, edges, lines)
        done = self._loaded(wire, lines, {"branch": branch, "mode": mode.value}, options)
        assert done.commit is not None and done.entry is not None, "a load that is no dry run makes a commit"
        return WriteResult(
            branch=done.branch,
            mode=done.mode,
            commit=done.commit,
            number=done.entry.number,
            nodes=done.nodes,
            edges=done.edges,
            replayed=done.replayed,
            attempts=done.attempts,
            warnings=done.warnings,
        )

    def _load(self, data: object, options: LoadOptions, said: WriteOptions) -> LoadResult:
        wire = self._as_told(said)
        for named in _AT_THE_STORAGE:
            if getattr(options, named) is not None:
                raise InvalidRequestError(
                    f"a served graph loads JSON lines as they are; `{named}` is for loads at the graph's storage",
                    code="json_lines_only",
                )
        lines = lines_of_files(data, format=options.format, strict=options.strict)
        where = {"branch": options.branch, "from": options.from_branch, "mode": options.mode.value}
        if options.strict:
            return self._loaded(wire, lines, where | {"dry_run": options.dry_run or None}, said)
        _refuse_unsaid(options, said)
        body = {"data": lines.decode(), **where, "expected_table_versions": _versions(said)}
        return load_result(wire.write("load", body, said.idempotency_key), self.uri)

    def _schema_now(self, branch: str) -> Schema:
        return _types(self._open(), branch)

    def _schema_apply(
        self, text: str, branch: str, options: WriteOptions, *, allow_data_loss: bool, validated: bool
    ) -> SchemaApplied:
        wire = self._as_told(options)
        body = {
            "schema_source": text,
            "branch": branch,
            "allow_data_loss": allow_data_loss,
            "validated": validated,
            "message": options.message,
            "if_commit": options.if_commit,
            "prune_previous": options.prune_previous,
        }
        done = wire.write("schema/apply", body, options.idempotency_key)
        steps = SchemaPlan(steps_from_document(done), _types(wire, branch))
        return SchemaApplied(done["branch"], steps, done["graph_commit_id"], done["graph_manifest_version"])

    def _loaded(
        self, wire: Wire, lines: bytes, where: Mapping[str, str | bool | None], options: WriteOptions
    ) -> LoadResult:
        expected = _versions(options)
        params = {
            **where,
            "message": options.message,
            "if_commit": options.if_commit,
            "expected_table_versions": None if expected is None else json.dumps(expected),
            "prune_previous": options.prune_previous or None,
        }
        headers = {"Content-Type": NDJSON, KEY: options.idempotency_key or wire.ids.new()}
        ask = Ask("POST", "load/ndjson", params=params, content=lines, headers=headers)
        return load_result(wire.document(ask), self.uri)


def _refuse_unsaid(options: LoadOptions, said: WriteOptions) -> None:
    """Stop a load of old that wants what its request cannot say: passed over, a dry run would write."""
    wanted = {
        "dry_run": options.dry_run,
        "message": said.message,
        "if_commit": said.if_commit,
        "prune_previous": said.prune_previous,
    }
    for named, value in wanted.items():
        if value:
            raise InvalidRequestError(
                f"a served graph takes a stream of JSON values as it is: leave out `{named}`, or load lines strictly",
                code="json_lines_only",
            )


def _versions(options: WriteOptions) -> dict[str, int] | None:
    """Expected versions as they are sent."""
    return None if options.expected_table_versions is None else dict(options.expected_table_versions)


def _types(wire: Wire, branch: str) -> Schema:
    return from_document(wire.get("schema/resolved", branch=branch)["schema"])


def _refuse_emptying(nodes: Mapping[str, object], edges: Mapping[str, object], lines: bytes) -> None:
    """Stop an overwrite that would leave a type empty: lines can only name types that have rows."""
    for word, given in (("type", nodes), ("edge", edges)):
        for name in given:
            if f'{{"{word}": "{name}"'.encode() not in lines:
                raise InvalidRequestError(f"'{name}' has no rows, and lines to a server cannot say so: delete them")
