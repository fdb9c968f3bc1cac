"""A network in numbers: vertices are 0, 1, 2, … in the order of their names, edges are blocks of pairs of numbers.

What algorithms know of vertices is one array with a place for each, held here and sent to the tasks; edges, of which
there are many more, stay where they are. A block has all edges that reach its vertices, so that what a task finds out
about a vertex is final. A round of an algorithm is one job, without a shuffle: a *kernel* looks at a block and at what
is known, and tells something about the vertices that the block's edges reach.

Small networks are fetched, and the same kernels run here: a round then takes microseconds, and the answer is the same.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as Spark's own documentation calls it)

from omnigraph import limits
from omnigraph.errors import LimitError
from omnigraph.pipeline.analytics.network import DST, SRC, VALUE, VERTEX, WEIGHT, Network, kept

Array = npt.NDArray[Any]
_NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Block:
    """Edges, in the order of the vertices they reach; every edge that reaches one of those is in the same block.

    Attributes:
        src: the numbers of the vertices they leave.
        dst: the numbers of the vertices they reach, ascending.
        weight: how long they are; empty where nobody asked.
    """

    src: Array
    dst: Array
    weight: Array

    @property
    def starts(self) -> Array:
        """Where the edges of each reached vertex begin."""
        return np.flatnonzero(np.diff(self.dst, prepend=-1)) if len(self.dst) else np.empty(0, np.int64)


Messages = tuple[Array, Array]
"""Numbers of vertices, and a message for each."""
Kernel = Callable[[Block, Any], Messages]


@dataclass(frozen=True, slots=True)
class Blocks:
    """A network in numbers.

    Attributes:
        size: how many vertices there are.
        names: the columns `vertex` and `number`.
        far: the blocks on the executors; None where they were fetched.
        near: the blocks that were fetched.
    """

    size: int
    names: DataFrame
    far: DataFrame | None
    near: tuple[Block, ...]

    def tell(self, kernel: Kernel, known: object) -> Iterator[Messages]:
        """Run a kernel over all edges.

        Args:
            kernel: a function of a module, since tasks must find it too.
            known: what it may look at: arrays with a place for each vertex.

        Yields:
            Told: what it tells of each block, in no promised order.
        """
        if self.far is None:
            for block in self.near:
                yield kernel(block, known)
            return

        def run_kernel(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for row in batch.to_pylist():
                    vertices, values = kernel(_block(row), known)
                    yield pa.RecordBatch.from_pydict(
                        {
                            "vertices": [vertices.astype(np.int64).tobytes()],
                            "values": [values.tobytes()],
                            "kind": [values.dtype.str],
                        }
                    )

        # Both what is known and the results fit here: one value for each vertex. Spark broadcasts a large closure.
        rows = self.far.mapInArrow(run_kernel, "vertices binary, values binary, kind string").collect()
        for row in rows:
            yield np.frombuffer(row["vertices"], np.int64), np.frombuffer(row["values"], np.dtype(row["kind"]))

    def named(self, values: Array, *, names: bool = False) -> DataFrame:
        """What was found out, as a frame.

        Args:
            values: with a place for each vertex.
            names: the values are numbers of vertices, and their names are wanted.

        Returns:
            DataFrame: `vertex` and `value`.
        """
        found = pa.table({_NUMBER: np.arange(len(values), dtype=np.int64), VALUE: values})
        frame = self.names.join(self.names.sparkSession.createDataFrame(found), _NUMBER).select(VERTEX, VALUE)
        if not names:
            return frame
        whose = self.names.select(F.col(_NUMBER).alias(VALUE), F.col(VERTEX).alias("name"))
        return frame.join(whose, VALUE).select(VERTEX, F.col("name").alias(VALUE))


def blocks_of(network: Network, *, near_edges_max: int = limits.ANALYTICS_NEAR_EDGES_MAX) -> Blocks:
    """A network in numbers.

    Args:
        network: the graph.
        near_edges_max: up to how many edges are fetched.

    Returns:
        Blocks: the same graph.

    Raises:
        LimitError: it has more vertices than what is known of them could be held here.
    """
    names, size = _numbered(network.vertices)
    weighed = WEIGHT in network.edges.columns
    sources = names.select(F.col(VERTEX).alias(SRC), F.col(_NUMBER).alias("s"))
    targets = names.select(F.col(VERTEX).alias(DST), F.col(_NUMBER).alias("d"))
    length = F.col(WEIGHT).cast("double") if weighed else F.lit(0.0)
    edges = (
        network.edges.select(SRC, DST, length.alias("w")).join(sources, SRC).join(targets, DST).select("s", "d", "w")
    )
    edges = kept(edges)
    count = edges.count()
    parts = max(1, -(-count // limits.ANALYTICS_BLOCK_EDGES))
    # Ranges, not hashes: all edges of a vertex are in one part, and neighbours in number are near in memory.
    ordered = edges.repartitionByRange(parts, "d") if parts > 1 else edges.coalesce(1)
    packing = ordered.mapInArrow(_packed_weighed if weighed else _packed, "src binary, dst binary, weight binary")
    if count > near_edges_max:
        return Blocks(size, names, kept(packing), ())
    return Blocks(size, names, None, tuple(_block(row) for row in packing.toArrow().to_pylist()))


def _numbered(vertices: DataFrame) -> tuple[DataFrame, int]:
    """Vertices with their places in the order of their names, and how many there are."""
    ordered = kept(vertices.select(VERTEX).orderBy(VERTEX))
    counted = ordered.groupBy(F.spark_partition_id().alias("part")).count().collect()
    counts = {row["part"]: row["count"] for row in counted}
    size = sum(counts.values())
    if size > limits.ANALYTICS_VERTICES_MAX:
        raise LimitError(f"analytics hold up to {limits.ANALYTICS_VERTICES_MAX} vertices, and there are {size}")
    before = {part: sum(count for other, count in counts.items() if other < part) for part in counts}

    def number(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        following = before.get(context.partitionId() if context is not None else 0, 0)
        for batch in batches:
            numbers = np.arange(following, following + batch.num_rows, dtype=np.int64)
            following += batch.num_rows
            yield pa.RecordBatch.from_arrays([batch.column(0), pa.array(numbers)], names=[VERTEX, _NUMBER])

    return kept(ordered.mapInArrow(number, f"{VERTEX} string, {_NUMBER} bigint")), size


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return _pack(batches, weighed=False)


def _packed_weighed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return _pack(batches, weighed=True)


def _pack(batches: Iterator[pa.RecordBatch], *, weighed: bool) -> Iterator[pa.RecordBatch]:
    parts = [[column.to_numpy(zero_copy_only=False) for column in batch.columns] for batch in batches]
    if not parts:
        return
    src, dst, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    # By both ends and the weight, so that a block is the same however its rows arrived.
    order = np.lexsort((weight, src, dst)) if weighed else np.lexsort((src, dst))
    yield pa.RecordBatch.from_pydict(
        {
            "src": [src[order].astype(np.int32).tobytes()],
            "dst": [dst[order].astype(np.int32).tobytes()],
            "weight": [weight[order].tobytes() if weighed else b""],
        }
    )


def _block(row: dict[str, Any]) -> Block:
    return Block(
        np.frombuffer(row["src"], np.int32),
        np.frombuffer(row["dst"], np.int32),
        np.frombuffer(row["weight"], np.float64),
    )
