"""Mutations, bound: what is written where, and which rows a predicate is about."""

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from omnigraph.errors import InvalidRequestError, ParseError
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import TARGET, End, Expression
from omnigraph.language.query import bind_values, syntax
from omnigraph.language.query.bind_expression import ExpressionBinder
from omnigraph.language.query.scope import Context
from omnigraph.language.text import Span
from omnigraph.model.schema import EdgeType, EntityType, NodeType, Property
from omnigraph.model.suggest import hint_for
from omnigraph.model.types import PropertyType

_ENDS = {end.value: end for end in End}


def bind_statements(context: Context, statements: Iterable[syntax.Statement]) -> tuple[steps.MutationStep, ...]:
    """The steps of a mutation.

    Raises:
        ParseError: a statement is not well typed.
    """
    return tuple(_StatementBinder(context, statement).bind() for statement in statements)


def refuse_mixture(query: syntax.Query, body: syntax.Mutation) -> None:
    """Refuse inserts or updates beside deletes, unless the query says that order matters.

    Raises:
        InvalidRequestError: they are mixed.
    """
    deletes = sum(isinstance(statement, syntax.Delete) for statement in body.statements)
    if deletes in (0, len(body.statements)) or query.ordered:
        return
    raise InvalidRequestError(
        f"mutation '{query.name}' on the same query mixes inserts/updates and deletes; "
        "split into separate mutations: (1) inserts and updates, then (2) deletes"
    )


class _StatementBinder:
    def __init__(self, context: Context, statement: syntax.Statement) -> None:
        self._context = context
        self._statement = statement
        self._type = self._target()
        # Only an update has rows whose old values new ones may come from.
        owner = self._type if not isinstance(statement, syntax.Insert) else None
        self._expressions = MutationExpressions(context, owner)

    def bind(self) -> steps.MutationStep:
        match self._statement:
            case syntax.Insert():
                return self._insert(self._statement)
            case syntax.Update():
                return self._update(self._statement)
            case syntax.Delete():
                return self._delete(self._statement)
            case _:
                assert_never(self._statement)

    def _target(self) -> EntityType:
        """The type written to: a node type of exactly this name, else an edge type."""
        name = self._statement.type_name
        schema = self._context.schema
        node = schema.node(name)
        if node is not None:
            return node
        edge = schema.edge(name)
        if edge is None or edge.name != name:
            hint = hint_for(name, (each.name for each in schema.entities))
            if schema.interface(name) is not None:
                hint = f"`{name}` is an interface; write to the node types that implement it"
            raise self._error(self._statement.span, f"T10: unknown node/edge type `{name}`", hint=hint)
        return edge

    # --- statements -----------------------------------------------------------------------------------------------

    def _insert(self, statement: syntax.Insert) -> steps.MutationStep:
        self._refuse_repeats(statement.assignments)
        if isinstance(self._type, NodeType):
            assignments = self._assign(statement.assignments)
            self._require_properties(statement)
            return steps.InsertNode(self._type.name, assignments, self._type.is_keyed)
        ends = {each.property: each for each in statement.assignments if each.property in _ENDS}
        assignments = self._assign(each for each in statement.assignments if each.property not in _ENDS)
        for end in End:
            if end not in ends:
                raise self._error(
                    statement.span,
                    f"T12: insert for `{self._type.name}` must provide required endpoint `{end}`",
                    hint=f"give the id of the {self._end_type(self._type, end)} node: `{end}: $id`",
                )
        self._require_properties(statement)
        values = {
            name: bind_values.assigned(self._expressions, name, ex.STRING, each.value) for name, each in ends.items()
        }
        return steps.InsertEdge(
            self._type.name,
            self._type.from_type.type_name,
            self._type.to_type.type_name,
            values[End.FROM],
            values[End.TO],
            assignments,
            self._type.is_keyed,
        )

    def _update(self, statement: syntax.Update) -> steps.MutationStep:
        if isinstance(self._type, EdgeType):
            raise self._error(
                statement.span,
                f"T16: update mutation for edge type `{self._type.name}` is not supported",
                hint="delete the edge and insert it again",
            )
        self._refuse_repeats(statement.assignments)
        assignments = self._assign(statement.assignments)
        key = {each.name for each in self._type.key}
        for each in statement.assignments:
            if each.property in key:
                raise self._error(
                    each.span, f"cannot update @key property '{each.property}' — delete and re-insert instead"
                )
        return steps.UpdateNodes(self._type.name, assignments, self._expressions.predicate(statement.where))

    def _delete(self, statement: syntax.Delete) -> steps.MutationStep:
        condition = self._expressions.predicate(statement.where)
        if isinstance(self._type, EdgeType):
            return steps.DeleteEdges(self._type.name, condition)
        edges = tuple(each.name for each in self._context.schema.edges_of(self._type.name))
        return steps.DeleteNodes(self._type.name, condition, edges)

    # --- assignments ----------------------------------------------------------------------------------------------

    def _assign(self, assignments: Iterable[syntax.Assignment]) -> tuple[steps.Assign, ...]:
        bound = []
        for each in assignments:
            found = self._type.property_named(each.property)
            if found is None:
                raise no_property(self._context, each.span, each.property, self._type)
            value = bind_values.assigned(self._expressions, found.name, found.type, each.value)
            bound.append(steps.Assign(found.name, found.type, value))
        return tuple(bound)

    def _refuse_repeats(self, assignments: Iterable[syntax.Assignment]) -> None:
        seen: set[str] = set()
        for each in assignments:
            if each.property in seen:
                raise self._error(each.span, f"T13: duplicate assignment for property `{each.property}`")
            seen.add(each.property)

    def _require_properties(self, statement: syntax.Insert) -> None:
        given = {each.property for each in statement.assignments}
        for each in self._type.properties:
            if each.type.nullable or each.name in given:
                continue
            source = _embed_source(each)
            if source in given:
                continue
            name = f"`{each.name}`" if source is None else f"`{each.name}` or @embed source `{source}`"
            raise self._error(
                statement.span, f"T12: insert for `{self._type.name}` must provide non-nullable property {name}"
            )

    def _end_type(self, edge: EdgeType, end: End) -> str:
        return edge.from_type.type_name if end is End.FROM else edge.to_type.type_name

    def _error(self, span: Span, message: str, *, hint: str = "") -> ParseError:
        return self._context.error(span, message, hint=hint)


