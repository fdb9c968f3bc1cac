"""Send rows and files to a server. Every load carries an idempotency key, so that it can be sent again."""

import json
from collections.abc import Mapping

from omnigraph.api.load_options import LoadOptions
from omnigraph.api.params import require_rows_by_type
from omnigraph.api.results import LoadResult, WriteResult
from omnigraph.client.bodies import encode_rows, read_files
from omnigraph.client.requests import write_fields
from omnigraph.client.values import parse_load_result
from omnigraph.client.wire import KEY, NDJSON, ServerRequest, Wire
from omnigraph.errors import InvalidRequestError
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.options import WriteOptions

# Options of a load that only work at the graph's storage.
_STORAGE_ONLY = ("type_name", "edge", "from_column", "to_column", "rejects", "max_rejects")


def write_rows(
    wire: Wire,
    nodes: Mapping[str, object],
    edges: Mapping[str, object],
    *,
    mode: Mode,
    branch: str,
    options: WriteOptions,
) -> WriteResult:
    """Write rows as one commit; see `Graph.write`."""
    require_rows_by_type(nodes, edges)
    lines = encode_rows(nodes, edges)
    if mode is Mode.OVERWRITE:
        _refuse_emptying(nodes, edges, lines)
    done = _send(wire, lines, {"branch": branch, "mode": mode.value}, options)
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


def load_files(wire: Wire, data: object, options: LoadOptions, write: WriteOptions) -> LoadResult:
    """Load files as one commit; see `Graph.load`.

    Raises:
        InvalidRequestError: an option works only at the graph's storage.
    """
    for name in _STORAGE_ONLY:
        if getattr(options, name) is not None:
            raise InvalidRequestError(
                f"a served graph loads JSON lines as they are; `{name}` is for loads at the graph's storage",
                code="json_lines_only",
            )
    lines = read_files(data, format=options.format, strict=options.strict)
    where = {"branch": options.branch, "from": options.from_branch, "mode": options.mode.value}
    if options.strict:
        return _send(wire, lines, where | {"dry_run": options.dry_run or None}, write)
    fields = write_fields(write)
    expected = fields.pop("expected_table_versions")
    _refuse_for_json_values(fields | {"dry_run": options.dry_run or None})
    body = {"data": lines.decode(), **where, "expected_table_versions": expected}
    return parse_load_result(wire.write("load", body, write.idempotency_key), wire.base)


def _send(wire: Wire, lines: bytes, where: Mapping[str, str | bool | None], options: WriteOptions) -> LoadResult:
    fields = write_fields(options)
    expected = fields.pop("expected_table_versions")
    params = {**where, **fields, "expected_table_versions": None if expected is None else json.dumps(expected)}
    headers = {"Content-Type": NDJSON, KEY: options.idempotency_key or wire.ids.new()}
    request = ServerRequest("POST", "load/ndjson", params=params, content=lines, headers=headers)  # type: ignore[arg-type]  # texts and flags
    return parse_load_result(wire.document(request), wire.base)


def _refuse_for_json_values(fields: Mapping[str, object]) -> None:
    """Refuse options that the request for a stream of JSON values has no field for: ignored, a dry run would write.

    Raises:
        InvalidRequestError: one of them is set.
    """
    for name, value in fields.items():
        if value:
            raise InvalidRequestError(
                f"a served graph takes a stream of JSON values as it is: leave out `{name}`, or load lines strictly",
                code="json_lines_only",
            )


def _refuse_emptying(nodes: Mapping[str, object], edges: Mapping[str, object], lines: bytes) -> None:
    """Refuse an overwrite that would empty a type: JSON lines name only types that have rows."""
    for field, types in (("type", nodes), ("edge", edges)):
        for name in types:
            if f'{{"{field}": "{name}"'.encode() not in lines:
                raise InvalidRequestError(f"'{name}' has no rows, and lines to a server cannot say so: delete them")
