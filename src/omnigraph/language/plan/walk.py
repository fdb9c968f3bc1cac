"""Traverse typed expressions: children, variables, conjuncts, replacement."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Aggregation, Expression


def get_children(expression: Expression) -> tuple[Expression, ...]:
    """Return the direct subexpressions."""
    match expression:
        case (
            ex.Constant()
            | ex.Parameter()
            | ex.Property()
            | ex.Entity()
            | ex.Endpoint()
            | ex.Path()
            | ex.PathLength()
            | ex.PathNodes()
            | ex.Now()
            | ex.Computed()
            | ex.Output()
        ):
            return ()
        case ex.Arithmetic() | ex.Compare():
            return (expression.left, expression.right)
        case ex.Negative() | ex.IsNull() | ex.Not():
            return (expression.operand,)
        case ex.Call():
            return expression.arguments
        case ex.StringTest():
            return (expression.whole, expression.part)
        case ex.Member():
            return (expression.item, expression.items)
        case ex.And() | ex.Or():
            return expression.operands
        case ex.TextMatch():
            edits = () if expression.max_edits is None else (expression.max_edits,)
            return (expression.target, expression.query, *edits)
        case ex.Nearest() | ex.Bm25():
            return (expression.target, expression.query)
        case ex.Rrf():
            return (expression.first, expression.second, expression.k)
        case _:
            assert_never(expression)


def walk(expression: Expression | Aggregation) -> Iterator[Expression]:
    """Yield an expression and all its subexpressions, outermost first."""
    waiting: list[Expression] = []
    if not isinstance(expression, Aggregation):
        waiting.append(expression)
    elif expression.argument is not None:
        waiting.append(expression.argument)
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(get_children(part)))


def find_variables(expression: Expression | Aggregation) -> set[str]:
    """Return the variables an expression needs; hidden columns count as variables."""
    found = set()
    for part in walk(expression):
        match part:
            case ex.Property() | ex.Entity() | ex.Endpoint() | ex.Path() | ex.PathLength() | ex.PathNodes():
                found.add(part.variable)
            case ex.Computed():
                found.add(part.name)
            case _:
                pass
    return found


def find_properties(expressions: Iterable[Expression | Aggregation]) -> Iterator[tuple[str, str]]:
    """Yield every (variable, property) that expressions read."""
    for expression in expressions:
        for part in walk(expression):
            if isinstance(part, ex.Property):
                yield part.variable, part.name


def replaced(expression: Expression, replacement: Callable[[Expression], Expression | None]) -> Expression:
    """Return the expression with subexpressions replaced where `replacement` returns one; outermost first."""
    instead = replacement(expression)
    if instead is not None:
        return instead
    inside = get_children(expression)
    if not inside:
        return expression
    fresh = tuple(replaced(part, replacement) for part in inside)
    if all(new is old for new, old in zip(fresh, inside, strict=True)):
        return expression
    return _rebuild(expression, fresh)


def _rebuild(expression: Expression, inside: tuple[Expression, ...]) -> Expression:
    match expression:
        case ex.Arithmetic() | ex.Compare():
            return replace(expression, left=inside[0], right=inside[1])
        case ex.Negative() | ex.IsNull() | ex.Not():
            return replace(expression, operand=inside[0])
        case ex.Call():
            return replace(expression, arguments=inside)
        case ex.StringTest():
            return replace(expression, whole=inside[0], part=inside[1])
        case ex.Member():
            return replace(expression, item=inside[0], items=inside[1])
        case ex.And() | ex.Or():
            return replace(expression, operands=inside)
        case _:
            # Searches stay whole: a score is replaced as one, or not at all.
            return expression


def split_conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """Return the conditions that must all hold."""
    if isinstance(expression, ex.And):
        return tuple(inner for operand in expression.operands for inner in split_conjuncts(operand))
    return (expression,)


def join_conjuncts(conditions: Iterable[Expression | None]) -> Expression | None:
    """Return the conjunction of the conditions; None if there are none."""
    flat = [inner for condition in conditions if condition is not None for inner in split_conjuncts(condition)]
    if not flat:
        return None
    return flat[0] if len(flat) == 1 else ex.And(tuple(flat))
