"""Format typed expressions as text, for explained plans."""

from datetime import datetime
from typing import assert_never

from omnigraph.language.lexer import quoted
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Aggregation, Column, Expression
from omnigraph.language.plan.pattern import OrderKey, Window

_LOOSE, _TIGHT = 0, 1
_LIST_ITEMS_MAX = 8


def format_expression(value: Expression | Aggregation) -> str:
    """Format an expression in query language, as far as it can express it."""
    return _format_text(value, _LOOSE)


def format_column(result: Column) -> str:
    """Format as `value as name`, or the value alone if the name adds nothing."""
    text = format_expression(result.value)
    return text if text.removeprefix("$") == result.name else f"{text} as {result.name}"


def format_order_key(key: OrderKey) -> str:
    """Format as `value desc`."""
    return format_expression(key.value) + (" desc" if key.descending else "")


def format_window(rows: Window) -> str:
    """Format as `10 after 20`."""
    count = "all" if rows.count is None else format_expression(rows.count)
    return count if rows.skip is None else f"{count} after {format_expression(rows.skip)}"


def format_constant(value: ex.Value) -> str:
    """Format a value as the query language writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case tuple():
            shown = [format_constant(item) for item in value[:_LIST_ITEMS_MAX]]
            more = ["…"] if len(value) > _LIST_ITEMS_MAX else []
            return f"[{', '.join(shown + more)}]"
        case int() | float():
            return repr(value)
        case datetime():
            return f'datetime("{value.isoformat(timespec="milliseconds").replace("+00:00", "Z")}")'
        case _:
            return f'date("{value.isoformat()}")'


def _format_text(value: Expression | Aggregation, least: int) -> str:
    match value:
        case ex.And():
            text = " and ".join(_format_text(operand, _TIGHT) for operand in value.operands)
        case ex.Or():
            text = " or ".join(_format_text(operand, _TIGHT) for operand in value.operands)
        case ex.Not():
            text = f"not {_format_text(value.operand, _TIGHT)}"
        case ex.Compare() | ex.Arithmetic():
            text = f"{_format_text(value.left, _TIGHT)} {value.op} {_format_text(value.right, _TIGHT)}"
        case ex.StringTest():
            text = f"{_format_text(value.whole, _TIGHT)} {value.op} {_format_text(value.part, _TIGHT)}"
        case ex.Member():
            word = "not in" if value.negated else "in"
            text = f"{_format_text(value.item, _TIGHT)} {word} {_format_text(value.items, _TIGHT)}"
        case ex.IsNull():
            text = f"{_format_text(value.operand, _TIGHT)} is {'not ' if value.negated else ''}null"
        case ex.Negative():
            text = f"-{_format_text(value.operand, _TIGHT)}"
        case _:
            return _format_primary(value)
    return f"({text})" if least is _TIGHT and not isinstance(value, ex.Compare | ex.StringTest | ex.IsNull) else text


def _format_primary(
    value: ex.Constant
    | ex.Parameter
    | ex.Property
    | ex.Entity
    | ex.Endpoint
    | ex.Path
    | ex.PathLength
    | ex.PathNodes
    | ex.Now
    | ex.Computed
    | ex.Output
    | ex.Call
    | ex.TextMatch
    | ex.Nearest
    | ex.Bm25
    | ex.Rrf
    | Aggregation,
) -> str:
    match value:
        case ex.Constant():
            return format_constant(value.value)
        case ex.Parameter():
            return f"${value.name}"
        case ex.Property():
            return value.name if value.variable == ex.TARGET else f"${value.variable}.{value.name}"
        case ex.Entity() | ex.Path():
            return f"${value.variable}"
        case ex.Endpoint():
            return value.end.value
        case ex.PathLength():
            return f"length(${value.variable})"
        case ex.PathNodes():
            return f"nodes(${value.variable})"
        case ex.Now():
            return "now()"
        case ex.Computed() | ex.Output():
            return value.name
        case ex.Call():
            return _format_call(value.function, *value.arguments)
        case ex.TextMatch():
            return _format_call(value.function, value.target, value.query, value.max_edits)
        case ex.Nearest():
            return _format_call("nearest", value.target, value.query)
        case ex.Bm25():
            return _format_call("bm25", value.target, value.query)
        case ex.Rrf():
            return _format_call("rrf", value.first, value.second, value.k)
        case Aggregation():
            argument = "*" if value.argument is None else format_expression(value.argument)
            return f"{value.function}({'distinct ' if value.distinct else ''}{argument})"
        case _:
            assert_never(value)


def _format_call(function: str, *arguments: Expression | None) -> str:
    return f"{function}({', '.join(format_expression(argument) for argument in arguments if argument is not None)})"
