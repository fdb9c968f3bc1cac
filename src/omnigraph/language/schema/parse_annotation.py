"""Parse everything that starts with `@`: annotations, constraints of a body, and the cardinality of an edge."""

import math

from omnigraph.language.lexer import FLOAT, INTEGER, NAME, STRING, TYPE_NAME, Cursor, unescape_string
from omnigraph.language.schema.syntax import (
    AnnotationSyntax,
    Bounds,
    CardinalitySyntax,
    ConstraintSyntax,
    Literal,
    LiteralKind,
)

CONSTRAINT_NAMES = frozenset({"key", "unique", "index", "range", "check"})

_LITERAL_KINDS = {STRING: LiteralKind.STRING, INTEGER: LiteralKind.INTEGER, FLOAT: LiteralKind.FLOAT}
_NUMBER_STARTS = ("-", INTEGER, FLOAT)
_U32_MAX = 2**32 - 1
_I64_MIN, _I64_MAX = -(2**63), 2**63 - 1
# Python refuses to read very long numbers at all; no bound of ours has this many digits.
_DIGITS_MAX = 20


def is_at_constraint(cursor: Cursor) -> bool:
    """True if the cursor is at `@key(` or another constraint of a body."""
    return cursor.kind == "@" and cursor.peek_kind(2) == "(" and cursor.peek_text() in CONSTRAINT_NAMES


def is_at_cardinality(cursor: Cursor) -> bool:
    """True if the cursor is at `@card(` with bounds; `@card(5)` is an unknown annotation."""
    if not (cursor.kind == "@" and cursor.peek_text() == "card" and cursor.peek_kind(2) == "("):
        return False
    return ".." in (cursor.peek_kind(3), cursor.peek_kind(4)) or cursor.peek_kind(3) == "-"


def parse_annotation(cursor: Cursor) -> AnnotationSyntax:
    """Parse `@name` or `@name(value, argument=literal, …)`.

    Raises:
        ParseError: it violates the grammar.
    """
    start = cursor.expect("@").start
    name = cursor.text
    hint = "annotations are written in lower case" if cursor.kind is TYPE_NAME else ""
    cursor.expect(NAME, where="as the name of an annotation", hint=hint)
    where = f"in @{name}"
    value: Literal | None = None
    kwargs: list[tuple[str, Literal]] = []
    if cursor.take("("):
        value = _parse_argument(cursor, where, bare_names=True)
        while cursor.take(","):
            key = cursor.text
            cursor.expect(NAME, where=where, expected=("the name of an argument",))
            cursor.expect("=", where=where, hint=f"arguments after the first have names: `{key}=…`")
            kwargs.append((key, _parse_argument(cursor, where, bare_names=False)))
        cursor.expect(")", where=where, expected=("`,`", "`)`"))
    return AnnotationSyntax(name, value, tuple(kwargs), cursor.span_from(start))


def parse_constraint(cursor: Cursor) -> ConstraintSyntax:
    """Parse `@key(…)` or another constraint of a body; only valid after `is_at_constraint`.

    Raises:
        ParseError: it violates the grammar.
    """
    start = cursor.advance().start
    name = cursor.text
    where = f"in @{name}(…)"
    cursor.advance()
    cursor.advance()
    arguments: list[Literal | Bounds] = []
    if cursor.kind != ")":
        arguments.append(_parse_constraint_argument(cursor, where))
        while cursor.take(","):
            arguments.append(_parse_constraint_argument(cursor, where))
    cursor.expect(")", where=where, expected=("`,`", "`)`"))
    return ConstraintSyntax(name, tuple(arguments), cursor.span_from(start))


def parse_cardinality(cursor: Cursor) -> CardinalitySyntax | None:
    """Parse `@card(min..max)` or `@card(min..)`, if present.

    Raises:
        ParseError: it violates the grammar.
    """
    if not is_at_cardinality(cursor):
        return None
    where = "in @card(…)"
    start = cursor.advance().start
    cursor.advance()
    cursor.advance()
    if cursor.kind == "..":
        hint = "the lower bound is required: `@card(0..5)`"
        raise cursor.unexpected(where=where, expected=("a whole number",), hint=hint)
    least = _parse_cardinality_bound(cursor, "min", where)
    cursor.expect("..", where=where)
    most = None if cursor.kind == ")" else _parse_cardinality_bound(cursor, "max", where)
    cursor.expect(")", where=where)
    return CardinalitySyntax(least, most, cursor.span_from(start))


def _parse_cardinality_bound(cursor: Cursor, which: str, where: str) -> int:
    text = cursor.text
    span = cursor.expect(INTEGER, where=where)
    if len(text) > _DIGITS_MAX or int(text) > _U32_MAX:
        raise cursor.error(span, f"invalid cardinality {which}: {text}", hint=f"the most is {_U32_MAX}")
    return int(text)


def _parse_argument(cursor: Cursor, where: str, *, bare_names: bool) -> Literal:
    if cursor.kind in _LITERAL_KINDS:
        return _parse_literal(cursor)
    if cursor.kind is NAME and (bare_names or cursor.text in ("true", "false")):
        return _parse_literal(cursor)
    expected = ["a string in double quotes", "a number", "`true`", "`false`"]
    if bare_names:
        expected.append("a name")
    hint = ""
    if cursor.kind in (NAME, TYPE_NAME):
        hint = f'write it in double quotes: "{cursor.text}"'
    elif cursor.kind == "-":
        hint = 'numbers here have no sign; write it in double quotes: "-1"'
    elif cursor.kind == ")":
        hint = "an annotation without a value takes no parentheses"
    raise cursor.unexpected(where=where, expected=expected, hint=hint)


def _parse_literal(cursor: Cursor) -> Literal:
    kind, text = _LITERAL_KINDS.get(cursor.kind, LiteralKind.NAME), cursor.text
    span = cursor.advance()
    if kind is LiteralKind.STRING:
        text = unescape_string(cursor.source, span)
    elif text in ("true", "false"):
        kind = LiteralKind.BOOL
    return Literal(kind, text, span)


def _parse_constraint_argument(cursor: Cursor, where: str) -> Literal | Bounds:
    start = cursor.span.start
    if cursor.take(".."):
        return Bounds(None, _parse_bound(cursor, where), cursor.span_from(start))
    if cursor.kind == "-" or (cursor.kind in _NUMBER_STARTS and cursor.peek_kind() == ".."):
        least = _parse_bound(cursor, where)
        cursor.expect("..", where=where)
        most = _parse_bound(cursor, where) if cursor.kind in _NUMBER_STARTS else None
        return Bounds(least, most, cursor.span_from(start))
    if cursor.kind is NAME or cursor.kind in _LITERAL_KINDS:
        return _parse_literal(cursor)
    hint = "property names start with a lower-case letter" if cursor.kind is TYPE_NAME else ""
    raise cursor.unexpected(where=where, expected=("a property name", "bounds", "a string"), hint=hint)


def _parse_bound(cursor: Cursor, where: str) -> int | float:
    start = cursor.span.start
    is_negative = cursor.take("-") is not None
    if cursor.kind not in (INTEGER, FLOAT) or (is_negative and not cursor.is_adjacent):
        raise cursor.unexpected(where=where, expected=("a number",))
    is_float = cursor.kind is FLOAT
    cursor.advance()
    span = cursor.span_from(start)
    text = cursor.source.cut(span)
    if is_float and math.isfinite(value := float(text)):
        return value
    if not is_float and len(text) <= _DIGITS_MAX and _I64_MIN <= int(text) <= _I64_MAX:
        return int(text)
    raise cursor.error(span, f"invalid constraint bound: {text}")
