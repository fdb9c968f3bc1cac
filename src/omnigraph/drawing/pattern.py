"""Draw the nodes and edges that the pattern of a query matches.

The pattern stays as it is. The returned columns are replaced by the nodes of the pattern and their properties; a query
without aggregates also keeps its order and its limit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.api.snapshot import Snapshot
from omnigraph.drawing.drawing import Drawing, choose_label
from omnigraph.errors import InvalidRequestError, ParseError
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.language.plan.expressions import NodeValue
from omnigraph.language.query import compile, format_file, statements, syntax
from omnigraph.model.schema import EdgeType, Schema
from omnigraph.model.types import Scalar


@dataclass(frozen=True, slots=True)
class _PatternEdge:
    """An edge of the pattern, between two of its variables."""

    source: str
    target: str
    type: EdgeType
    hops: syntax.Hops | None

    @property
    def label(self) -> str:
        """The name of the edge type, with the range of hops if there is one."""
        if self.hops is None:
            return self.type.name
        return f"{self.type.name}{{{self.hops.least},{self.hops.most}}}"


def drawn(
    snapshot: Snapshot,
    text: str,
    params: Mapping[str, object] | None,
    *,
    name: str | None,
    limit: int,
    limits: QueryLimits = DEFAULT_LIMITS,
) -> Drawing:
    """Draw at most `limit` matches of the query `name` in a text.

    Raises:
        ParseError: the text is not valid.
        InvalidRequestError: the query writes, or its pattern has no nodes to draw.
    """
    schema = snapshot.schema
    compiled = compile(text, schema, name=name)
    query = compiled.bound.syntax
    if not isinstance(query.body, statements.Read):
        raise InvalidRequestError(f"'{query.name}' is a mutation: only what a query reads can be drawn")
    edges = list(_edges(query.body.clauses, schema))
    variables = list(dict.fromkeys(_variables(query.body.clauses)))
    types = _types(query, variables, schema)
    result = snapshot.query(_node_query(query, types, schema, limit), params, name=query.name, limits=limits)
    drawing = Drawing(query.name)
    for row in result:
        _draw(drawing, row, types, edges)
    more = f", the first {limit:,} matches" if result.row_count >= limit else ""
    drawing.subtitle = f"{len(drawing.nodes):,} nodes, {len(drawing.links):,} edges{more}"
    return drawing


def _clauses(clauses: Sequence[syntax.Clause]) -> Iterator[syntax.Clause]:
    """Yield the clauses whose variables can be returned, those of optional parts included."""
    for clause in clauses:
        if isinstance(clause, syntax.Optional):
            yield from _clauses(clause.clauses)
        else:
            yield clause


def _variables(clauses: Sequence[syntax.Clause]) -> Iterator[str]:
    for clause in _clauses(clauses):
        match clause:
            case syntax.Binding(variable):
                yield variable
            case syntax.Traversal(source, _, target) | syntax.Shortest(source, _, target):
                yield source
                yield target


def _edges(clauses: Sequence[syntax.Clause], schema: Schema) -> Iterator[_PatternEdge]:
    for clause in _clauses(clauses):
        if isinstance(clause, syntax.Traversal | syntax.Shortest):
            edge = schema.edge(clause.edge)
            if edge is not None:
                yield _PatternEdge(clause.source, clause.target, edge, clause.hops)


def _types(query: statements.Query, variables: Sequence[str], schema: Schema) -> dict[str, str]:
    """Return the node type of each variable, from the compiled query."""
    named_ones = [variable for variable in variables if variable != "_"]
    if not named_ones:
        raise InvalidRequestError(f"the pattern of '{query.name}' has no nodes to draw")
    projections = tuple(statements.Projection(syntax.Variable(variable), variable) for variable in named_ones)
    text = _with(query, projections, ordered=False, limit=None)
    columns = compile(text, schema, name=query.name).columns
    return {column.name: column.type.type_name for column in columns if isinstance(column.type, NodeValue)}


def _node_query(query: statements.Query, types: Mapping[str, str], schema: Schema, limit: int) -> str:
    """Return the text of a query for the nodes with their properties."""
    assert isinstance(query.body, statements.Read)
    projections = []
    for variable, type_name in types.items():
        projections.append(statements.Projection(syntax.Variable(variable), variable))
        node = schema.node(type_name)
        assert node is not None
        projections += [
            statements.Projection(syntax.Property(variable, property.name), f"{variable}__{property.name}")
            for property in node.properties
            if property.type.vector_dim is None and property.type.scalar is not Scalar.BLOB
        ]
    grouped = any(isinstance(projection.value, syntax.Aggregate) for projection in query.body.projections)
    if not grouped:
        ranked = _with(query, tuple(projections), ordered=True, limit=limit)
        try:
            compile(ranked, schema, name=query.name)
        except ParseError:
            pass  # it orders by a column that is not returned here
        else:
            return ranked
    return _with(query, tuple(projections), ordered=False, limit=limit)


def _with(
    query: statements.Query, projections: tuple[statements.Projection, ...], *, ordered: bool, limit: int | None
) -> str:
    assert isinstance(query.body, statements.Read)
    most = None if limit is None else syntax.Literal(syntax.LiteralKind.INTEGER, limit)
    body = replace(query.body, projections=projections, distinct=False)
    if ordered:
        body = replace(body, limit=_smaller(body.limit, most))
    else:
        body = replace(body, ordering=(), limit=most, offset=None)
    return format_file(statements.QueryFile((replace(query, body=body),)))


def _smaller(
    limit: syntax.Literal | syntax.Variable | None, most: syntax.Literal | None
) -> syntax.Literal | syntax.Variable | None:
    if isinstance(limit, syntax.Literal) and most is not None:
        return limit if int(limit.value or 0) < int(most.value or 0) else most
    return limit if limit is not None else most


def _draw(drawing: Drawing, row: Mapping[str, Any], types: Mapping[str, str], edges: Sequence[_PatternEdge]) -> None:
    indexes: dict[str, int] = {}
    for variable, type_name in types.items():
        entity_id = row[variable]
        if entity_id is None:
            continue  # an optional part without a match
        start = f"{variable}__"
        properties = {key.removeprefix(start): value for key, value in row.items() if key.startswith(start)}
        label = choose_label(properties, entity_id)
        indexes[variable] = drawing.node((type_name, entity_id), label, type_name, details=properties, entity=entity_id)
    for edge in edges:
        if edge.source in indexes and edge.target in indexes:
            source, target = indexes[edge.source], indexes[edge.target]
            if types[edge.source] != edge.type.from_type.type_name:
                source, target = target, source  # written against the edge's direction
            drawing.link(source, target, edge.label, dashed=edge.hops is not None)
