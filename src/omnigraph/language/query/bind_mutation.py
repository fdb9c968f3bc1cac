"""Semantic analysis of mutations."""

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from omnigraph.errors import InvalidRequestError, ParseError
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import TARGET, End, Expression
from omnigraph.language.query import bind_values, statements, syntax
from omnigraph.language.query.bind_expression import ExpressionBinder
from omnigraph.language.query.scope import Context
from omnigraph.language.text import Span
from omnigraph.model.schema import EdgeType, EntityType, NodeType, Property
from omnigraph.model.suggest import suggest
from omnigraph.model.types import PropertyType

_ENDS = {end.value: end for end in End}


def bind_statements(context: Context, body: Iterable[statements.Statement]) -> tuple[steps.MutationStep, ...]:
    """Bind the steps of a mutation.

    Raises:
        ParseError: a statement has a type error.
    """
    return tuple(_StatementBinder(context, statement).bind() for statement in body)


def refuse_mixture(query: statements.Query, body: statements.Mutation) -> None:
    """Refuse inserts or updates beside deletes, unless the query is `@ordered`.

    Raises:
        InvalidRequestError: they are mixed.
    """
    deletes = sum(isinstance(statement, statements.Delete) for statement in body.statements)
    if deletes in (0, len(body.statements)) or query.ordered:
        return
    raise InvalidRequestError(
        f"mutation '{query.name}' on the same query mixes inserts/updates and deletes; "
        "split into separate mutations: (1) inserts and updates, then (2) deletes"
    )


