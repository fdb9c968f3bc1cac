"""Semantic analysis of `return` and `order`."""

from dataclasses import replace
from typing import assert_never

from omnigraph.errors import ParseError
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import (
    Aggregation,
    Column,
    DurationValue,
    EdgeValue,
    Expression,
    NodeValue,
    NullValue,
    PathValue,
    ValueType,
)
from omnigraph.language.plan.pattern import OrderKey
from omnigraph.language.query import statements, syntax
from omnigraph.language.query.bind_names import ReadExpressions
from omnigraph.language.query.format import format_expression
from omnigraph.language.query.scope import Context, EdgeVariable, NodeVariable, Scope
from omnigraph.language.text import Span
from omnigraph.model.suggest import suggest
from omnigraph.model.types import PropertyType, Scalar

_UNORDERABLE = (
    syntax.Literal,
    syntax.ListLiteral,
    syntax.Variable,
    syntax.Aggregate,
    syntax.Now,
    syntax.Exists,
)
_NO_GROUP_KEYS = (ex.Constant, ex.Now, ex.TextMatch, ex.Nearest, ex.Bm25, ex.Rrf)


def derive_column_name(written: syntax.Expression) -> str:
    """Return the name of a column without an alias."""
    match written:
        case syntax.Property():
            return f"{written.variable}.{written.name}"
        case syntax.Variable():
            return written.name
        case syntax.Literal() | syntax.ListLiteral():
            return "literal"
        case syntax.Aggregate():
            return "count" if written.argument is None else derive_column_name(written.argument)
        case syntax.Nearest():
            return "nearest"
        case syntax.Bm25():
            return "bm25"
        case syntax.Rrf():
            return "rrf"
        case syntax.TextMatch():
            return written.function.value
        case _:
            return format_expression(written).replace("$", "")


# Nodes returned as objects: the position of the node's column, and the properties whose columns follow it.
NodeObjects = tuple[tuple[int, tuple[str, ...]], ...]


def expand_projections(
    context: Context, scope: Scope, read: statements.Read, *, objects: bool
) -> tuple[statements.Read, NodeObjects]:
    """Replace `$p.*` by the properties of `$p`; with `objects`, add them after every node that is returned.

    Blobs are left out: no query returns them.

    Raises:
        ParseError: a type has no property to return.
    """
    expanded: list[statements.Projection] = []
    nodes = []
    for projection in read.projections:
        written = projection.value
        if isinstance(written, syntax.Property) and written.name == syntax.ALL_PROPERTIES:
            bound = scope.get(written.variable)
            if isinstance(bound, NodeVariable | EdgeVariable):
                names = _returnable(context, bound)
                if not names:
                    raise context.error(written.span, f"T6: `{bound.type.name}` has no property that can be returned")
                expanded += _project_each(projection, written.variable, names)
                continue
        expanded.append(projection)
        if objects and isinstance(written, syntax.Variable):
            bound = scope.get(written.name)
            if isinstance(bound, NodeVariable):
                names = _returnable(context, bound)
                nodes.append((len(expanded) - 1, names))
                expanded += _project_each(projection, written.name, names)
    return replace(read, projections=tuple(expanded)), tuple(nodes)


def _returnable(context: Context, bound: NodeVariable | EdgeVariable) -> tuple[str, ...]:
    declared = context.schema.declared_properties(bound.type)
    return tuple(property_.name for property_ in declared if not property_.type.is_blob)


def _project_each(
    projection: statements.Projection, variable: str, names: tuple[str, ...]
) -> list[statements.Projection]:
    span = projection.span
    return [statements.Projection(syntax.Property(variable, name, span=span), span=span) for name in names]


