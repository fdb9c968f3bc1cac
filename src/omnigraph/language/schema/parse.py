"""Recursive descent parser of schema texts.

The language has no word boundaries after keywords (`nodePerson{}` is `node Person {}`, `x: I32y: I64` declares two
properties) and reserves no words. The parser therefore decides by lookahead, and splits a name only if the rest of it
is valid.
"""

from omnigraph.errors import ParseError
from omnigraph.language.lexer import END, NAME, STRING, TYPE_NAME, Cursor
from omnigraph.language.schema import hints
from omnigraph.language.schema.parse_annotation import (
    is_at_cardinality,
    is_at_constraint,
    parse_annotation,
    parse_cardinality,
    parse_constraint,
)
from omnigraph.language.schema.parse_type import parse_property_type
from omnigraph.language.schema.syntax import (
    AnnotationSyntax,
    Declaration,
    EdgeSyntax,
    InterfaceSyntax,
    Member,
    Name,
    NodeSyntax,
    PropertySyntax,
    SchemaSyntax,
)
from omnigraph.language.text import Source, Span
from omnigraph.model.schema import TypeKind

_DECLARATION_WORDS = ("interface", "node", "edge")
_TOP_LEVEL = ("`interface`", "`node`", "`edge`", "end of text")


def parse(text: str | bytes, name: str = "schema.pg") -> SchemaSyntax:
    """Parse a schema text.

    Args:
        text: bytes are read as UTF-8.
        name: what to call the text in messages.

    Raises:
        ParseError: the text violates the grammar; the error shows where.
        LimitError: it is too long.
    """
    return _Parser(Source(text, name)).parse_schema()


def property_order(text: str | bytes) -> dict[str, tuple[str, ...]]:
    """Return the names of the properties by type key, in declared order; those of interfaces follow.

    Raises:
        ParseError: a syntax error.
    """
    found: dict[str, tuple[str, ...]] = {}
    declarations = parse(text).declarations
    for declaration in sorted(declarations, key=lambda declared: not isinstance(declared, InterfaceSyntax)):
        names = [member.name for member in declaration.members if isinstance(member, PropertySyntax)]
        match declaration:
            case InterfaceSyntax():
                kind = TypeKind.INTERFACE
            case NodeSyntax():
                kind = TypeKind.NODE
                for interface in declaration.implements:
                    names += found.get(f"{TypeKind.INTERFACE}:{interface.text}", ())
            case EdgeSyntax():
                kind = TypeKind.EDGE
        found[f"{kind}:{declaration.name.text}"] = tuple(dict.fromkeys(names))
    return found


