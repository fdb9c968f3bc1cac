"""Query texts to compiled queries: parsed, bound, planned, and remembered by text and schema."""

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
from omnigraph.language.query import syntax
from omnigraph.language.query.bind import BoundQuery, bind
from omnigraph.language.query.bind_mutation import refuse_mixture
from omnigraph.language.query.describe import Operation, describe
from omnigraph.language.query.params import Params, bind_values
from omnigraph.language.query.parse import parse_source
from omnigraph.language.text import Source
from omnigraph.lru import LruCache
from omnigraph.model.schema import Schema
from omnigraph.model.schema_document import digest


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query ready to be run any number of times, on any snapshot with its schema.

    Attributes:
        name: the query's name.
        is_mutation: whether it writes.
        parameters: the declared ones, in order.
        columns: of the result; none for a mutation.
        plan: how it is answered.
        operation: what it returns, reads and writes, for tools.
        bound: the typed query the plan was made from.
        schema_digest: of the schema it was compiled against.
        counts: the parameters that say how many rows to return or to skip.
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


def _counts(bound: BoundQuery) -> Iterator[str]:
    if isinstance(bound.body, Read):
        for count in (bound.body.window.count, bound.body.window.skip):
            if isinstance(count, Parameter):
                yield count.name


_compiled: LruCache[Hashable, CompiledQuery] = LruCache(limits.COMPILED_QUERIES_MAX)
_digests: LruCache[Hashable, tuple[Schema, str]] = LruCache(limits.SCHEMA_DIGESTS_MAX)


def compile(
    text: str | bytes, schema: Schema, *, name: str | None = None, schema_digest: str | None = None
) -> CompiledQuery:
    """Compile one query of a text against a schema.

    Args:
        text: a query file.
        schema: what it is about.
        name: which query; may be left out where there is only one.
        schema_digest: of the schema, from who knows it; worked out otherwise.

    Returns:
        The compiled query, from memory if this text was compiled against this schema before.

    Raises:
        ParseError: the text is wrong, or the query not well typed.
        InvalidRequestError: there is no such query, or a mutation mixes what must not be mixed.
        LimitError: the text is too long.
    """
    known = schema_digest if schema_digest is not None else _digest_of(schema)
    return _compiled.get_or_make((text, name, known), lambda: compile_anew(text, schema, name, known))


def wrong_under_any_schema(text: str | bytes, name: str | None) -> bool:
    """Whether a text is refused before its types are looked at: it is not well formed, or mixes what must not be mixed.

    Args:
        text: a query file.
        name: which query; may be left out where there is only one.

    Returns:
        Whether `compile` refuses it against every schema.
    """
    try:
        query = select(parse_source(Source(text, "query text")), name)
        if isinstance(query.body, syntax.Mutation):
            refuse_mixture(query, query.body)
    except GraphError:
        return True
    return False


def compiled_before(text: str | bytes, name: str | None, schema_digest: str) -> CompiledQuery | None:
    """The compiled query, if this very text was compiled against this schema before and is still remembered."""
    return _compiled.get((text, name, schema_digest))


def _digest_of(schema: Schema) -> str:
    # Hashing a schema takes longer than everything else here. The entry keeps the object, so its id stays its own.
    return _digests.get_or_make(id(schema), lambda: (schema, digest(schema)))[1]


def compile_anew(text: str | bytes, schema: Schema, name: str | None, schema_digest: str) -> CompiledQuery:
    """Compile without looking into memory; see `compile`."""
    source = Source(text, "query text")
    return compile_query(select(parse_source(source), name), schema, source, schema_digest)


def compile_query(query: syntax.Query, schema: Schema, source: Source, schema_digest: str) -> CompiledQuery:
    """Bind and plan one parsed query; see `compile`."""
    bound = bind(query, schema, source)
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
        frozenset(_counts(bound)),
    )


def select(file: syntax.QueryFile, name: str | None) -> syntax.Query:
    """The query of this name, the first if there are several; without a name, the only one.

    Raises:
        InvalidRequestError: there is none, or it is not clear which is meant.
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
    """The values for one run of a compiled query.

    Args:
        compiled: the query.
        json_params: a JSON object, or None for an empty one.

    Returns:
        A value for every parameter.

    Raises:
        InvalidRequestError: a value is missing, or not of its parameter's type.
    """
    return bind_values(compiled.parameters, json_params, counts=compiled.counts)


def explain(compiled: CompiledQuery) -> str:
    """The plan of a compiled query as indented text, under a line that names it."""
    parameters = ", ".join(f"${each.name}: {each.type}" for each in compiled.parameters)
    kind = "mutation" if compiled.is_mutation else "read"
    return f"{kind} {compiled.name}({parameters})\n{plan_explain.explain(compiled.plan)}"
