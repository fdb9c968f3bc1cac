"""Writing to a graph on a server. Every write carries an idempotency key, so that a lost answer costs nothing."""

import json
import os
from collections.abc import Callable, Mapping

from omnigraph.api.params import json_params
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.receipts import LoadResult, MutationResult, SchemaApplied, WriteResult
from omnigraph.client.base import RemoteBase, refuse_actor
from omnigraph.client.bodies import lines_of_files, lines_of_rows
from omnigraph.client.values import load_result, mutation_result
from omnigraph.client.wire import KEY, NDJSON, Ask, Wire
from omnigraph.errors import InvalidRequestError
from omnigraph.language.schema import plan
from omnigraph.model.commit import MAIN as MAIN_BRANCH
from omnigraph.model.schema import Schema
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.model.schema_change_document import steps_from_document
from omnigraph.model.schema_document import from_document
from omnigraph.pipeline.load.how_far import LoadProgress
from omnigraph.transaction.mode import Mode
from omnigraph.transaction.said import check_expected_versions, schema_request

IF_COMMIT = "Omnigraph-If-Graph-Commit"
_NO_ROWS: Mapping[str, object] = {}


class RemoteWrites(RemoteBase):
    """What can be written to a graph on a server: as one commit or not at all, and once, however often it was sent."""

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
        """Carry out a mutation; see `omnigraph.Graph.mutate`.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str): where.
            actor (str | None): not to be named: the token decides.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            expected_table_versions (Mapping[str, int] | None): only if these tables are at these versions, by type key.
            idempotency_key (str | None): the same key again does nothing and returns what the first call did; where
                none is named, a new one is taken for this call.
            prune_previous (bool): in the same step, show earlier commits of the branch no more.

        Returns:
            MutationResult: how much changed, and the commit; no commit where nothing had to change.
        """
        refuse_actor(actor, self._open())
        text, chosen = as_text(query, name)
        body = {
            "query": text,
            "name": chosen,
            "params": json_params(params),
            "branch": branch,
            "message": message,
            "expected_table_versions": _versions(expected_table_versions),
            "prune_previous": prune_previous,
        }
        wire = self._open()
        if if_commit is None:
            return mutation_result(wire.write("mutate", body, idempotency_key))
        condition = {IF_COMMIT: if_commit}
        return mutation_result(wire.write("mutate/if-graph-commit", body, idempotency_key, condition))

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
        """Write rows of any number of types as one commit; see `omnigraph.Graph.write`.

        Args:
            nodes (Mapping[str, object]): by node type, rows: an Arrow table, a frame, or a sequence of dictionaries.
            edges (Mapping[str, object]): likewise by edge type, with the ids of the nodes in `from` and `to`.
            mode (Mode | str): `append`, `merge` or `overwrite`.
            branch (str): where.
            actor (str | None): not to be named: the token decides.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            expected_table_versions (Mapping[str, int] | None): only if these tables are at these versions, by type key.
            idempotency_key (str | None): the same key again does nothing and returns the first commit.
            prune_previous (bool): in the same step, show earlier commits of the branch no more.

        Returns:
            WriteResult: the commit.

        Raises:
            LimitError: the rows are more than a server takes at once.
        """
        refuse_actor(actor, self._open())
        lines = lines_of_rows(nodes, edges)
        if Mode(mode) is Mode.OVERWRITE:
            _refuse_emptying(nodes, edges, lines)
        params = {
            "branch": branch,
            "mode": Mode(mode).value,
            "message": message,
            "if_commit": if_commit,
            "expected_table_versions": _as_parameter(expected_table_versions),
        }
        done = _loaded(
            self._open(), lines, params | {"prune_previous": prune_previous or None}, idempotency_key, self.uri
        )
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
        engine: str = "spark",  # noqa: ARG002  (the server decides; here so that calls are the same)
        rejects: "str | os.PathLike[str] | None" = None,
        max_rejects: int | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        expected_table_versions: Mapping[str, int] | None = None,
        idempotency_key: str | None = None,
        prune_previous: bool = False,
        spark: object = None,  # noqa: ARG002  (likewise)
        progress: Callable[[LoadProgress], None] | None = None,  # noqa: ARG002  (likewise)
    ) -> LoadResult:
        """Load JSON lines, as many as a server takes at once, as one commit; see `omnigraph.Graph.load`.

        Args:
            data (object): a file, folder or pattern, a sequence of these, bytes, or an open file; all JSON lines.
            mode (Mode | str): `append`, `merge` or `overwrite`.
            branch (str): where.
            from_branch (str | None): make the branch from this one, where it is not there yet.
            type_name (str | None): not for a served graph: files with columns are loaded at its storage.
            edge (str | None): likewise.
            from_column (str | None): likewise.
            to_column (str | None): likewise.
            format (str | None): `jsonl`; by the files' names by default.
            strict (bool): False reads a stream of JSON values and forgives, as scripts of old expect.
            engine (str): the server's matter; passed over.
            rejects (str | os.PathLike[str] | None): not for a served graph.
            max_rejects (int | None): not for a served graph.
            dry_run (bool): check everything and write nothing.
            actor (str | None): not to be named: the token decides.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            expected_table_versions (Mapping[str, int] | None): only if these tables are at these versions, by type key.
            idempotency_key (str | None): the same key again does nothing and returns the first commit.
            prune_previous (bool): in the same step, show earlier commits of the branch no more.
            spark (object): the server's matter; passed over.
            progress (Callable[[LoadProgress], None] | None): passed over: the answer comes at the end.

        Returns:
            LoadResult: counts by type, and the commit.

        Raises:
            InvalidRequestError: a record is wrong, or the load is one for the graph's storage.
            LimitError: the files are more than a server takes at once.
        """
        refuse_actor(actor, self._open())
        told = {"type_name": type_name, "edge": edge, "from_column": from_column, "to_column": to_column}
        for named, value in {**told, "rejects": rejects, "max_rejects": max_rejects}.items():
            if value is not None:
                raise InvalidRequestError(
                    f"a served graph loads JSON lines as they are; `{named}` is for loads at the graph's storage",
                    code="json_lines_only",
                )
        lines = lines_of_files(data, format=format, strict=strict)
        wire = self._open()
        if not strict:
            body = {
                "data": lines.decode(),
                "mode": Mode(mode).value,
                "branch": branch,
                "from": from_branch,
                "expected_table_versions": _versions(expected_table_versions),
            }
            return load_result(wire.write("load", body, idempotency_key), self.uri)
        params: dict[str, str | bool | None] = {
            "branch": branch,
            "from": from_branch,
            "mode": Mode(mode).value,
            "message": message,
            "if_commit": if_commit,
            "expected_table_versions": _as_parameter(expected_table_versions),
            "prune_previous": prune_previous or None,
            "dry_run": dry_run or None,
        }
        return _loaded(wire, lines, params, idempotency_key, self.uri)

    # -- the schema ---------------------------------------------------------------------------------------------------

    def schema_plan(
        self, text: str, *, branch: str = MAIN_BRANCH, allow_data_loss: bool = False, validated: bool = False
    ) -> SchemaPlan:
        """What applying a schema text would do; see `omnigraph.Graph.schema_plan`.

        Args:
            text (str): the schema the branch is to have.
            branch (str): which branch.
            allow_data_loss (bool): whether what is dropped shall be gone from history too.
            validated (bool): plan changes too that are right only where the data allows them.

        Returns:
            SchemaPlan: the steps, those that cannot be made among them.
        """
        schema_request(text, allow_data_loss=allow_data_loss, validated=validated)
        steps = plan(_types(self._open(), branch), text, validated=validated)
        return steps.with_data_loss() if allow_data_loss else steps

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
        """Give a branch another schema, as one commit; see `omnigraph.Graph.schema_apply`.

        Args:
            text (str): the schema the branch is to have.
            branch (str): which branch.
            allow_data_loss (bool): whether what is dropped shall be gone from history too.
            validated (bool): make changes too that are right only where the data allows them, having looked.
            actor (str | None): not to be named: the token decides.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            idempotency_key (str | None): the same key again does nothing and returns the first commit.
            prune_previous (bool): in the same step, show earlier commits of the branch no more.

        Returns:
            SchemaApplied: the steps, and the commit; no commit where nothing had to change.
        """
        refuse_actor(actor, self._open())
        schema_request(text, allow_data_loss=allow_data_loss, validated=validated)
        body = {
            "schema_source": text,
            "branch": branch,
            "allow_data_loss": allow_data_loss,
            "validated": validated,
            "message": message,
            "if_commit": if_commit,
            "prune_previous": prune_previous,
        }
        wire = self._open()
        done = wire.write("schema/apply", body, idempotency_key)
        steps = SchemaPlan(steps_from_document(done), _types(wire, branch))
        return SchemaApplied(done["branch"], steps, done["graph_commit_id"], done["graph_manifest_version"])


