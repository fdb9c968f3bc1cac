"""The engine for reads: plans in, Arrow out.

One engine serves one open graph and all its threads. What it keeps (columns, adjacency) belongs to versions that never
change, so snapshots of any age may be read at once while others write.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from omnigraph import limits
from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import InvalidRequestError
from omnigraph.execution.adjacencies import Adjacencies, AdjacencyStats, ExpandForm
from omnigraph.execution.adjacency_files import AdjacencyFiles
from omnigraph.execution.budget import Budget
from omnigraph.execution.cache import ByteCache, CacheStats
from omnigraph.execution.columns import Versions
from omnigraph.execution.finding import RowFinder
from omnigraph.execution.lower import Lowered, lower
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.execution.resident import Resident
from omnigraph.execution.results import Results
from omnigraph.execution.run import Run
from omnigraph.execution.search.asked import Embedder
from omnigraph.execution.search.explaining import search_notes
from omnigraph.execution.search.word_files import WordFiles
from omnigraph.execution.walks import BoundWalk, Walk, bind_walk
from omnigraph.language.plan.expressions import Value
from omnigraph.language.plan.steps import ReadPlan
from omnigraph.language.query.compile import CompiledQuery, bind_params
from omnigraph.language.query.params import Params
from omnigraph.lru import LruCache
from omnigraph.model.analyzer import Analyzer
from omnigraph.model.commit import Pin, Record
from omnigraph.model.schema import Schema
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.tables.tables import Tables
from omnigraph.transaction.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class EngineStats:
    """What an engine holds and has done.

    Attributes:
        cache: columns, codes, indexes over ids and adjacency together.
        adjacency: where adjacency came from.
        plans: how many plans are ready to run.
        walks: how many queries were answered by a walk over arrays in memory.
    """

    cache: CacheStats
    adjacency: AdjacencyStats
    plans: int
    walks: int


class QueryEngine:
    """Runs reads over the snapshots of one graph. Safe to use from several threads."""

    def __init__(
        self,
        tables: Tables,
        store: ObjectStore | None = None,
        *,
        read_only: bool = True,
        clock: Clock | None = None,
        cache_bytes: int = limits.QUERY_CACHE_BYTES_MAX,
        form: ExpandForm = ExpandForm.BY_COST,
        embedder: Embedder | None = None,
    ) -> None:
        """An engine with empty caches.

        Args:
            tables (Tables): the graph's tables.
            store (ObjectStore | None): the graph's store, where adjacency and indexes over words are kept for other
                processes; None keeps none.
            read_only (bool): whether nothing may be written there.
            clock (Clock | None): the source of time.
            cache_bytes (int): how much may be kept in memory.
            form (ExpandForm): how edges are followed; by cost, unless a test wants it one way.
            embedder (Embedder | None): makes vectors of texts; by default with the provider the environment names.
        """
        # Walks bound to arrays, by the identity of their plan. They keep what they are bound to alive: when the cache
        # has to let go of anything, so do they.
        self._bound: dict[int, tuple[Lowered, Record, BoundWalk]] = {}
        self._walks = 0
        self._cache = ByteCache(cache_bytes, evicted=self._bound.clear)
        word_files = None if store is None else WordFiles(store, read_only=read_only)
        self._versions = Versions(tables, self._cache, word_files)
        self.finder = RowFinder(self._versions, bytes_max=int(cache_bytes * _FINDER_SHARE))
        files = None if store is None else AdjacencyFiles(store, read_only=read_only)
        self._adjacencies = Adjacencies(self._cache, self._versions, files, form=form)
        self._clock = clock or SystemClock()
        self._embedder = embedder or Embedder()
        self._lock = threading.Lock()
        # By identity: compiled queries are remembered by text, and hashing one takes longer than running it.
        self._lowered: LruCache[int, tuple[CompiledQuery, Lowered]] = LruCache(_PLANS_MAX, evicted=self._unbind)

    def run(
        self,
        snapshot: Snapshot,
        compiled: CompiledQuery,
        params: Params | Mapping[str, object] | None = None,
        *,
        schema: Schema,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> pa.Table:
        """The whole result of a read.

        Args:
            snapshot (Snapshot): the state to read.
            compiled (CompiledQuery): what to read.
            params (Params | Mapping[str, object] | None): its parameters, bound or as JSON values.
            schema (Schema): the one it was compiled against.
            limits (QueryLimits): what it may use.

        Returns:
            pa.Table: one column for each of the query's, in their order.

        Raises:
            InvalidRequestError: the query writes, or a parameter is missing or of another type.
            LimitError: it needs more memory than it may use.
        """
        lowered = self._lowered_of(compiled, schema)
        bound = params if isinstance(params, Params) else bind_params(compiled, params)
        if lowered.walk is not None:
            walked = self._walked(snapshot.record, lowered, lowered.walk, bound.values, limits)
            if walked is not None:
                return pa.Table.from_batches([walked], lowered.columns)
        run = self._run(snapshot, bound.values, limits)
        batches = []
        for results in lowered.rows.batches(run, None):
            batch = _batch(results, lowered.columns)
            run.budget.hold(batch.nbytes)
            batches.append(batch)
        return pa.Table.from_batches(batches, lowered.columns)

    def stream(
        self,
        snapshot: Snapshot,
        compiled: CompiledQuery,
        params: Params | Mapping[str, object] | None = None,
        *,
        schema: Schema,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The result of a read, a batch at a time; see `run`.

        Returns:
            tuple[pa.Schema, Iterator[pa.RecordBatch]]: its columns, and its rows as they are found. Nothing is held
                for rows that were handed over, so memory does not follow the size of the result.
        """
        lowered = self._lowered_of(compiled, schema)
        bound = params if isinstance(params, Params) else bind_params(compiled, params)
        run = self._run(snapshot, bound.values, limits)
        return lowered.columns, (_batch(results, lowered.columns) for results in lowered.rows.batches(run, None))

    def explain(self, snapshot: Snapshot, compiled: CompiledQuery, *, schema: Schema) -> list[str]:
        """What a read searches, and through which indexes.

        Args:
            snapshot (Snapshot): the state it would read.
            compiled (CompiledQuery): the query.
            schema (Schema): the one it was compiled against.

        Returns:
            list[str]: one line each; none where it searches nothing, or writes.
        """
        if not isinstance(compiled.plan, ReadPlan):
            return []
        return search_notes(
            compiled.plan.steps, schema, lambda type_key: self._versions.at(snapshot.table(type_key).pin)
        )

    def keep_words(self, pin: Pin, name: str, analyzer: Analyzer, *, is_new: bool) -> bool:
        """Index the words of a column for the searches to come, of this process and others, where there are many texts.

        Args:
            pin (Pin): the version of the table.
            name (str): a column of texts.
            analyzer (Analyzer): what makes words of them.
            is_new (bool): whether upkeep has just made the version.

        Returns:
            bool: whether the index is in a file that was not there before.

        Raises:
            LimitError: the index does not fit into the memory for columns.
        """
        return self._versions.keep_words(self._versions.at(pin), name, analyzer, is_new=is_new)

    def stats(self) -> EngineStats:
        """What the engine holds and has done."""
        return EngineStats(self._cache.stats(), self._adjacencies.stats(), len(self._lowered), self._walks)

    def _walked(
        self, record: Record, lowered: Lowered, walk: Walk, values: Mapping[str, Value], limits: QueryLimits
    ) -> pa.RecordBatch | None:
        """The result of a walk over arrays in memory; None where the plan's operators have to do it."""
        found = self._bound.get(id(lowered))
        if found is not None and found[0] is lowered and found[1] is record:
            bound = found[2]
        else:
            evictions = self._cache.evictions
            fresh = bind_walk(walk, lowered.columns, Resident(record, self._versions, self._adjacencies))
            if fresh is None:
                self._bound.pop(id(lowered), None)
                return None
            bound = fresh
            self._bound[id(lowered)] = (lowered, record, bound)
            if evictions != self._cache.evictions:
                # Something went meanwhile; perhaps what this walk is bound to.
                self._bound.clear()
        batch = bound.answer(values, bytes_max=limits.memory_bytes)
        if batch is not None:
            if limits.shared is not None:
                limits.shared.take(batch.nbytes)
            with self._lock:
                self._walks += 1
        return batch

    def _run(self, snapshot: Snapshot, values: Mapping[str, Value], limits: QueryLimits) -> Run:
        return Run(
            snapshot,
            values,
            versions=self._versions,
            adjacencies=self._adjacencies,
            budget=Budget(limits.memory_bytes, seconds_max=limits.seconds, clock=self._clock, shared=limits.shared),
            batch_rows=limits.batch_rows,
            now_ms=self._clock.now_us() // 1_000,
            embedder=self._embedder,
        )

    def _lowered_of(self, compiled: CompiledQuery, schema: Schema) -> Lowered:
        found = self._lowered.get(id(compiled))
        if found is not None:
            return found[1]
        if not isinstance(compiled.plan, ReadPlan):
            raise InvalidRequestError(f"query '{compiled.name}' writes; this is for reads")
        lowered = lower(compiled.plan, schema)
        # The entry keeps the query, so that its identity stays its own.
        self._lowered.put(id(compiled), (compiled, lowered))
        return lowered

    def _unbind(self, evicted: tuple[CompiledQuery, Lowered]) -> None:
        self._bound.pop(id(evicted[1]), None)


_PLANS_MAX = limits.COMPILED_QUERIES_MAX
_FINDER_SHARE = limits.FINDER_COLUMN_SHARE_MAX


def _batch(results: Results, columns: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for position, type_ in enumerate(columns.types):
        values = results.output(position)
        arrays.append(values if values.type == type_ else values.cast(type_))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)
