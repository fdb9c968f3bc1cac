"""Runs read plans on Spark."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (Spark's own custom)

from omnigraph.errors import GraphError, InternalError, InvalidRequestError, LimitError, UnavailableError, beyond_limit
from omnigraph.execution.expressions import result_type
from omnigraph.execution.search.query_text import Embedder
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Value
from omnigraph.language.plan.steps import Plan, ReadPlan
from omnigraph.language.query.compile import CompiledQuery
from omnigraph.model.commit import Record
from omnigraph.model.schema import Schema
from omnigraph.model.types import INTEGER_SCALARS, PropertyType, Scalar
from omnigraph.pipeline.columns import cast_array
from omnigraph.pipeline.interruptible import cancellable, interruptible
from omnigraph.pipeline.jobs import reason_in
from omnigraph.pipeline.query.evaluate import Evaluator, Inputs
from omnigraph.pipeline.query.needs import Needs, find_needs
from omnigraph.pipeline.query.pattern import PatternLowering
from omnigraph.pipeline.query.rank import Ranking, node_types
from omnigraph.pipeline.query.result import TOO_MANY, aggregate, distinct, output, project
from omnigraph.pipeline.query.rows import Names
from omnigraph.pipeline.query.scan import Source
from omnigraph.storage.tables.location import TablesLocation


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """A read on Spark: what is read, and with which values.

    Attributes:
        place: where the graph's tables are.
        record: the commit.
        schema: its types.
        now_ms: the start of the query, milliseconds since 1970.
        embedder: makes vectors of texts.
        tag: names the jobs, so that they can be cancelled.
    """

    spark: SparkSession
    place: TablesLocation
    record: Record
    schema: Schema
    now_ms: int
    embedder: Embedder
    tag: str

    def frame(self, plan: Plan, parameters: Mapping[str, Value]) -> DataFrame:
        """Return the result as a DataFrame, computed when it is read.

        Raises:
            InvalidRequestError: the query writes, or an argument of a search is out of bounds.
        """
        if not isinstance(plan, ReadPlan):
            raise InvalidRequestError("the query writes; run it as a mutation")
        inputs, names = Inputs(parameters, self.now_ms), Names()
        source = Source(self.spark, self.place, self.record, inputs, names)
        evaluator = Evaluator(inputs, names)
        ranking = Ranking(source, node_types(plan.steps), self.embedder)
        lowering = PatternLowering(source, self.schema, evaluator, ranking)
        place = next(at for at, step in enumerate(plan.steps) if isinstance(step, steps.Aggregate | steps.Project))
        rows = lowering.lower(lowering.start(), plan.steps[:place], find_needs(plan.steps[place:]))
        for step in plan.steps[place:]:
            match step:
                case steps.Project():
                    rows = project(rows, step, evaluator)
                case steps.Aggregate():
                    rows = aggregate(rows, step, evaluator, names)
                case steps.Distinct():
                    rows = distinct(rows)
                case steps.Order():
                    rows = lowering.order(rows, step, Needs())
                case steps.Limit():
                    rows = lowering.limit(rows, step)
                case _:
                    raise InternalError(f"unexpected {type(step).__name__} after the result")
        return rows.frame.select(
            *(F.col(rows.cells[output(at)].column).alias(column.name) for at, column in enumerate(plan.columns))
        )

    def explain(self, compiled: CompiledQuery) -> str:
        """Return the plan that Spark makes of a query, for some values of its parameters."""
        values = {parameter.name: _sample(parameter.type) for parameter in compiled.parameters}
        printed = StringIO()
        with redirect_stdout(printed):
            self.frame(compiled.plan, values).explain()
        return printed.getvalue().strip()

    @interruptible
    def table(
        self,
        plan: Plan,
        parameters: Mapping[str, Value],
        *,
        memory_bytes: int | None = None,
        seconds: float | None = None,
    ) -> pa.Table:
        """Return the result as Arrow, with the types it has in process.

        Raises:
            UnavailableError: a job failed (`spark_job_failed`).
            LimitError: the result is larger than `memory_bytes`, it takes longer than `seconds`, or there are more rows
                than can be counted.
        """
        with self._jobs(seconds):
            found = self.frame(plan, parameters).toArrow()
        if memory_bytes is not None and found.nbytes > memory_bytes:
            raise _too_large(memory_bytes)
        assert isinstance(plan, ReadPlan)
        fields = [pa.field(column.name, result_type(column.type)) for column in plan.columns]
        columns: list[Any] = [
            pa.nulls(found.num_rows)
            if pa.types.is_null(field.type)
            else _chunks([cast_array(chunk, field.type) for chunk in column.chunks], field.type)
            for field, column in zip(fields, found.columns, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    @contextmanager
    def _jobs(self, seconds: float | None) -> Iterator[None]:
        """Cancel the jobs of the block when they take too long or the caller stops waiting."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            self.spark.interruptTag(self.tag)

        timer = None if seconds is None else threading.Timer(seconds, stop)
        self.spark.addTag(self.tag)
        try:
            with cancellable(lambda: _discard(self.spark.interruptTag(self.tag))):
                if timer is not None:
                    timer.start()
                yield
        except (Py4JError, PySparkException) as failed:
            if late.is_set() and seconds is not None:
                raise beyond_limit("query_seconds", actual=int(seconds) + 1, limit=int(seconds)) from failed
            raise _fault(str(failed)) from failed
        finally:
            self.spark.removeTag(self.tag)
            if timer is not None:
                timer.cancel()


def _sample(of: PropertyType) -> Value:
    if of.list or of.is_vector:
        return None
    samples: dict[Scalar, Value] = {Scalar.STRING: "", Scalar.BOOL: True, Scalar.F64: 1.0}
    return samples.get(of.scalar, 1 if of.scalar in INTEGER_SCALARS else None)


def _discard(_: object) -> None:
    pass


# The stubs require statically known Arrow types, and there are none here.
_chunks: Any = pa.chunked_array


# What Spark says of a result that is larger than its driver may hold.
_RESULT_SIZE = "spark.driver.maxResultSize"


def _too_large(bytes_max: int | None) -> LimitError:
    bound = "Spark's driver may hold" if bytes_max is None else f"the {bytes_max:,} bytes of memory it may use"
    return LimitError(
        f"the result of the query needs more than {bound}; add a limit, or read it as a DataFrame with "
        "graph.spark.query",
        code="query_memory",
        bytes_max=bytes_max,
    )


def _fault(text: str) -> GraphError:
    if TOO_MANY in text:
        return LimitError(
            "there are more rows than can be counted; connect the parts of the pattern or take fewer hops",
            code="too_many_to_count",
        )
    if _RESULT_SIZE in text:
        return _too_large(None)
    return UnavailableError(f"Spark could not finish the query; try again: {reason_in(text)}", code="spark_job_failed")
