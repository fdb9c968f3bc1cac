"""Semantic analysis of patterns: types of variables, directions of traversals, conditions.

Order in the text does not matter within a block: bindings are typed first, then traversals, then the blocks that bind
variables (`or`, `optional`), and last the conditions, which see all of them.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from omnigraph.errors import ParseError
from omnigraph.language.plan import pattern
from omnigraph.language.plan.expressions import BOOL, Computed, Entity, Expression, IsNull, NodeValue, Property
from omnigraph.language.plan.pattern import Block
from omnigraph.language.plan.walk import find_variables
from omnigraph.language.query import bind_values, syntax
from omnigraph.language.query.bind_names import ReadExpressions
from omnigraph.language.query.bind_traversal import TraversalBinder
from omnigraph.language.query.scope import ANONYMOUS, Bound, Context, EdgeVariable, NodeVariable, PathVariable, Scope
from omnigraph.model.suggest import suggest


class PatternBinder:
    """Binder of one block; nested blocks get binders of their own."""

    def __init__(self, context: Context, outer: Scope | None) -> None:
        self.scope = Scope(outer)
        self._context = context
        self._expressions = ReadExpressions(context, self.scope, self._bind_mark)
        self._marks: list[pattern.Mark] = []
        self._mentions: set[str] = set()

    def bind(self, clauses: tuple[syntax.Clause, ...]) -> Block:
        """Bind the clauses of the block.

        Raises:
            ParseError: a clause has a type error.
        """
        self._refuse_building_on_optional(clauses)
        bound: dict[int, list[pattern.Clause]] = {}
        self._bind_types(clauses, bound)
        traversals = TraversalBinder(self._context, self.scope)
        for place, clause in enumerate(clauses):
            if isinstance(clause, syntax.Traversal | syntax.Shortest):
                bound[place] = [traversals.bind(clause)]
        for place, clause in enumerate(clauses):
            match clause:
                case syntax.Alternatives():
                    bound[place] = [self._bind_alternatives(clause)]
                case syntax.Optional():
                    bound[place] = [self._bind_optional(clause)]
                case _:
                    pass
        for place, clause in enumerate(clauses):
            match clause:
                case syntax.Binding():
                    bound[place] = self._bind_conditions(clause, bound[place])
                case syntax.Filter():
                    bound[place] = self._bind_filter(clause.condition)
                case syntax.Negation():
                    bound[place] = [pattern.Negation(self._bind_inner(clause.clauses, clause, "negation"))]
                case _:
                    pass
        result = tuple(clause for place in range(len(clauses)) for clause in bound[place])
        for bound_clause in result:
            self._mentions.update(_find_mentions(bound_clause))
        return Block(result, frozenset(self._mentions))

    # --- bindings -------------------------------------------------------------------------------------------------

    def _bind_types(self, clauses: tuple[syntax.Clause, ...], bound: dict[int, list[pattern.Clause]]) -> None:
        edges: set[str] = set()
        for place, clause in enumerate(clauses):
            if isinstance(clause, syntax.Traversal) and clause.edge_variable not in (None, ANONYMOUS):
                edges.add(str(clause.edge_variable))
            if isinstance(clause, syntax.Binding):
                if clause.variable in edges:
                    raise self._rebound_edge(clause)
                bound[place] = [self._bind_binding(clause)]

    def _bind_binding(self, clause: syntax.Binding) -> pattern.Binding:
        schema = self._context.schema
        node = schema.node(clause.type_name)
        if node is None:
            hint = suggest(clause.type_name, (node.name for node in schema.nodes))
            edge = schema.edge(clause.type_name)
            if schema.interface(clause.type_name) is not None:
                hint = f"`{clause.type_name}` is an interface; match the node types that implement it"
            elif edge is not None and edge.name == clause.type_name:
                name = edge.name[0].lower() + edge.name[1:]
                hint = f"`{edge.name}` is an edge type; traverse it: `$a {name} $b`, or `$a $e: {name} $b`"
            raise self._context.error(clause.span, f"T1: unknown node type `{clause.type_name}`", hint=hint)
        if clause.variable == ANONYMOUS:
            return pattern.Binding(self._context.hidden(), node.name, ())
        before = self.scope.get(clause.variable)
        match before:
            case None:
                self.scope.bind(clause.variable, NodeVariable(node))
            case NodeVariable():
                if before.type.name != node.name:
                    raise self._context.error(
                        clause.span,
                        f"variable `${clause.variable}` already bound to type `{before.type.name}`, "
                        f"cannot rebind to `{node.name}`",
                    )
            case EdgeVariable():
                raise self._rebound_edge(clause)
            case PathVariable():
                raise self._context.error(clause.span, f"T26: path `${clause.variable}` cannot be rebound as a node")
        return pattern.Binding(clause.variable, node.name, ())

    def _rebound_edge(self, clause: syntax.Binding) -> ParseError:
        return self._context.error(clause.span, f"T23: edge binding `${clause.variable}` cannot be rebound as a node")

    def _bind_conditions(self, clause: syntax.Binding, bound: list[pattern.Clause]) -> list[pattern.Clause]:
        (binding,) = bound
        assert isinstance(binding, pattern.Binding)
        node = self._context.schema.node(binding.type_name)
        assert node is not None
        before = self.scope.get(binding.variable)
        own: list[Expression] = []
        if before is not None and before.nullable:
            # Bound in an optional block outside: here it must be there.
            own.append(IsNull(Entity(binding.variable, NodeValue(node.name, nullable=True)), negated=True))
        others: list[pattern.Clause] = []
        for written in clause.matches:
            found = node.property_named(written.property)
            if found is None:
                raise self._context.error(
                    written.span,
                    f"T2: type `{node.name}` has no property `{written.property}`",
                    hint=suggest(written.property, (property_.name for property_ in node.properties)),
                )
            target = Property(binding.variable, found.name, found.type)
            condition = bind_values.bind_match(self._expressions, node.name, target, found.type, written)
            if find_variables(condition) <= {binding.variable}:
                own.append(condition)
            else:
                others.append(pattern.Condition(condition))
        return [replace(binding, conditions=tuple(own)), *others]

    # --- conditions -----------------------------------------------------------------------------------------------

    def _bind_filter(self, condition: syntax.Expression) -> list[pattern.Clause]:
        match condition:
            case syntax.And():
                return [clause for operand in condition.operands for clause in self._bind_filter(operand)]
            case syntax.Exists():
                return [pattern.Existence(self._bind_inner(condition.clauses, condition, "exists"))]
            case syntax.Not(operand=syntax.Exists() as inner):
                return [pattern.Negation(self._bind_inner(inner.clauses, condition, "exists"))]
            case _:
                self._marks = []
                bound = pattern.Condition(self._expressions.bind_condition(condition))
                return [*self._marks, bound]

    def _bind_mark(self, written: syntax.Exists) -> Expression:
        """Bind `exists { … }` inside a larger condition to a hidden column with the result."""
        marks = self._marks
        block = self._bind_inner(written.clauses, written, "exists")
        name = self._context.hidden("exists")
        self._marks = [*marks, pattern.Mark(block, name)]
        return Computed(name, BOOL)

    def _bind_inner(self, clauses: tuple[syntax.Clause, ...], written: syntax.Syntax, kind: str) -> Block:
        """Bind a block whose variables are local, but which must refer to the outside."""
        binder = PatternBinder(self._context, self.scope)
        block = binder.bind(clauses)
        self._require_outer_reference(block, written, kind)
        for name, _ in binder.scope.own():
            self._context.notes.setdefault(name, f"`${name}` is bound inside a block and invisible outside it")
        return block

    def _require_outer_reference(self, block: Block, written: syntax.Syntax, kind: str) -> None:
        if not any(self.scope.get(name) is not None for name in block.mentions):
            raise self._context.error(
                written.span, f"T9: {kind} block must reference at least one outer-bound variable"
            )

    # --- blocks that bring variables along --------------------------------------------------------------------------

    def _bind_optional(self, clause: syntax.Optional) -> pattern.Optional:
        binder = PatternBinder(self._context, self.scope)
        block = binder.bind(clause.clauses)
        self._require_outer_reference(block, clause, "optional")
        introduced = [(name, bound) for name, bound in binder.scope.own() if not name.startswith("#")]
        for name, bound in introduced:
            self.scope.bind(name, replace(bound, nullable=True))
        return pattern.Optional(block, tuple(name for name, _ in introduced))

    def _bind_alternatives(self, clause: syntax.Alternatives) -> pattern.Alternatives:
        blocks, scopes = [], []
        for clauses in clause.blocks:
            binder = PatternBinder(self._context, self.scope)
            blocks.append(binder.bind(clauses))
            scopes.append(dict(binder.scope.own()))
        shared = []
        for name, bound in scopes[0].items():
            others = [scope[name] for scope in scopes[1:] if name in scope]
            if len(others) < len(scopes) - 1:
                continue
            self.scope.bind(name, self._unify(clause, name, bound, others))
            shared.append(name)
        for scope in scopes:
            for name in scope.keys() - set(shared):
                self._context.notes.setdefault(name, f"`${name}` is bound in some of the alternatives only")
        return pattern.Alternatives(tuple(blocks), tuple(shared))

    def _unify(self, clause: syntax.Alternatives, name: str, first: Bound, others: Iterable[Bound]) -> Bound:
        for other in others:
            if _describe(first) != _describe(other):
                raise self._context.error(
                    clause.span,
                    f"T26: variable `${name}` is {_describe(first)} in one alternative "
                    f"and {_describe(other)} in another",
                )
        return replace(first, nullable=first.nullable or any(other.nullable for other in others))

    def _refuse_building_on_optional(self, clauses: tuple[syntax.Clause, ...]) -> None:
        """Refuse patterns outside an optional block that start from a variable only the block binds."""
        required: set[str] = set()
        optional: set[str] = set()
        for clause in clauses:
            if isinstance(clause, syntax.Optional):
                optional |= {name for name in _find_pattern_variables(clause.clauses) if self.scope.get(name) is None}
                optional -= required
                continue
            names = set(_find_pattern_variables((clause,), blocks=False))
            for name in names & optional:
                raise self._context.error(
                    clause.span,
                    f"T26: variable `${name}` is optional; a pattern outside its block cannot build on it",
                    hint="move the clause into the optional block, or into one of its own",
                )
            required |= names


def _find_pattern_variables(clauses: Iterable[syntax.Clause], *, blocks: bool = True) -> Iterable[str]:
    """Return the named variables that bindings and traversals mention."""
    for clause in clauses:
        match clause:
            case syntax.Binding():
                names: tuple[str | None, ...] = (clause.variable,)
            case syntax.Traversal():
                names = (clause.source, clause.target, clause.edge_variable)
            case syntax.Shortest():
                names = (clause.source, clause.target, clause.path)
            case syntax.Optional() if blocks:
                names = tuple(_find_pattern_variables(clause.clauses))
            case syntax.Alternatives() if blocks:
                names = tuple(name for block in clause.blocks for name in _find_pattern_variables(block))
            case _:
                names = ()
        yield from (name for name in names if name is not None and name != ANONYMOUS)


def _describe(bound: Bound) -> str:
    match bound:
        case NodeVariable():
            return f"node `{bound.type.name}`"
        case EdgeVariable():
            return f"edge `{bound.type.name}`"
        case PathVariable():
            return "a path"


def _find_mentions(clause: pattern.Clause) -> set[str] | frozenset[str]:
    match clause:
        case pattern.Binding():
            return {clause.variable}
        case pattern.Traversal():
            names = (clause.source, clause.target, clause.edge_variable, clause.path)
            return {name for name in names if name is not None}
        case pattern.Condition():
            return find_variables(clause.expression)
        case pattern.Negation() | pattern.Existence() | pattern.Optional():
            return clause.block.mentions
        case pattern.Mark():
            return clause.block.mentions | {clause.name}
        case pattern.Alternatives():
            return frozenset().union(*(block.mentions for block in clause.blocks))
        case _:
            assert_never(clause)
