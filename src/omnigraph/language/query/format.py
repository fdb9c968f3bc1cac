"""Format syntax trees as canonical text, which parses to an equal tree."""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import assert_never

from omnigraph.language.query import statements, syntax

_INDENT = "  "
_LINE_WIDTH = 100

# How tightly each kind of expression holds together; an operand that holds less tightly gets parentheses.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _WHOLE = range(8)

# `$x contains $y` is a traversal; the same words as a condition need parentheses.
_LOOKS_LIKE_A_TRAVERSAL = re.compile(r"\$\w+ (?!not )[a-z_]\w* \$\w+(?![\w.])")

_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def format_file(file: statements.QueryFile) -> str:
    """Format all queries of a file."""
    return "\n".join(format_query(query) for query in file.queries)


def format_query(query: statements.Query) -> str:
    """Format one query, ending in a newline."""
    parameters = ", ".join(
        f"${parameter.name}: {format_parameter_type(parameter.type)}" for parameter in query.parameters
    )
    head = [f"query {query.name}({parameters})"]
    if query.description is not None:
        head.append(f"@description({quote(query.description)})")
    if query.instruction is not None:
        head.append(f"@instruction({quote(query.instruction)})")
    if query.ordered:
        head.append("@ordered")
    separator = " " if sum(map(len, head)) < _LINE_WIDTH else "\n" + _INDENT
    match query.body:
        case statements.Read():
            body = _format_read(query.body)
        case statements.Mutation():
            body = [line for statement in query.body.statements for line in _format_statement(statement)]
        case _:
            assert_never(query.body)
    return "\n".join([separator.join(head) + " {", *(_INDENT + line for line in body), "}"]) + "\n"


def format_parameter_type(written: statements.ParameterType) -> str:
    """Format as `String`, `[I64]?`, `Vector(4)`."""
    name = f"Vector({written.dimension})" if written.dimension is not None else written.base
    return (f"[{name}]" if written.is_list else name) + ("?" if written.nullable else "")


def quote(text: str) -> str:
    """Return a string literal."""
    return f'"{text.translate(_ESCAPES)}"'


# --- queries ----------------------------------------------------------------------------------------------------------


def _format_read(read: statements.Read) -> list[str]:
    lines = _format_block("match", read.clauses)
    projections = [
        format_expression(projection.value) + (f" as {projection.alias}" if projection.alias is not None else "")
        for projection in read.projections
    ]
    lines += _format_list("return distinct" if read.distinct else "return", projections)
    if read.ordering:
        lines += _format_list(
            "order", [format_expression(key.value) + (" desc" if key.descending else "") for key in read.ordering]
        )
    window = []
    if read.limit is not None:
        window.append(f"limit {format_expression(read.limit)}")
    if read.offset is not None:
        window.append(f"offset {format_expression(read.offset)}")
    return [*lines, " ".join(window)] if window else lines


def _format_statement(statement: statements.Statement) -> list[str]:
    match statement:
        case statements.Insert():
            verb = "upsert" if statement.keeps else "insert"
            return _format_list(f"{verb} {statement.type_name}", _format_assignments(statement.assignments))
        case statements.Update():
            *lines, last = _format_list(f"update {statement.type_name} set", _format_assignments(statement.assignments))
            return [*lines, f"{last} where {format_expression(statement.where)}"]
        case statements.Delete():
            return [f"delete {statement.type_name} where {format_expression(statement.where)}"]
        case _:
            assert_never(statement)


def _format_assignments(assignments: Iterable[syntax.Assignment]) -> list[str]:
    return [f"{assignment.property}: {format_expression(assignment.value)}" for assignment in assignments]


def _format_list(head: str, items: list[str]) -> list[str]:
    """Format on one line if it fits, else one item per line."""
    line = f"{head} {{ {', '.join(items)} }}"
    if len(line) <= _LINE_WIDTH:
        return [line]
    return [f"{head} {{", *(f"{_INDENT}{item}," for item in items[:-1]), f"{_INDENT}{items[-1]}", "}"]


# --- patterns ---------------------------------------------------------------------------------------------------------


def _format_block(head: str, clauses: tuple[syntax.Clause, ...]) -> list[str]:
    lines = [f"{head} {{"]
    after_condition = False
    for clause in clauses:
        lines += [_INDENT + line for line in _format_clause(clause, after_condition=after_condition)]
        after_condition = isinstance(clause, syntax.Filter)
    return [*lines, "}"]


def _format_clause(clause: syntax.Clause, *, after_condition: bool) -> list[str]:
    match clause:
        case syntax.Binding():
            matches = f" {{ {', '.join(_format_assignments(clause.matches))} }}" if clause.matches else ""
            return [f"${clause.variable}: {clause.type_name}{matches}"]
        case syntax.Traversal():
            edge = f"${clause.edge_variable}: " if clause.edge_variable is not None else ""
            return [f"${clause.source} {edge}{_format_edge(clause)} ${clause.target}"]
        case syntax.Shortest():
            return [f"shortest ${clause.source} {_format_edge(clause)} ${clause.target} as ${clause.path}"]
        case syntax.Filter():
            return _format_condition(clause.condition, after_condition=after_condition)
        case syntax.Negation():
            return _format_block("not", clause.clauses)
        case syntax.Optional():
            return _format_block("optional", clause.clauses)
        case syntax.Alternatives():
            lines = _format_block("or", clause.blocks[0])
            for block in clause.blocks[1:]:
                lines[-1:] = _format_block("}", block)
            return lines
        case _:
            assert_never(clause)