def _embed_source(declared: Property) -> str | None:
    return declared.embed.source.property_name if declared.embed is not None else None


def no_property(context: Context, span: Span, name: str, owner: EntityType) -> ParseError:
    """The error for a property that a mutation's target does not have."""
    known = [each.name for each in owner.properties]
    hint = hint_for(name, known if isinstance(owner, NodeType) else [*known, *_ENDS])
    if name == "id":
        hint = "ids are not written; they come from the key, or are made"
    elif name in ("src", "dst") and isinstance(owner, EdgeType):
        hint = "an edge's ends are called `from` and `to`"
    return context.error(span, f"T11: type `{owner.name}` has no property `{name}`", hint=hint)


class MutationExpressions(ExpressionBinder):
    """Binds the values and predicates of one statement: bare names are properties, variables are parameters."""

    def __init__(self, context: Context, owner: EntityType | None) -> None:
        super().__init__(context)
        self._owner = owner

    def predicate(self, written: syntax.Expression) -> Expression:
        """The condition that says which rows are meant."""
        return self.condition(written)

    def expression(self, written: syntax.Expression) -> Expression:
        """The expression with its type; a property against a plain value is checked by the property's own rules."""
        if (
            isinstance(written, syntax.Comparison)
            and isinstance(written.left, syntax.Name)
            and isinstance(written.right, syntax.Literal | syntax.ListLiteral | syntax.Variable | syntax.Now)
            and written.op not in (syntax.ComparisonOp.CONTAINS, syntax.ComparisonOp.STARTS_WITH)
        ):
            return self._property_comparison(written, written.left, written.right)
        return super().expression(written)

    def _property_comparison(
        self,
        written: syntax.Comparison,
        name: syntax.Name,
        right: syntax.Literal | syntax.ListLiteral | syntax.Variable | syntax.Now,
    ) -> Expression:
        left = self.name(name)
        assert isinstance(left.type, PropertyType)
        value: Expression
        if isinstance(right, syntax.Literal | syntax.ListLiteral):
            # As in every filter, the values of an enum are not checked: one that is none matches nothing.
            string = isinstance(right, syntax.Literal) and right.kind is syntax.LiteralKind.STRING
            checked = replace(left.type, enum_values=None) if string else left.type
            value = bind_values.literal_of(self, name.name, checked, right)
            if isinstance(value.type, ex.NullValue):
                raise self.error(
                    written.span,
                    f"T3: property `{name.name}` has type {left.type} but got null",
                    hint=f"nothing equals null; write `{name.name} is null`",
                )
        else:
            value = bind_values.compared(self, name.name, left.type, right)
        if left.type.list or left.type.is_vector:
            raise self.error(
                written.span,
                "T7: list comparisons in filters are not supported; use `contains` for list membership"
                if left.type.list
                else "T7: vector comparisons in filters are not supported",
            )
        return ex.Compare(ex.CompareOp(written.op), left, value)

    def variable(self, written: syntax.Variable) -> Expression:
        """A parameter; nothing else has a `$` here."""
        parameter = self.parameter(written)
        if parameter is None:
            raise self._no_parameter(written.name, written.span)
        return parameter

    def property(self, written: syntax.Property) -> Expression:
        """Nothing: there are no patterns here."""
        if written.variable not in self._context.parameters:
            raise self._no_parameter(written.variable, written.span)
        raise self.error(
            written.span,
            f"T6: variable `${written.variable}` is not bound",
            hint="a parameter is a value and has no properties",
        )

    def _no_parameter(self, name: str, span: Span) -> ParseError:
        hint = hint_for(f"${name}", (f"${each}" for each in self._context.parameters))
        return self.error(span, f"T14: mutation variable `${name}` must be a declared query parameter", hint=hint)

    def name(self, written: syntax.Name) -> Expression:
        """A property of the row at hand, or an end of the edge."""
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
            raise no_property(self._context, written.span, written.name, self._owner)
        if found.type.is_blob:
            raise self.error(written.span, f"T11: blob property `{found.name}` cannot be used in WHERE predicates")
        return ex.Property(TARGET, found.name, found.type)

    def exists(self, written: syntax.Exists) -> Expression:
        """Nothing: predicates of mutations are about one row."""
        raise self.error(written.span, "T26: exists { … } is a condition of `match`; it cannot stand here")

    def search(self, written: syntax.TextMatch | syntax.Nearest | syntax.Bm25 | syntax.Rrf) -> Expression:
        """Nothing: predicates of mutations do not search."""
        raise self.error(written.span, "search functions stand in reads only")
