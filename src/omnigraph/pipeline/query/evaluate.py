"""Expressions over Spark's rows, with the values that the engine in this process computes.

What Spark computes exactly alike is written in Spark. Everything else is computed by the same kernels as in process, in
the tasks: they get batches of rows in the Arrow types of the tables.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from omnigraph.errors import InternalError
from omnigraph.execution.arrays import Values, make_nulls, pc, to_arrow
from omnigraph.execution.expressions import evaluate_condition, prepare, prepare_constant, result_type, to_array
from omnigraph.execution.search.matching import match_texts
from omnigraph.execution.search.query_text import TextQuery
from omnigraph.execution.search.text_index import index_texts
from omnigraph.language.plan.expressions import End, Expression, Value
from omnigraph.language.plan.walk import split_conjuncts
from omnigraph.pipeline.columns import arrow_schema, cast_array, cast_batch
from omnigraph.pipeline.query.native import Native
from omnigraph.pipeline.query.rows import Cell, Key, Kind, Names, Rows, columns_of, plain_type, struct_of


@dataclass(frozen=True, slots=True)
class Inputs:
    """What expressions take from outside the rows.

    Attributes:
        parameters: their values.
        now_ms: the start of the query, milliseconds since 1970.
    """

    parameters: Mapping[str, Value]
    now_ms: int


@dataclass(slots=True)
class BatchScope:
    """One batch of rows that expressions are computed on.

    Attributes:
        size: number of rows.
        now_ms: the start of the query.
        column: returns the column with a meaning, in its type in process.
    """

    size: int
    now_ms: int
    parameters: Mapping[str, Value]
    column: Callable[[Key], Values]
    _fetched: dict[Key, Values] = field(default_factory=dict)

    def property_of(self, variable: str, name: str) -> Values:
        """Return a property of a variable."""
        return self._get(Key(Kind.PROPERTY, variable, name))

    def id_of(self, variable: str) -> Values:
        """Return the ids of a variable."""
        return self._get(Key(Kind.ID, variable))

    def endpoint_of(self, variable: str, end: End) -> Values:
        """Fail: only mutations refer to the ends of edges."""
        raise InternalError(f"the {end} end of {variable} is not available in rows")

    def is_absent(self, variable: str) -> Values:
        """Return whether a node, an edge or a path is absent."""
        try:
            found = self.id_of(variable)
        except KeyError:
            found = self.path_nodes(variable)
        return pc.is_null(found)  # type: ignore[no-any-return]  # Arrow's kernels have no types

    def path_lengths(self, variable: str) -> Values:
        """Return the number of edges of paths."""
        lengths = pc.list_value_length(self.path_nodes(variable)).cast(pa.int64())
        return pc.subtract(lengths, 1)  # type: ignore[no-any-return]  # Arrow's kernels have no types

    def path_nodes(self, variable: str) -> Values:
        """Return the node ids of paths."""
        return self._get(Key(Kind.PATH, variable))

    def computed(self, name: str) -> Values:
        """Return a hidden column."""
        return self._get(Key(Kind.HIDDEN, name))

    def text_matches(self, variable: str, name: str, query: TextQuery) -> Values:
        """Return whether a text property matches; null where it is absent."""
        if query.text is None:
            return make_nulls(self.size, pa.bool_())
        texts = index_texts(self.property_of(variable, name), query.analyzer)
        return to_arrow(match_texts(texts, query), nulls=~texts.has_text)

    def output(self, position: int) -> Values:
        """Return a column of the result."""
        return self._get(Key(Kind.OUTPUT, str(position)))

    def parameter(self, name: str) -> Value:
        """Return the value of a parameter."""
        return self.parameters[name]

    def _get(self, key: Key) -> Values:
        found = self._fetched.get(key)
        if found is None:
            found = self._fetched[key] = self.column(key)
        return found


def constant(expression: Expression, inputs: Inputs) -> object:
    """Compute an expression that depends on no row."""

    def nowhere(key: Key) -> Values:
        raise InternalError(f"{key.name} is not available outside of rows")

    return prepare_constant(expression)(BatchScope(1, inputs.now_ms, inputs.parameters, nowhere))


class Evaluator:
    """Computes the expressions of one query."""

    def __init__(self, inputs: Inputs, names: Names) -> None:
        self._inputs = inputs
        self._names = names
        self._native = Native(inputs.parameters)

    def where(self, rows: Rows, condition: Expression, keep: Sequence[Key]) -> Rows:
        """Keep the rows for which a condition is true, and of what the kernels pass on, the columns in `keep`."""
        left: list[Expression] = []
        for part in split_conjuncts(condition):
            native = self._native.translate(part, rows)
            if native is None:
                left.append(part)
            else:
                rows = rows.with_frame(rows.frame.where(native))
        return self._pass_on(rows, {}, left, keep) if left else rows

    def compute(self, rows: Rows, values: Mapping[Key, Expression], keep: Sequence[Key]) -> Rows:
        """Add the values of expressions as columns, and keep these of the others."""
        cells, left, native = dict(rows.only(keep).cells), dict[Key, Expression](), []
        for key, expression in values.items():
            translated = self._native.translate(expression, rows)
            if translated is None:
                left[key] = expression
            else:
                cells[key] = Cell(self._names.new(), result_type(expression.type))
                native.append(translated.alias(cells[key].column))
        if native or not left:
            before = rows.frame.columns if left else columns_of(rows.only(keep).cells)
            frame = rows.frame.select(*(before if native or before else rows.frame.columns[:1]), *native)
            rows = Rows(frame, {**rows.cells, **cells} if left else cells)
        return self._pass_on(rows, left, (), list(cells)) if left else rows

    def _pass_on(
        self, rows: Rows, values: Mapping[Key, Expression], conditions: Sequence[Expression], keep: Sequence[Key]
    ) -> Rows:
        kept = {key: rows.cells[key] for key in dict.fromkeys(keep) if key in rows.cells}
        made = {key: Cell(self._names.new(), result_type(value.type)) for key, value in values.items()}
        if not kept and not made:
            kept = dict(list(rows.cells.items())[:1])
        task = _Task(self._inputs, dict(rows.cells), kept, made, tuple(values.values()), tuple(conditions))
        return Rows(rows.frame.mapInArrow(task, task.struct), {**kept, **made})


@dataclass(frozen=True, slots=True)
class _Task:
    """What a task does with batches: filter by conditions, pass columns on, add values."""

    inputs: Inputs
    cells: Mapping[Key, Cell]
    kept: Mapping[Key, Cell]
    made: Mapping[Key, Cell]
    values: tuple[Expression, ...]
    conditions: tuple[Expression, ...]

    @property
    def struct(self) -> StructType:
        """The columns that come out."""
        return struct_of({cell.column: cell for cell in (*self.kept.values(), *self.made.values())}.values())

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work through the batches of a task."""
        conditions = [prepare(condition) for condition in self.conditions]
        values = [prepare(value) for value in self.values]
        wanted = arrow_schema(self.struct)
        for batch in batches:
            some = batch
            for condition in conditions:
                mask = evaluate_condition(condition, self._scope(some))
                some = some if mask.all() else some.filter(pa.array(mask))
            if not some.num_rows:
                continue
            scope = self._scope(some)
            arrays = [some.column(column) for column in columns_of(self.kept)]
            for cell, value in zip(self.made.values(), values, strict=True):
                arrays.append(cast_array(to_array(value(scope), scope.size), plain_type(cell.type)))
            yield cast_batch(pa.RecordBatch.from_arrays(arrays, names=wanted.names), wanted)

    def _scope(self, batch: pa.RecordBatch) -> BatchScope:
        def column(key: Key) -> Values:
            cell = self.cells[key]
            return cast_array(batch.column(cell.column), cell.type)

        return BatchScope(batch.num_rows, self.inputs.now_ms, self.inputs.parameters, column)


def true_rows(batch: pa.RecordBatch, condition: Expression, inputs: Inputs, column: Callable[[Key], Values]) -> Values:
    """Return the mask of a batch's rows for which a condition is true."""
    scope = BatchScope(batch.num_rows, inputs.now_ms, inputs.parameters, column)
    mask = evaluate_condition(prepare(condition), scope)
    return to_arrow(np.asarray(mask))
