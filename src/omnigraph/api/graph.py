"""A graph: everything under one root, all its branches."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from omnigraph import limits
from omnigraph.api import diffing, evolving, exporting, lineage, loading, merging, pruning, reverting
from omnigraph.api.branches import Branches
from omnigraph.api.changes import ChangeFeed
from omnigraph.api.commits import Commits
from omnigraph.api.diffing import State
from omnigraph.api.evolving import SchemaApplied
from omnigraph.api.loading import LoadOptions, LoadResult
from omnigraph.api.maintaining import DEFAULT_MAINTENANCE, Maintenance, MaintenanceReport, maintain_once, passes
from omnigraph.api.merging import MergeResult, Resolutions
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.params import json_params
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.pruning import CleanupReport, Duration, PruneReport, SweepReport
from omnigraph.api.receipts import MutationResult, WriteResult
from omnigraph.api.result import Result, ResultStream
from omnigraph.api.reverting import RevertResult
from omnigraph.api.schemas import Schemas
from omnigraph.api.snapshot import Reading, Snapshot
from omnigraph.api.spark import GraphSpark
from omnigraph.api.tags import Tags
from omnigraph.api.tail_compaction import TailCompaction
from omnigraph.api.upkeep import OptimizeReport, report_of, type_keys_of
from omnigraph.api.verifying import VerifyReport, verified
from omnigraph.branch.blame import Blame
from omnigraph.branch.diff import Diff
from omnigraph.branch.entity_log import EntityEvent
from omnigraph.branch.points import Instant, Point, entry_at
from omnigraph.errors import InternalError, InvalidRequestError, ReclaimedError
from omnigraph.execution.engine import DEFAULT_LIMITS, EngineStats, QueryEngine, QueryLimits
from omnigraph.execution.mutate import Affected, mutation
from omnigraph.language.query import bind_params, compile
from omnigraph.model.schema import Schema
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.pipeline.export.run import Destination, Exported
from omnigraph.pipeline.load.request import LoadProgress
from omnigraph.storage import paths
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.incoming import Frame
from omnigraph.transaction.leases import leased
from omnigraph.transaction.optimize import optimize
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.write import Receipt, WriteOptions, write
from omnigraph.transaction.write_rows import Mode, RowsToWrite, rows_to_write

_NO_ROWS: Mapping[str, object] = {}
# How often a read of the newest state starts again because a prune and a sweep were faster.
_NEWEST_LOOKS_MAX = 8


class Graph:
    """An open graph. Safe to share between threads; made by `omnigraph.open` and `omnigraph.init`.

    Every read sees one commit. Every write becomes visible whole, as one commit, or leaves no trace.
    """

    def __init__(self, parts: Parts, schemas: Schemas, *, cache_bytes: int = limits.QUERY_CACHE_BYTES_MAX) -> None:
        self._tails: TailCompaction | None = None
        if parts.settings.auto_compact and not parts.read_only:
            self._tails = TailCompaction(parts, lambda digest: schemas.of(digest).schema)
            parts = replace(parts, published=self._tails.noticed)
        engine = QueryEngine(
            parts.tables, parts.store, read_only=parts.read_only, clock=parts.clock, cache_bytes=cache_bytes
        )
        self._parts = parts = replace(parts, finder=engine.finder)
        self._schemas = schemas
        self._reading = Reading(parts, schemas, engine)
        self._newest: Snapshot | None = None
        self._closed = False

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def uri(self) -> str:
        """Where it is."""
        return self._parts.store.uri

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._parts.read_only

    @property
    def branches(self) -> Branches:
        """Its branches."""
        return Branches(self._open())

    @property
    def commits(self) -> Commits:
        """The states it went through."""
        return Commits(self._open())

    @property
    def changes(self) -> ChangeFeed:
        """What happened on its branches, for whoever follows them."""
        self._open()
        return ChangeFeed(self._reading)

    @property
    def tags(self) -> Tags:
        """Its tags."""
        return Tags(self._open())

    def schema(self, *, branch: str = MAIN_BRANCH) -> Schema:
        """The types there are at the head of a branch.

        Args:
            branch (str): which branch.

        Returns:
            Schema: resolved.

        Raises:
            NotFoundError: there is no such branch.
        """
        return self.snapshot(branch=branch).schema

    def schema_text(self, *, branch: str = MAIN_BRANCH) -> str:
        """The schema text accepted at the head of a branch, as it was written.

        Args:
            branch (str): which branch.

        Returns:
            str: the text.

        Raises:
            NotFoundError: there is no such branch.
        """
        return self._schemas.text(self.snapshot(branch=branch).record.schema)

    # -- reading ------------------------------------------------------------------------------------------------------

    def snapshot(
        self,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> Snapshot:
        """The graph at one commit. Queries on it are checked against the schema of that commit.

        Args:
            branch (str | None): its head, or with `number` or `at` an earlier state of it; `main` by default.
            commit (str | None): a commit by its id, whatever its branch.
            number (int | None): a place in the branch's log.
            tag (str | None): the commit a tag names.
            at (datetime | str | None): the branch as it was at this time; without a zone it is UTC.

        Returns:
            Snapshot: for reading; it never changes.

        Raises:
            NotFoundError: there is no such branch, commit, number or tag, or nothing was there at that time.
            InvalidRequestError: two of them are named of which one would do.
        """
        point = Point(branch=branch, commit=commit, number=number, tag=tag, at=at)
        entry = entry_at(self._open(), point)
        return Snapshot(self._reading, entry, head_of=entry.branch if point.is_head else None)

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> Result:
        """Answer a query. It sees one commit for its whole life, whatever is written meanwhile.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.
            limits (QueryLimits): what it may use.

        Returns:
            Result: the rows.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            NotFoundError: there is no such branch or commit.
            LimitError: it needs more memory than it may use.
        """
        if commit is None and tag is None and at is None:
            for _ in range(_NEWEST_LOOKS_MAX):
                try:
                    return self._at_head(branch).query(query, params, name=name, limits=limits)
                except ReclaimedError:
                    continue  # pruned and swept between the look at the head and the reading of rows
        return self.snapshot(branch=branch, commit=commit, tag=tag, at=at).query(
            query, params, name=name, limits=limits
        )

    def stream(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> ResultStream:
        """Answer a query a batch at a time, so that memory does not follow the size of the result.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.
            limits (QueryLimits): what it may use; rows that were handed over do not count.

        Returns:
            ResultStream: the rows, found while they are asked for; all of one commit, whatever is written meanwhile.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            NotFoundError: there is no such branch or commit.
            LimitError: it needs more memory than it may use; also later, when rows are asked for.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag, at=at)
        return snapshot.stream(query, params, name=name, limits=limits)

    def stats(self) -> EngineStats:
        """What reads keep in memory, bounded in bytes, and where it came from.

        Returns:
            EngineStats: the cache of columns, indexes and adjacency; where adjacency came from; plans ready to run.
        """
        self._open()
        return self._reading.engine.stats()

    def prepare(self, query: str, *, name: str | None = None, branch: str = MAIN_BRANCH) -> PreparedQuery:
        """Check a query or mutation now, to run it any number of times later.

        Args:
            query (str): a text in the query language.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str): against whose schema it is checked.

        Returns:
            PreparedQuery: for `query`, `mutate` and `explain`.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: there is no such query.
        """
        compiled = compile(query, self.schema(branch=branch), name=name)
        return PreparedQuery(query, compiled.name, compiled.is_mutation, compiled.parameters)

    def explain(
        self,
        query: str | PreparedQuery,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> str:
        """How a query or mutation would be carried out, as text for people.

        Args:
            query (str | PreparedQuery): a text in the query language, or a prepared one.
            name (str | None): which query of the text; may be left out where there is only one.
            branch (str | None): against whose schema; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            str: the plan, one step per line.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: there is no such query.
        """
        return self.snapshot(branch=branch, commit=commit, tag=tag, at=at).explain(query, name=name)

    def count(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> int:
        """How many nodes or edges of a type there are.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            int: the number.

        Raises:
            NotFoundError: there is no such type or branch.
        """
        return self.snapshot(branch=branch, commit=commit, tag=tag, at=at).count(type_name)

    def export_arrow(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.RecordBatchReader:
        """All rows of a type, a batch at a time.

        Args:
            type_name (str): a node type, else an edge type; or a type key.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.
            columns (Sequence[str] | None): which; all by default.

        Returns:
            pa.RecordBatchReader: the rows, in no promised order.

        Raises:
            NotFoundError: there is no such type, column or branch.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag, at=at)
        return snapshot.export_arrow(type_name, columns=columns)

    def lance_table(self, type_name: str, *, branch: str = MAIN_BRANCH) -> Any:  # noqa: ANN401  (see Snapshot)
        """The table of a type at the head of a branch, as Lance itself opens it.

        Read from it only: Lance's `cleanup_old_versions` on it would delete files that commits still need.

        Args:
            type_name (str): a node type, else an edge type; or a type key.
            branch (str): at whose head.

        Returns:
            lance.LanceDataset: for reading.

        Raises:
            NotFoundError: there is no such type or branch.
        """
        return self.snapshot(branch=branch).lance_table(type_name)

    # -- writing ------------------------------------------------------------------------------------------------------

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
            idempotency_key (str | None): the same key again does nothing and returns what the first call did.
            prune_previous (bool): in the same step, show earlier commits of the branch no more. Their data is deleted
                later: when a prune has passed them that comes after the protection window, by a sweep.

        Returns:
            MutationResult: how much changed, and the commit; no commit where nothing had to change.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query only reads, a parameter is missing, or a value does not fit.
            ConstraintError: a rule of the schema would be broken.
            ConflictError: others changed what an update or delete had read (`read_set_conflict`).
            PreconditionError: the head is not `if_commit`.
            PermissionDeniedError: the graph was opened read-only.
        """
        parts = self._open()
        parts.refuse_read_only()
        where = paths.branch_name(branch)
        text, chosen = as_text(query, name)
        given, now_ms = json_params(params), parts.clock.now_us() // 1_000
        options = WriteOptions(
            actor=actor,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            prune_previous=prune_previous,
        )

        def under(accepted: Accepted) -> tuple[str, Affected, Receipt]:
            compiled = compile(text, accepted.schema, name=chosen)
            values = bind_params(compiled, given)
            bound = mutation(accepted, compiled, values, now_ms=now_ms, ids=parts.ids)
            receipt = write(parts, where, bound.operation, options)
            return compiled.name, bound.affected(receipt.entry), receipt

        query_name, done, receipt = self._schemas.under_the_branch_schema(where, under)
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
            idempotency_key (str | None): the same key again does nothing and returns the first commit.
            prune_previous (bool): in the same step, show earlier commits of the branch no more. Their data is deleted
                later: when a prune has passed them that comes after the protection window, by a sweep.

        Returns:
            WriteResult: the commit.

        Raises:
            InvalidRequestError: an unknown mode, type or column, or a value that does not fit.
            ConstraintError: a rule of the schema would be broken.
            ConflictError: an entity exists already (`key_conflict`), or others changed what the write had read.
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
            idempotency_key=idempotency_key,
            prune_previous=prune_previous,
        )
        # Read here and only once: a stream gives its rows a single time.
        node_rows = {type_name: Frame(rows, f"node:{type_name}") for type_name, rows in nodes.items()}
        edge_rows = {type_name: Frame(rows, f"edge:{type_name}") for type_name, rows in edges.items()}

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

    # -- the schema ---------------------------------------------------------------------------------------------------

    def schema_plan(
        self, text: str, *, branch: str = MAIN_BRANCH, allow_data_loss: bool = False, validated: bool = False
    ) -> SchemaPlan:
        """What applying a schema text would do; nothing is written.

        Args:
            text (str): the schema the branch is to have.
            branch (str): which branch.
            allow_data_loss (bool): whether what is dropped shall be gone from older commits too.
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
    ) -> SchemaApplied:
        """Give a branch another schema, as one commit. Older commits keep theirs; other branches too, until merged.

        Args:
            text (str): the schema the branch is to have.
            branch (str): which branch.
            allow_data_loss (bool): whether what is dropped shall be gone from older commits too.
            validated (bool): make changes too that are right only where the data allows them, having looked.
            actor (str | None): who.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            idempotency_key (str | None): the same key again does nothing and returns the first commit.

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
        options = WriteOptions(actor=actor, message=message, if_commit=if_commit, idempotency_key=idempotency_key)
        return evolving.applied(
            self._open(), self._schemas, branch, text, options, allow_data_loss=allow_data_loss, validated=validated
        )

    # -- export -------------------------------------------------------------------------------------------------------

    def export(
        self,
        to: Destination,
        *,
        format: str = "jsonl",
        types: Iterable[str] | None = None,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> Exported:
        """Write entities of one commit to a file, a folder or a stream, each type in the order of its ids.

        Args:
            to (str | Path | IO[bytes]): a path or a stream of bytes. JSON lines and GraphML are one file, which appears
                when it is whole; Parquet and CSV hold one type in a file and make a folder of several.
            format (str): `jsonl` (which `load` takes back), `parquet`, `csv` or `graphml`.
            types (Iterable[str] | None): names of types; a name means the node type and the edge type that have it.
                All by default.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            Exported: how many entities of which types, in which files, at which commit.

        Raises:
            InvalidRequestError: an unknown format or type, or a place that cannot be written.
            AlreadyExistsError: the folder is there already.
            NotFoundError: there is no such branch, commit or tag.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag, at=at)
        return exporting.export(self._open(), snapshot, to, format=format, types=types)

    def export_lines(
        self,
        *,
        types: Iterable[str] | None = None,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> Iterator[pa.Buffer]:
        """Entities of one commit as JSON lines, some at a time, for whoever sends them on.

        Args:
            types (Iterable[str] | None): names of types; all by default.
            branch (str | None): at whose head; `main` by default.
            commit (str | None): at this commit instead.
            tag (str | None): at the commit of this tag instead.
            at (datetime | str | None): the branch as it was at this time.

        Returns:
            Iterator[pa.Buffer]: bytes of whole lines.

        Raises:
            InvalidRequestError: an unknown type.
            NotFoundError: there is no such branch, commit or tag.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag, at=at)
        return exporting.lines(self._open(), snapshot, types=types)

    # -- upkeep -------------------------------------------------------------------------------------------------------

    def optimize(
        self,
        branch: str = MAIN_BRANCH,
        *,
        types: Sequence[str] | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> OptimizeReport:
        """Make reads cheaper without changing any answer: compact tables, build and extend indexes, fold the log.

        All of it is one commit, or none where nothing was due. Writers do not wait for it, nor it for them.

        Args:
            branch (str): whose tables.
            types (Sequence[str] | None): only these types, by name or type key.
            actor (str | None): who.
            message (str | None): why.

        Returns:
            OptimizeReport: what was done to each table, and which declared indexes cannot be built yet.

        Raises:
            NotFoundError: there is no such branch or type.
            ConflictError: others kept laying out the same tables anew.
            PermissionDeniedError: the graph was opened read-only.
        """
        parts = self._open()
        parts.refuse_read_only()
        name = paths.branch_name(branch)
        chosen = None if types is None else type_keys_of(self.schema(branch=name), types)
        done = optimize(
            parts,
            name,
            lambda digest: self._schemas.of(digest).schema,
            type_keys=chosen,
            options=WriteOptions(actor=actor, message=message),
        )
        return report_of(done, uri=self.uri, branch=name)

    def verify(self, *, deep: bool = False, branch: str | None = None, quarantine: bool = False) -> VerifyReport:
        """Check that everything commits refer to is there as it was written, and tell what is lost on which commits.

        Args:
            deep (bool): also compare checksums, read every value, and check the rows at the heads against the schema.
            branch (str | None): only this branch; all by default.
            quarantine (bool): put aside what cannot be read, and give damaged heads a commit that does without it.
                Nobody else may be writing meanwhile.

        Returns:
            VerifyReport: what was found.

        Raises:
            NotFoundError: there is no such branch.
            PermissionDeniedError: the graph was opened read-only, and `quarantine` was asked for.
        """
        parts = self._open()
        if quarantine:
            parts.refuse_read_only()
        where = None if branch is None else paths.branch_name(branch)
        return verified(
            parts, lambda digest: self._schemas.of(digest).schema, deep=deep, branch=where, quarantine=quarantine
        )

    def maintain_once(self, policy: Maintenance = DEFAULT_MAINTENANCE) -> MaintenanceReport:
        """One pass of maintenance: optimize every branch, prune by a policy, sweep.

        Args:
            policy (Maintenance): what to do, and how much it may take.

        Returns:
            MaintenanceReport: what was done, what was left for lack of time or bytes, and what failed and why.

        Raises:
            PermissionDeniedError: the graph was opened read-only.
        """
        parts = self._open()
        parts.refuse_read_only()
        return maintain_once(self, lambda: [parts.log.live_head(name) for name in self.branches], policy, parts.clock)

    def maintain(
        self,
        every: Duration = 600.0,
        policy: Maintenance = DEFAULT_MAINTENANCE,
        *,
        stop: threading.Event | None = None,
    ) -> Iterator[MaintenanceReport]:
        """Pass after pass of maintenance, until it is told to stop or the graph is closed; a pass is never cut short.

        Args:
            every (float | timedelta): seconds from the beginning of one pass to that of the next.
            policy (Maintenance): what each does, and how much it may take.
            stop (threading.Event | None): set it to stop.

        Yields:
            MaintenanceReport: of each pass, when it is done.

        Raises:
            PermissionDeniedError: the graph was opened read-only.
        """
        parts = self._open()
        parts.refuse_read_only()
        return passes(
            lambda: self.maintain_once(policy),
            every_s=every.total_seconds() if isinstance(every, timedelta) else every,
            stops=lambda: self._closed or (stop is not None and stop.is_set()),
            clock=parts.clock,
        )

    # -- pruning and sweeping -----------------------------------------------------------------------------------------

    def prune(
        self,
        branch: str | None = None,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        commits: Sequence[str] = (),
        now: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> PruneReport:
        """Show old commits no more. Nothing is deleted: a later `sweep` does that.

        With `keep` and `older_than` both, only what neither keeps is pruned. The newest commit of a branch always
        stays. What is pruned keeps its data for a while: the commit just superseded, and all that are younger than the
        protection window. Tags, branches and leases hold what they name for as long as they are there.

        Args:
            branch (str | None): which; all of them by default.
            keep (int | None): how many of the newest commits stay.
            older_than (float | timedelta | None): commits younger than this, in seconds, stay.
            commits (Sequence[str]): just these commits of the branch (of `main` by default), by their ids.
            now (bool): without the time of grace; with nothing else said, all but the newest.
            dry_run (bool): only say what would be done.
            actor (str | None): who.

        Returns:
            PruneReport: what was marked, by branch.

        Raises:
            InvalidRequestError: nothing was said about what to keep.
            NotFoundError: there is no such branch or commit.
            PermissionDeniedError: the graph was opened read-only.
        """
        return pruning.pruned(
            self._open(),
            branch=branch,
            keep=keep,
            older_than=older_than,
            commits=commits,
            now=now,
            dry_run=dry_run,
            actor=actor,
        )

    def sweep(self, *, older_than: Duration | None = None, dry_run: bool = False) -> SweepReport:
        """Delete the files that no commit needs: of pruned commits, deleted branches, dropped types and dead writers.

        Safe beside readers, writers and other sweeps, here and elsewhere. Whatever cannot be read stops it before it
        deletes anything.

        Args:
            older_than (float | timedelta | None): files younger than this, in seconds, stay; ten minutes by default.
                With 0 even the youngest go; then writers at work write their files once more.
            dry_run (bool): only say what would be deleted, with a reason for every file.

        Returns:
            SweepReport: the worklist, and what was deleted, by kind.

        Raises:
            FormatError: something that says what is needed cannot be read; nothing was deleted.
            PermissionDeniedError: the graph was opened read-only.
        """
        return pruning.swept(self._open(), older_than=older_than, dry_run=dry_run)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        confirm: bool = False,
        actor: str | None = None,
    ) -> CleanupReport:
        """Prune every branch now and sweep everything, whatever its age: space comes back at once.

        Args:
            keep (int | None): how many of the newest commits of each branch stay.
            older_than (float | timedelta | None): commits younger than this, in seconds, stay.
            confirm (bool): do it; otherwise only look.
            actor (str | None): who.

        Returns:
            CleanupReport: what was removed, by table.

        Raises:
            InvalidRequestError: neither `keep` nor `older_than` was given.
            FormatError: something that says what is needed cannot be read; nothing was deleted.
            PermissionDeniedError: the graph was opened read-only.
        """
        return pruning.cleaned_up(self._open(), keep=keep, older_than=older_than, confirm=confirm, actor=actor)

    @contextmanager
    def lease(
        self, *, branch: str | None = None, commit: str | None = None, tag: str | None = None, seconds: float = 600.0
    ) -> Iterator[Snapshot]:
        """Hold a commit for reading: while the block runs no prune and no sweep takes it away.

        Args:
            branch (str | None): its head; `main` by default.
            commit (str | None): this commit instead.
            tag (str | None): the commit of this tag instead.
            seconds (float): for how long it stays held after this process has died.

        Yields:
            Snapshot: the commit, for as long as it takes to read it.

        Raises:
            NotFoundError: there is no such branch or commit.
            ReclaimedError: it was pruned.
            PermissionDeniedError: the graph was opened read-only.
        """
        snapshot = self.snapshot(branch=branch, commit=commit, tag=tag)
        with leased(self._open(), snapshot.record, seconds):
            yield snapshot

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
        idempotency_key: str | None = None,
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
            idempotency_key (str | None): the same key again does nothing and returns the first commit.
            spark (object): a Spark session, or `SparkSettings` to make one with.
            progress (Callable[[LoadProgress], None] | None): told how far the load is.

        Returns:
            LoadResult: counts by type, and the commit.

        Raises:
            InvalidRequestError: a record is wrong; the message says which and why.
            ConstraintError: a rule of the schema would be broken.
            ConflictError: an entity exists already (`key_conflict`), or others changed what the load had read.
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
        said = WriteOptions(actor=actor, message=message, if_commit=if_commit, idempotency_key=idempotency_key)
        return loading.load(self._open(), self._schemas, data, options, said)

    # -- comparing ----------------------------------------------------------------------------------------------------

    def diff(
        self,
        older: State,
        newer: State,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Diff:
        """What lies between any two states: every entity that differs, as it was and as it is.

        Args:
            older (State): a branch, a tag or a commit by name, a `Point`, or a snapshot.
            newer (State): likewise; it need not be younger, nor of the same branch.
            kinds (Iterable[str]): only `node` or `edge`; all by default.
            types (Iterable[str]): only types of these names; all by default.
            ops (Iterable[str]): only `insert`, `update` or `delete`; all by default.

        Returns:
            Diff: the changes, read as they are asked for; as objects, dictionaries or Arrow tables.

        Raises:
            NotFoundError: there is no such state.
            InvalidRequestError: a kind or operation is none.
        """
        return diffing.diff(self._open(), older, newer, kinds=kinds, types=types, ops=ops)

    # -- merging ------------------------------------------------------------------------------------------------------

    def merge(
        self,
        source: str,
        *,
        into: str = MAIN_BRANCH,
        by: str = "row",
        prefer: str | None = None,
        resolutions: Resolutions | None = None,
        preview: bool = False,
        delete_branch: bool = False,
        actor: str | None = None,
        message: str | None = None,
    ) -> MergeResult:
        """Bring what one branch did since it parted from another into that other one, as one commit.

        Args:
            source (str): the branch brought in; it does not change.
            into (str): the branch changed.
            by (str): `row`: a row that both sides changed, differently, is a conflict; `property`: only where both
                changed one of its properties.
            prefer (str | None): `source` or `target`: whose row to take where both changed it.
            resolutions (Resolutions | None): by type and id, `"source"`, `"target"`, a row, or None to delete; or a
                JSON file that says so.
            preview (bool): work it out and write nothing; conflicts are returned.
            delete_branch (bool): delete the source afterwards. That this fails is told, and the merge stands.
            actor (str | None): who.
            message (str | None): why.

        Returns:
            MergeResult: the outcome and the commit.

        Raises:
            MergeConflictError: the branches did what cannot both stand; `conflicts` lists all of it. Nothing changed.
            NotFoundError: there is no such branch.
            InvalidRequestError: both are one branch, or a choice means nothing.
            ConflictError: the target keeps moving, or its schema was changed meanwhile.
            PermissionDeniedError: the graph was opened read-only.
        """
        return merging.merge(
            self._open(),
            self._schemas,
            source,
            into,
            choices=merging.choices_of(by, prefer, resolutions),
            preview=preview,
            delete_branch=delete_branch,
            options=WriteOptions(actor=actor, message=message),
        )

    # -- undoing and asking who did it --------------------------------------------------------------------------------

    def revert(
        self,
        commit: str | tuple[str, str],
        *,
        branch: str = MAIN_BRANCH,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> RevertResult:
        """Undo what a commit, or a range of commits, did to entities, as a new commit.

        Args:
            commit (str | tuple[str, str]): a commit by its id; or the first and the last of a range, both included.
            branch (str): where.
            actor (str | None): who.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            idempotency_key (str | None): the same key again does nothing and returns the first commit.

        Returns:
            RevertResult: the commit; none where everything is as before already.

        Raises:
            RevertConflictError: entities were changed since, the schema was, or a rule would be broken; it lists all.
            NotFoundError: there is no such branch or commit.
            InvalidRequestError: the range is none, or it is the first commit of all.
            ConflictError: the branch keeps moving.
            PermissionDeniedError: the graph was opened read-only.
        """
        options = WriteOptions(actor=actor, message=message, if_commit=if_commit, idempotency_key=idempotency_key)
        return reverting.revert(self._open(), self._schemas, commit, branch, options)

    def log_of(
        self, type_name: str, entity_id: str, *, branch: str = MAIN_BRANCH, limit: int | None = None
    ) -> list[EntityEvent]:
        """What happened to one entity, newest first.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.
            entity_id (str): its id.
            branch (str): on whose line; a merge tells what it brought in.
            limit (int | None): at most so many; all by default.

        Returns:
            list[EntityEvent]: commits with what they did to it; empty where there never was such an entity.

        Raises:
            NotFoundError: there is no such type or branch.
        """
        return lineage.log_of(self.snapshot(branch=branch), self._open(), type_name, entity_id, limit)

    def blame(self, type_name: str, entity_id: str, *, branch: str = MAIN_BRANCH) -> Blame:
        """Which commit last set each property of an entity; what a merge brought in is told of its own commit.

        Args:
            type_name (str): a node type, else an edge type; or a type key.
            entity_id (str): its id.
            branch (str): at whose head.

        Returns:
            Blame: a commit for every property, the one that made the entity, and the one that changed it last.

        Raises:
            NotFoundError: there is no such type, entity or branch.
        """
        return lineage.blame(self.snapshot(branch=branch), self._open(), type_name, entity_id)

    # -- Spark --------------------------------------------------------------------------------------------------------

    @property
    def spark(self) -> GraphSpark:
        """Types as frames of Spark's, frames into the graph, streams, and algorithms over all of it."""
        return GraphSpark(self._open(), self._schemas)

    # -- closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Refuse further calls. Everything acknowledged is on the store already; a compaction under way is ended."""
        self._closed = True
        if self._tails is not None:
            self._tails.close()

    def __enter__(self) -> "Graph":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Graph at {self.uri}{', read-only' if self.read_only else ''}>"

    def _at_head(self, branch: str | None) -> Snapshot:
        """The newest state of a branch, for reads of our own: made again only when the branch has moved."""
        head = self._open().log.live_head(paths.branch_name(MAIN_BRANCH if branch is None else branch))
        newest = self._newest
        if newest is None or newest.record is not head:
            newest = self._newest = Snapshot(self._reading, head, head_of=head.branch)
        return newest

    def _open(self) -> Parts:
        if self._closed:
            raise InvalidRequestError("the graph was closed", code="closed")
        return self._parts
