"""Parser of patterns: the clauses of a `match` block, and of nested blocks.

The choice between clauses is ordered: a binding, else a traversal, else a condition. So `$x contains $y` is a traversal
along an edge called `contains`, while `$x contains "y"` and `$x.name contains $y` can only be conditions.
"""

from omnigraph.errors import ParseError
from omnigraph.language import lexer
from omnigraph.language.query import syntax
from omnigraph.language.query.parse_expression import ExpressionParser

_HOPS_MOST = 2**32 - 1
_CONDITIONS = (
    syntax.Comparison,
    syntax.In,
    syntax.IsNull,
    syntax.Not,
    syntax.And,
    syntax.Or,
    syntax.Exists,
    syntax.TextMatch,
)
_VALUE_STARTS = frozenset({lexer.NAME, lexer.STRING, lexer.INTEGER, lexer.FLOAT, "[", "(", "-"})
_CLAUSE = ("a binding", "a traversal", "a condition", "`}`")


class PatternParser(ExpressionParser):
    """Pattern part of the parser."""

    def _parse_clauses(self, where: str) -> tuple[syntax.Clause, ...]:
        cursor = self._cursor
        cursor.expect("{", where=where)
        operators = self._operators
        clauses = [self._parse_clause(where)]
        while cursor.kind != "}":
            clauses.append(self._parse_clause(where))
        cursor.advance()
        self._operators = operators
        return tuple(clauses)

    def _parse_clause(self, where: str) -> syntax.Clause:
        self._operators = 0
        cursor = self._cursor
        if cursor.kind is lexer.VARIABLE:
            return self._parse_binding_or_traversal() or self._parse_filter(where)
        if cursor.kind is lexer.NAME:
            after = cursor.peek_kind()
            start = cursor.span.start
            match cursor.text:
                case "not" if after == "{":
                    return syntax.Negation(self._parse_block("in the not block"), span=self._span_since(start))
                case "optional" if after == "{":
                    return syntax.Optional(self._parse_block("in the optional block"), span=self._span_since(start))
                case "or" if after == "{":
                    return self._parse_alternatives()
                case "shortest" if after is lexer.VARIABLE:
                    return self._parse_shortest()
                case "match" | "return" if after == "{":
                    raise self._unexpected(where, expected=_CLAUSE, hint="close the block before with `}`")
        if cursor.kind not in _VALUE_STARTS:
            hint = "clauses are separated by white space; remove the comma" if cursor.kind == "," else ""
            raise self._unexpected(where, expected=_CLAUSE[:-1] if cursor.kind == "}" else _CLAUSE, hint=hint)
        return self._parse_filter(where)

    def _parse_block(self, where: str) -> tuple[syntax.Clause, ...]:
        self._cursor.advance()
        with self._nest():
            return self._parse_clauses(where)

    def _parse_alternatives(self) -> syntax.Alternatives:
        cursor = self._cursor
        start = cursor.advance().start
        blocks = []
        with self._nest():
            while cursor.kind == "{":
                blocks.append(self._parse_clauses("in the or block"))
        if len(blocks) < 2:
            raise self._unexpected(
                "after the first alternative", expected=("`{`",), hint="or { … } { … } has at least two"
            )
        return syntax.Alternatives(tuple(blocks), span=self._span_since(start))

    # --- bindings and traversals --------------------------------------------------------------------------------------

    def _parse_binding_or_traversal(self) -> syntax.Binding | syntax.Traversal | None:
        """Parse a binding or traversal; return None, with nothing consumed, if it must be a condition."""
        cursor = self._cursor
        match cursor.peek_kind():
            case ":":
                return self._parse_binding()
            case "<" if cursor.peek_kind(2) is lexer.NAME and cursor.peek_kind(3) == ">":
                return self._parse_traversal()
            case lexer.VARIABLE:
                return self._parse_traversal()
            case lexer.NAME if cursor.peek_text() != "not":
                after = cursor.peek_kind(2)
                if after is lexer.VARIABLE and cursor.peek_kind(3) != ".":
                    return self._parse_traversal()
                if after == "{":
                    return self._parse_traversal()
                if after is lexer.TYPE_NAME:
                    cursor.advance()
                    cursor.advance()
                    raise self._unexpected(
                        "after the edge", expected=("a variable",), hint="a traversal ends in a variable: `$a knows $b`"
                    )
            case lexer.TYPE_NAME:
                cursor.advance()
                raise self._capital_edge()
        return None

    def _parse_binding(self) -> syntax.Binding:
        cursor = self._cursor
        variable, span = cursor.text[1:], cursor.advance()
        cursor.advance()
        if cursor.kind is not lexer.TYPE_NAME:
            hint = "node types start with a capital letter, as in `$p: Person`"
            if cursor.kind is lexer.NAME and cursor.peek_kind() is lexer.VARIABLE:
                hint = "a traversal starts with its source: `$a $e: knows $b`, or `$a knows $b`"
            raise self._unexpected(f"after `${variable}:`", expected=("a node type",), hint=hint)
        type_name = cursor.text
        cursor.advance()
        matches = self._parse_matches() if cursor.kind == "{" else ()
        return syntax.Binding(variable, type_name, matches, span=self._span_since(span.start))

    def _parse_matches(self) -> tuple[syntax.Assignment, ...]:
        cursor = self._cursor
        cursor.advance()
        where = "in the braces of a binding"
        if cursor.kind == "}":
            hint = "leave the braces out to match every node of the type"
            raise self._unexpected(where, expected=("a property name",), hint=hint)
        matches = [self._parse_match(where)]
        while cursor.kind != "}":
            hint = "put a comma between properties" if cursor.kind is lexer.NAME else ""
            if cursor.kind != ",":
                raise self._unexpected(where, expected=("`,`", "`}`"), hint=hint)
            cursor.advance()
            if cursor.kind != "}":
                matches.append(self._parse_match(where))
        cursor.advance()
        return tuple(matches)

    def _parse_match(self, where: str) -> syntax.Assignment:
        cursor = self._cursor
        start = cursor.span.start
        name = self.parse_name(where, expected=("a property name",))
        if cursor.kind != ":":
            hint = "in braces a property is followed by `:`" if cursor.kind == "=" else ""
            raise self._unexpected(where, expected=("`:`",), hint=hint)
        cursor.advance()
        return syntax.Assignment(name, self.parse_value(), span=self._span_since(start))

    def _parse_traversal(self) -> syntax.Traversal:
        cursor = self._cursor
        source, start = cursor.text[1:], cursor.advance().start
        edge_variable = None
        if cursor.kind is lexer.VARIABLE:
            edge_variable = cursor.text[1:]
            cursor.advance()
            if cursor.kind != ":":
                raise self._unexpected("after two variables", expected=("`:`",), hint="write `$a $e: knows $b`")
            cursor.advance()
        edge, undirected = self._parse_edge()
        hops = self._parse_hops() if cursor.kind == "{" else None
        target = self._parse_endpoint()
        return syntax.Traversal(source, edge, target, edge_variable, undirected, hops, span=self._span_since(start))

    def _parse_shortest(self) -> syntax.Shortest:
        cursor = self._cursor
        start = cursor.advance().start
        source = self._parse_endpoint()
        edge, undirected = self._parse_edge()
        if cursor.kind != "{":
            raise self._unexpected(
                "in shortest", expected=("`{`",), hint="say how far to look: `shortest $a knows{1,6} $b as $path`"
            )
        hops = self._parse_hops()
        target = self._parse_endpoint()
        if not cursor.take_word("as"):
            raise self._unexpected("in shortest", expected=("`as`",), hint="name the path: `… as $path`")
        path = self._parse_endpoint()
        return syntax.Shortest(source, edge, target, path, undirected, hops, span=self._span_since(start))

    def _parse_edge(self) -> tuple[str, bool]:
        cursor = self._cursor
        undirected = cursor.take("<") is not None
        if cursor.kind is lexer.TYPE_NAME:
            raise self._capital_edge()
        edge = self.parse_name("in a traversal", expected=("an edge name",))
        if undirected:
            cursor.expect(">", where="in a traversal")
        return edge, undirected

    def _capital_edge(self) -> ParseError:
        written = self._cursor.text
        name = written[0].lower() + written[1:]
        return self._unexpected(
            "in a traversal",
            expected=("an edge name",),
            hint=f"edges are traversed by their name with a small first letter: `{name}`",
        )

    def _parse_hops(self) -> syntax.Hops:
        cursor = self._cursor
        where = "in hop bounds"
        hint = "hop bounds are two numbers with a comma: `{1,3}`"
        start = cursor.advance().start
        least = self._parse_hop_count(where, hint)
        if cursor.kind != ",":
            raise self._unexpected(where, expected=("`,`",), hint=hint)
        cursor.advance()
        most = None if cursor.kind == "}" else self._parse_hop_count(where, hint)
        cursor.expect("}", where=where, hint=hint)
        return syntax.Hops(least, most, span=self._span_since(start))

    def _parse_hop_count(self, where: str, hint: str) -> int:
        cursor = self._cursor
        if cursor.kind is not lexer.INTEGER:
            raise self._unexpected(where, expected=("a whole number",), hint=hint)
        return lexer.parse_integer(cursor, cursor.text, cursor.advance(), most=_HOPS_MOST)

    def _parse_endpoint(self) -> str:
        cursor = self._cursor
        if cursor.kind is not lexer.VARIABLE:
            raise self._unexpected("in a traversal", expected=("a variable like `$name`",))
        name = cursor.text[1:]
        cursor.advance()
        return name

    # --- conditions -----------------------------------------------------------------------------------------------

    def _parse_filter(self, where: str) -> syntax.Filter:
        cursor = self._cursor
        start = cursor.span.start
        condition = self.parse_expression()
        if not isinstance(condition, _CONDITIONS):
            raise self._unexpected_condition(condition, where)
        return syntax.Filter(condition, span=self._span_since(start))

    def _unexpected_condition(self, value: syntax.Expression, where: str) -> ParseError:
        cursor = self._cursor
        hint = ""
        if cursor.kind is lexer.TYPE_NAME and isinstance(value, syntax.Variable):
            return self._capital_edge()
        if cursor.kind is lexer.NAME and isinstance(value, syntax.Property):
            hint = f"`{cursor.text}` is no operator; compare with = != < <= > >=, contains, starts_with, in, is null"
        elif isinstance(value, syntax.Property):
            hint = "a property alone is no condition; write `= true` to test a Bool"
        elif isinstance(value, syntax.Variable) and cursor.kind is lexer.NAME:
            hint = f"`{cursor.text}` is no operator; a traversal and a condition on its end are two clauses"
        elif isinstance(value, syntax.Name) and value.name == "where":
            hint = "conditions stand in the block like every other clause, without a word before them"
        elif isinstance(value, syntax.Name) and cursor.kind is lexer.VARIABLE:
            hint = "a traversal starts with its source: `$a knows $b`"
        return self._unexpected(where, expected=("a comparison operator",), hint=hint)
