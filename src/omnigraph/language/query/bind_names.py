"""Name resolution in reads: pattern variables first, then parameters."""

from collections.abc import Callable

from omnigraph.errors import ParseError
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Expression, NodeValue, PathValue
from omnigraph.language.query import syntax
from omnigraph.language.query.bind_expression import ExpressionBinder
from omnigraph.language.query.bind_search import SearchBinder
from omnigraph.language.query.scope import Context, EdgeVariable, NodeVariable, PathVariable, Scope
from omnigraph.model.schema import EdgeType, NodeType
from omnigraph.model.suggest import suggest

_SYSTEM_NAMES = ("id", "from", "to", "src", "dst")


class ReadExpressions(ExpressionBinder):
    """Expressions of one block of a read, or of its `return` and `order`."""

    def __init__(
        self, context: Context, scope: Scope, on_exists: Callable[[syntax.Exists], Expression] | None = None
    ) -> None:
        super().__init__(context)
        self._scope = scope
        self._on_exists = on_exists

    def bind_variable(self, written: syntax.Variable) -> Expression:
        """Bind a node, a path or a parameter; an edge has no value of its own."""
        bound = self._scope.get(written.name)
        match bound:
            case NodeVariable():
                return ex.Entity(written.name, NodeValue(bound.type.name, bound.nullable))
            case PathVariable():
                return ex.Path(written.name, PathValue(bound.nullable))
            case EdgeVariable():
                raise bare_edge_error(self._context, written, bound.type)
            case None:
                return self._parameter(written)

    def _parameter(self, written: syntax.Variable) -> Expression:
        parameter = self.find_parameter(written)
        if parameter is None:
            raise self.error(
                written.span,
                f"variable `${written.name}` is not bound",
                hint=self._variable_hint(written.name, self._scope.names() | set(self._context.parameters)),
            )
        return parameter

    def bind_property(self, written: syntax.Property) -> Expression:
        """Bind a property of a bound node or edge."""
        bound = self._scope.get(written.variable)
        if bound is None:
            hint = self._variable_hint(written.variable, self._scope.names())
            if written.variable in self._context.parameters:
                hint = "a parameter is a value and has no properties"
            raise self.error(written.span, f"T6: variable `${written.variable}` is not bound", hint=hint)
        if isinstance(bound, PathVariable):
            raise self.error(
                written.span,
                f"T6: path `${written.variable}` has no property `{written.name}`",
                hint=f"a path has length(${written.variable}) and nodes(${written.variable})",
            )
        found = bound.type.property_named(written.name)
        if found is None:
            raise unknown_property_error(self._context, written, bound.type)
        return ex.Property(written.variable, written.name, found.type.as_nullable() if bound.nullable else found.type)

    def bind_name(self, written: syntax.Name) -> Expression:
        """Refuse a bare name: only `order` knows aliases, and looks them up itself."""
        hint = suggest(f"${written.name}", (f"${name}" for name in self._scope.names() | set(self._context.parameters)))
        if not hint.startswith("did you mean"):
            hint = "variables start with `$`, strings stand in double quotes"
        raise self.error(written.span, f"`{written.name}` names nothing here", hint=hint)

    def bind_exists(self, written: syntax.Exists) -> Expression:
        """Bind to a hidden column with the result; only allowed in patterns."""
        if self._on_exists is None:
            raise self.error(written.span, "T26: exists { … } is a condition of `match`; it cannot stand here")
        return self._on_exists(written)

    def bind_search(self, written: syntax.TextMatch | syntax.Nearest | syntax.Bm25 | syntax.Rrf) -> Expression:
        """Bind a match or a score."""
        return SearchBinder(self._context, self._scope, self).bind_search(written)

    def _variable_hint(self, name: str, known: set[str]) -> str:
        if name in self._context.notes:
            return self._context.notes[name]
        return suggest(f"${name}", (f"${name}" for name in known))


def bare_edge_error(context: Context, written: syntax.Variable, edge: EdgeType) -> ParseError:
    """Return the error for an edge variable used as a value."""
    example = edge.properties[0].name if edge.properties else "property"
    return context.error(
        written.span,
        f"T23: edge binding `${written.name}` cannot be used bare; "
        f"access one of its properties (`${written.name}.{example}`)",
    )


def unknown_property_error(context: Context, written: syntax.Property, owner: NodeType | EdgeType) -> ParseError:
    """Return the error for a property that a type does not have."""
    what = "type" if isinstance(owner, NodeType) else "edge"
    hint = suggest(written.name, (property_.name for property_ in owner.properties))
    if written.name == "id" and isinstance(owner, NodeType):
        hint = f"the id of a node is the node itself: write `${written.variable}`"
    elif written.name in _SYSTEM_NAMES and isinstance(owner, EdgeType):
        hint = "an edge's ends are the variables it joins: return those"
    return context.error(written.span, f"T6: {what} `{owner.name}` has no property `{written.name}`", hint=hint)
