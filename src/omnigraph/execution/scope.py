"""What expressions are computed from: rows of some kind, and the values that are the same for all of them."""

from typing import Any, Protocol, TypeAlias

from omnigraph.execution.arrays import Values
from omnigraph.execution.search.asked import TextQuery
from omnigraph.language.plan.expressions import End, Value

# One value per row, or one for all rows.
Datum: TypeAlias = Any  # an Arrow array or scalar: the stubs want to know of which type


class Scope(Protocol):
    """Rows that expressions can be computed on."""

    @property
    def size(self) -> int:
        """How many rows."""
        ...

    def property_of(self, variable: str, name: str) -> Values:
        """A property of what a variable is bound to; null where it is absent."""
        ...

    def id_of(self, variable: str) -> Values:
        """The id of what a variable is bound to; null where it is absent."""
        ...

    def endpoint_of(self, variable: str, end: End) -> Values:
        """The id at one end of an edge."""
        ...

    def is_absent(self, variable: str) -> Values:
        """Whether nothing is bound to a variable."""
        ...

    def path_lengths(self, variable: str) -> Values:
        """How many edges paths have."""
        ...

    def path_nodes(self, variable: str) -> Values:
        """The ids of paths' nodes."""
        ...

    def computed(self, name: str) -> Values:
        """A hidden column."""
        ...

    def text_matches(self, variable: str, name: str, query: TextQuery) -> Values:
        """Whether a text property of what a variable is bound to matches; null where it is absent."""
        ...

    def output(self, position: int) -> Values:
        """A column of the result."""
        ...

    def parameter(self, name: str) -> Value:
        """The value of a parameter."""
        ...

    @property
    def now_ms(self) -> int:
        """When the query began, milliseconds since 1970."""
        ...
