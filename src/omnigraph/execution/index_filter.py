"""Conditions that an index of a table can answer: for large types of which a column is not in memory.

An index only proposes: every row it names is judged by the whole condition again, so that no answer depends on it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.execution.arrays import Ordinals, once
from omnigraph.execution.columns import Columns
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Expression, Value
from omnigraph.language.plan.walk import conjuncts
from omnigraph.model.types import INTEGER_SCALARS, Scalar
from omnigraph.storage.tables.addresses import as_addresses
from omnigraph.storage.tables.table import ADDRESS, BuiltIndex, quoted

_EQUAL = frozenset({"BTREE", "BITMAP"})
_ORDERED = frozenset({"BTREE"})
_PARTS = frozenset({"NGRAM"})
# What asking an index is taken to cost, when reading the whole column is weighed against it: as much as so many rows.
_ROWS_WORTH = 1_000
# The index over parts of texts knows those of three letters.
_PART_LETTERS = 3
_SMALL = 2**31
_SIGNS = {
    ex.CompareOp.EQUAL: "=",
    ex.CompareOp.LESS: "<",
    ex.CompareOp.LESS_EQUAL: "<=",
    ex.CompareOp.GREATER: ">",
    ex.CompareOp.GREATER_EQUAL: ">=",
}
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class IndexFilter:
    """One condition on one property.

    Attributes:
        column: the property.
        kinds: which sorts of index answer it.
        text: the condition in the filter language, given the parameters; None where that is not for sure.
    """

    column: str
    kinds: frozenset[str]
    text: Callable[[Mapping[str, Value]], str | None]

    def index(self, nodes: Columns) -> BuiltIndex | None:
        """The index of a version that answers it."""
        return next(
            (
                each
                for each in nodes.table.indexes()
                if each.columns == (self.column,) and each.kind.upper() in self.kinds
            ),
            None,
        )


def index_filters(variable: str, condition: Expression | None) -> tuple[IndexFilter, ...]:
    """What of a condition on one variable an index may answer."""
    return () if condition is None else tuple(_filters(variable, condition))


def chosen_filter(filters: tuple[IndexFilter, ...], nodes: Columns) -> tuple[IndexFilter, BuiltIndex] | None:
    """The condition to ask an index for, and the index; None where rows are judged in memory."""
    if nodes.numbering.size <= limits.READ_WHOLE_ROWS_MAX:
        return None
    for each in filters:
        index = None if nodes.is_in_memory(each.column) else each.index(nodes)
        if index is not None:
            return each, index
    return None


def proposed(filters: tuple[IndexFilter, ...], nodes: Columns, params: Mapping[str, Value]) -> Ordinals | None:
    """The nodes that an index proposes; None where all must be looked at.

    Args:
        filters (tuple[IndexFilter, ...]): of the condition.
        nodes (Columns): the type.
        params (Mapping[str, Value]): values of parameters.

    Returns:
        Ordinals | None: ascending; all nodes for which the condition is true are among them.
    """
    found = chosen_filter(filters, nodes)
    if found is None:
        return None
    text = found[0].text(params)
    most = limits.LOOKUP_ROWS_MAX
    if text is None or nodes.is_worth_reading(found[0].column, _ROWS_WORTH):
        return None
    rows = nodes.table.scan(columns=[], filter=text, limit=most + 1, with_addresses=True)
    # So many are read faster in one pass.
    return None if len(rows) > most else once(nodes.numbering.at(as_addresses(rows.column(ADDRESS))))


def _filters(variable: str, condition: Expression) -> Iterator[IndexFilter]:
    for each in conjuncts(condition):
        match each:
            case ex.Compare(op=op, left=ex.Property(variable=own) as of, right=other) if op in _SIGNS:
                sign = _SIGNS[op]
            case ex.Compare(op=op, left=other, right=ex.Property(variable=own) as of) if op in _SIGNS:
                sign = _TURNED[_SIGNS[op]]
            case ex.StringTest(op=ex.StringOp.CONTAINS, whole=ex.Property(variable=own) as of, part=other):
                sign = ""
            case _:
                continue
        value = _value(other)
        if own == variable and value is not None and not of.type.list:
            kinds = _PARTS if not sign else _EQUAL if sign == "=" else _ORDERED
            text = _text(of, sign, value)
            if not isinstance(other, ex.Constant) or text({}) is not None:
                yield IndexFilter(of.name, kinds, text)


def _value(expression: Expression) -> Callable[[Mapping[str, Value]], Value] | None:
    match expression:
        case ex.Constant(value=value):
            return lambda _: value
        case ex.Parameter(name=name):
            return lambda values: values[name]
        case _:
            return None


def _text(
    of: ex.Property, sign: str, value: Callable[[Mapping[str, Value]], Value]
) -> Callable[[Mapping[str, Value]], str | None]:
    def text(params: Mapping[str, Value]) -> str | None:
        given = value(params)
        if of.type.is_string and isinstance(given, str):
            if sign:
                return f"`{of.name}` {sign} {quoted(given)}"
            return f"contains(`{of.name}`, {quoted(given)})" if len(given) >= _PART_LETTERS else None
        if of.type.scalar is Scalar.BOOL and isinstance(given, bool) and sign == "=":
            return f"`{of.name}` = {str(given).lower()}"
        is_small = isinstance(given, int) and not isinstance(given, bool) and 0 <= given < _SMALL
        return f"`{of.name}` {sign} {given}" if of.type.scalar in INTEGER_SCALARS and is_small and sign else None

    return text
