"""A schema text in its one canonical layout.

One paragraph per declaration with a body, one member per line, two spaces in. The order of everything is kept, and so
are comments: one behind something stays behind it, any other stands on a line of its own before what it preceded. Blank
lines are kept, at most one at a time.
"""

from collections.abc import Iterator
from decimal import Decimal

from omnigraph.language.lexer import Comment, comments, quoted
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
    """The canonical layout of a schema text.

    Args:
        text: the text; it must follow the grammar but may break other rules.
        name: what to call it in messages.

    Returns:
        The same declarations and comments, laid out anew. Doing it twice changes nothing more.

    Raises:
        ParseError: the text breaks the grammar.
        LimitError: it is too long.
    """
    return format_syntax(parse(text, name))


def format_syntax(syntax: SchemaSyntax) -> str:
    """The canonical layout of a tree, with the comments of the text it came from."""
    page = _Page(syntax.source)
    was_bodied = True
    for declaration in syntax.declarations:
        is_bodied = bool(declaration.members)
        # Edges without a body may stand together; everything else is a paragraph of its own.
        page.before(declaration.span.start, apart=is_bodied or was_bodied)
        _write(page, declaration)
        was_bodied = is_bodied
    page.comments_before(len(syntax.source.text) + 1)
    return page.text()


class _Page:
    """Lines written so far, and the comments still to be placed."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._comments: list[Comment] = list(comments(source))
        self._next = 0
        self._lines: list[str] = []
        self._end = 0
        self._is_open = True

    def before(self, start: int, indent: str = "", *, apart: bool = False) -> None:
        """Write what stands before something at `start`: comments, and a blank line where the text has one.

        Args:
            start: where that something starts.
            indent: how far in its comments stand.
            apart: whether to write a blank line even where the text has none.
        """
        apart = self.comments_before(start, indent, apart=apart)
        self._separate(start, apart=apart)

    def comments_before(self, start: int, indent: str = "", *, apart: bool = False) -> bool:
        """Write the comments that stand before `start`; returns whether a blank line wanted is still to come."""
        self._write_behind(start)
        while self.has_comment_before(start):
            comment = self._comments[self._next]
            self._separate(comment.span.start, apart=apart)
            apart = False
            self.line(indent + comment.text.rstrip(), comment.span.end)
            self._next += 1
        return apart

    def opening(self, text: str, end: int) -> None:
        """Write a line that opens a body; nothing is set apart from it."""
        self.line(text, end)
        self._is_open = True

    def line(self, text: str, end: int) -> None:
        """Write a line for something that ends at `end`."""
        self._lines.append(text)
        self._end = max(self._end, end)
        self._is_open = False

    def has_comment_before(self, end: int) -> bool:
        """Whether a comment that starts before `end` is still to be written."""
        return self._next < len(self._comments) and self._comments[self._next].span.start < end

    def text(self) -> str:
        """The whole page."""
        return "\n".join(self._lines) + "\n" if self._lines else ""

    def _separate(self, start: int, *, apart: bool) -> None:
        if self._is_open:
            return
        if apart or self._source.text.count("\n", self._end, start) > 1:
            self._lines.append("")

    def _write_behind(self, start: int) -> None:
        """Put comments that share a line with what was written last behind it."""
        while self._lines and self.has_comment_before(start):
            comment = self._comments[self._next]
            if "\n" in self._source.text[self._end : comment.span.start]:
                return
            self._lines[-1] += f" {comment.text.rstrip()}"
            self._end = max(self._end, comment.span.end)
            self._next += 1
            if comment.text.startswith("//"):
                return


def _write(page: _Page, declaration: Declaration) -> None:
    header, end = _header(declaration), declaration.span.end
    body = declaration.body
    inside = body is not None and page.has_comment_before(body.end)
    if not declaration.members and not inside:
        page.line(header if isinstance(declaration, EdgeSyntax) else f"{header} {{}}", end)
        return
    page.opening(f"{header} {{", body.start + 1 if body else 0)
    for member in declaration.members:
        page.before(member.span.start, _INDENT)
        page.line(_INDENT + _member(member), member.span.end)
    if body is not None:
        page.comments_before(body.end - 1, _INDENT)
    page.line("}", end)


def _header(declaration: Declaration) -> str:
    name = declaration.name.text
    match declaration:
        case InterfaceSyntax():
            return f"interface {name}"
        case NodeSyntax():
            parts = [f"node {name}", *_annotations(declaration.annotations)]
            if declaration.implements:
                parts.append(f"implements {', '.join(each.text for each in declaration.implements)}")
            return " ".join(parts)
        case EdgeSyntax():
            parts = [f"edge {name}: {declaration.from_type.text} -> {declaration.to_type.text}"]
            if declaration.cardinality is not None:
                parts.append(_cardinality(declaration.cardinality))
            return " ".join([*parts, *_annotations(declaration.annotations)])


def _cardinality(each: CardinalitySyntax) -> str:
    return f"@card({each.min}..{'' if each.max is None else each.max})"


def _annotations(annotations: tuple[AnnotationSyntax, ...]) -> Iterator[str]:
    for each in annotations:
        if each.value is None:
            yield f"@{each.name}"
        else:
            arguments = [_literal(each.value), *(f"{key}={_literal(value)}" for key, value in each.kwargs)]
            yield f"@{each.name}({', '.join(arguments)})"


def _literal(each: Literal) -> str:
    return quoted(each.text) if each.kind is LiteralKind.STRING else each.text


def _member(member: Member) -> str:
    if isinstance(member, PropertySyntax):
        return " ".join([f"{member.name}: {type_text(member.type)}", *_annotations(member.annotations)])
    arguments = [_bounds(each) if isinstance(each, Bounds) else _literal(each) for each in member.arguments]
    return f"@{member.name}({', '.join(arguments)})"


def type_text(of: TypeSyntax) -> str:
    """A type as it is written, the values of an enum in their order."""
    if of.enum_values is not None:
        name = f"enum({', '.join(of.enum_values)})"
    elif of.scalar is Scalar.VECTOR:
        name = f"Vector({of.vector_dim})"
    else:
        name = f"[{of.scalar}]" if of.list else of.scalar.value
    return f"{name}?" if of.nullable else name


def _bounds(each: Bounds) -> str:
    return f"{'' if each.min is None else _number(each.min)}..{'' if each.max is None else _number(each.max)}"


def _number(value: int | float) -> str:
    """A number as the language writes it: without an exponent, a float always with a point."""
    if isinstance(value, int):
        return str(value)
    text = f"{Decimal(repr(value)):f}"
    return text if "." in text else f"{text}.0"