class _StatementBinder:
    def __init__(self, context: Context, statement: statements.Statement) -> None:
        self._context = context
        self._statement = statement
        self._type = self._resolve_target()
        # Only an update has rows whose old values new ones may come from.
        owner = self._type if not isinstance(statement, statements.Insert) else None
        self._expressions = MutationExpressions(context, owner)

    def bind(self) -> steps.MutationStep:
        match self._statement:
            case statements.Insert():
                return self._bind_insert(self._statement)
            case statements.Update():
                return self._bind_update(self._statement)
            case statements.Delete():
                return self._bind_delete(self._statement)
            case _:
                assert_never(self._statement)

    @property
    def _verb(self) -> str:
        return "upsert" if isinstance(self._statement, statements.Insert) and self._statement.keeps else "insert"

    def _resolve_target(self) -> EntityType:
        """Return the target type: a node type of exactly this name, else an edge type."""
        name = self._statement.type_name
        schema = self._context.schema
        node = schema.node(name)
        if node is not None:
            return node
        edge = schema.edge(name)
        if edge is None or edge.name != name:
            hint = suggest(name, (entity.name for entity in schema.entities))
            if schema.interface(name) is not None:
                hint = f"`{name}` is an interface; write to the node types that implement it"
            raise self._error(self._statement.span, f"T10: unknown node/edge type `{name}`", hint=hint)
        return edge

    # --- statements -----------------------------------------------------------------------------------------------

    def _bind_insert(self, statement: statements.Insert) -> steps.MutationStep:
        if statement.keeps and not self._type.is_keyed:
            raise self._error(
                statement.span,
                f"T12: upsert needs a key, and `{self._type.name}` has none",
                hint="an entity is found by its `@key`; use `insert`, or `update … where …`",
            )
        self._refuse_repeats(statement.assignments)
        if isinstance(self._type, NodeType):
            assignments = self._bind_assignments(statement.assignments)
            self._require_properties(statement)
            return steps.InsertNode(self._type.name, assignments, self._type.is_keyed, statement.keeps)
        ends = {assignment.property: assignment for assignment in statement.assignments if assignment.property in _ENDS}
        assignments = self._bind_assignments(
            assignment for assignment in statement.assignments if assignment.property not in _ENDS
        )
        for end in End:
            if end not in ends:
                raise self._error(
                    statement.span,
                    f"T12: {self._verb} for `{self._type.name}` must provide required endpoint `{end}`",
                    hint=f"give the id of the {self._end_type(self._type, end)} node: `{end}: $id`",
                )
        self._require_properties(statement)
        values = {
            name: bind_values.bind_assignment(self._expressions, name, ex.STRING, assignment.value)
            for name, assignment in ends.items()
        }
        return steps.InsertEdge(
            self._type.name,
            self._type.from_type.type_name,
            self._type.to_type.type_name,
            values[End.FROM],
            values[End.TO],
            assignments,
            self._type.is_keyed,
            statement.keeps,
        )

    def _bind_update(self, statement: statements.Update) -> steps.MutationStep:
        if isinstance(self._type, EdgeType):
            raise self._error(
                statement.span,
                f"T16: update mutation for edge type `{self._type.name}` is not supported",
                hint="delete the edge and insert it again",
            )
        self._refuse_repeats(statement.assignments)
        assignments = self._bind_assignments(statement.assignments)
        key = {property_.name for property_ in self._type.key}
        for assignment in statement.assignments:
            if assignment.property in key:
                raise self._error(
                    assignment.span,
                    f"cannot update @key property '{assignment.property}' — delete and re-insert instead",
                )
        return steps.UpdateNodes(self._type.name, assignments, self._expressions.bind_predicate(statement.where))

    def _bind_delete(self, statement: statements.Delete) -> steps.MutationStep:
        condition = self._expressions.bind_predicate(statement.where)
        if isinstance(self._type, EdgeType):
            return steps.DeleteEdges(self._type.name, condition)
        edges = tuple(edge.name for edge in self._context.schema.edges_of(self._type.name))
        return steps.DeleteNodes(self._type.name, condition, edges)

    # --- assignments ----------------------------------------------------------------------------------------------

    def _bind_assignments(self, assignments: Iterable[syntax.Assignment]) -> tuple[steps.Assign, ...]:
        bound = []
        for assignment in assignments:
            found = self._type.property_named(assignment.property)
            if found is None:
                raise unknown_property_error(self._context, assignment.span, assignment.property, self._type)
            value = bind_values.bind_assignment(self._expressions, found.name, found.type, assignment.value)
            bound.append(steps.Assign(found.name, found.type, value))
        return tuple(bound)

    def _refuse_repeats(self, assignments: Iterable[syntax.Assignment]) -> None:
        seen: set[str] = set()
        for assignment in assignments:
            if assignment.property in seen:
                raise self._error(assignment.span, f"T13: duplicate assignment for property `{assignment.property}`")
            seen.add(assignment.property)

    def _require_properties(self, statement: statements.Insert) -> None:
        given = {assignment.property for assignment in statement.assignments}
        # An upsert may leave out what only a new entity needs: whether there is one is known when it runs.
        key = (
            {property_.name for property_ in self._type.key}
            if isinstance(self._type, NodeType)
            else self._type.key_names
        )
        for property_ in self._type.properties:
            if property_.type.nullable or property_.name in given or (statement.keeps and property_.name not in key):
                continue
            source = _find_embed_source(property_)
            if source in given:
                continue
            name = f"`{property_.name}`" if source is None else f"`{property_.name}` or @embed source `{source}`"
            raise self._error(
                statement.span, f"T12: {self._verb} for `{self._type.name}` must provide non-nullable property {name}"
            )

    def _end_type(self, edge: EdgeType, end: End) -> str:
        return edge.from_type.type_name if end is End.FROM else edge.to_type.type_name

    def _error(self, span: Span, message: str, *, hint: str = "") -> ParseError:
        return self._context.error(span, message, hint=hint)


def _find_embed_source(declared: Property) -> str | None:
    return declared.embed.source.property_name if declared.embed is not None else None


def unknown_property_error(context: Context, span: Span, name: str, owner: EntityType) -> ParseError:
    """Return the error for a property that a mutation's target does not have."""
    known = [property_.name for property_ in owner.properties]
    hint = suggest(name, known if isinstance(owner, NodeType) else [*known, *_ENDS])
    if name == "id":
        hint = "ids are not written; they come from the key, or are made"
    elif name in ("src", "dst") and isinstance(owner, EdgeType):
        hint = "an edge's ends are called `from` and `to`"
    return context.error(span, f"T11: type `{owner.name}` has no property `{name}`", hint=hint)


