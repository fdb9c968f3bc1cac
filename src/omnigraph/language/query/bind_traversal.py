"""Semantic analysis of traversals: edge type, direction, and types of the ends."""

from omnigraph.errors import ParseError
from omnigraph.language.plan import pattern
from omnigraph.language.plan.pattern import Direction
from omnigraph.language.query import syntax
from omnigraph.language.query.scope import ANONYMOUS, Context, EdgeVariable, NodeVariable, PathVariable, Scope
from omnigraph.model.schema import EdgeType
from omnigraph.model.suggest import suggest

_Clause = syntax.Traversal | syntax.Shortest


class TraversalBinder:
    """Binder of the traversals of one block, in order: each may get types from the previous ones."""

    def __init__(self, context: Context, scope: Scope) -> None:
        self._context = context
        self._scope = scope

    def bind(self, clause: _Clause) -> pattern.Traversal:
        """Bind one traversal and its ends.

        Raises:
            ParseError: the edge is unknown, or does not fit its ends.
        """
        edge = self._resolve_edge(clause)
        least, most = self._bind_hops(clause)
        self._check_names(clause)
        source_type, target_type, direction = self._resolve_direction(clause, edge)
        for name, type_name in ((clause.source, source_type), (clause.target, target_type)):
            node = self._context.schema.node(type_name)
            assert node is not None
            if name != ANONYMOUS and self._scope.get(name) is None:
                self._scope.bind(name, NodeVariable(node))
        edge_variable = path = None
        if isinstance(clause, syntax.Shortest):
            path = self._named(clause.path)
            self._scope.bind(path, PathVariable())
        elif clause.edge_variable is not None:
            edge_variable = self._named(clause.edge_variable)
            self._scope.bind(edge_variable, EdgeVariable(edge))
        return pattern.Traversal(
            self._named(clause.source),
            self._named(clause.target),
            source_type,
            target_type,
            edge.name,
            direction,
            least,
            most,
            edge_variable,
            path,
        )

    def _named(self, name: str) -> str:
        return self._context.hidden() if name == ANONYMOUS else name

    def _resolve_edge(self, clause: _Clause) -> EdgeType:
        schema = self._context.schema
        edge = schema.edge(clause.edge)
        if edge is None:
            known = (edge.name[0].lower() + edge.name[1:] for edge in schema.edges)
            hint = suggest(clause.edge, known)
            if clause.edge in ("contains", "starts_with", "in", "is", "and", "or"):
                hint = "between two bare variables this is a traversal; put a condition in parentheses"
            raise self._error(clause, f"T4: unknown edge type `{clause.edge}`", hint=hint)
        if clause.undirected and edge.from_type != edge.to_type:
            raise self._error(
                clause,
                f"T22: undirected traversal `<{edge.name}>` requires a same-endpoint-type edge, but "
                f"`{_format_signature(edge)}` is asymmetric; use the directional form",
            )
        return edge

    def _bind_hops(self, clause: _Clause) -> tuple[int, int]:
        hops = clause.hops
        if hops is None:
            return 1, 1
        if hops.most is None:
            message = "T15: unbounded traversal is disabled; use bounded traversal {min,max}"
            raise self._context.error(hops.span, message)
        if hops.least < 1:
            raise self._context.error(hops.span, "T15: traversal min hop bound must be >= 1")
        if hops.most < hops.least:
            raise self._context.error(
                hops.span,
                f"T15: invalid traversal bounds {{{hops.least},{hops.most}}}; max must be >= min",
            )
        if isinstance(clause, syntax.Traversal) and clause.edge_variable is not None and hops.most > 1:
            raise self._error(clause, f"T23: edge binding `${clause.edge_variable}` cannot be combined with hop bounds")
        return hops.least, hops.most

    def _check_names(self, clause: _Clause) -> None:
        for name in (clause.source, clause.target):
            match self._scope.get(name):
                case EdgeVariable():
                    raise self._error(clause, f"T23: edge binding `${name}` cannot be a traversal endpoint")
                case PathVariable():
                    raise self._error(clause, f"T26: path `${name}` cannot be a traversal endpoint")
                case _:
                    pass
        if isinstance(clause, syntax.Shortest):
            if clause.path != ANONYMOUS and (
                clause.path in (clause.source, clause.target) or self._scope.get(clause.path) is not None
            ):
                raise self._error(clause, f"T26: variable `${clause.path}` is already bound; a path needs a fresh name")
            return
        edge_variable = clause.edge_variable
        if edge_variable is None or edge_variable == ANONYMOUS:
            return
        if edge_variable in (clause.source, clause.target):
            raise self._error(clause, f"T23: edge binding `${edge_variable}` cannot reuse an endpoint name")
        if self._scope.get(edge_variable) is not None:
            raise self._error(
                clause, f"T23: variable `${edge_variable}` is already bound; an edge binding needs a fresh name"
            )

    def _resolve_direction(self, clause: _Clause, edge: EdgeType) -> tuple[str, str, Direction]:
        """Return the types of source and target, and the direction.

        The source decides if it is bound, else the target, else it is forward. If both ends have the same type it is
        always forward.
        """
        start, end = edge.from_type.type_name, edge.to_type.type_name
        source, target = self._find_type(clause.source), self._find_type(clause.target)
        forward = True
        if source is not None:
            forward = source == start
            if not forward and source != end:
                raise self._no_end(clause, clause.source, source, edge)
        elif target is not None:
            forward = target == end
            if not forward and target != start:
                raise self._no_end(clause, clause.target, target, edge)
        source_type, target_type = (start, end) if forward else (end, start)
        if target is not None and target != target_type:
            raise self._error(
                clause,
                f"T5: variable `${clause.target}` has type `{target}` but edge `{edge.name}` expects `{target_type}`",
                hint=f"the edge is `{_format_signature(edge)}`",
            )
        if clause.undirected:
            return source_type, target_type, Direction.BOTH
        return source_type, target_type, Direction.OUT if forward else Direction.IN

    def _find_type(self, name: str) -> str | None:
        bound = None if name == ANONYMOUS else self._scope.get(name)
        return bound.type.name if isinstance(bound, NodeVariable) else None

    def _no_end(self, clause: _Clause, name: str, type_name: str, edge: EdgeType) -> ParseError:
        signature = _format_signature(edge)
        return self._error(
            clause, f"T5: variable `${name}` has type `{type_name}`, which is not an endpoint of edge `{signature}`"
        )

    def _error(self, clause: _Clause, message: str, *, hint: str = "") -> ParseError:
        return self._context.error(clause.span, message, hint=hint)


def _format_signature(edge: EdgeType) -> str:
    return f"{edge.name}: {edge.from_type.type_name} -> {edge.to_type.type_name}"
