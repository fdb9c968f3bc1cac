"""Semantic analysis: resolve every name and check every type of a query."""

from dataclasses import dataclass, replace

from omnigraph import limits
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.pattern import Block, Count, Read, Window
from omnigraph.language.plan.steps import MutationStep
from omnigraph.language.query import statements, syntax
from omnigraph.language.query.bind_mutation import bind_statements, refuse_mixture
from omnigraph.language.query.bind_pattern import PatternBinder
from omnigraph.language.query.bind_return import NodeObjects, ReturnBinder, expand_projections
from omnigraph.language.query.format import format_parameter_type
from omnigraph.language.query.scope import Context, Scope
from omnigraph.language.text import Source
from omnigraph.model.schema import Schema
from omnigraph.model.suggest import suggest
from omnigraph.model.types import INTEGER_SCALARS, PropertyType, Scalar

RESERVED_PARAMETER = "__nanograph_now"


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query that is valid for a schema.

    Attributes:
        syntax: syntax tree of the query.
        parameters: declared parameters, in order.
        body: a typed read, or the steps of a mutation.
        objects: nodes that are returned as objects; the columns of their properties follow that of the node.
    """

    syntax: statements.Query
    parameters: tuple[ex.Parameter, ...]
    body: Read | tuple[MutationStep, ...]
    objects: NodeObjects = ()


def bind(query: statements.Query, schema: Schema, source: Source, *, objects: bool = False) -> BoundQuery:
    """Resolve the names and check the types of a query; with `objects`, whole nodes are returned in place of ids.

    Raises:
        ParseError: a type error; the report shows where.
        InvalidRequestError: a mutation mixes inserts or updates with deletes and is not marked `@ordered`.
    """
    context = Context(source, schema, {})
    parameters = tuple(_bind_parameter(context, parameter) for parameter in query.parameters)
    if isinstance(query.body, statements.Mutation):
        refuse_mixture(query, query.body)
        return BoundQuery(query, parameters, bind_statements(context, query.body.statements))
    if query.ordered:
        raise context.error(query.span, f"query `{query.name}` reads; @ordered is for mutations")
    patterns = PatternBinder(context, None)
    block = patterns.bind(query.body.clauses)
    read, nodes = expand_projections(context, patterns.scope, query.body, objects=objects)
    body = _bind_read(context, patterns.scope, block, read)
    return BoundQuery(replace(query, body=read), parameters, body, nodes)


def _bind_parameter(context: Context, written: statements.Parameter) -> ex.Parameter:
    if written.name == RESERVED_PARAMETER:
        raise context.error(
            written.span, f"parameter name `${written.name}` is reserved for runtime timestamp injection"
        )
    if written.name in context.parameters:
        raise context.error(written.span, f"parameter `${written.name}` is declared twice")
    type_ = PropertyType(
        Scalar(written.type.base),
        nullable=written.type.nullable,
        list=written.type.is_list,
        vector_dim=written.type.dimension,
    )
    if type_.vector_dim is not None and not 1 <= type_.vector_dim <= limits.VECTOR_DIMENSION_MAX:
        raise context.error(
            written.type.span,
            f"unknown parameter type `{format_parameter_type(written.type).removesuffix('?')}` for `${written.name}`",
        )
    context.parameters[written.name] = type_
    return ex.Parameter(written.name, type_)


def _bind_read(context: Context, scope: Scope, block: Block, read: statements.Read) -> Read:
    returned = ReturnBinder(context, scope, read)
    columns = returned.bind_columns()
    order = returned.bind_order(columns)
    window = Window(_bind_count(context, "limit", read.limit), _bind_count(context, "offset", read.offset))
    return Read(block, columns, returned.is_aggregate, read.distinct, order, window, scope.entities())


def _bind_count(context: Context, word: str, written: syntax.Literal | syntax.Variable | None) -> Count | None:
    if written is None:
        return None
    if isinstance(written, syntax.Literal):
        assert isinstance(written.value, int)
        return ex.Constant(written.value, PropertyType(Scalar.U64))
    type_ = context.parameters.get(written.name)
    if type_ is None:
        raise context.error(
            written.span,
            f"variable `${written.name}` is not bound",
            hint=suggest(f"${written.name}", (f"${name}" for name in context.parameters))
            or f"declare it: `${written.name}: I64`",
        )
    if type_.scalar not in INTEGER_SCALARS or type_.list or type_.nullable:
        raise context.error(
            written.span, f"T26: {word} requires an integer parameter that is always given, got {type_}"
        )
    return ex.Parameter(written.name, type_)