class MutationExpressions(ExpressionBinder):
    """Expressions of one statement: bare names are properties, variables are parameters."""

    def __init__(self, context: Context, owner: EntityType | None) -> None:
        super().__init__(context)
        self._owner = owner

    def bind_predicate(self, written: syntax.Expression) -> Expression:
        """Bind the `where` condition."""
        return self.bind_condition(written)

    def bind_expression(self, written: syntax.Expression) -> Expression:
        """Bind an expression; a property compared with a plain value is checked by the property's type."""
        if (
            isinstance(written, syntax.Comparison)
            and isinstance(written.left, syntax.Name)
            and isinstance(written.right, syntax.Literal | syntax.ListLiteral | syntax.Variable | syntax.Now)
            and written.op not in (syntax.ComparisonOp.CONTAINS, syntax.ComparisonOp.STARTS_WITH)
        ):
            return self._bind_property_comparison(written, written.left, written.right)
        return super().bind_expression(written)

    def _bind_property_comparison(
        self,
        written: syntax.Comparison,
        name: syntax.Name,
        right: syntax.Literal | syntax.ListLiteral | syntax.Variable | syntax.Now,
    ) -> Expression:
        left = self.bind_name(name)
        assert isinstance(left.type, PropertyType)
        value: Expression
        if isinstance(right, syntax.Literal | syntax.ListLiteral):
            # As in every filter, the values of an enum are not checked: one that is none matches nothing.
            string = isinstance(right, syntax.Literal) and right.kind is syntax.LiteralKind.STRING
            checked = replace(left.type, enum_values=None) if string else left.type
            value = bind_values.convert_literal(self, name.name, checked, right)
            if isinstance(value.type, ex.NullValue):
                raise self.error(
                    written.span,
                    f"T3: property `{name.name}` has type {left.type} but got null",
                    hint=f"nothing equals null; write `{name.name} is null`",
                )
        else:
            value = bind_values.bind_comparand(self, name.name, left.type, right)
        if left.type.list or left.type.is_vector:
            raise self.error(
                written.span,
                "T7: list comparisons in filters are not supported; use `contains` for list membership"
                if left.type.list
                else "T7: vector comparisons in filters are not supported",
            )
        return ex.Compare(ex.CompareOp(written.op), left, value)

    def bind_variable(self, written: syntax.Variable) -> Expression:
        """Bind a parameter; mutations have no other variables."""
        parameter = self.find_parameter(written)
        if parameter is None:
            raise self._no_parameter(written.name, written.span)
        return parameter

    def bind_property(self, written: syntax.Property) -> Expression:
        """Refuse `$x.p`: mutations have no patterns."""
        if written.variable not in self._context.parameters:
            raise self._no_parameter(written.variable, written.span)
        raise self.error(
            written.span,
            f"T6: variable `${written.variable}` is not bound",
            hint="a parameter is a value and has no properties",
        )

    def _no_parameter(self, name: str, span: Span) -> ParseError:
        hint = suggest(f"${name}", (f"${parameter}" for parameter in self._context.parameters))
        return self.error(span, f"T14: mutation variable `${name}` must be a declared query parameter", hint=hint)

    def bind_name(self, written: syntax.Name) -> Expression:
        """Bind a property of the row, or an end of the edge."""
        if self._owner is None:
            raise self.error(
                written.span,
                f"`{written.name}` names nothing here; there is no row yet to take it from",
                hint=f"strings stand in double quotes, parameters start with `$`: `${written.name}`",
            )
        found = self._owner.property_named(written.name)
        if found is None:
            if isinstance(self._owner, EdgeType) and written.name in _ENDS:
                return ex.Endpoint(TARGET, _ENDS[written.name])
            raise unknown_property_error(self._context, written.span, written.name, self._owner)
        if found.type.is_blob:
            raise self.error(written.span, f"T11: blob property `{found.name}` cannot be used in WHERE predicates")
        return ex.Property(TARGET, found.name, found.type)

    def bind_exists(self, written: syntax.Exists) -> Expression:
        """Refuse `exists`: predicates of mutations concern one row."""
        raise self.error(written.span, "T26: exists { … } is a condition of `match`; it cannot stand here")

    def bind_search(self, written: syntax.TextMatch | syntax.Nearest | syntax.Bm25 | syntax.Rrf) -> Expression:
        """Refuse searches: predicates of mutations do not search."""
        raise self.error(written.span, "search functions stand in reads only")
