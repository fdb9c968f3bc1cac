"""Formatter of schema texts.

One paragraph per declaration with a body, one member per line, indented by two spaces. The order of everything and all
comments are kept: a trailing comment stays behind its line, any other gets a line of its own. Blank lines are kept, at
most one at a time.
"""

from collections.abc import Iterator
from decimal import Decimal

from omnigraph.language.lexer import Comment, quoted, scan_comments
from omnigraph.language.schema.parse import parse
from omnigraph.language.schema.syntax import (
    AnnotationSyntax,
    Bounds,
    CardinalitySyntax,
    Declaration,
    EdgeSyntax,
    InterfaceSyntax,
    Literal,
    LiteralKind,
    Member,
    NodeSyntax,
    PropertySyntax,
    SchemaSyntax,
    TypeSyntax,
)
from omnigraph.language.text import Source
from omnigraph.model.types import Scalar

_INDENT = "  "


def format(text: str | bytes, name: str = "schema.pg") -> str:
    """Format a schema text; idempotent.

    The text must follow the grammar but may violate other rules.

    Raises:
        ParseError: the text violates the grammar.
        LimitError: it is too long.
    """
    return format_syntax(parse(text, name))


def format_syntax(syntax: SchemaSyntax) -> str:
    """Format a tree, with the comments of its source text."""
    page = _Page(syntax.source)
    was_bodied = True
    for declaration in syntax.declarations:
        is_bodied = bool(declaration.members)
        # Edges without a body may stand together; everything else is a paragraph of its own.
        page.before(declaration.span.start, apart=is_bodied or was_bodied)
        _write_declaration(page, declaration)
        was_bodied = is_bodied
    page.comments_before(len(syntax.source.text) + 1)
    return page.text()


class _Page:
    """Lines written so far, and the pending comments."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._comments: list[Comment] = list(scan_comments(source))
        self._next = 0
        self._lines: list[str] = []
        self._end = 0
        self._is_open = True

    def before(self, start: int, indent: str = "", *, apart: bool = False) -> None:
        """Write pending comments before `start`, and a blank line if the text has one.

        Args:
            start: offset of the next item.
            indent: indentation of its comments.
            apart: write a blank line even if the text has none.
        """
        apart = self.comments_before(start, indent, apart=apart)
        self._separate(start, apart=apart)

    def comments_before(self, start: int, indent: str = "", *, apart: bool = False) -> bool:
        """Write the comments before `start`; return whether a requested blank line is still pending."""
        self._write_behind(start)
        while self.has_comment_before(start):
            comment = self._comments[self._next]
            self._separate(comment.span.start, apart=apart)
            apart = False
            self.line(indent + comment.text.rstrip(), comment.span.end)
            self._next += 1
        return apart

    def opening(self, text: str, end: int) -> None:
        """Write a line that opens a body; no blank line follows it."""
        self.line(text, end)
        self._is_open = True

    def line(self, text: str, end: int) -> None:
        """Write a line for an item that ends at `end`."""
        self._lines.append(text)
        self._end = max(self._end, end)
        self._is_open = False

    def has_comment_before(self, end: int) -> bool:
        """True if a comment that starts before `end` is pending."""
        return self._next < len(self._comments) and self._comments[self._next].span.start < end

    def text(self) -> str:
        """Return the whole page."""
        return "\n".join(self._lines) + "\n" if self._lines else ""

    def _separate(self, start: int, *, apart: bool) -> None:
        if self._is_open:
            return
        if apart or self._source.text.count("\n", self._end, start) > 1:
            self._lines.append("")

    def _write_behind(self, start: int) -> None:
        """Append trailing comments of the last written line to it."""
        while self._lines and self.has_comment_before(start):
            comment = self._comments[self._next]
            if "\n" in self._source.text[self._end : comment.span.start]:
                return
            self._lines[-1] += f" {comment.text.rstrip()}"
            self._end = max(self._end, comment.span.end)
            self._next += 1
            if comment.text.startswith("//"):
                return


def _write_declaration(page: _Page, declaration: Declaration) -> None:
    header, end = _format_header(declaration), declaration.span.end
    body = declaration.body
    inside = body is not None and page.has_comment_before(body.end)
    if not declaration.members and not inside:
        page.line(header if isinstance(declaration, EdgeSyntax) else f"{header} {{}}", end)
        return
    page.opening(f"{header} {{", body.start + 1 if body else 0)
    for member in declaration.members:
        page.before(member.span.start, _INDENT)
        page.line(_INDENT + _format_member(member), member.span.end)
    if body is not None:
        page.comments_before(body.end - 1, _INDENT)
    page.line("}", end)


def _format_header(declaration: Declaration) -> str:
    name = declaration.name.text
    match declaration:
        case InterfaceSyntax():
            return f"interface {name}"
        case NodeSyntax():
            parts = [f"node {name}", *_format_annotations(declaration.annotations)]
            if declaration.implements:
                parts.append(f"implements {', '.join(interface.text for interface in declaration.implements)}")
            return " ".join(parts)
        case EdgeSyntax():
            parts = [f"edge {name}: {declaration.from_type.text} -> {declaration.to_type.text}"]
            if declaration.cardinality is not None:
                parts.append(_format_cardinality(declaration.cardinality))
            return " ".join([*parts, *_format_annotations(declaration.annotations)])


def _format_cardinality(cardinality: CardinalitySyntax) -> str:
    return f"@card({cardinality.min}..{'' if cardinality.max is None else cardinality.max})"


def _format_annotations(annotations: tuple[AnnotationSyntax, ...]) -> Iterator[str]:
    for annotation in annotations:
        if annotation.value is None:
            yield f"@{annotation.name}"
        else:
            arguments = [
                _format_literal(annotation.value),
                *(f"{key}={_format_literal(value)}" for key, value in annotation.kwargs),
            ]
            yield f"@{annotation.name}({', '.join(arguments)})"


def _format_literal(literal: Literal) -> str:
    return quoted(literal.text) if literal.kind is LiteralKind.STRING else literal.text


def _format_member(member: Member) -> str:
    if isinstance(member, PropertySyntax):
        return " ".join([f"{member.name}: {format_type(member.type)}", *_format_annotations(member.annotations)])
    arguments = [
        _format_bounds(argument) if isinstance(argument, Bounds) else _format_literal(argument)
        for argument in member.arguments
    ]
    return f"@{member.name}({', '.join(arguments)})"


def format_type(type_: TypeSyntax) -> str:
    """Format a type, the values of an enum in textual order."""
    if type_.enum_values is not None:
        name = f"enum({', '.join(type_.enum_values)})"
    elif type_.scalar is Scalar.VECTOR:
        name = f"Vector({type_.vector_dim})"
    else:
        name = f"[{type_.scalar}]" if type_.list else type_.scalar.value
    return f"{name}?" if type_.nullable else name


def _format_bounds(bounds: Bounds) -> str:
    least, most = ("" if bound is None else _format_number(bound) for bound in (bounds.min, bounds.max))
    return f"{least}..{most}"


def _format_number(value: int | float) -> str:
    """Format a number: without an exponent, a float always with a point."""
    if isinstance(value, int):
        return str(value)
    text = f"{Decimal(repr(value)):f}"
    return text if "." in text else f"{text}.0"
