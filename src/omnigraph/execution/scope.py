"""Interface of the rows that expressions are computed on."""

from typing import Any, Protocol, TypeAlias

from omnigraph.execution.arrays import Values
from omnigraph.execution.search.query_text import TextQuery
from omnigraph.language.plan.expressions import End, Value

# One value per row, or one for all rows.
Datum: TypeAlias = Any  # an Arrow array or scalar; the stubs require the type


class Scope(Protocol):
    """Rows that expressions can be computed on."""

    @property
    def size(self) -> int:
        """Number of rows."""
        ...

    def property_of(self, variable: str, name: str) -> Values:
        """Return a property of a variable; null where it is absent."""
        ...

    def id_of(self, variable: str) -> Values:
        """Return the ids of a variable; null where it is absent."""
        ...

    def endpoint_of(self, variable: str, end: End) -> Values:
        """Return the ids at one end of an edge variable."""
        ...

    def is_absent(self, variable: str) -> Values:
        """Return whether a variable is unbound."""
        ...

    def path_lengths(self, variable: str) -> Values:
        """Return the number of edges of paths."""
        ...

    def path_nodes(self, variable: str) -> Values:
        """Return the node ids of paths."""
        ...

    def computed(self, name: str) -> Values:
        """Return a hidden column."""
        ...

    def text_matches(self, variable: str, name: str, query: TextQuery) -> Values:
        """Return whether a text property of a variable matches; null where it is absent."""
        ...

    def output(self, position: int) -> Values:
        """Return a column of the result."""
        ...

    def parameter(self, name: str) -> Value:
        """Return the value of a parameter."""
        ...

    @property
    def now_ms(self) -> int:
        """Start of the query, milliseconds since 1970."""
        ...
