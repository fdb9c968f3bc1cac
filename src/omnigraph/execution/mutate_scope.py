"""What the expressions of a mutation are computed from: the values of one execution, and rows of one table."""

from typing import Any

import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.execution.arrays import Values, arrow
from omnigraph.execution.expressions import holds, prepare, values_of
from omnigraph.execution.mutate_values import plain_column
from omnigraph.execution.search.asked import TextQuery
from omnigraph.language.plan.expressions import Constant, End, Expression, Parameter, Value
from omnigraph.language.query import Params
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.model.types import PropertyType
from omnigraph.storage.conform import from_arrow
from omnigraph.storage.external_blobs import BlobIngress

_NOTHING = pa.table({})
_ENDS = {End.FROM: SRC, End.TO: DST}


class Execution:
    """One execution of one mutation: its parameters and its instant, the same for every statement and every try."""

    def __init__(self, params: Params, now_ms: int, blobs: BlobIngress | None = None) -> None:
        self.params = params
        self.now_ms = now_ms
        self.blobs = blobs

    def value(self, expression: Expression) -> Values:
        """The one value of an expression that depends on no row."""
        return self.on(_NOTHING, size=1).values(expression)

    def plain(self, expression: Expression, of: PropertyType) -> "Values | None":
        """The value of an expression as a column, where it is plainly of its property's type; None for every other."""
        match expression:
            case Constant(value=value):
                return plain_column(value, of)
            case Parameter(name=name):
                return plain_column(self.params[name], of)
            case _:
                return None

    def column(self, expression: Expression, of: PropertyType, name: str) -> Values:
        """The one value of an expression that depends on no row, in the type of the property it is compared with.

        Raises:
            InvalidRequestError: it is no value of that type.
        """
        plain = self.plain(expression, of)
        return plain if plain is not None else from_arrow(self.value(expression), of, name)

    def on(self, rows: pa.Table, *, size: int | None = None) -> "Rows":
        """Rows to compute expressions on."""
        return Rows(self, rows, rows.num_rows if size is None else size)


class Rows:
    """Rows of one table that expressions are computed on; every variable stands for the row."""

    def __init__(self, execution: Execution, rows: pa.Table, size: int) -> None:
        self._execution = execution
        self._rows = rows
        self._size = size

    @property
    def size(self) -> int:
        """How many rows."""
        return self._size

    @property
    def now_ms(self) -> int:
        """When the mutation began."""
        return self._execution.now_ms

    def values(self, expression: Expression) -> Values:
        """One value of an expression per row."""
        return values_of(prepare(expression)(self), self._size)

    def matching(self, condition: Expression) -> pa.Table:
        """The rows for which a condition is true."""
        return self._rows.filter(arrow(holds(prepare(condition), self))) if self._size else self._rows

    def parameter(self, name: str) -> Value:
        """The value of a parameter."""
        return self._execution.params[name]

    def property_of(self, variable: str, name: str) -> Values:
        """A property of the row."""
        if name not in self._rows.column_names:
            raise InternalError(f"{variable}.{name} was asked of rows without it")
        column: Any = self._rows.column(name)
        whole: Values = column.combine_chunks()
        return whole

    def id_of(self, variable: str) -> Values:
        """The id of the row."""
        return self.property_of(variable, ID)

    def endpoint_of(self, variable: str, end: End) -> Values:
        """The id at one end of the edge."""
        return self.property_of(variable, _ENDS[end])

    def is_absent(self, variable: str) -> Values:
        """Nothing: the row of a mutation is always there."""
        raise InternalError(f"{variable} was asked whether it is there")

    def path_lengths(self, variable: str) -> Values:
        """Nothing: mutations have no paths."""
        raise InternalError(f"{variable} was taken for a path")

    def path_nodes(self, variable: str) -> Values:
        """Nothing: mutations have no paths."""
        raise InternalError(f"{variable} was taken for a path")

    def text_matches(self, variable: str, name: str, query: TextQuery) -> Values:
        """Nothing: mutations do not search."""
        raise InternalError(f"{query.function}() of {variable}.{name} was asked of a mutation")

    def computed(self, name: str) -> Values:
        """Nothing: mutations have no hidden columns."""
        raise InternalError(f"{name} was asked of a mutation")

    def output(self, position: int) -> Values:
        """Nothing: mutations have no result."""
        raise InternalError(f"column {position} was asked of a mutation")
