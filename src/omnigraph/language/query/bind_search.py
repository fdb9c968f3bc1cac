"""Semantic analysis of search functions: text matches and scores of node variables."""

from typing import Protocol, assert_never

from omnigraph.errors import ParseError
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Expression
from omnigraph.language.plan.walk import find_variables
from omnigraph.language.query import syntax
from omnigraph.language.query.scope import Context, EdgeVariable, NodeVariable, Scope
from omnigraph.model.analyzer import DEFAULT_ANALYZER, Analyzer
from omnigraph.model.suggest import suggest
from omnigraph.model.types import INTEGER_SCALARS, PropertyType

RRF_K_DEFAULT = 60


class _Expressions(Protocol):
    def bind_expression(self, written: syntax.Expression) -> Expression: ...


class SearchBinder:
    """Binder of the search functions in one scope."""

    def __init__(self, context: Context, scope: Scope, expressions: _Expressions) -> None:
        self._context = context
        self._scope = scope
        self._expressions = expressions

    def bind_search(self, written: syntax.TextMatch | syntax.Nearest | syntax.Bm25 | syntax.Rrf) -> Expression:
        """Bind a text match, which is a condition, or a score."""
        match written:
            case syntax.TextMatch():
                return self._bind_text_match(written)
            case syntax.Nearest() | syntax.Bm25():
                return self._bind_ranking(written)
            case syntax.Rrf():
                return self._bind_rrf(written)
            case _:
                assert_never(written)

    def _bind_ranking(self, written: syntax.Nearest | syntax.Bm25) -> ex.Nearest | ex.Bm25:
        match written:
            case syntax.Nearest():
                return self._bind_nearest(written)
            case syntax.Bm25():
                target = self._bind_text_field("T20", "bm25", written.target)
                return ex.Bm25(
                    target, self._bind_text_query("T20", "bm25", written.query), analyzer=self._find_analyzer(target)
                )

    # --- text -----------------------------------------------------------------------------------------------------

    def _bind_text_match(self, written: syntax.TextMatch) -> Expression:
        function = written.function
        code = "T20" if function is syntax.TextFunction.MATCH_TEXT else "T19"
        target = self._bind_text_field(code, function, written.target)
        query = self._bind_text_query(code, function, written.query)
        edits = None
        if written.max_edits is not None:
            edits = self._expressions.bind_expression(written.max_edits)
            if not _is_whole(edits):
                raise self._error(
                    written.max_edits, f"T19: fuzzy max_edits must be an integer scalar, got {edits.type}"
                )
            self._refuse_row_dependence("T19: fuzzy max_edits", written.max_edits, edits)
        return ex.TextMatch(function, target, query, edits, analyzer=self._find_analyzer(target))

    def _bind_text_field(self, code: str, function: str, written: syntax.Expression) -> ex.Property:
        self._refuse_edge(function, written)
        field = self._expressions.bind_expression(written)
        if not isinstance(field.type, PropertyType):
            raise self._error(written, f"{code}: {function} field must be a scalar String expression")
        if not field.type.is_string:
            raise self._error(written, f"{code}: {function} field must be String, got {field.type}")
        if not isinstance(field, ex.Property):
            raise self._error(written, f"{code}: {function} field must be a property, as in `$p.name`")
        return field

    def _find_analyzer(self, target: ex.Property) -> Analyzer:
        """Return the declared analyzer of a text property."""
        bound = self._scope.get(target.variable)
        found = bound.type.property_named(target.name) if isinstance(bound, NodeVariable) else None
        return DEFAULT_ANALYZER if found is None else found.analyzer

    def _bind_text_query(self, code: str, function: str, written: syntax.Expression) -> Expression:
        query = self._expressions.bind_expression(written)
        if not isinstance(query.type, PropertyType):
            raise self._error(written, f"{code}: {function} query must be a scalar String expression")
        if not query.type.is_string:
            raise self._error(written, f"{code}: {function} query must be String, got {query.type}")
        self._refuse_row_dependence(f"{code}: {function} query", written, query)
        return query

    # --- vectors --------------------------------------------------------------------------------------------------

    def _bind_nearest(self, written: syntax.Nearest) -> ex.Nearest:
        self._refuse_edge("nearest", written.target)
        target, model = self._bind_vector_field(written.target)
        assert target.type.vector_dim is not None
        query = self._expressions.bind_expression(written.query)
        self._check_vector_query(written.query, query, target.type.vector_dim)
        self._refuse_row_dependence("T15: nearest query", written.query, query)
        return ex.Nearest(target, query, model=model)

    def _bind_vector_field(self, written: syntax.Property) -> tuple[ex.Property, str | None]:
        """Bind a vector property, and return the model of its vectors."""
        bound = self._scope.get(written.variable)
        if not isinstance(bound, NodeVariable):
            raise self._error(written, f"T15: variable `${written.variable}` is not bound")
        found = bound.type.property_named(written.name)
        if found is None:
            hint = suggest(
                written.name, (property_.name for property_ in bound.type.properties if property_.type.is_vector)
            )
            message = f"T15: type `{bound.type.name}` has no property `{written.name}`"
            raise self._context.error(written.span, message, hint=hint)
        if not found.type.is_vector:
            raise self._error(
                written, f"T15: nearest requires a Vector property, got {bound.type.name}.{written.name}: {found.type}"
            )
        model = None if found.embed is None else found.embed.model
        return ex.Property(written.variable, written.name, found.type), model

    def _check_vector_query(self, written: syntax.Expression, query: Expression, dimension: int) -> None:
        mismatch = f"T15: nearest vector dimension mismatch: property is Vector({dimension}), query"
        if not isinstance(query.type, PropertyType):
            raise self._error(written, "T15: nearest query must be a scalar expression")
        if query.type.is_vector:
            if query.type.vector_dim != dimension:
                raise self._error(written, f"{mismatch} is Vector({query.type.vector_dim})")
            return
        if isinstance(query, ex.Constant) and isinstance(query.value, tuple) and query.type.element.is_numeric:
            if len(query.value) != dimension:
                raise self._error(written, f"{mismatch} literal has {len(query.value)} elements")
            return
        if not query.type.is_string:
            raise self._error(written, f"T15: nearest query must be Vector({dimension}) or String, got {query.type}")

    # --- fusion ---------------------------------------------------------------------------------------------------

    def _bind_rrf(self, written: syntax.Rrf) -> ex.Rrf:
        first, second = self._bind_ranking(written.first), self._bind_ranking(written.second)
        if first.target.variable != second.target.variable:
            raise self._error(
                written,
                f"T21: rrf must rank one variable, got `${first.target.variable}` and `${second.target.variable}`",
            )
        k: Expression = ex.Constant(RRF_K_DEFAULT, ex.I64)
        if written.k is not None:
            k = self._expressions.bind_expression(written.k)
            if not _is_whole(k):
                raise self._error(written.k, f"T21: rrf k must be an integer scalar, got {k.type}")
            if isinstance(k, ex.Constant) and isinstance(k.value, int) and k.value <= 0:
                raise self._error(written.k, "T21: rrf k must be greater than 0")
            self._refuse_row_dependence("T21: rrf k", written.k, k)
        return ex.Rrf(first, second, k)

    # --- what none of them may do -----------------------------------------------------------------------------------

    def _refuse_edge(self, function: str, written: syntax.Expression) -> None:
        if isinstance(written, syntax.Property) and isinstance(self._scope.get(written.variable), EdgeVariable):
            raise self._error(
                written,
                f"T23: {function} cannot target edge property `${written.variable}.{written.name}`; "
                "only node properties can be searched",
            )

    def _refuse_row_dependence(self, what: str, written: syntax.Expression, bound: Expression) -> None:
        if find_variables(bound):
            raise self._error(written, f"{what} must not depend on the row; use a literal or a parameter")

    def _error(self, written: syntax.Expression, message: str) -> ParseError:
        return self._context.error(written.span, message)


def _is_whole(bound: Expression) -> bool:
    return isinstance(bound.type, PropertyType) and bound.type.scalar in INTEGER_SCALARS and not bound.type.list
