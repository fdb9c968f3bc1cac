"""Recursive descent parser of query texts, in one pass.

Keywords need no space before a name (`querybooks()` is `query books()`), and none is reserved.
"""

from omnigraph.language import lexer
from omnigraph.language.lexer import Cursor
from omnigraph.language.query import statements, syntax
from omnigraph.language.query.parse_pattern import PatternParser
from omnigraph.language.text import Source
from omnigraph.model.types import BASE_SCALARS

_LIMIT_MOST = 2**64 - 1
_BASES = frozenset(scalar.value for scalar in BASE_SCALARS)
_STATEMENTS = ("insert", "upsert", "update", "delete")
BARE_QUERY = "query"
_TEXT_ANNOTATIONS = ("description", "instruction")


def parse(text: str | bytes, *, name: str = "query text") -> statements.QueryFile:
    """Parse a query file; it may hold no query, or several of one name.

    Args:
        text: characters, or bytes in UTF-8.
        name: what to call the text in messages.

    Raises:
        ParseError: a syntax error; the report shows where.
        LimitError: the text is too long.
    """
    return parse_source(Source(text, name))


def parse_source(source: Source) -> statements.QueryFile:
    """Parse a query file that was checked already; see `parse`."""
    return _Parser(Cursor(source)).parse_file()