class _Parser:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._cursor = Cursor(source)
        self._where = ""

    def parse_schema(self) -> SchemaSyntax:
        declarations: list[Declaration] = []
        while self._cursor.kind is not END:
            declarations.append(self._parse_declaration())
        return SchemaSyntax(tuple(declarations), self._source)

    def _parse_declaration(self) -> Declaration:
        start = self._cursor.span.start
        self._where = "where a declaration should start"
        match self._take_keyword(*_DECLARATION_WORDS):
            case "interface":
                return self._parse_interface(start)
            case "node":
                return self._parse_node(start)
            case "edge":
                return self._parse_edge(start)
            case _:
                raise self._unexpected_declaration()

    def _take_keyword(self, *words: str) -> str | None:
        """Consume a declaration keyword, even if a type name follows it without a space."""
        cursor = self._cursor
        if cursor.kind is not NAME:
            return None
        text = cursor.text
        for word in words:
            if text == word:
                cursor.advance()
                return word
            if text.startswith(word) and text[len(word)].isupper():
                cursor.split(len(word))
                return word
        return None

    def _unexpected_declaration(self) -> ParseError:
        cursor = self._cursor
        hint = ""
        if cursor.kind == "}":
            hint = "there is one `}` too many before this place"
        elif cursor.kind is NAME and cursor.peek_kind() == ":":
            hint = "a property stands inside the braces of a declaration; is there a `}` too many before it?"
        elif cursor.kind in (NAME, TYPE_NAME):
            hint = hints.suggest_declaration(cursor.text)
        elif cursor.kind in (",", ";"):
            hint = f"declarations are separated by white space; remove the `{cursor.kind}`"
        return cursor.unexpected(where=self._where, expected=_TOP_LEVEL, hint=hint)

    def _parse_interface(self, start: int) -> InterfaceSyntax:
        name = self._parse_type_name("as the name of an interface")
        self._where = f"in the header of interface {name.text}"
        if self._cursor.kind == "@":
            raise self._cursor.unexpected(
                where=self._where, expected=("`{`",), hint="interfaces take no annotations; their properties do"
            )
        if self._cursor.is_at_word("implements"):
            raise self._cursor.unexpected(where=self._where, expected=("`{`",), hint="only nodes implement interfaces")
        members, body = self._parse_body(f"interface {name.text}", interface=name.text)
        properties = tuple(member for member in members if isinstance(member, PropertySyntax))
        return InterfaceSyntax(name, properties, self._cursor.span_from(start), body)

    def _parse_node(self, start: int) -> NodeSyntax:
        name = self._parse_type_name("as the name of a node type")
        self._where = f"in the header of node {name.text}"
        annotations = self._parse_header_annotations(f"node {name.text}")
        implements: list[Name] = []
        if self._take_keyword("implements"):
            implements.append(self._parse_type_name("as the name of an interface"))
            while self._cursor.take(","):
                implements.append(self._parse_type_name("as the name of an interface"))
            if self._cursor.kind == "@":
                raise self._cursor.unexpected(
                    where=self._where,
                    expected=("`,`", "`{`"),
                    hint="annotations stand between the name of the node and `implements`",
                )
        members, body = self._parse_body(
            f"node {name.text}", expected=() if implements else ("an annotation", "`implements`")
        )
        return NodeSyntax(name, annotations, tuple(implements), members, self._cursor.span_from(start), body)

    def _parse_edge(self, start: int) -> EdgeSyntax:
        name = self._parse_type_name("as the name of an edge type")
        self._where = f"in the header of edge {name.text}"
        cursor = self._cursor
        cursor.expect(":", where=self._where, hint=f"an edge is declared as `edge {name.text}: From -> To`")
        from_type = self._parse_type_name("as the node type an edge leaves")
        hint = "swap the two ends: an arrow always points to the right" if cursor.kind == "<" else ""
        cursor.expect("->", where=self._where, hint=hint or f"an edge is declared as `edge {name.text}: From -> To`")
        to_type = self._parse_type_name("as the node type an edge reaches")
        bounds = parse_cardinality(self._cursor)
        annotations = self._parse_header_annotations(f"edge {name.text}", is_edge=True)
        members: tuple[Member, ...] = ()
        body: Span | None = None
        if cursor.kind == "{":
            members, body = self._parse_body(f"edge {name.text}")
        elif cursor.is_at_word("implements"):
            raise cursor.unexpected(where=self._where, hint="only nodes implement interfaces")
        return EdgeSyntax(name, from_type, to_type, bounds, annotations, members, self._cursor.span_from(start), body)

    def _parse_type_name(self, where: str) -> Name:
        cursor = self._cursor
        text, hint = cursor.text, ""
        if cursor.kind is NAME and hints.capitalize(text):
            hint = f"type names start with an upper-case letter: `{hints.capitalize(text)}`"
        elif cursor.kind is STRING:
            hint = "type names are written without quotes"
        return Name(text, cursor.expect(TYPE_NAME, where=where, hint=hint))

    def _parse_header_annotations(self, subject: str, *, is_edge: bool = False) -> tuple[AnnotationSyntax, ...]:
        annotations: list[AnnotationSyntax] = []
        while self._cursor.kind == "@":
            if is_at_constraint(self._cursor):
                span, word = self._cursor.span, self._cursor.peek_text()
                if is_edge:
                    message = f"@{word} is not supported on edges ({subject})"
                else:
                    message = f"@{word} is only supported on node properties or as body constraint ({subject})"
                hint = f"write `@{word}(…)` inside the braces of the {subject.partition(' ')[0]}"
                raise self._cursor.error(span, message, hint=hint)
            if is_edge and is_at_cardinality(self._cursor):
                raise self._cursor.unexpected(
                    where=self._where, hint="`@card(…)` stands once, directly after the two ends of the edge"
                )
            annotations.append(parse_annotation(self._cursor))
        return tuple(annotations)

    def _parse_body(
        self, subject: str, *, interface: str | None = None, expected: tuple[str, ...] = ()
    ) -> tuple[tuple[Member, ...], Span]:
        cursor = self._cursor
        opened = cursor.expect("{", where=self._where, expected=(*expected, "`{`"))
        self._where = f"in the body of {subject}"
        members: list[Member] = []
        while cursor.kind != "}":
            if cursor.kind is NAME and cursor.peek_kind() == ":":
                members.append(self._parse_property(interface))
            elif interface is None and is_at_constraint(self._cursor):
                members.append(parse_constraint(self._cursor))
            else:
                raise self._unexpected_member(opened, interface)
        return tuple(members), Span(opened.start, cursor.advance().end)

    def _unexpected_member(self, opened: Span, interface: str | None) -> ParseError:
        cursor = self._cursor
        expected = ["a property", "a constraint", "`}`"] if interface is None else ["a property", "`}`"]
        line, column = self._source.position(opened.start)
        unclosed = f"is a `}}` missing? the body was opened at {line}:{column}"
        hint = ""
        match cursor.kind:
            case "," | ";":
                hint = f"properties are separated by white space; remove the `{cursor.kind}`"
            case "@" if is_at_constraint(self._cursor):
                hint = "interfaces take no body constraints; declare it in the nodes that implement this one"
            case "@":
                hint = "an annotation stands behind the property it belongs to; here only @key(…), @unique(…), "
                hint += "@index(…), @range(…) and @check(…) may stand alone"
            case "type name" if cursor.peek_kind() == ":":
                lower = cursor.text[0].lower() + cursor.text[1:]
                hint = f"property names start with a lower-case letter: `{lower}`"
            case "string":
                hint = "property names are written without quotes"
            case "end":
                hint = unclosed
            case "name" if cursor.text in _DECLARATION_WORDS and cursor.peek_kind() is TYPE_NAME:
                hint = unclosed
            case "name":
                name = cursor.text
                cursor.advance()
                where = f"after the property name `{name}`"
                hint = f"a property is declared as `{name}: Type`"
                return cursor.unexpected(where=where, expected=("`:`",), hint=hint)
        return cursor.unexpected(where=self._where, expected=expected, hint=hint)

    def _parse_property(self, interface: str | None) -> PropertySyntax:
        cursor = self._cursor
        name = cursor.text
        name_span = cursor.advance()
        cursor.advance()
        type_ = parse_property_type(cursor, name)
        annotations: list[AnnotationSyntax] = []
        while cursor.kind == "@":
            if is_at_constraint(self._cursor):
                if interface is not None and cursor.peek_text() in ("key", "unique", "index"):
                    message = f"@{cursor.peek_text()} on {interface}.{name} does not accept a value"
                    raise cursor.error(cursor.span, message, hint="interfaces take no body constraints")
                break
            annotations.append(parse_annotation(self._cursor))
        return PropertySyntax(name, type_, tuple(annotations), self._cursor.span_from(name_span.start), name_span)
