"""The rows a statement is about, and what the answer rests on.

A condition that names a node by its whole key, or an edge by the node at one of its ends, rests on that node alone.
Every other rests on the whole type: anything written to it meanwhile might have satisfied it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import InvalidRequestError
from omnigraph.execution.mutate_scope import Execution
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import walk
from omnigraph.language.plan.expressions import End, Expression
from omnigraph.model.footprint import TokenKind
from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType, NodeType
from omnigraph.model.types import FLOAT_SCALARS, INTEGER_BOUNDS, PropertyType, Scalar
from omnigraph.transaction.lookup import identifier, literal
from omnigraph.transaction.node_ids import derived_ids
from omnigraph.transaction.write_set import WriteSet

_ENDS = {End.FROM: (SRC, TokenKind.FROM), End.TO: (DST, TokenKind.TO)}
_FILTERED = frozenset({Scalar.STRING, Scalar.DATE, Scalar.DATETIME, *INTEGER_BOUNDS})


def matching_rows(
    staging: WriteSet, entity: EntityType, condition: Expression, execution: Execution, *, whole: bool
) -> pa.Table:
    """The rows of a type that satisfy a condition, committed or pending.

    Args:
        staging: the write; what the answer rests on enters its footprint.
        entity: the type.
        condition: about one row.
        execution: the values of this execution.
        whole: with all columns; otherwise the id is enough.

    Returns:
        The rows.
    """
    columns = [ID, *dict.fromkeys(_columns(condition))]
    if isinstance(entity, NodeType):
        named = _by_key(entity, condition, execution)
        if named is not None:
            # What the key alone decides needs no look at the rows.
            left = condition if whole or named.left is not None else None
            read = None if whole else columns if left is not None else [ID]
            rows = staging.rows(entity.type_key, named.ids, columns=read)
            return rows if left is None else execution.on(rows).matching(left)
    else:
        narrowed = _by_end(staging, entity, condition, execution)
        if narrowed is not None:
            return execution.on(narrowed).matching(condition)
    scanned = staging.scan(entity.type_key, columns=columns, filter=_filter(condition, execution))
    found = execution.on(scanned).matching(condition)
    return staging.rows(entity.type_key, [str(each) for each in found.column(ID).to_pylist()]) if whole else found


def matching_ids(staging: WriteSet, entity: EntityType, condition: Expression, execution: Execution) -> list[str]:
    """The ids of the rows of a type that satisfy a condition, committed or pending.

    Args:
        staging: the write; what the answer rests on enters its footprint.
        entity: the type.
        condition: about one row.
        execution: the values of this execution.

    Returns:
        The ids.
    """
    if isinstance(entity, NodeType):
        named = _by_key(entity, condition, execution)
        if named is not None and named.left is None:
            return staging.existing_ids(entity.type_key, named.ids)
    rows = matching_rows(staging, entity, condition, execution, whole=False)
    return [str(each) for each in rows.column(ID).to_pylist()]


@dataclass(frozen=True, slots=True)
class _Named:
    """The nodes a condition can be true of, where it fixes the whole key.

    Attributes:
        ids: one, or none where no key can be equal.
        left: what the condition says besides; None where it says nothing else.
    """

    ids: list[str]
    left: Expression | None


def _by_key(node: NodeType, condition: Expression, execution: Execution) -> _Named | None:
    """The one node a condition can be true of, where it fixes the whole key; None where it does not."""
    fixed: dict[str, Expression] = {}
    left: list[Expression] = []
    # Floats of two widths can have one text and differ.
    exact = {each.name for each in node.key if each.type.scalar not in FLOAT_SCALARS}
    for each in walk.split_conjuncts(condition):
        names = {one.name: value for one, value in _equalities(each) if isinstance(one, ex.Property)}
        if not names or not exact.issuperset(names) or not fixed.keys().isdisjoint(names):
            left.append(each)
        fixed = names | fixed
    if not node.is_keyed or not all(each.name in fixed for each in node.key):
        return None
    try:
        key = {each.name: execution.column(fixed[each.name], each.type, each.name) for each in node.key}
    except InvalidRequestError:
        return _Named([], None)  # null, or a number the key's type does not have: no key equals it
    return _Named([str(each) for each in derived_ids(node, key).to_pylist()], walk.join_conjuncts(left))


def _by_end(staging: WriteSet, edge: EdgeType, condition: Expression, execution: Execution) -> pa.Table | None:
    """The edges at the node a condition names; None where it names none."""
    for left, value in (pair for each in walk.split_conjuncts(condition) for pair in _equalities(each)):
        if isinstance(left, ex.Endpoint):
            column, kind = _ENDS[left.end]
            nodes = execution.value(value)
            staging.read_tokens(edge.type_key, kind, (str(each) for each in nodes.to_pylist() if each is not None))
            return staging.rows_where(edge.type_key, column, nodes)
    return None


def _equalities(condition: Expression) -> Iterator[tuple[ex.Property | ex.Endpoint, Expression]]:
    """What a condition says must equal something that depends on no row."""
    if isinstance(condition, ex.Compare) and condition.op is ex.CompareOp.EQUAL:
        for left, right in ((condition.left, condition.right), (condition.right, condition.left)):
            if isinstance(left, ex.Property | ex.Endpoint) and not walk.find_variables(right):
                yield left, right


def _columns(condition: Expression) -> Iterator[str]:
    for part in walk.walk(condition):
        if isinstance(part, ex.Property):
            yield part.name
        elif isinstance(part, ex.Endpoint):
            yield _ENDS[part.end][0]


def _filter(condition: Expression, execution: Execution) -> str | None:
    """A condition of the table's own language that every row meant satisfies; rows not meant may satisfy it too."""
    spelled = [text for each in walk.split_conjuncts(condition) if (text := _spelled(each, execution)) is not None]
    return " AND ".join(spelled) if spelled else None


def _spelled(condition: Expression, execution: Execution) -> str | None:
    if not isinstance(condition, ex.Compare) or walk.find_variables(condition.right):
        return None
    left = condition.left
    if not isinstance(left, ex.Property) or left.type.list or left.type.scalar not in _FILTERED:
        return None
    [value] = execution.value(condition.right).to_pylist()
    if value is None:
        return "false"
    text = literal(value) if _is_one_of(value, left.type) else None
    return None if text is None else f"{identifier(left.name)} {condition.op} {text}"


def _is_one_of(value: object, of: PropertyType) -> bool:
    """Whether a value is of a column's own type; others compare by rules the table does not have."""
    bounds = INTEGER_BOUNDS.get(of.scalar)
    if bounds is None:
        return not isinstance(value, int | float)
    return isinstance(value, int) and bounds[0] <= value <= bounds[1]
