"""Parse property types: a scalar, a list, an enum or a vector, each optionally nullable."""

import re

from omnigraph import limits
from omnigraph.language.lexer import BAD, END, INTEGER, NAME, STRING, TYPE_NAME, Cursor
from omnigraph.language.schema import hints
from omnigraph.language.schema.syntax import TypeSyntax
from omnigraph.language.text import Span
from omnigraph.model.types import BASE_SCALARS, Scalar

_ENUM_VALUE = re.compile(r"[A-Za-z0-9_-]+")
_U64_MAX = 2**64 - 1
# Python refuses to read very long numbers at all; no bound of ours has this many digits.
_DIGITS_MAX = 20


def parse_property_type(cursor: Cursor, owner: str) -> TypeSyntax:
    """Parse the type of the property `owner`.

    Raises:
        ParseError: the current token starts no type.
    """
    start = cursor.span.start
    where = f"as the type of `{owner}`"
    if cursor.take("["):
        scalar = _parse_base(cursor, f"as the elements of `{owner}`", in_list=True)
        hint = "elements of a list are never absent; a list that may be absent is `[…]?`"
        cursor.expect("]", where=where, hint=hint if cursor.kind == "?" else "")
        if scalar is Scalar.BLOB:
            raise cursor.error(cursor.span_from(start), "list of Blob is not supported")
        return TypeSyntax(scalar, _take_nullable(cursor), list=True, span=cursor.span_from(start))
    if cursor.is_at_word("enum") and cursor.peek_kind() == "(":
        values = _parse_enum_values(cursor)
        return TypeSyntax(Scalar.STRING, _take_nullable(cursor), enum_values=values, span=cursor.span_from(start))
    if cursor.kind is TYPE_NAME and cursor.text == "Vector" and cursor.peek_kind() == "(":
        dimension = _parse_vector_dimension(cursor)
        return TypeSyntax(Scalar.VECTOR, _take_nullable(cursor), vector_dim=dimension, span=cursor.span_from(start))
    scalar = _parse_base(cursor, where, in_list=False)
    return TypeSyntax(scalar, _take_nullable(cursor), span=cursor.span_from(start))


def _take_nullable(cursor: Cursor) -> bool:
    return cursor.take("?") is not None


def _parse_base(cursor: Cursor, where: str, *, in_list: bool) -> Scalar:
    text = cursor.text
    if cursor.kind is TYPE_NAME:
        for scalar in BASE_SCALARS:
            if text == scalar:
                cursor.advance()
                return scalar
            rest = text.removeprefix(scalar)
            # `x: I32y: I64` declares two properties; where the rest is no name, the whole is one unknown type.
            if rest != text and cursor.peek_kind() == ":" and (rest[0].islower() or rest[0] == "_"):
                cursor.split(len(scalar))
                return scalar
    if in_list and (cursor.kind == "[" or text in ("Vector", "enum")):
        raise cursor.unexpected(where=where, expected=("a scalar type",), hint="lists hold plain scalars only")
    if cursor.kind not in (NAME, TYPE_NAME):
        raise cursor.unexpected(where=where, expected=("a type",))
    hint = hints.suggest_type(text)
    if text == "Vector":
        hint = "a vector has a dimension: `Vector(1536)`"
    elif text == "enum":
        hint = "an enum lists its values: `enum(draft, done)`"
    shown = text[: limits.REPORT_TOKEN_CHARACTERS_MAX]
    raise cursor.error(cursor.span, f"unknown type `{shown}`", expected=hints.TYPE_WORDS, hint=hint)


def _parse_enum_values(cursor: Cursor) -> tuple[str, ...]:
    start = cursor.advance().start
    cursor.advance()
    values = [_parse_enum_value(cursor)]
    while cursor.take(","):
        values.append(_parse_enum_value(cursor))
    cursor.expect(")", where="in enum(…)", expected=("`,`", "`)`"))
    if len(set(values)) < len(values):
        raise cursor.error(cursor.span_from(start), "enum type cannot include duplicate values")
    return tuple(values)


def _parse_enum_value(cursor: Cursor) -> str:
    """Read characters, not tokens: `2-b` and `-x` are one value each."""
    found = _ENUM_VALUE.match(cursor.source.text, cursor.span.start)
    if found is None or cursor.kind in (BAD, END):
        hint = "enum values are written without quotes" if cursor.kind is STRING else ""
        raise cursor.unexpected(where="in enum(…)", expected=("a value of letters, digits, `_` and `-`",), hint=hint)
    cursor.skip_to(found.end())
    if cursor.end_before != found.end():
        # The value ends inside a token, like `1` in `1.5`.
        after = Span(found.end(), found.end() + 1)
        raise cursor.error(after, f"unexpected `{cursor.source.cut(after)}` in enum(…)", expected=("`,`", "`)`"))
    return found.group()


def _parse_vector_dimension(cursor: Cursor) -> int:
    where = "as the dimension of a vector"
    cursor.advance()
    cursor.advance()
    text = cursor.text
    span = cursor.expect(INTEGER, where=where)
    if len(text) > _DIGITS_MAX or int(text) > _U64_MAX:
        raise cursor.error(span, "invalid Vector dimension: number too large to fit in target type")
    dimension = int(text)
    if dimension == 0:
        raise cursor.error(span, "Vector dimension must be greater than zero")
    if dimension > limits.VECTOR_DIMENSION_MAX:
        message = f"Vector dimension {dimension} exceeds maximum supported {limits.VECTOR_DIMENSION_MAX}"
        raise cursor.error(span, message)
    cursor.expect(")", where=where)
    return dimension
