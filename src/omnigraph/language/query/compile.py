"""Compile query texts: parse, bind, plan, and cache by text and schema."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.language.plan import explain as plan_explain
from omnigraph.language.plan.build import build
from omnigraph.language.plan.expressions import Parameter
from omnigraph.language.plan.pattern import Read
from omnigraph.language.plan.rewrite import rewrite
from omnigraph.language.plan.steps import MutationPlan, Plan, ReadPlan, ResultColumn
from omnigraph.language.query import statements
from omnigraph.language.query.bind import BoundQuery, bind
from omnigraph.language.query.bind_mutation import refuse_mixture
from omnigraph.language.query.bind_return import NodeObjects
from omnigraph.language.query.describe import Operation, describe
from omnigraph.language.query.params import Params, bind_values
from omnigraph.language.query.parse import parse_source
from omnigraph.language.text import Source
from omnigraph.lru import LruCache
from omnigraph.model.schema import Schema
from omnigraph.model.schema_document import digest


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A compiled query, reusable on every snapshot with its schema.

    Attributes:
        name: declared name.
        is_mutation: True if it writes.
        parameters: declared parameters, in order.
        columns: result columns; empty for a mutation.
        plan: optimized logical plan.
        operation: types it returns, reads and writes, for tools.
        bound: typed query the plan was built from.
        schema_digest: digest of the schema it was compiled against.
        counts: parameters used as limit or offset.
        objects: nodes returned as objects; see `BoundQuery`.
    """

    name: str
    is_mutation: bool
    parameters: tuple[Parameter, ...]
    columns: tuple[ResultColumn, ...]
    plan: Plan
    operation: Operation
    bound: BoundQuery
    schema_digest: str
    counts: frozenset[str]
    objects: NodeObjects = ()


def _find_counts(bound: BoundQuery) -> Iterator[str]:
    if isinstance(bound.body, Read):
        for count in (bound.body.window.count, bound.body.window.skip):
            if isinstance(count, Parameter):
                yield count.name


_compiled: LruCache[Hashable, CompiledQuery] = LruCache(limits.COMPILED_QUERIES_MAX)
_digests: LruCache[Hashable, tuple[Schema, str]] = LruCache(limits.SCHEMA_DIGESTS_MAX)


def compile(
    text: str | bytes,
    schema: Schema,
    *,
    name: str | None = None,
    schema_digest: str | None = None,
    objects: bool = False,
) -> CompiledQuery:
    """Compile one query of a text against a schema, or return it from the cache.

    Args:
        text: query file.
        schema: schema to resolve names in.
        name: may be omitted if the file has one query.
        schema_digest: digest of the schema, if already known.
        objects: return nodes as objects with all properties, not as ids.

    Raises:
        ParseError: a syntax or type error.
        InvalidRequestError: the query does not exist, or a mutation mixes statements that must not be mixed.
        LimitError: the text is too long.
    """
    known = schema_digest if schema_digest is not None else _compute_digest(schema)
    return _compiled.get_or_make(
        (text, name, known, objects), lambda: compile_uncached(text, schema, name, known, objects=objects)
    )


def wrong_under_any_schema(text: str | bytes, name: str | None) -> bool:
    """True if `compile` refuses a text for every schema: a syntax error, or an unsupported mix of statements."""
    try:
        query = select_query(parse_source(Source(text, "query text")), name)
        if isinstance(query.body, statements.Mutation):
            refuse_mixture(query, query.body)
    except GraphError:
        return True
    return False


def find_compiled(
    text: str | bytes, name: str | None, schema_digest: str, *, objects: bool = False
) -> CompiledQuery | None:
    """Return the cached query, if this text was compiled against this schema."""
    return _compiled.get((text, name, schema_digest, objects))


def _compute_digest(schema: Schema) -> str:
    # Hashing a schema takes longer than everything else here. The entry keeps the object, so its id stays its own.
    return _digests.get_or_make(id(schema), lambda: (schema, digest(schema)))[1]


def compile_uncached(
    text: str | bytes, schema: Schema, name: str | None, schema_digest: str, *, objects: bool = False
) -> CompiledQuery:
    """Compile without the cache; see `compile`."""
    source = Source(text, "query text")
    return compile_query(select_query(parse_source(source), name), schema, source, schema_digest, objects=objects)


def compile_query(
    query: statements.Query, schema: Schema, source: Source, schema_digest: str, *, objects: bool = False
) -> CompiledQuery:
    """Bind and plan one parsed query; see `compile`."""
    bound = bind(query, schema, source, objects=objects)
    plan: Plan
    columns: tuple[ResultColumn, ...] = ()
    if isinstance(bound.body, Read):
        plan = rewrite(build(bound.body), schema)
        columns = plan.columns
    else:
        plan = MutationPlan(bound.body)
    return CompiledQuery(
        query.name,
        not isinstance(plan, ReadPlan),
        bound.parameters,
        columns,
        plan,
        describe(bound, schema),
        bound,
        schema_digest,
        frozenset(_find_counts(bound)),
        bound.objects,
    )


def select_query(file: statements.QueryFile, name: str | None) -> statements.Query:
    """Return the query of this name, the first if there are several; without a name, the only one.

    Raises:
        InvalidRequestError: the name is unknown or ambiguous.
    """
    if name is not None:
        for query in file.queries:
            if query.name == name:
                return query
        raise InvalidRequestError(f"query '{name}' not found")
    if not file.queries:
        raise InvalidRequestError("query file contains no queries")
    if len(file.queries) > 1:
        raise InvalidRequestError("query file contains multiple queries; pass --name")
    return file.queries[0]


def bind_params(compiled: CompiledQuery, json_params: object = None) -> Params:
    """Validate the parameter values of one run.

    Args:
        compiled: query with the declared parameters.
        json_params: a JSON object, or None for an empty one.

    Raises:
        InvalidRequestError: a value is missing, or not of its parameter's type.
    """
    return bind_values(compiled.parameters, json_params, counts=compiled.counts)


def explain(compiled: CompiledQuery) -> str:
    """Format the plan of a compiled query as indented text, under a line that names it."""
    parameters = ", ".join(f"${parameter.name}: {parameter.type}" for parameter in compiled.parameters)
    kind = "mutation" if compiled.is_mutation else "read"
    return f"{kind} {compiled.name}({parameters})\n{plan_explain.explain(compiled.plan)}"