class _Parser(PatternParser):
    def parse_file(self) -> statements.QueryFile:
        if self._cursor.is_at_word("match"):
            return statements.QueryFile((self._parse_bare_read(),), span=self._span_since(0))
        queries = []
        while self._cursor.kind is not lexer.END:
            queries.append(self._parse_query())
        return statements.QueryFile(tuple(queries), span=self._span_since(0))

    def _parse_bare_read(self) -> statements.Query:
        """Parse a text that is one read without `query name() { … }` around it."""
        body = self._parse_read()
        if self._cursor.kind is not lexer.END:
            expected = (*self._after_body(body)[:-1], "end of text")
            raise self._unexpected("after the query", expected=expected, hint=self._late_word_hint())
        return statements.Query(BARE_QUERY, (), body, span=self._span_since(0))

    def _parse_query(self) -> statements.Query:
        cursor = self._cursor
        start = cursor.span.start
        if not self._take_keyword("query"):
            hint = (
                "a query starts with `query name() {`, or is a bare `match … return …`"
                if cursor.kind is lexer.NAME
                else ""
            )
            raise self._unexpected("between queries", expected=("`query`", "end of text"), hint=hint)
        name = self.parse_name("after `query`", expected=("a query name",), hint=self._capital_hint("query names"))
        parameters = self._parse_parameters()
        annotations = self._parse_annotations(name)
        cursor.expect("{", where=f"before the body of query {name}")
        body = self._parse_body(name)
        cursor.expect("}", where=f"in query {name}", expected=self._after_body(body), hint=self._late_word_hint())
        return statements.Query(
            name,
            parameters,
            body,
            description=annotations.get("description"),
            instruction=annotations.get("instruction"),
            ordered="ordered" in annotations,
            span=self._span_since(start),
        )

    def _capital_hint(self, what: str) -> str:
        return f"{what} start with a small letter" if self._cursor.kind is lexer.TYPE_NAME else ""

    def _after_body(self, body: statements.Read | statements.Mutation) -> tuple[str, ...]:
        if isinstance(body, statements.Mutation):
            return (*(f"`{word}`" for word in _STATEMENTS), "`}`")
        missing = [] if body.ordering or body.limit or body.offset else ["`order`"]
        if body.limit is None:
            missing.append("`limit`")
        if body.offset is None:
            missing.append("`offset`")
        return (*missing, "`}`")

    def _late_word_hint(self) -> str:
        """Return a hint for a word of another language, or in the wrong place."""
        match self._cursor.text:
            case "group":
                return "there is no `group by`: aggregates are grouped by whatever else is returned"
            case "where" | "having":
                return "conditions stand in the match block"
            case "order":
                return "`order` stands before `limit` and `offset`"
            case _:
                return ""

    # --- heads ----------------------------------------------------------------------------------------------------

    def _parse_parameters(self) -> tuple[statements.Parameter, ...]:
        cursor = self._cursor
        cursor.expect("(", where="after the query name", hint="a query without parameters has empty ones: `()`")
        parameters: list[statements.Parameter] = []
        while cursor.kind != ")":
            if parameters:
                cursor.expect(",", where="between parameters", expected=("`,`", "`)`"))
            start = cursor.span.start
            if cursor.kind is not lexer.VARIABLE:
                hint = f"a parameter is written `${cursor.text}: String`" if cursor.kind is lexer.NAME else ""
                raise self._unexpected(
                    "among the parameters", expected=("a parameter like `$name: String`",), hint=hint
                )
            name = cursor.text[1:]
            cursor.advance()
            cursor.expect(":", where=f"after parameter ${name}")
            parameters.append(statements.Parameter(name, self._parse_parameter_type(), span=self._span_since(start)))
        cursor.advance()
        return tuple(parameters)

    def _parse_parameter_type(self) -> statements.ParameterType:
        cursor = self._cursor
        start = cursor.span.start
        is_list = cursor.take("[") is not None
        base, dimension = cursor.text, None
        if cursor.kind is lexer.TYPE_NAME and base == "Vector" and not is_list:
            cursor.advance()
            cursor.expect("(", where="after Vector", hint="a vector has a dimension: `Vector(4)`")
            digits, span = cursor.text, cursor.expect(lexer.INTEGER, where="in Vector(…)")
            dimension = lexer.parse_integer(cursor, digits, span, most=_LIMIT_MOST)
            cursor.expect(")", where="in Vector(…)")
        elif base in _BASES:
            cursor.advance()
        else:
            hint = ""
            if cursor.is_at_word("enum"):
                hint = "an enum is passed as a String"
            raise self._unexpected(
                "as a parameter's type", expected=("a type like `String`, `[I64]` or `Vector(4)`",), hint=hint
            )
        if is_list:
            cursor.expect("]", where="after a list's element type")
        nullable = cursor.take("?") is not None
        return statements.ParameterType(base, is_list, dimension, nullable, span=self._span_since(start))

    def _parse_annotations(self, query: str) -> dict[str, str]:
        cursor = self._cursor
        found: dict[str, str] = {}
        while cursor.kind == "@":
            start = cursor.advance().start
            kind = cursor.text if cursor.kind is lexer.NAME else ""
            if kind not in (*_TEXT_ANNOTATIONS, "ordered"):
                raise self._unexpected(f"on query {query}", expected=("`@description`", "`@instruction`", "`@ordered`"))
            cursor.advance()
            value = ""
            if kind in _TEXT_ANNOTATIONS:
                cursor.expect("(", where=f"after @{kind}")
                value = lexer.unescape_string(cursor.source, cursor.expect(lexer.STRING, where=f"in @{kind}(…)"))
                cursor.expect(")", where=f"in @{kind}(…)")
            if kind in found:
                raise cursor.error(
                    self._span_since(start), f"query `{query}` cannot include duplicate @{kind} annotations"
                )
            found[kind] = value
        return found

    # --- reads ----------------------------------------------------------------------------------------------------

    def _parse_body(self, query: str) -> statements.Read | statements.Mutation:
        cursor = self._cursor
        if cursor.is_at_word("match"):
            return self._parse_read()
        start = cursor.span.start
        written = []
        while statement := self._parse_statement():
            written.append(statement)
        if not written:
            hint = "a query reads (`match … return …`) or writes; it needs at least one statement"
            expected = ("`match`", *(f"`{word}`" for word in _STATEMENTS))
            if cursor.is_at_word("return"):
                hint = "a read starts with `match { … }`"
            raise self._unexpected(f"in query {query}", expected=expected, hint=hint if cursor.kind != "@" else "")
        return statements.Mutation(tuple(written), span=self._span_since(start))

    def _parse_read(self) -> statements.Read:
        cursor = self._cursor
        start = cursor.advance().start
        with self._nest():
            clauses = self._parse_clauses("in the match block")
        if not cursor.take_word("return"):
            raise self._unexpected("after the match block", expected=("`return`",))
        distinct = cursor.take_word("distinct") is not None
        projections = self._parse_projections()
        ordering = self._parse_orderings() if cursor.take_word("order") else ()
        limit, offset = self._parse_window()
        return statements.Read(clauses, projections, distinct, ordering, limit, offset, span=self._span_since(start))

    def _parse_projections(self) -> tuple[statements.Projection, ...]:
        cursor = self._cursor
        cursor.expect("{", where="after `return`")
        projections = [self._parse_projection()]
        while cursor.kind != "}":
            projections.append(self._parse_projection())
        cursor.advance()
        return tuple(projections)

    def _parse_projection(self) -> statements.Projection:
        cursor = self._cursor
        self._operators = 0
        start = cursor.span.start
        if cursor.kind == "}":
            raise self._unexpected("in the return block", expected=("something to return",))
        if cursor.kind is lexer.VARIABLE and cursor.peek_kind() == "." and cursor.peek_kind(2) == "*":
            return self._parse_all_properties()
        value = self.parse_expression()
        alias = None
        if cursor.take_word("as"):
            alias = self.parse_name("after `as`", hint=self._capital_hint("aliases"))
        span = self._span_since(start)
        cursor.take(",")
        return statements.Projection(value, alias, span=span)

    def _parse_all_properties(self) -> statements.Projection:
        cursor = self._cursor
        variable, start = cursor.text[1:], cursor.advance().start
        cursor.advance()
        cursor.advance()
        span = self._span_since(start)
        if cursor.is_at_word("as"):
            raise self._unexpected(f"after `${variable}.*`", hint="several columns cannot share a name")
        cursor.take(",")
        return statements.Projection(syntax.Property(variable, syntax.ALL_PROPERTIES, span=span), span=span)

    def _parse_orderings(self) -> tuple[statements.Ordering, ...]:
        cursor = self._cursor
        cursor.expect("{", where="after `order`", hint="write `order { $p.name desc }`")
        orderings = [self._parse_ordering()]
        while cursor.kind != "}":
            if cursor.kind != ",":
                hint = "put a comma between terms" if cursor.kind in (lexer.VARIABLE, lexer.NAME) else ""
                raise self._unexpected("in the order block", expected=("`asc`", "`desc`", "`,`", "`}`"), hint=hint)
            cursor.advance()
            orderings.append(self._parse_ordering())
        cursor.advance()
        return tuple(orderings)

    def _parse_ordering(self) -> statements.Ordering:
        cursor = self._cursor
        self._operators = 0
        start = cursor.span.start
        # Null sorts nothing: alone the word can only be an alias of that name.
        is_alias = cursor.is_at_word("null") and self._is_bare_name()
        value = syntax.Name("null", span=cursor.advance()) if is_alias else self.parse_expression()
        modifier = cursor.text if cursor.is_at_word("asc") or cursor.is_at_word("desc") else None
        if modifier is not None:
            span = cursor.advance()
            if isinstance(value, syntax.Nearest):
                raise cursor.error(
                    span,
                    "nearest() ordering does not accept asc/desc modifiers",
                    hint="the nearest come first; leave the modifier out",
                )
        return statements.Ordering(value, modifier == "desc", span=self._span_since(start))

    def _parse_window(self) -> tuple[syntax.Literal | syntax.Variable | None, syntax.Literal | syntax.Variable | None]:
        limit = offset = None
        while True:
            if limit is None and self._take_keyword("limit"):
                limit = self._parse_count("limit")
            elif offset is None and self._cursor.take_word("offset"):
                offset = self._parse_count("offset")
            else:
                return limit, offset

    def _parse_count(self, word: str) -> syntax.Literal | syntax.Variable:
        cursor = self._cursor
        text = cursor.text
        if cursor.kind is lexer.VARIABLE:
            return syntax.Variable(text[1:], span=cursor.advance())
        # After `limit10` was split the digits are still a token of words.
        if cursor.kind is not lexer.INTEGER and not (text.isascii() and text.isdigit()):
            raise self._unexpected(f"after `{word}`", expected=("a whole number", "a parameter"))
        span = cursor.advance()
        return syntax.Literal(
            syntax.LiteralKind.INTEGER, lexer.parse_integer(cursor, text, span, most=_LIMIT_MOST), span=span
        )

    # --- mutations ------------------------------------------------------------------------------------------------

    def _parse_statement(self) -> statements.Statement | None:
        start = self._cursor.span.start
        if self._take_keyword("insert"):
            type_name = self._parse_target("insert")
            return statements.Insert(
                type_name, self._parse_assignments(f"in the insert of {type_name}"), span=self._span_since(start)
            )
        if self._take_keyword("upsert"):
            type_name = self._parse_target("upsert")
            assignments = self._parse_assignments(f"in the upsert of {type_name}")
            return statements.Insert(type_name, assignments, keeps=True, span=self._span_since(start))
        if self._take_keyword("update"):
            type_name = self._parse_target("update")
            if not self._cursor.take_word("set"):
                raise self._unexpected(f"in the update of {type_name}", expected=("`set`",))
            assignments = self._parse_assignments(f"in the update of {type_name}")
            return statements.Update(type_name, assignments, self._parse_where(type_name), span=self._span_since(start))
        if self._take_keyword("delete"):
            type_name = self._parse_target("delete")
            return statements.Delete(type_name, self._parse_where(type_name), span=self._span_since(start))
        return None

    def _parse_target(self, word: str) -> str:
        cursor = self._cursor
        if cursor.kind is not lexer.TYPE_NAME:
            hint = "types start with a capital letter" if cursor.kind is lexer.NAME else ""
            raise self._unexpected(f"after `{word}`", expected=("a node or edge type",), hint=hint)
        name = cursor.text
        cursor.advance()
        return name

    def _parse_assignments(self, where: str) -> tuple[syntax.Assignment, ...]:
        cursor = self._cursor
        cursor.expect("{", where=where)
        assignments = [self._parse_assignment(where)]
        while cursor.kind != "}":
            assignments.append(self._parse_assignment(where))
        cursor.advance()
        return tuple(assignments)

    def _parse_assignment(self, where: str) -> syntax.Assignment:
        self._operators = 0
        assignment = self._parse_match(where)
        self._cursor.take(",")
        return assignment

    def _parse_where(self, type_name: str) -> syntax.Expression:
        self._operators = 0
        where = f"in the predicate on {type_name}"
        if not self._take_keyword("where"):
            raise self._unexpected(where, expected=("`where`",), hint="say which: `where name = $n`")
        if self._cursor.kind is lexer.VARIABLE and self._cursor.peek_kind() == ".":
            raise self._unexpected(
                where, expected=("a property name",), hint="properties stand without a variable here: `where name = $n`"
            )
        return self._parse_filter(where).condition

    # --- keywords -------------------------------------------------------------------------------------------------

    def _take_keyword(self, word: str) -> bool:
        """Consume a keyword, which needs no space after it."""
        cursor = self._cursor
        if cursor.kind is not lexer.NAME or not cursor.text.startswith(word):
            return False
        if len(cursor.text) == len(word):
            cursor.advance()
        else:
            cursor.split(len(word))
        return True
