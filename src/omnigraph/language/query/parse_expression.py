"""Parser of expressions.

Precedence from loose to tight: `or`, `and`, `not`, comparisons (which do not chain), `+ -`, `* / %`, sign, primary.
Words are not reserved: a function name is a call only before `(`, and `exists` a subquery only before `{`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph import limits
from omnigraph.errors import ParseError
from omnigraph.language import lexer
from omnigraph.language.lexer import Cursor
from omnigraph.language.query import syntax
from omnigraph.language.text import Span
from omnigraph.model.suggest import suggest

_COMPARISONS = {op.value: op for op in syntax.ComparisonOp}
_COMPARISON_SIGNS = frozenset(sign for sign in _COMPARISONS if not sign[0].isalpha())
_AGGREGATES = {function.value: function for function in syntax.AggregateFunction}
_FUNCTIONS = {function.value: function for function in syntax.Function}
_TEXT_FUNCTIONS = {function.value: function for function in syntax.TextFunction}
_ARITHMETIC = {op.value: op for op in syntax.ArithmeticOp}
_SUMS = frozenset("+-")
_PRODUCTS = frozenset("*/%")

_KNOWN_FUNCTIONS = tuple(
    sorted([*_AGGREGATES, *_FUNCTIONS, *_TEXT_FUNCTIONS, "now", "nearest", "bm25", "rrf", "date", "datetime"])
)

_I64_MAX = 2**63 - 1

_VALUE = ("a value",)
_SIGN_HINTS = {
    "==": "`=` compares; write it once",
    "<>": "write `!=` for “not equal”",
    "=>": "write `>=`",
    "=<": "write `<=`",
    "&&": "write `and`",
    "||": "write `or`",
    "!": "write `not` before a condition, `!=` between two values",
    "|": "write `or`",
    "&": "write `and`",
    ";": "nothing ends with a semicolon; remove it",
}


class ExpressionParser:
    """Expression part of the parser; patterns and queries build on it."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._operators = 0
        self._depth = 0

    def _parse_clauses(self, where: str) -> tuple[syntax.Clause, ...]:
        """Parse the clauses between `{` and `}`."""
        raise NotImplementedError

    # --- conditions -----------------------------------------------------------------------------------------------

    def parse_expression(self) -> syntax.Expression:
        """Parse any expression."""
        start = self._cursor.span.start
        first = self._parse_conjunction()
        if not self._is_at_or():
            return first
        operands = [first]
        while self._is_at_or():
            self._cursor.advance()
            operands.append(self._parse_conjunction())
        return syntax.Or(tuple(operands), span=self._span_since(start))

    def _is_at_or(self) -> bool:
        # `or {` starts a clause of its own.
        return self._cursor.is_at_word("or") and self._cursor.peek_kind() != "{"

    def _parse_conjunction(self) -> syntax.Expression:
        start = self._cursor.span.start
        first = self._parse_negation()
        if not self._cursor.is_at_word("and"):
            return first
        operands = [first]
        while self._cursor.take_word("and"):
            operands.append(self._parse_negation())
        return syntax.And(tuple(operands), span=self._span_since(start))

    def _parse_negation(self) -> syntax.Expression:
        if not self._cursor.is_at_word("not") or self._is_bare_name():
            return self._parse_comparison()
        start = self._cursor.advance().start
        with self._nest():
            operand: syntax.Expression
            if self._cursor.kind == "{":
                operand = syntax.Exists(self._parse_clauses("in the not block"), span=self._span_since(start))
            else:
                operand = self._parse_negation()
        return syntax.Not(operand, span=self._span_since(start))

    def _is_bare_name(self) -> bool:
        """True if the token after this word can only follow a bare name."""
        after = self._cursor.peek_kind()
        return (
            after in (",", "}", ")", ":") or after in _COMPARISON_SIGNS or self._cursor.peek_text() in ("asc", "desc")
        )

    def _parse_comparison(self) -> syntax.Expression:
        start = self._cursor.span.start
        left = self.parse_value()
        compared = self._parse_comparison_tail(left, start)
        if compared is None:
            return left
        if self._cursor.kind in _COMPARISON_SIGNS:
            raise self._unexpected(
                "after a comparison", expected=(), hint="comparisons do not chain; write `a < b and b < c`"
            )
        return compared

    def _parse_comparison_tail(self, left: syntax.Expression, start: int) -> syntax.Expression | None:
        cursor = self._cursor
        if cursor.kind in _COMPARISON_SIGNS or cursor.is_at_word("contains") or cursor.is_at_word("starts_with"):
            op = _COMPARISONS[cursor.text]
            self._refuse_foreign_sign("in a comparison")
            cursor.advance()
            right = self.parse_value()
            return syntax.Comparison(op, left, right, span=self._span_since(start))
        if cursor.kind is not lexer.NAME:
            return None
        word, after = cursor.text, cursor.peek_text()
        if word == "in" or (word == "not" and after == "in"):
            cursor.advance()
            if word == "not":
                cursor.advance()
            choices = self.parse_value()
            return syntax.In(left, choices, word == "not", span=self._span_since(start))
        if word == "is" and after in ("null", "not"):
            cursor.advance()
            negated = cursor.take_word("not") is not None
            if not cursor.take_word("null"):
                raise self._unexpected("after `is`", expected=("`null`", "`not null`"))
            return syntax.IsNull(left, negated, span=self._span_since(start))
        return None

    # --- values ---------------------------------------------------------------------------------------------------

    def parse_value(self) -> syntax.Expression:
        """Parse a value: arithmetic, but no condition outside parentheses."""
        start = self._cursor.span.start
        left = self._parse_product()
        while self._cursor.kind in _SUMS:
            op = self._parse_operator()
            left = syntax.Arithmetic(op, left, self._parse_product(), span=self._span_since(start))
        return left

    def _parse_product(self) -> syntax.Expression:
        start = self._cursor.span.start
        left = self._parse_signed()
        while self._cursor.kind in _PRODUCTS:
            op = self._parse_operator()
            left = syntax.Arithmetic(op, left, self._parse_signed(), span=self._span_since(start))
        return left

    def _parse_operator(self) -> syntax.ArithmeticOp:
        op = _ARITHMETIC[self._cursor.text]
        # A chain grows to the left, one level of tree for each link: bounded, like nesting.
        self._operators += 1
        if self._operators > limits.EXPRESSION_OPERATORS_MAX:
            raise self._cursor.error(
                self._cursor.span, f"more than {limits.EXPRESSION_OPERATORS_MAX} arithmetic operators in one expression"
            )
        self._cursor.advance()
        return op

    def _parse_signed(self) -> syntax.Expression:
        cursor = self._cursor
        if cursor.kind != "-":
            return self._parse_primary()
        start = cursor.advance().start
        if cursor.kind is lexer.INTEGER or cursor.kind is lexer.FLOAT:
            return self._parse_number(start)
        with self._nest():
            return syntax.Negative(self._parse_signed(), span=self._span_since(start))

    def _parse_primary(self) -> syntax.Expression:
        cursor = self._cursor
        kind = cursor.kind
        if kind is lexer.VARIABLE:
            return self._parse_variable()
        if kind is lexer.NAME:
            return self._parse_word()
        if kind is lexer.STRING or kind is lexer.INTEGER or kind is lexer.FLOAT or kind == "[":
            return self.parse_literal()
        if kind == "(":
            cursor.advance()
            with self._nest():
                inner = self.parse_expression()
            cursor.expect(")", where="after `(`")
            return inner
        hint = ""
        if kind is lexer.TYPE_NAME:
            hint = "a type stands only after a variable, as in `$p: Person`; strings are written in double quotes"
        raise self._unexpected("where a value is needed", expected=_VALUE, hint=hint)

    def _parse_variable(self) -> syntax.Variable | syntax.Property:
        cursor = self._cursor
        name, span = cursor.text[1:], cursor.advance()
        if cursor.kind != ".":
            return syntax.Variable(name, span=span)
        cursor.advance()
        property_name = self.parse_name("after `.`", expected=("a property name",))
        return syntax.Property(name, property_name, span=self._span_since(span.start))

    def _parse_word(self) -> syntax.Expression:
        cursor = self._cursor
        word, span, after = cursor.text, cursor.span, cursor.peek_kind()
        if word in ("true", "false", "null") or (word in ("date", "datetime") and after == "("):
            return self.parse_literal()
        if word == "exists" and after == "{":
            cursor.advance()
            with self._nest():
                return syntax.Exists(self._parse_clauses("in the exists block"), span=self._span_since(span.start))
        if after != "(":
            cursor.advance()
            return syntax.Name(word, span=span)
        with self._nest():
            return self._parse_call(word, span)

    def _parse_call(self, word: str, span: Span) -> syntax.Expression:
        cursor = self._cursor
        if word in _AGGREGATES:
            return self._parse_aggregate(_AGGREGATES[word])
        if word in _TEXT_FUNCTIONS:
            text_function = _TEXT_FUNCTIONS[word]
            most = 3 if text_function is syntax.TextFunction.FUZZY else 2
            arguments = self._parse_arguments(word, 2, most)
            edits = arguments[2] if len(arguments) > 2 else None
            return syntax.TextMatch(text_function, arguments[0], arguments[1], edits, span=self._span_since(span.start))
        match word:
            case "now":
                self._parse_arguments(word, 0, 0)
                return syntax.Now(span=self._span_since(span.start))
            case "nearest":
                target, query = self._parse_arguments(word, 2, 2)
                if not isinstance(target, syntax.Property):
                    raise cursor.error(target.span, "nearest() takes a property first", expected=("`$v.property`",))
                return syntax.Nearest(target, query, span=self._span_since(span.start))
            case "bm25":
                target, query = self._parse_arguments(word, 2, 2)
                return syntax.Bm25(target, query, span=self._span_since(span.start))
            case "rrf":
                first, second, *rest = self._parse_arguments(word, 2, 3)
                for arm in (first, second):
                    if not isinstance(arm, syntax.Nearest | syntax.Bm25):
                        raise cursor.error(arm.span, "rrf() fuses rankings", expected=("`nearest(…)`", "`bm25(…)`"))
                assert isinstance(first, syntax.Nearest | syntax.Bm25)
                assert isinstance(second, syntax.Nearest | syntax.Bm25)
                return syntax.Rrf(first, second, rest[0] if rest else None, span=self._span_since(span.start))
        if word in _FUNCTIONS:
            function = _FUNCTIONS[word]
            count = 2 if function is syntax.Function.DAYS_BETWEEN else 1
            return syntax.Call(function, self._parse_arguments(word, count, count), span=self._span_since(span.start))
        raise cursor.error(span, f"unknown function `{word}`", hint=suggest(word, _KNOWN_FUNCTIONS))

    def _parse_arguments(self, word: str, least: int, most: int) -> tuple[syntax.Expression, ...]:
        cursor = self._cursor
        start = cursor.advance().start
        cursor.expect("(")
        arguments: list[syntax.Expression] = []
        while cursor.kind != ")":
            if arguments:
                cursor.expect(",", where=f"in {word}(…)", expected=("`,`", "`)`"))
            arguments.append(self.parse_expression())
        cursor.advance()
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} or {most}"
            noun = "argument" if wanted == "1" else "arguments"
            raise cursor.error(self._span_since(start), f"{word}() takes {wanted} {noun}, got {len(arguments)}")
        return tuple(arguments)

    def _parse_aggregate(self, function: syntax.AggregateFunction) -> syntax.Aggregate:
        cursor = self._cursor
        start = cursor.advance().start
        cursor.expect("(")
        distinct = cursor.is_at_word("distinct") and cursor.peek_kind() != ")"
        if distinct:
            cursor.advance()
        argument: syntax.Expression | None = None
        if cursor.kind == "*":
            if function is not syntax.AggregateFunction.COUNT or distinct:
                raise self._unexpected(f"in {function}(…)", expected=_VALUE, hint="only count(*) takes a star")
            cursor.advance()
        else:
            argument = self.parse_expression()
        cursor.expect(")", where=f"in {function}(…)")
        return syntax.Aggregate(function, argument, distinct, span=self._span_since(start))

    # --- literals -------------------------------------------------------------------------------------------------

    def parse_literal(self) -> syntax.Literal | syntax.ListLiteral:
        """Parse a literal: text, number, `true`, `null`, a date, or a list of literals."""
        cursor = self._cursor
        kind = cursor.kind
        if kind is lexer.STRING:
            value = lexer.unescape_string(cursor.source, cursor.span)
            return syntax.Literal(syntax.LiteralKind.STRING, value, span=cursor.advance())
        if kind is lexer.INTEGER or kind is lexer.FLOAT:
            return self._parse_number(None)
        if kind == "-" and cursor.peek_kind() in (lexer.INTEGER, lexer.FLOAT):
            return self._parse_number(cursor.advance().start)
        if kind == "[":
            return self._parse_list()
        if kind is lexer.NAME:
            word = cursor.text
            if word in ("true", "false"):
                return syntax.Literal(syntax.LiteralKind.BOOL, word == "true", span=cursor.advance())
            if word == "null":
                return syntax.Literal(syntax.LiteralKind.NULL, None, span=cursor.advance())
            if word in ("date", "datetime") and cursor.peek_kind() == "(":
                return self._parse_date(word)
        hint = ""
        if kind is lexer.VARIABLE:
            hint = "a list literal holds literals only; for changing lists declare a parameter like `$xs: [String]`"
        raise self._unexpected("where a literal is needed", expected=("a literal",), hint=hint)

    def _parse_date(self, word: str) -> syntax.Literal:
        cursor = self._cursor
        start = cursor.advance().start
        cursor.expect("(")
        value = lexer.unescape_string(cursor.source, cursor.expect(lexer.STRING, where=f"in {word}(…)"))
        cursor.expect(")", where=f"in {word}(…)")
        kind = syntax.LiteralKind.DATE if word == "date" else syntax.LiteralKind.DATETIME
        return syntax.Literal(kind, value, span=self._span_since(start))

    def _parse_list(self) -> syntax.ListLiteral:
        cursor = self._cursor
        start = cursor.advance().start
        items: list[syntax.Literal | syntax.ListLiteral] = []
        with self._nest():
            while cursor.kind != "]":
                if items:
                    cursor.expect(",", where="in a list", expected=("`,`", "`]`"))
                items.append(self.parse_literal())
        cursor.advance()
        return syntax.ListLiteral(tuple(items), span=self._span_since(start))

    def _parse_number(self, sign_at: int | None) -> syntax.Literal:
        cursor = self._cursor
        digits, kind, span = cursor.text, cursor.kind, cursor.advance()
        if sign_at is not None:
            span = Span(sign_at, span.end)
        if kind is lexer.FLOAT:
            value = float(digits)
            if value == float("inf"):
                raise cursor.error(span, "invalid float: number too large")
            return syntax.Literal(syntax.LiteralKind.FLOAT, value if sign_at is None else -value, span=span)
        # The least I64 is one further from zero than the greatest.
        number = lexer.parse_integer(self._cursor, digits, span, most=_I64_MAX if sign_at is None else _I64_MAX + 1)
        return syntax.Literal(syntax.LiteralKind.INTEGER, number if sign_at is None else -number, span=span)

    # --- small things ---------------------------------------------------------------------------------------------

    def parse_name(self, where: str, *, expected: tuple[str, ...] = ("a name",), hint: str = "") -> str:
        """Consume a name and return it."""
        # After `query1q` was split, what is left starts with a digit.
        if self._cursor.kind is not lexer.NAME or self._cursor.text[0].isdigit():
            raise self._unexpected(where, expected=expected, hint=hint)
        text = self._cursor.text
        self._cursor.advance()
        return text

    def _refuse_foreign_sign(self, where: str) -> None:
        """Report `==`, `<>` and the like, which are two tokens here."""
        cursor = self._cursor
        pair = cursor.text + cursor.peek_text()
        if pair in _SIGN_HINTS and cursor.peek_text(1):
            cursor.advance()
            raise self._unexpected(where, expected=_VALUE, hint=_SIGN_HINTS[pair])

    @contextmanager
    def _nest(self) -> Iterator[None]:
        """Increase the nesting depth; the stages after the parser recurse as deep as the text nests."""
        if self._depth >= limits.QUERY_NESTING_MAX:
            raise self._cursor.error(
                self._cursor.span, f"nested more than {limits.QUERY_NESTING_MAX} levels deep, the most allowed"
            )
        self._depth += 1
        yield
        self._depth -= 1

    def _span_since(self, start: int) -> Span:
        return Span(start, self._cursor.end_before)

    def _unexpected(self, where: str, *, expected: tuple[str, ...] = (), hint: str = "") -> ParseError:
        """Return the error for the current token, with a hint for operators of other languages."""
        if not hint:
            hint = _SIGN_HINTS.get(self._cursor.text + self._cursor.peek_text()) or _SIGN_HINTS.get(
                self._cursor.text, ""
            )
        return self._cursor.unexpected(where=where, expected=expected, hint=hint)