def _format_edge(clause: syntax.Traversal | syntax.Shortest) -> str:
    hops = ""
    if clause.hops is not None:
        hops = f"{{{clause.hops.least},{'' if clause.hops.most is None else clause.hops.most}}}"
    return (f"<{clause.edge}>" if clause.undirected else clause.edge) + hops


def _format_condition(condition: syntax.Expression, *, after_condition: bool) -> list[str]:
    match condition:
        case syntax.Exists():
            return _format_block("exists", condition.clauses)
        case syntax.Not(operand=syntax.Exists(clauses=clauses)):
            return _format_block("not exists", clauses)
        case _:
            text = format_expression(condition)
            # Nothing separates clauses: a sign would continue a condition before it.
            continues = text.startswith("-") and after_condition
            return [f"({text})" if continues or _LOOKS_LIKE_A_TRAVERSAL.match(text) else text]


# --- expressions ------------------------------------------------------------------------------------------------------


def format_expression(expression: syntax.Expression) -> str:
    """Format one expression with the fewest parentheses."""
    return _format_expression(expression, _OR)


def _format_expression(expression: syntax.Expression, least: int) -> str:
    text, binds = _format_with_precedence(expression)
    return f"({text})" if binds < least else text


def _format_with_precedence(expression: syntax.Expression) -> tuple[str, int]:
    match expression:
        case syntax.Or():
            return " or ".join(_format_expression(operand, _AND) for operand in expression.operands), _OR
        case syntax.And():
            return " and ".join(_format_expression(operand, _NOT) for operand in expression.operands), _AND
        case syntax.Not():
            return f"not {_format_expression(expression.operand, _NOT)}", _NOT
        case syntax.Comparison():
            left, right = _format_expression(expression.left, _SUM), _format_expression(expression.right, _SUM)
            return f"{left} {expression.op} {right}", _COMPARISON
        case syntax.In():
            word = "not in" if expression.negated else "in"
            return (
                f"{_format_expression(expression.operand, _SUM)} {word} {_format_expression(expression.choices, _SUM)}",
                _COMPARISON,
            )
        case syntax.IsNull():
            word = "is not null" if expression.negated else "is null"
            return f"{_format_expression(expression.operand, _SUM)} {word}", _COMPARISON
        case syntax.Arithmetic():
            own = _SUM if expression.op in (syntax.ArithmeticOp.ADD, syntax.ArithmeticOp.SUBTRACT) else _PRODUCT
            left, right = _format_expression(expression.left, own), _format_expression(expression.right, own + 1)
            return f"{left} {expression.op} {right}", own
        case syntax.Negative():
            return f"-{_format_negated(expression.operand)}", _SIGN
        case _:
            return _format_primary(expression), _WHOLE


def _format_negated(operand: syntax.Expression) -> str:
    # A sign before digits would be read as part of the number.
    text = _format_expression(operand, _SIGN)
    return f"({text})" if text[0].isdigit() else text


def _format_primary(
    expression: syntax.Literal
    | syntax.ListLiteral
    | syntax.Variable
    | syntax.Property
    | syntax.Name
    | syntax.Now
    | syntax.Nearest
    | syntax.TextMatch
    | syntax.Bm25
    | syntax.Rrf
    | syntax.Aggregate
    | syntax.Call
    | syntax.Exists,
) -> str:
    match expression:
        case syntax.Literal():
            return _format_literal(expression)
        case syntax.ListLiteral():
            return f"[{', '.join(_format_primary(item) for item in expression.items)}]"
        case syntax.Variable():
            return f"${expression.name}"
        case syntax.Property():
            return f"${expression.variable}.{expression.name}"
        case syntax.Name():
            return expression.name
        case syntax.Now():
            return "now()"
        case syntax.Nearest():
            return _format_call("nearest", expression.target, expression.query)
        case syntax.TextMatch():
            return _format_call(expression.function, expression.target, expression.query, expression.max_edits)
        case syntax.Bm25():
            return _format_call("bm25", expression.target, expression.query)
        case syntax.Rrf():
            return _format_call("rrf", expression.first, expression.second, expression.k)
        case syntax.Aggregate():
            if expression.argument is None:
                return f"{expression.function}(*)"
            distinct = "distinct " if expression.distinct else ""
            return f"{expression.function}({distinct}{format_expression(expression.argument)})"
        case syntax.Call():
            return _format_call(expression.function, *expression.arguments)
        case syntax.Exists():
            return " ".join(line.strip() for line in _format_block("exists", expression.clauses))
        case _:
            assert_never(expression)


def _format_call(function: str, *arguments: syntax.Expression | None) -> str:
    return f"{function}({', '.join(format_expression(argument) for argument in arguments if argument is not None)})"


def _format_literal(literal: syntax.Literal) -> str:
    match literal.kind:
        case syntax.LiteralKind.STRING:
            return quote(str(literal.value))
        case syntax.LiteralKind.DATE | syntax.LiteralKind.DATETIME:
            return f"{literal.kind}({quote(str(literal.value))})"
        case syntax.LiteralKind.FLOAT:
            # No exponents in the language: as many digits as it takes.
            digits = format(Decimal(repr(literal.value)), "f")
            return digits if "." in digits else f"{digits}.0"
        case syntax.LiteralKind.BOOL:
            return "true" if literal.value else "false"
        case syntax.LiteralKind.NULL:
            return "null"
        case syntax.LiteralKind.INTEGER:
            return str(literal.value)
        case _:
            assert_never(literal.kind)
