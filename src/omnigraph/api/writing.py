"""What can be written to a graph, wherever it is: what the writes are called, what they take, and what they mean.

How they are done is the matter of a graph that is open (`graph_writes.py`) and of one on a server (`client`).
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from omnigraph.api.params import json_params
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.receipts import LoadResult, MutationResult, WriteResult
from omnigraph.errors import InvalidRequestError
from omnigraph.model.commit import MAIN as MAIN_BRANCH
from omnigraph.pipeline.load.how_far import LoadProgress
from omnigraph.pipeline.load.sources import OPTION
from omnigraph.transaction.mode import Mode, mode_named
from omnigraph.transaction.options import WriteOptions

SPARK, LOCAL = "spark", "local"
_NO_ROWS: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What a caller may say about a load besides the data; see `Graph.load`.

    `tables` is for those who made the files themselves: of each Parquet file, the key of the type whose rows it holds.
    """

    mode: Mode
    branch: str
    from_branch: str | None = None
    type_name: str | None = None
    edge: str | None = None
    from_column: str | None = None
    to_column: str | None = None
    format: str | None = None
    strict: bool = True
    engine: str = SPARK
    rejects: "str | os.PathLike[str] | None" = None
    max_rejects: int | None = None
    dry_run: bool = False
    spark: object = None
    progress: Callable[[LoadProgress], None] | None = None
    tables: tuple[str, ...] = ()


class Writing(ABC):
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
            actor (str | None): who; of a graph on a server not to be named, for the token decides.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            expected_table_versions (Mapping[str, int] | None): only if these tables are at these versions, by type key
                like `node:Person`; see `Snapshot.table_versions`.
            idempotency_key (str | None): the same key again does nothing and returns what the first call did; to a
                server every write carries one, a new one where none is named.
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
            PermissionDeniedError: the graph was opened read-only, or the server does not let whoever asks.
        """
        text, chosen = as_text(query, name)
        options = WriteOptions(
            actor=actor,
            message=message,
            if_commit=if_commit,
            expected_table_versions=expected_table_versions,
            idempotency_key=idempotency_key,
            prune_previous=prune_previous,
        )
        return self._mutate(text, chosen, json_params(params), branch, options)

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
            actor (str | None): who; of a graph on a server not to be named, for the token decides.
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
            LimitError: of a graph on a server, the rows are more than it takes at once.
            ConstraintError: a rule of the schema would be broken.
            ConflictError: an entity exists already (`key_conflict`), others changed what the write had read, or a
                table is not at its expected version.
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only, or the server does not let whoever asks.
        """
        options = WriteOptions(
            actor=actor,
            message=message,
            if_commit=if_commit,
            expected_table_versions=expected_table_versions,
            idempotency_key=idempotency_key,
            prune_previous=prune_previous,
        )
        rows = _by_type(nodes, "nodes"), _by_type(edges, "edges")
        return self._write(*rows, mode_named(mode), branch, options)

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

        A server takes JSON lines, up to a size; files with columns, and what is put aside, are for loads at the graph's
        storage. What is said of `engine`, `spark` and `progress` it passes over.

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
            actor (str | None): who; of a graph on a server not to be named, for the token decides.
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
            LimitError: more records would have to be put aside than may be (`too_many_rejects`), or the files are more
                than a server takes at once.
            NotFoundError: there is no such file, branch or type.
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only, or the server does not let whoever asks.
        """
        options = LoadOptions(
            mode=mode_named(mode, code=OPTION),
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
        return self._load(data, options, said)

    # -- how it is done -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _mutate(
        self, text: str, name: str | None, params: Mapping[str, object] | None, branch: str, options: WriteOptions
    ) -> MutationResult: ...

    @abstractmethod
    def _write(
        self, nodes: Mapping[str, object], edges: Mapping[str, object], mode: Mode, branch: str, options: WriteOptions
    ) -> WriteResult: ...

    @abstractmethod
    def _load(self, data: object, options: LoadOptions, said: WriteOptions) -> LoadResult: ...


def _by_type(rows: Mapping[str, object], what: str) -> Mapping[str, object]:
    if not isinstance(rows, Mapping):
        raise InvalidRequestError(f"{what} must be rows by type, like {{'Person': rows}}, got {type(rows).__name__}")
    return rows
