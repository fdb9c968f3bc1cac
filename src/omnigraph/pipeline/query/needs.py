"""What later steps need of the rows: variables, hidden columns, and properties of variables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from omnigraph.language.plan import steps
from omnigraph.language.plan.pipeline import find_read_expressions, find_uses, get_nested_steps
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import find_properties
from omnigraph.pipeline.query.rows import Key, Kind, Rows

PLACE = ".place"


@dataclass(frozen=True, slots=True)
class Needs:
    """Needed columns.

    Attributes:
        names: variables and hidden columns.
        properties: pairs of a variable and a property.
    """

    names: frozenset[str] = frozenset()
    properties: frozenset[tuple[str, str]] = frozenset()

    def __or__(self, other: "Needs") -> "Needs":
        return Needs(self.names | other.names, self.properties | other.properties)

    def includes(self, key: Key) -> bool:
        """Return whether a column is needed."""
        if key.kind is Kind.PROPERTY:
            return (key.name, key.property) in self.properties
        return key.kind is Kind.OUTPUT or key.name.removesuffix(PLACE) in self.names

    def of(self, rows: Rows) -> list[Key]:
        """Return the needed columns of rows."""
        return [key for key in rows.cells if self.includes(key)]

    def properties_of(self, variable: str) -> list[str]:
        """Return the needed properties of a variable."""
        return sorted(name for owner, name in self.properties if owner == variable)


def find_needs(later: Sequence[Step]) -> Needs:
    """Find what steps need; scores read their own columns."""
    names = {name for name, _ in find_uses(later)}
    for step in later:
        if isinstance(step, steps.Aggregate):
            names.update(step.weights)
    return Needs(frozenset(names), frozenset(_find_properties(later)))


def _find_properties(later: Iterable[Step]) -> Iterable[tuple[str, str]]:
    for step in later:
        if not isinstance(step, steps.Rank):
            yield from find_properties(find_read_expressions(step))
        for inner in get_nested_steps(step):
            yield from _find_properties(inner)
