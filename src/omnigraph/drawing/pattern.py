"""What a query's pattern matches, drawn: its nodes, and the edges it goes along.

The pattern stays as it was written. What is returned is replaced by the nodes of the pattern with their properties; of
a query that returns rows as they are, order and limit stay too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.api.snapshot import Snapshot
from omnigraph.drawing.drawing import Drawing, named
from omnigraph.errors import InvalidRequestError, ParseError
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.language.plan.expressions import NodeValue
from omnigraph.language.query import compile, format_file, statements, syntax
from omnigraph.model.schema import EdgeType, Schema
from omnigraph.model.types import Scalar


@dataclass(frozen=True, slots=True)
class _Way:
    """An edge of the pattern, between two of its variables."""

    source: str
    target: str
    edge: EdgeType
    hops: syntax.Hops | None

    @property
    def label(self) -> str:
        """The edge, and how often it is gone along where that is not once."""
        if self.hops is None:
            return self.edge.name
        return f"{self.edge.name}{{{self.hops.least},{self.hops.most}}}"


def drawn(
    snapshot: Snapshot,
    text: str,
    params: Mapping[str, object] | None,
    *,
    name: str | None,
    limit: int,
    limits: QueryLimits = DEFAULT_LIMITS,
) -> Drawing:
    """The nodes and edges a query's pattern matches.

    Args:
        snapshot (Snapshot): where.
        text (str): the query.
        params (Mapping[str, object] | None): values of its parameters.
        name (str | None): which query of the text.
        limit (int): matches to draw at most.
        limits (QueryLimits): what finding them may use.

    Returns:
        Drawing: of them.

    Raises:
        ParseError: the text is wrong.
        InvalidRequestError: the query writes, or its pattern has no nodes to draw.
    """
    schema = snapshot.schema
    compiled = compile(text, schema, name=name)
    query = compiled.bound.syntax
    if not isinstance(query.body, statements.Read):
        raise InvalidRequestError(f"'{query.name}' is a mutation: only what a query reads can be drawn")
    ways = list(_ways(query.body.clauses, schema))
    variables = list(dict.fromkeys(_variables(query.body.clauses)))
    types = _types(query, variables, schema)
    result = snapshot.query(_asking(query, types, schema, limit), params, name=query.name, limits=limits)
    drawing = Drawing(query.name)
    for row in result:
        _draw(drawing, row, types, ways)
    more = f", the first {limit:,} matches" if result.row_count >= limit else ""
    drawing.subtitle = f"{len(drawing.nodes):,} nodes, {len(drawing.links):,} edges{more}"
    return drawing


def _clauses(clauses: Sequence[syntax.Clause]) -> Iterator[syntax.Clause]:
    """The clauses whose variables can be returned."""
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


def _ways(clauses: Sequence[syntax.Clause], schema: Schema) -> Iterator[_Way]:
    for clause in _clauses(clauses):
        if isinstance(clause, syntax.Traversal | syntax.Shortest):
            edge = schema.edge(clause.edge)
            if edge is not None:
                yield _Way(clause.source, clause.target, edge, clause.hops)


def _types(query: statements.Query, variables: Sequence[str], schema: Schema) -> dict[str, str]:
    """The node type of each variable, as the compiler sees it."""
    named_ones = [each for each in variables if each != "_"]
    if not named_ones:
        raise InvalidRequestError(f"the pattern of '{query.name}' has no nodes to draw")
    projections = tuple(statements.Projection(syntax.Variable(each), each) for each in named_ones)
    asked = _with(query, projections, ordered=False, limit=None)
    columns = compile(asked, schema, name=query.name).columns
    return {each.name: each.type.type_name for each in columns if isinstance(each.type, NodeValue)}


def _asking(query: statements.Query, types: Mapping[str, str], schema: Schema, limit: int) -> str:
    """The query that returns the nodes with their properties."""
    assert isinstance(query.body, statements.Read)
    projections = []
    for variable, type_name in types.items():
        projections.append(statements.Projection(syntax.Variable(variable), variable))
        node = schema.node(type_name)
        assert node is not None
        projections += [
            statements.Projection(syntax.Property(variable, each.name), f"{variable}__{each.name}")
            for each in node.properties
            if each.type.vector_dim is None and each.type.scalar is not Scalar.BLOB
        ]
    grouped = any(isinstance(each.value, syntax.Aggregate) for each in query.body.projections)
    if not grouped:
        ranked = _with(query, tuple(projections), ordered=True, limit=limit)
        try:
            compile(ranked, schema, name=query.name)
        except ParseError:
            pass  # its order is by something that is no longer returned
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
    asked: syntax.Literal | syntax.Variable | None, most: syntax.Literal | None
) -> syntax.Literal | syntax.Variable | None:
    if isinstance(asked, syntax.Literal) and most is not None:
        return asked if int(asked.value or 0) < int(most.value or 0) else most
    return asked if asked is not None else most


def _draw(drawing: Drawing, row: Mapping[str, Any], types: Mapping[str, str], ways: Sequence[_Way]) -> None:
    places: dict[str, int] = {}
    for variable, type_name in types.items():
        entity_id = row[variable]
        if entity_id is None:
            continue  # an optional part that was not there
        start = f"{variable}__"
        properties = {key.removeprefix(start): value for key, value in row.items() if key.startswith(start)}
        label = named(properties, entity_id)
        places[variable] = drawing.node((type_name, entity_id), label, type_name, details=properties, entity=entity_id)
    for way in ways:
        if way.source in places and way.target in places:
            source, target = places[way.source], places[way.target]
            if types[way.source] != way.edge.from_type.type_name:
                source, target = target, source  # written against the edge's direction
            drawing.link(source, target, way.label, dashed=way.hops is not None)
