"""Query engine: compiled plans in, Arrow out.

One engine serves one open graph and all its threads. Its caches (columns, adjacency) belong to immutable versions, so
snapshots of any age can be read concurrently with writes.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from omnigraph import limits
from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import InvalidRequestError
from omnigraph.execution.adjacency_cache import AdjacencyCache, AdjacencyStats, ExpandStrategy
from omnigraph.execution.adjacency_files import AdjacencyFiles
from omnigraph.execution.cache import ByteCache, CacheStats
from omnigraph.execution.lower import Lowered, lower
from omnigraph.execution.query_limits import DEFAULT_LIMITS, Budget, QueryLimits
from omnigraph.execution.results import Results
from omnigraph.execution.row_index import CachedRowIndex
from omnigraph.execution.run import Run
from omnigraph.execution.search.explain import explain_searches
from omnigraph.execution.search.index_files import TextIndexFiles
from omnigraph.execution.search.query_text import Embedder
from omnigraph.execution.versions import Versions
from omnigraph.execution.walks import BoundWalk, Resident, Walk, bind_walk
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
    """Contents and counters of an engine.

    Attributes:
        cache: columns, dictionary codes, id indexes and adjacency together.
        adjacency: where adjacency came from.
        plans: number of plans ready to run.
        walks: number of queries answered by a walk over arrays in memory.
    """

    cache: CacheStats
    adjacency: AdjacencyStats
    plans: int
    walks: int


class QueryEngine:
    """Thread-safe engine for reads over the snapshots of one graph."""

    def __init__(
        self,
        tables: Tables,
        store: ObjectStore | None = None,
        *,
        read_only: bool = True,
        clock: Clock | None = None,
        cache_bytes: int = limits.QUERY_CACHE_BYTES_MAX,
        strategy: ExpandStrategy = ExpandStrategy.BY_COST,
        embedder: Embedder | None = None,
    ) -> None:
        """Create an engine with empty caches.

        Args:
            tables: the graph's tables.
            store: where adjacency and text indexes are kept for other processes; None keeps none.
            read_only: whether nothing may be written to the store.
            clock: the source of time.
            cache_bytes: capacity of the cache in memory.
            strategy: how edges are followed; by cost, except in tests.
            embedder: makes vectors of texts; by default with the provider the environment names.
        """
        # Walks bound to arrays, by the identity of their plan. They keep those arrays alive: when the cache evicts
        # anything, they are dropped too.
        self._bound: dict[int, tuple[Lowered, Record, BoundWalk]] = {}
        self._walks = 0
        self._cache = ByteCache(cache_bytes, on_evict=self._bound.clear)
        text_index_files = None if store is None else TextIndexFiles(store, read_only=read_only)
        self._versions = Versions(tables, self._cache, text_index_files)
        self.row_index = CachedRowIndex(self._versions, bytes_max=int(cache_bytes * _ROW_INDEX_SHARE))
        files = None if store is None else AdjacencyFiles(store, read_only=read_only)
        self._adjacencies = AdjacencyCache(self._cache, self._versions, files, strategy=strategy)
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
        """Run a read and return its whole result.

        Args:
            snapshot: the state to read.
            compiled: the query.
            params: its parameters, bound or as JSON values.
            schema: the one it was compiled against.
            limits: memory, time and batch size.

        Returns:
            One column for each of the query's, in their order.

        Raises:
            InvalidRequestError: the query writes, or a parameter is missing or of another type.
            LimitError: it exceeds its limits.
        """
        lowered = self._lower(compiled, schema)
        bound = params if isinstance(params, Params) else bind_params(compiled, params)
        if lowered.walk is not None:
            walked = self._run_walk(snapshot.record, lowered, lowered.walk, bound.values, limits)
            if walked is not None:
                return pa.Table.from_batches([walked], lowered.columns)
        run = self._start_run(snapshot, bound.values, limits)
        batches = []
        for results in lowered.rows.batches(run, None):
            batch = _to_batch(results, lowered.columns)
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
        """Run a read and return its result a batch at a time; see `run`.

        Returns:
            The columns, and the rows as they are found. Memory does not grow with the size of the result.
        """
        lowered = self._lower(compiled, schema)
        bound = params if isinstance(params, Params) else bind_params(compiled, params)
        run = self._start_run(snapshot, bound.values, limits)
        return lowered.columns, (_to_batch(results, lowered.columns) for results in lowered.rows.batches(run, None))

    def explain(self, snapshot: Snapshot, compiled: CompiledQuery, *, schema: Schema) -> list[str]:
        """Describe what a read searches, and through which indexes.

        Returns:
            One line each; none where it searches nothing, or writes.
        """
        if not isinstance(compiled.plan, ReadPlan):
            return []
        return explain_searches(
            compiled.plan.steps, schema, lambda type_key: self._versions.at(snapshot.table(type_key).pin)
        )

    def keep_text_index(self, pin: Pin, name: str, analyzer: Analyzer, *, is_new: bool) -> bool:
        """Write the inverted index of a text column to a file for later searches, where there are many texts.

        Args:
            pin: the version of the table.
            name: a column of texts.
            analyzer: its tokenizer.
            is_new: whether maintenance has just made the version.

        Returns:
            Whether a new file was written.

        Raises:
            LimitError: the index does not fit into the memory for columns.
        """
        return self._versions.keep_text_index(self._versions.at(pin), name, analyzer, is_new=is_new)

    def stats(self) -> EngineStats:
        """Return the contents and counters."""
        return EngineStats(self._cache.stats(), self._adjacencies.stats(), len(self._lowered), self._walks)

    def _run_walk(
        self, record: Record, lowered: Lowered, walk: Walk, values: Mapping[str, Value], limits: QueryLimits
    ) -> pa.RecordBatch | None:
        """Run a walk over arrays in memory; None where the plan's operators have to do it."""
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
                # Something was evicted meanwhile, perhaps an array of this walk.
                self._bound.clear()
        batch = bound.answer(values, bytes_max=limits.memory_bytes)
        if batch is not None:
            if limits.shared is not None:
                limits.shared.take(batch.nbytes)
            with self._lock:
                self._walks += 1
        return batch

    def _start_run(self, snapshot: Snapshot, values: Mapping[str, Value], limits: QueryLimits) -> Run:
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

    def _lower(self, compiled: CompiledQuery, schema: Schema) -> Lowered:
        found = self._lowered.get(id(compiled))
        if found is not None:
            return found[1]
        if not isinstance(compiled.plan, ReadPlan):
            raise InvalidRequestError(f"query '{compiled.name}' writes; run it as a mutation")
        lowered = lower(compiled.plan, schema)
        # The entry keeps the query alive, so that its id is not reused.
        self._lowered.put(id(compiled), (compiled, lowered))
        return lowered

    def _unbind(self, evicted: tuple[CompiledQuery, Lowered]) -> None:
        self._bound.pop(id(evicted[1]), None)


_PLANS_MAX = limits.COMPILED_QUERIES_MAX
_ROW_INDEX_SHARE = limits.FINDER_COLUMN_SHARE_MAX


def _to_batch(results: Results, columns: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for position, type_ in enumerate(columns.types):
        values = results.output(position)
        arrays.append(values if values.type == type_ else values.cast(type_))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)