def _loaded(wire: Wire, lines: bytes, params: Mapping[str, str | bool | None], key: str | None, uri: str) -> LoadResult:
    headers = {"Content-Type": NDJSON, KEY: key or wire.ids.new()}
    ask = Ask("POST", "load/ndjson", params=params, content=lines, headers=headers)
    return load_result(wire.document(ask), uri)


def _versions(expected: Mapping[str, int] | None) -> dict[str, int] | None:
    """Expected versions as they are sent, refused here where an embedded graph refuses them."""
    check_expected_versions(expected)
    return None if expected is None else dict(expected)


def _as_parameter(expected: Mapping[str, int] | None) -> str | None:
    said = _versions(expected)
    return None if said is None else json.dumps(said)


def _types(wire: Wire, branch: str) -> Schema:
    return from_document(wire.get("schema/resolved", branch=branch)["schema"])


def _refuse_emptying(nodes: Mapping[str, object], edges: Mapping[str, object], lines: bytes) -> None:
    """Stop an overwrite that would leave a type empty: lines can only name types that have rows."""
    for word, given in (("type", nodes), ("edge", edges)):
        for name in given:
            if f'{{"{word}": "{name}"'.encode() not in lines:
                raise InvalidRequestError(f"'{name}' has no rows, and lines to a server cannot say so: delete them")
