"""Queries on Spark: where the caller says so, or where one process has too little memory."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Unpack

import pyarrow as pa

from omnigraph.api.engines import Engine, session_for, spark_module
from omnigraph.api.params import json_params
from omnigraph.api.schemas import Schemas
from omnigraph.branch.find_entry import entry_at
from omnigraph.branch.point import PointKeywords, point_of
from omnigraph.embedding.choose import choose_provider
from omnigraph.errors import LimitError
from omnigraph.execution.query_limits import QueryLimits
from omnigraph.execution.search.query_text import Embedder
from omnigraph.language.query import CompiledQuery, Params, bind_params, compile, explain
from omnigraph.model.commit import Record
from omnigraph.model.schema import Schema
from omnigraph.storage.tables.location import location_of
from omnigraph.transaction.graph_context import GraphContext

_LOGGER = logging.getLogger("omnigraph.query")
# Refusals of a query in process that Spark can do without.
_BEYOND_MEMORY = ("query_memory", "column_too_large")


def run_query(
    engine: Engine, local: Callable[[], pa.Table], on_spark: Callable[[Any], pa.Table]
) -> tuple[pa.Table, Engine]:
    """Run a query on an engine.

    With `auto`, it runs in process until it would hold more memory than it may, and then on Spark, if that is there.

    Args:
        engine: the caller's choice.
        local: runs it in process.
        on_spark: runs it on a session.

    Returns:
        The rows, and the engine that found them.
    """
    if engine is Engine.SPARK:
        return on_spark(session_for(engine)), Engine.SPARK
    try:
        return local(), Engine.LOCAL
    except LimitError as refused:
        session = session_for(engine) if engine is Engine.AUTO and refused.code in _BEYOND_MEMORY else None
        if session is None:
            raise
        _LOGGER.info("the query runs on Spark: %s", refused)
    return on_spark(session), Engine.SPARK


def rows_on_spark(query: Any, compiled: CompiledQuery, params: Params, limits: QueryLimits) -> pa.Table:  # noqa: ANN401  (a `SparkQuery`)
    """Run a query on Spark and return its rows."""
    found: pa.Table = query.table(
        compiled.plan, params.values, memory_bytes=limits.memory_bytes, seconds=limits.seconds
    )
    if limits.shared is not None:
        limits.shared.take(found.nbytes)
    return found


def open_spark_query(context: GraphContext, record: Record, schema: Schema, session: Any) -> Any:  # noqa: ANN401  (what belongs to Spark has no type here)
    """Return a `SparkQuery` over one commit."""
    return spark_module("query.run").SparkQuery(
        session,
        location_of(context.tables),
        record,
        schema,
        context.clock.now_us() // 1_000,
        Embedder(partial(choose_provider, context.settings.embeddings)),
        context.ids.new(),
    )


class SparkQueries(ABC):
    """Queries of `graph.spark`."""

    _parts: GraphContext
    _schemas: Schemas

    @abstractmethod
    def session(self) -> Any:  # noqa: ANN401  (what belongs to Spark has no type here)
        """Return the Spark session of this process."""

    def query(
        self,
        text: str,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        **point: Unpack[PointKeywords],
    ) -> Any:  # noqa: ANN401  (a DataFrame)
        """Run a query of the query language on Spark, and return its rows as a DataFrame, always at the same commit.

        The rows are computed when the DataFrame is read. Their order means something only if the query orders them.

        Args:
            text: the query.
            params: values of its parameters.
            name: which query of the text; needed only where there are several.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            NotFoundError: there is no such branch, commit, number or tag.
        """
        record = entry_at(self._parts, point_of(point))
        schema = self._schemas.of(record.schema).schema
        compiled = compile(text, schema, name=name)
        bound = bind_params(compiled, json_params(params))
        return open_spark_query(self._parts, record, schema, self.session()).frame(compiled.plan, bound.values)

    def explain(self, text: str, *, name: str | None = None, **point: Unpack[PointKeywords]) -> str:
        """Describe the plan of a query, one step per line, and the plan that Spark makes of it.

        Args:
            text: the query.
            name: which query of the text; needed only where there are several.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: there is no such query, or it writes.
        """
        record = entry_at(self._parts, point_of(point))
        schema = self._schemas.of(record.schema).schema
        compiled = compile(text, schema, name=name)
        plan: str = open_spark_query(self._parts, record, schema, self.session()).explain(compiled)
        return f"{explain(compiled)}\n{plan}"