class ReturnBinder:
    """Binder of the `return` and `order` blocks of a read."""

    def __init__(self, context: Context, scope: Scope, read: statements.Read) -> None:
        self._context = context
        self._read = read
        self._expressions = ReadExpressions(context, scope)
        self.is_aggregate = any(isinstance(projection.value, syntax.Aggregate) for projection in read.projections)

    # --- columns --------------------------------------------------------------------------------------------------

    def bind_columns(self) -> tuple[Column, ...]:
        """Bind the columns of the result.

        Raises:
            ParseError: a value cannot be returned, or an alias is taken.
        """
        found = tuple(
            Column(projection.alias or derive_column_name(projection.value), self._bind_projection(projection))
            for projection in self._read.projections
        )
        self._refuse_taken_aliases()
        return found

    def _refuse_taken_aliases(self) -> None:
        """Refuse duplicate aliases: rows as JSON objects would lose a value.

        Columns without an alias may share a derived name, like a sum and the summed property.
        """
        named: dict[str, bool] = {}
        for projection in self._read.projections:
            name, is_alias = projection.alias or derive_column_name(projection.value), projection.alias is not None
            if name in named and (is_alias or named[name]):
                raise self._error(
                    projection.span,
                    f"column `{name}` is returned twice",
                    hint="give each column a name of its own with `as`",
                )
            named[name] = is_alias

    def _bind_projection(self, projection: statements.Projection) -> Expression | Aggregation:
        written = projection.value
        if isinstance(written, syntax.Aggregate):
            return self._bind_aggregation(written)
        if isinstance(written, syntax.Name):
            raise self._error(
                written.span,
                f"unsupported projection expression: {written.name}",
                hint="aliases are known to `order` only; properties are written `$p.name`",
            )
        value = self._expressions.bind_value(written)
        match value.type:
            case PathValue():
                hint = (
                    f"a path has length(${value.variable}) and nodes(${value.variable})"
                    if isinstance(value, ex.Path)
                    else ""
                )
                raise self._error(written.span, "T25: a path cannot be returned", hint=hint)
            case DurationValue():
                raise self._error(
                    written.span, "T25: a duration cannot be returned", hint="days_between(a, b) gives a number"
                )
            case NullValue():
                raise self._error(written.span, "T25: null alone cannot be returned")
            case _:
                pass
        if self.is_aggregate and isinstance(value, _NO_GROUP_KEYS):
            raise self._error(
                written.span,
                "T9: non-aggregate expressions in an aggregate query must be property accesses or variables",
            )
        return value

    def _bind_aggregation(self, written: syntax.Aggregate) -> Aggregation:
        function = written.function
        if written.argument is None:
            return Aggregation(function, None, distinct=False, type=ex.I64)
        if isinstance(written.argument, syntax.Aggregate):
            raise self._error(written.argument.span, "aggregates cannot be nested")
        argument = self._expressions.bind_value(written.argument)
        result = self._aggregate_type(function, argument.type, written.span)
        return Aggregation(function, argument, written.distinct, result)

    def _aggregate_type(self, function: ex.AggregateFunction, type_: ValueType, span: Span) -> PropertyType:
        match function:
            case ex.AggregateFunction.COUNT:
                return ex.I64
            case ex.AggregateFunction.SUM | ex.AggregateFunction.AVG:
                if isinstance(type_, PropertyType) and type_.is_numeric:
                    return ex.NULLABLE_F64
                raise self._error(span, f"T8: {function} requires numeric type, got {type_}")
            case ex.AggregateFunction.MIN | ex.AggregateFunction.MAX:
                if isinstance(type_, PropertyType) and (type_.is_numeric or type_.is_string):
                    return replace(type_, nullable=True)
                raise self._error(span, f"T8: {function} requires numeric or string type, got {type_}")
            case ex.AggregateFunction.COLLECT:
                if isinstance(type_, NodeValue):
                    return PropertyType(Scalar.STRING, list=True)
                if isinstance(type_, PropertyType) and not type_.list and not type_.is_vector:
                    return PropertyType(type_.scalar, list=True)
                raise self._error(span, f"T8: collect requires single values or nodes, got {type_}")
            case _:
                assert_never(function)

    # --- order ----------------------------------------------------------------------------------------------------

    def bind_order(self, columns: tuple[Column, ...]) -> tuple[OrderKey, ...]:
        """Bind the sort keys.

        Raises:
            ParseError: a value cannot be sorted by, or needs a limit that is missing.
        """
        keys = tuple(self._bind_key(key, columns) for key in self._read.ordering)
        values = [self._find_ranking(key, columns) for key in keys]
        if self._read.limit is None:
            for ranked, written in zip(values, self._read.ordering, strict=True):
                if isinstance(ranked, ex.Nearest):
                    raise self._error(written.span, "T17: nearest ordering requires a limit clause")
                if isinstance(ranked, ex.Rrf):
                    raise self._error(written.span, "T21: rrf ordering requires a limit clause")
        if any(isinstance(key.value, syntax.Nearest) for key in self._read.ordering):
            for key_syntax in self._read.ordering:
                if isinstance(key_syntax.value, syntax.Name):
                    raise self._error(
                        key_syntax.span, "T18: alias-based ordering is not supported together with nearest in phase 1"
                    )
        return keys

    def _find_ranking(self, key: OrderKey, columns: tuple[Column, ...]) -> Expression | Aggregation:
        return columns[key.value.position].value if isinstance(key.value, ex.Output) else key.value

    def _bind_key(self, written: statements.Ordering, columns: tuple[Column, ...]) -> OrderKey:
        by_column = self.is_aggregate or self._read.distinct
        if isinstance(written.value, syntax.Name):
            position = self._find_alias(written.value)
            column = columns[position]
            self._require_orderable(written, column.type)
            if by_column or isinstance(column.value, Aggregation):
                return OrderKey(ex.Output(position, column.name, column.type), written.descending)
            return OrderKey(column.value, written.descending)
        if isinstance(written.value, _UNORDERABLE):
            hint = "order by properties, aliases, scores, or functions of them"
            if isinstance(written.value, syntax.Aggregate):
                hint = "give it an alias in `return` and order by the alias"
            raise self._error(written.span, "unsupported ordering expression", hint=hint)
        value = self._expressions.bind_value(written.value)
        self._require_orderable(written, value.type)
        # The best come first, whatever was written: greater scores, smaller distances.
        descending = written.descending or isinstance(value, ex.Bm25 | ex.Rrf)
        ranks = isinstance(value, ex.Nearest | ex.Bm25 | ex.Rrf)
        if not by_column:
            return OrderKey(value, descending, ranks)
        for position, column in enumerate(columns):
            if column.value == value:
                return OrderKey(ex.Output(position, column.name, column.type), descending, ranks)
        what = "an aggregate query" if self.is_aggregate else "return distinct"
        raise self._error(
            written.span, f"unsupported ordering expression: {what} can be ordered only by what it returns"
        )

    def _find_alias(self, written: syntax.Name) -> int:
        aliases = [projection.alias for projection in self._read.projections]
        if written.name not in aliases:
            known = [alias for alias in aliases if alias is not None]
            hint = suggest(written.name, known) or "name a column in `return` with `as`, or order by `$p.name`"
            raise self._error(written.span, f"alias '{written.name}' not found for ordering", hint=hint)
        return aliases.index(written.name)

    def _require_orderable(self, written: statements.Ordering, type_: ValueType) -> None:
        if isinstance(type_, PropertyType):
            if not (type_.list or type_.is_vector):
                return
        elif isinstance(type_, NodeValue | EdgeValue | DurationValue):
            return
        raise self._error(written.span, f"unsupported ordering expression: {type_} has no order")

    def _error(self, span: Span, message: str, *, hint: str = "") -> ParseError:
        return self._context.error(span, message, hint=hint)
