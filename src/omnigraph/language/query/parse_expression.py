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
from omnigraph.model.suggest import hint_for

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
        self._at = cursor
        self._operators = 0
        self._depth = 0

    def _clauses(self, where: str) -> tuple[syntax.Clause, ...]:
        """Parse the clauses between `{` and `}`."""
        raise NotImplementedError

    # --- conditions -----------------------------------------------------------------------------------------------

    def expression(self) -> syntax.Expression:
        """Parse any expression."""
        start = self._at.span.start
        first = self._conjunction()
        if not self._at_or():
            return first
        operands = [first]
        while self._at_or():
            self._at.advance()
            operands.append(self._conjunction())
        return syntax.Or(tuple(operands), span=self._since(start))

    def _at_or(self) -> bool:
        # `or {` starts a clause of its own.
        return self._at.at_word("or") and self._at.kind_after() != "{"

    def _conjunction(self) -> syntax.Expression:
        start = self._at.span.start
        first = self._negation()
        if not self._at.at_word("and"):
            return first
        operands = [first]
        while self._at.take_word("and"):
            operands.append(self._negation())
        return syntax.And(tuple(operands), span=self._since(start))

    def _negation(self) -> syntax.Expression:
        if not self._at.at_word("not") or self._ends_a_name():
            return self._comparison()
        start = self._at.advance().start
        with self._deeper():
            operand: syntax.Expression
            if self._at.kind == "{":
                operand = syntax.Exists(self._clauses("in the not block"), span=self._since(start))
            else:
                operand = self._negation()
        return syntax.Not(operand, span=self._since(start))

    def _ends_a_name(self) -> bool:
        """True if the token after this word can only follow a bare name."""
        after = self._at.kind_after()
        return after in (",", "}", ")", ":") or after in _COMPARISON_SIGNS or self._at.text_after() in ("asc", "desc")

    def _comparison(self) -> syntax.Expression:
        start = self._at.span.start
        left = self.value()
        compared = self._compared(left, start)
        if compared is None:
            return left
        if self._at.kind in _COMPARISON_SIGNS:
            raise self._unexpected(
                "after a comparison", expected=(), hint="comparisons do not chain; write `a < b and b < c`"
            )
        return compared

    def _compared(self, left: syntax.Expression, start: int) -> syntax.Expression | None:
        cursor = self._at
        if cursor.kind in _COMPARISON_SIGNS or cursor.at_word("contains") or cursor.at_word("starts_with"):
            op = _COMPARISONS[cursor.text]
            self._refuse_foreign_sign("in a comparison")
            cursor.advance()
            right = self.value()
            return syntax.Comparison(op, left, right, span=self._since(start))
        if cursor.kind is not lexer.NAME:
            return None
        word, after = cursor.text, cursor.text_after()
        if word == "in" or (word == "not" and after == "in"):
            cursor.advance()
            if word == "not":
                cursor.advance()
            choices = self.value()
            return syntax.In(left, choices, word == "not", span=self._since(start))
        if word == "is" and after in ("null", "not"):
            cursor.advance()
            negated = cursor.take_word("not") is not None
            if not cursor.take_word("null"):
                raise self._unexpected("after `is`", expected=("`null`", "`not null`"))
            return syntax.IsNull(left, negated, span=self._since(start))
        return None

    # --- values ---------------------------------------------------------------------------------------------------

    def value(self) -> syntax.Expression:
        """Parse a value: arithmetic, but no condition outside parentheses."""
        start = self._at.span.start
        left = self._product()
        while self._at.kind in _SUMS:
            op = self._operator()
            left = syntax.Arithmetic(op, left, self._product(), span=self._since(start))
        return left

    def _product(self) -> syntax.Expression:
        start = self._at.span.start
        left = self._signed()
        while self._at.kind in _PRODUCTS:
            op = self._operator()
            left = syntax.Arithmetic(op, left, self._signed(), span=self._since(start))
        return left

    def _operator(self) -> syntax.ArithmeticOp:
        op = _ARITHMETIC[self._at.text]
        # A chain grows to the left, one level of tree for each link: bounded, like nesting.
        self._operators += 1
        if self._operators > limits.EXPRESSION_OPERATORS_MAX:
            raise self._at.error(
                self._at.span, f"more than {limits.EXPRESSION_OPERATORS_MAX} arithmetic operators in one expression"
            )
        self._at.advance()
        return op

    def _signed(self) -> syntax.Expression:
        cursor = self._at
        if cursor.kind != "-":
            return self._whole()
        start = cursor.advance().start
        if cursor.kind is lexer.INTEGER or cursor.kind is lexer.FLOAT:
            return self._number(start)
        with self._deeper():
            return syntax.Negative(self._signed(), span=self._since(start))

    def _whole(self) -> syntax.Expression:
        cursor = self._at
        kind = cursor.kind
        if kind is lexer.VARIABLE:
            return self._variable()
        if kind is lexer.NAME:
            return self._word()
        if kind is lexer.STRING or kind is lexer.INTEGER or kind is lexer.FLOAT or kind == "[":
            return self.literal()
        if kind == "(":
            cursor.advance()
            with self._deeper():
                inner = self.expression()
            cursor.expect(")", where="after `(`")
            return inner
        hint = ""
        if kind is lexer.TYPE_NAME:
            hint = "a type stands only after a variable, as in `$p: Person`; strings are written in double quotes"
        raise self._unexpected("where a value is needed", expected=_VALUE, hint=hint)

    def _variable(self) -> syntax.Variable | syntax.Property:
        cursor = self._at
        name, span = cursor.text[1:], cursor.advance()
        if cursor.kind != ".":
            return syntax.Variable(name, span=span)
        cursor.advance()
        property_name = self.name("after `.`", expected=("a property name",))
        return syntax.Property(name, property_name, span=self._since(span.start))

    def _word(self) -> syntax.Expression:
        cursor = self._at
        word, span, after = cursor.text, cursor.span, cursor.kind_after()
        if word in ("true", "false", "null") or (word in ("date", "datetime") and after == "("):
            return self.literal()
        if word == "exists" and after == "{":
            cursor.advance()
            with self._deeper():
                return syntax.Exists(self._clauses("in the exists block"), span=self._since(span.start))
        if after != "(":
            cursor.advance()
            return syntax.Name(word, span=span)
        with self._deeper():
            return self._call(word, span)

    def _call(self, word: str, span: Span) -> syntax.Expression:
        cursor = self._at
        if word in _AGGREGATES:
            return self._aggregate(_AGGREGATES[word])
        if word in _TEXT_FUNCTIONS:
            text_function = _TEXT_FUNCTIONS[word]
            most = 3 if text_function is syntax.TextFunction.FUZZY else 2
            arguments = self._arguments(word, 2, most)
            edits = arguments[2] if len(arguments) > 2 else None
            return syntax.TextMatch(text_function, arguments[0], arguments[1], edits, span=self._since(span.start))
        match word:
            case "now":
                self._arguments(word, 0, 0)
                return syntax.Now(span=self._since(span.start))
            case "nearest":
                target, query = self._arguments(word, 2, 2)
                if not isinstance(target, syntax.Property):
                    raise cursor.error(target.span, "nearest() takes a property first", expected=("`$v.property`",))
                return syntax.Nearest(target, query, span=self._since(span.start))
            case "bm25":
                target, query = self._arguments(word, 2, 2)
                return syntax.Bm25(target, query, span=self._since(span.start))
            case "rrf":
                first, second, *rest = self._arguments(word, 2, 3)
                for arm in (first, second):
                    if not isinstance(arm, syntax.Nearest | syntax.Bm25):
                        raise cursor.error(arm.span, "rrf() fuses rankings", expected=("`nearest(…)`", "`bm25(…)`"))
                assert isinstance(first, syntax.Nearest | syntax.Bm25)
                assert isinstance(second, syntax.Nearest | syntax.Bm25)
                return syntax.Rrf(first, second, rest[0] if rest else None, span=self._since(span.start))
        if word in _FUNCTIONS:
            function = _FUNCTIONS[word]
            count = 2 if function is syntax.Function.DAYS_BETWEEN else 1
            return syntax.Call(function, self._arguments(word, count, count), span=self._since(span.start))
        raise cursor.error(span, f"unknown function `{word}`", hint=hint_for(word, _KNOWN_FUNCTIONS))

    def _arguments(self, word: str, least: int, most: int) -> tuple[syntax.Expression, ...]:
        cursor = self._at
        start = cursor.advance().start
        cursor.expect("(")
        arguments: list[syntax.Expression] = []
        while cursor.kind != ")":
            if arguments:
                cursor.expect(",", where=f"in {word}(…)", expected=("`,`", "`)`"))
            arguments.append(self.expression())
        cursor.advance()
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} or {most}"
            noun = "argument" if wanted == "1" else "arguments"
            raise cursor.error(self._since(start), f"{word}() takes {wanted} {noun}, got {len(arguments)}")
        return tuple(arguments)

    def _aggregate(self, function: syntax.AggregateFunction) -> syntax.Aggregate:
        cursor = self._at
        start = cursor.advance().start
        cursor.expect("(")
        distinct = cursor.at_word("distinct") and cursor.kind_after() != ")"
        if distinct:
            cursor.advance()
        argument: syntax.Expression | None = None
        if cursor.kind == "*":
            if function is not syntax.AggregateFunction.COUNT or distinct:
                raise self._unexpected(f"in {function}(…)", expected=_VALUE, hint="only count(*) takes a star")
            cursor.advance()
        else:
            argument = self.expression()
        cursor.expect(")", where=f"in {function}(…)")
        return syntax.Aggregate(function, argument, distinct, span=self._since(start))

    # --- literals -------------------------------------------------------------------------------------------------

    def literal(self) -> syntax.Literal | syntax.ListLiteral:
        """Parse a literal: text, number, `true`, `null`, a date, or a list of literals."""
        cursor = self._at
        kind = cursor.kind
        if kind is lexer.STRING:
            value = lexer.string_value(cursor.source, cursor.span)
            return syntax.Literal(syntax.LiteralKind.STRING, value, span=cursor.advance())
        if kind is lexer.INTEGER or kind is lexer.FLOAT:
            return self._number(None)
        if kind == "-" and cursor.kind_after() in (lexer.INTEGER, lexer.FLOAT):
            return self._number(cursor.advance().start)
        if kind == "[":
            return self._list()
        if kind is lexer.NAME:
            word = cursor.text
            if word in ("true", "false"):
                return syntax.Literal(syntax.LiteralKind.BOOL, word == "true", span=cursor.advance())
            if word == "null":
                return syntax.Literal(syntax.LiteralKind.NULL, None, span=cursor.advance())
            if word in ("date", "datetime") and cursor.kind_after() == "(":
                return self._date(word)
        hint = ""
        if kind is lexer.VARIABLE:
            hint = "a list literal holds literals only; for changing lists declare a parameter like `$xs: [String]`"
        raise self._unexpected("where a literal is needed", expected=("a literal",), hint=hint)

    def _date(self, word: str) -> syntax.Literal:
        cursor = self._at
        start = cursor.advance().start
        cursor.expect("(")
        value = lexer.string_value(cursor.source, cursor.expect(lexer.STRING, where=f"in {word}(…)"))
        cursor.expect(")", where=f"in {word}(…)")
        kind = syntax.LiteralKind.DATE if word == "date" else syntax.LiteralKind.DATETIME
        return syntax.Literal(kind, value, span=self._since(start))

    def _list(self) -> syntax.ListLiteral:
        cursor = self._at
        start = cursor.advance().start
        items: list[syntax.Literal | syntax.ListLiteral] = []
        with self._deeper():
            while cursor.kind != "]":
                if items:
                    cursor.expect(",", where="in a list", expected=("`,`", "`]`"))
                items.append(self.literal())
        cursor.advance()
        return syntax.ListLiteral(tuple(items), span=self._since(start))

    def _number(self, sign_at: int | None) -> syntax.Literal:
        cursor = self._at
        digits, kind, span = cursor.text, cursor.kind, cursor.advance()
        if sign_at is not None:
            span = Span(sign_at, span.end)
        if kind is lexer.FLOAT:
            value = float(digits)
            if value == float("inf"):
                raise cursor.error(span, "invalid float: number too large")
            return syntax.Literal(syntax.LiteralKind.FLOAT, value if sign_at is None else -value, span=span)
        # The least I64 is one further from zero than the greatest.
        number = lexer.parse_integer(self._at, digits, span, most=_I64_MAX if sign_at is None else _I64_MAX + 1)
        return syntax.Literal(syntax.LiteralKind.INTEGER, number if sign_at is None else -number, span=span)

    # --- small things ---------------------------------------------------------------------------------------------

    def name(self, where: str, *, expected: tuple[str, ...] = ("a name",), hint: str = "") -> str:
        """Consume a name and return it."""
        if self._at.kind is not lexer.NAME:
            raise self._unexpected(where, expected=expected, hint=hint)
        text = self._at.text
        self._at.advance()
        return text

    def _refuse_foreign_sign(self, where: str) -> None:
        """Report `==`, `<>` and the like, which are two tokens here."""
        cursor = self._at
        pair = cursor.text + cursor.text_after()
        if pair in _SIGN_HINTS and cursor.text_after(1):
            cursor.advance()
            raise self._unexpected(where, expected=_VALUE, hint=_SIGN_HINTS[pair])

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """Increase the nesting depth; the stages after the parser recurse as deep as the text nests."""
        if self._depth >= limits.QUERY_NESTING_MAX:
            raise self._at.error(
                self._at.span, f"nested more than {limits.QUERY_NESTING_MAX} levels deep, the most allowed"
            )
        self._depth += 1
        yield
        self._depth -= 1

    def _since(self, start: int) -> Span:
        return Span(start, self._at.end_before)

    def _unexpected(self, where: str, *, expected: tuple[str, ...] = (), hint: str = "") -> ParseError:
        """Return the error for the current token, with a hint for operators of other languages."""
        if not hint:
            hint = _SIGN_HINTS.get(self._at.text + self._at.text_after()) or _SIGN_HINTS.get(self._at.text, "")
        return self._at.unexpected(where=where, expected=expected, hint=hint)
