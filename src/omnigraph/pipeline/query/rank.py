"""Scores on Spark: distances and BM25 computed where the table is read, rankings fused with windows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812  (Spark's own custom)

from omnigraph.errors import InvalidRequestError
from omnigraph.execution.arrays import Values, null_mask, to_arrow
from omnigraph.execution.search.bm25 import Collection, Scores, bm25, describe_collection
from omnigraph.execution.search.query_text import Embedder, as_vector, distinct_words
from omnigraph.execution.search.text_index import index_texts
from omnigraph.execution.search.vectors import Vector, distances, to_matrix
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import pattern, steps
from omnigraph.language.plan.pipeline import get_nested_steps
from omnigraph.language.plan.steps import Step
from omnigraph.model.analyzer import Analyzer
from omnigraph.model.schema import ID
from omnigraph.pipeline.columns import spark_schema
from omnigraph.pipeline.query.evaluate import constant
from omnigraph.pipeline.query.needs import PLACE
from omnigraph.pipeline.query.rows import Cell, Key, Kind, Rows, match, struct_of
from omnigraph.pipeline.query.scan import ScanTask, Source

# Nodes of the second ranking alone come behind all of the first.
_BEHIND = 2**40
_COUNTS = spark_schema(pa.schema([pa.field("counts", pa.list_(pa.int64()))]))


@dataclass(frozen=True, slots=True)
class VectorScore:
    """Distance to a vector."""

    query: Vector

    def of(self, values: Values) -> Scores:
        """Score values; NaN where there is none."""
        found = distances(to_matrix(values), self.query)
        nulls = null_mask(values)
        if nulls is not None:
            found[nulls] = np.nan
        return found


@dataclass(frozen=True, slots=True)
class TextScore:
    """BM25 of texts, given counts over all texts of their type."""

    words: tuple[str, ...]
    analyzer: Analyzer
    collection: Collection

    def of(self, values: Values) -> Scores:
        """Score values; NaN where none of the words is in them."""
        return bm25(index_texts(values, self.analyzer), self.words, self.collection)


@dataclass(frozen=True, slots=True)
class _ScoreTask:
    """Reads a table, and yields ids with scores."""

    scan: ScanTask
    score: VectorScore | TextScore

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [cell.column for cell in self.scan.cells]
        for batch in self.scan.batches(batches):
            scores = self.score.of(batch.column(self.scan.columns[1]))
            there = pa.array(~np.isnan(scores))
            kept = pa.RecordBatch.from_arrays([batch.column(ID), to_arrow(scores)], names=names).filter(there)
            if kept.num_rows:
                yield kept


@dataclass(frozen=True, slots=True)
class _CollectionTask:
    """Reads a table, and yields counts over its texts as one row: texts, words, and texts with each word."""

    scan: ScanTask
    words: tuple[str, ...]
    analyzer: Analyzer

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in self.scan.batches(batches):
            texts = index_texts(batch.column(self.scan.columns[1]), self.analyzer)
            found = describe_collection(texts, self.words)
            yield pa.RecordBatch.from_pydict({"counts": [[found.texts, found.words, *found.owners.values()]]})


class Ranking:
    """Scores of one query."""

    def __init__(self, source: Source, types: Mapping[str, str], embedder: Embedder) -> None:
        self._source = source
        self._names = source.names
        self._types = types
        self._embedder = embedder

    def rank(self, rows: Rows, step: steps.Rank, around: Sequence[Key]) -> Rows:
        """Add a score as a hidden column; inside another step, rankings are those of one outer row (`around`)."""
        if isinstance(step.score, ex.Rrf):
            return self._fuse(rows, step, step.score, around)
        variable = step.score.target.variable
        found = self._scores(step.score, step.name)
        return self._joined(rows, found, [Key(Kind.ID, variable)], {step.name: pa.float64()}, required=step.required)

    def _joined(
        self, rows: Rows, found: Rows, keys: Sequence[Key], new: Mapping[str, pa.DataType], *, required: bool
    ) -> Rows:
        how = "inner" if required else "left"
        joined = rows.frame.join(found.frame, match(rows, found, keys), how)
        added = {Key(Kind.HIDDEN, name): found.cells[Key(Kind.HIDDEN, name)].column for name in new}
        cells = {key: Cell(column, new[key.name]) for key, column in added.items()}
        return Rows(joined, {**rows.cells, **cells})

    def _scores(self, score: ex.Nearest | ex.Bm25, name: str = "") -> Rows:
        """Return the nodes of the type that have a score."""
        variable = score.target.variable
        cells = {
            Key(Kind.ID, variable): Cell(self._names.new(), pa.string(), nullable=False),
            Key(Kind.HIDDEN, name): Cell(self._names.new(), pa.float64(), nullable=False),
        }
        made = self._score(score)
        if made is None:
            empty = self._source.spark.createDataFrame([], struct_of(cells.values()))
            return Rows(empty, cells)
        task = _ScoreTask(replace(self._scan(score), cells=tuple(cells.values())), made)
        return Rows(self._source.run(task.scan, task.read, struct_of(cells.values())), cells)

    def _scan(self, score: ex.Nearest | ex.Bm25) -> ScanTask:
        return self._source.prepare(f"node:{self._types[score.target.variable]}", (ID, score.target.name))

    def _score(self, score: ex.Nearest | ex.Bm25) -> VectorScore | TextScore | None:
        query = constant(score.query, self._source.inputs)
        if query is None:
            return None
        target = score.target
        if isinstance(score, ex.Bm25):
            assert isinstance(query, str)
            words = tuple(distinct_words(query, score.analyzer))
            task = _CollectionTask(self._scan(score), words, score.analyzer)
            rows = self._source.run(task.scan, task.read, _COUNTS).collect()
            totals = np.sum([row["counts"] for row in rows], axis=0).tolist() if rows else [0, 0, *(0 for _ in words)]
            owners = dict(zip(words, totals[2:], strict=True))
            return TextScore(words, score.analyzer, Collection(totals[0], totals[1], owners))
        dimension = target.type.vector_dim
        assert dimension is not None
        if isinstance(query, str):
            return VectorScore(self._embedder.vector(query, dimension=dimension, model=score.model, target=target.name))
        return VectorScore(as_vector(query, dimension, target.name))

    # --- rankings fused -------------------------------------------------------------------------------------------

    def _fuse(self, rows: Rows, step: steps.Rank, score: ex.Rrf, around: Sequence[Key]) -> Rows:
        k = constant(score.k, self._source.inputs)
        if not isinstance(k, int) or k <= 0:
            raise InvalidRequestError("rrf k must be greater than 0")
        node = Key(Kind.ID, score.first.target.variable)
        keys = list(dict.fromkeys([*around, node]))
        there = rows.with_frame(rows.frame.where(rows.column(node).isNotNull()))
        nodes = there.only(keys).renamed(self._names).distinct()
        arms = [self._places(nodes, arm, keys, step.depth) for arm in (score.first, score.second)]
        fused, place = self._names.new(), self._names.new()
        first, second = (F.col(arm.cells[Key(Kind.HIDDEN, "")].column) for arm in arms)
        found = nodes.frame
        for arm in arms:
            found = found.join(arm.frame, match(nodes, arm, keys), "left")
        found = found.where(first.isNotNull() | second.isNotNull()).select(
            *(nodes.column(key) for key in keys),
            (_share(first, k) + _share(second, k)).alias(fused),
            F.coalesce(first, second + F.lit(_BEHIND)).alias(place),
        )
        cells = {key: nodes.cells[key] for key in keys}
        cells[Key(Kind.HIDDEN, step.name)] = Cell(fused, pa.float64())
        cells[Key(Kind.HIDDEN, step.name + PLACE)] = Cell(place, pa.int64())
        new: dict[str, pa.DataType] = {step.name: pa.float64(), step.name + PLACE: pa.int64()}
        return self._joined(rows, Rows(found, cells), keys, new, required=step.required)

    def _places(
        self, nodes: Rows, score: ex.Nearest | ex.Bm25, keys: Sequence[Key], depth: pattern.Window | None
    ) -> Rows:
        """Return the places of nodes in one ranking, from 0; ties by id."""
        node, hidden = Key(Kind.ID, score.target.variable), Key(Kind.HIDDEN, "")
        scores = self._scores(score)
        mine = nodes.renamed(self._names)
        frame = mine.frame.join(scores.frame, mine.column(node) == scores.column(node))
        value = scores.column(hidden)
        order = [value.asc() if isinstance(score, ex.Nearest) else value.desc(), mine.column(node).asc()]
        around = [mine.column(key) for key in keys if key != node]
        most = None if depth is None else self._depth(depth)
        if most is not None and not around:
            frame = frame.orderBy(*order).limit(most)
        place = Cell(self._names.new(), pa.int64())
        window = Window.partitionBy(*(around or [F.lit(0)])).orderBy(*order)
        frame = frame.withColumn(place.column, F.row_number().over(window).cast("bigint") - F.lit(1))
        if most is not None:
            frame = frame.where(F.col(place.column) < most)
        cells = {**{key: mine.cells[key] for key in keys}, hidden: place}
        return Rows(frame.select(*(cell.column for cell in cells.values())), cells)

    def _depth(self, window: pattern.Window) -> int | None:
        numbers = [constant(bound, self._source.inputs) for bound in (window.count, window.skip) if bound is not None]
        return None if window.count is None else sum(number for number in numbers if isinstance(number, int))


def _share(place: Column, k: int) -> Column:
    return F.coalesce(F.lit(1.0) / (F.lit(float(k)) + place + F.lit(1)), F.lit(0.0))


def node_types(plan: Sequence[Step]) -> dict[str, str]:
    """Return the node type of each node variable, nested steps included."""
    found: dict[str, str] = {}
    for step in plan:
        if isinstance(step, steps.Scan):
            found[step.variable] = step.type_name
        elif isinstance(step, steps.Expand):
            found[step.target] = step.target_type
        for inner in get_nested_steps(step):
            found |= node_types(inner)
    return found
