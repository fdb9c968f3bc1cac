"""Name resolution: variables of patterns, parameters, types of the schema."""

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.errors import ParseError
from omnigraph.language.plan.expressions import EdgeValue, Entity, NodeValue
from omnigraph.language.text import Source, Span, parse_error
from omnigraph.model.schema import EdgeType, NodeType, Schema
from omnigraph.model.types import PropertyType

ANONYMOUS = "_"


@dataclass(frozen=True, slots=True)
class NodeVariable:
    """Variable bound to nodes of a type; nullable if bound in an optional block."""

    type: NodeType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class EdgeVariable:
    """Variable bound to edge records of a type."""

    type: EdgeType
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class PathVariable:
    """Variable bound to paths."""

    nullable: bool = False


Bound = NodeVariable | EdgeVariable | PathVariable


class Scope:
    """Variables visible in a block: its own, and those of the enclosing blocks."""

    __slots__ = ("_outer", "_own")

    def __init__(self, outer: "Scope | None" = None) -> None:
        self._outer = outer
        self._own: dict[str, Bound] = {}

    def get(self, name: str) -> Bound | None:
        """Look up a variable."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope._own:
                return scope._own[name]
            scope = scope._outer
        return None

    def bind(self, name: str, bound: Bound) -> None:
        """Declare a variable in this block."""
        self._own[name] = bound

    def own(self) -> Iterator[tuple[str, Bound]]:
        """Yield the variables bound in this block itself, in order."""
        yield from self._own.items()

    def names(self) -> set[str]:
        """Return every visible variable with a name."""
        names: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            names.update(name for name in scope._own if not name.startswith("#"))
            scope = scope._outer
        return names

    def entities(self) -> tuple[Entity, ...]:
        """Return the named nodes and edges of this block, sorted by name."""
        found = []
        for name, bound in self._own.items():
            if name.startswith("#"):
                continue
            if isinstance(bound, NodeVariable):
                found.append(Entity(name, NodeValue(bound.type.name, bound.nullable)))
            elif isinstance(bound, EdgeVariable):
                found.append(Entity(name, EdgeValue(bound.type.name, bound.nullable)))
        # By the name of the id's column, as in `p.id`: the dot sorts before digits and letters.
        return tuple(sorted(found, key=lambda entity: f"{entity.variable}.id"))


class Context:
    """State shared by all binders of one query.

    Attributes:
        source: text, for errors.
        schema: schema to resolve names in.
        parameters: declared parameters.
        notes: hints for variables that are bound elsewhere in the text but not visible.
    """

    __slots__ = ("_hidden", "notes", "parameters", "schema", "source")

    def __init__(self, source: Source, schema: Schema, parameters: dict[str, PropertyType]) -> None:
        self.source = source
        self.schema = schema
        self.parameters = parameters
        self.notes: dict[str, str] = {}
        self._hidden = 0

    def hidden(self, prefix: str = "") -> str:
        """Return a fresh name that no text can contain."""
        self._hidden += 1
        return f"#{prefix}{self._hidden}"

    def error(self, span: Span, message: str, *, hint: str = "") -> ParseError:
        """Return a type error."""
        return parse_error(self.source, span, message, hint=hint, stage="type")
