"""Row selection of mutations, and the read set it enters.

A condition that names a node by its whole key, or an edge by the node at one of its ends, reads that node alone. Every
other condition reads the whole type: any concurrent write to it might have satisfied it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import InvalidRequestError
from omnigraph.execution.mutate_values import Execution
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import walk
from omnigraph.language.plan.expressions import End, Expression
from omnigraph.model.footprint import TokenKind
from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType, NodeType
from omnigraph.model.types import FLOAT_SCALARS, INTEGER_BOUNDS, PropertyType, Scalar
from omnigraph.transaction.incoming import derived_ids
from omnigraph.transaction.write_set import WriteSet
from omnigraph.transaction.write_set.committed import identifier, literal

_ENDS = {End.FROM: (SRC, TokenKind.FROM), End.TO: (DST, TokenKind.TO)}
_FILTERED = frozenset({Scalar.STRING, Scalar.DATE, Scalar.DATETIME, *INTEGER_BOUNDS})


def find_rows(
    staging: WriteSet, entity: EntityType, condition: Expression, execution: Execution, *, whole: bool
) -> pa.Table:
    """Return the committed and pending rows of a type that satisfy a condition.

    Args:
        staging: the write; the rows read enter its read set.
        entity: the node or edge type to search.
        condition: about one row.
        execution: the values of this execution.
        whole: return all columns; otherwise the id is enough.
    """
    columns = [ID, *dict.fromkeys(_columns(condition))]
    if isinstance(entity, NodeType):
        named = _find_by_key(entity, condition, execution)
        if named is not None:
            # Rows need not be read where the key alone decides.
            left = condition if whole or named.left is not None else None
            read = None if whole else columns if left is not None else [ID]
            rows = staging.rows(entity.type_key, named.ids, columns=read)
            return rows if left is None else execution.on(rows).matching(left)
    else:
        narrowed = _find_by_end(staging, entity, condition, execution)
        if narrowed is not None:
            return execution.on(narrowed).matching(condition)
    scanned = staging.scan(entity.type_key, columns=columns, filter=_filter(condition, execution))
    found = execution.on(scanned).matching(condition)
    return staging.rows(entity.type_key, [str(id_) for id_ in found.column(ID).to_pylist()]) if whole else found


def find_ids(staging: WriteSet, entity: EntityType, condition: Expression, execution: Execution) -> list[str]:
    """Return the ids of the committed and pending rows of a type that satisfy a condition."""
    if isinstance(entity, NodeType):
        named = _find_by_key(entity, condition, execution)
        if named is not None and named.left is None:
            return staging.existing_ids(entity.type_key, named.ids)
    rows = find_rows(staging, entity, condition, execution, whole=False)
    return [str(id_) for id_ in rows.column(ID).to_pylist()]


@dataclass(frozen=True, slots=True)
class _Named:
    """Nodes that a condition can match, where it fixes the whole key.

    Attributes:
        ids: one, or none where no key can be equal.
        left: remaining condition; None where there is none.
    """

    ids: list[str]
    left: Expression | None


def _find_by_key(node: NodeType, condition: Expression, execution: Execution) -> _Named | None:
    """Return the one node a condition can match, where it fixes the whole key."""
    fixed: dict[str, Expression] = {}
    left: list[Expression] = []
    # Floats of two widths can have one text and differ.
    exact = {prop.name for prop in node.key if prop.type.scalar not in FLOAT_SCALARS}
    for conjunct in walk.split_conjuncts(condition):
        names = {one.name: value for one, value in _equalities(conjunct) if isinstance(one, ex.Property)}
        if not names or not exact.issuperset(names) or not fixed.keys().isdisjoint(names):
            left.append(conjunct)
        fixed = names | fixed
    if not node.is_keyed or not all(prop.name in fixed for prop in node.key):
        return None
    try:
        key = {prop.name: execution.column(fixed[prop.name], prop.type, prop.name) for prop in node.key}
    except InvalidRequestError:
        return _Named([], None)  # null, or out of the range of the key's type: no key equals it
    return _Named([str(id_) for id_ in derived_ids(node, key).to_pylist()], walk.join_conjuncts(left))


def _find_by_end(staging: WriteSet, edge: EdgeType, condition: Expression, execution: Execution) -> pa.Table | None:
    """Return the edges at the node a condition names; None where it names none."""
    for left, value in (pair for conjunct in walk.split_conjuncts(condition) for pair in _equalities(conjunct)):
        if isinstance(left, ex.Endpoint):
            column, kind = _ENDS[left.end]
            nodes = execution.value(value)
            staging.read_tokens(edge.type_key, kind, (str(node) for node in nodes.to_pylist() if node is not None))
            return staging.rows_where(edge.type_key, column, nodes)
    return None


def _equalities(condition: Expression) -> Iterator[tuple[ex.Property | ex.Endpoint, Expression]]:
    """Yield the properties and endpoints that must equal a value that depends on no row."""
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
    """Write a condition in the table's filter language that every matching row satisfies, and others may."""
    filters = [
        text for conjunct in walk.split_conjuncts(condition) if (text := _filter_text(conjunct, execution)) is not None
    ]
    return " AND ".join(filters) if filters else None


def _filter_text(condition: Expression, execution: Execution) -> str | None:
    if not isinstance(condition, ex.Compare) or walk.find_variables(condition.right):
        return None
    left = condition.left
    if not isinstance(left, ex.Property) or left.type.list or left.type.scalar not in _FILTERED:
        return None
    [value] = execution.value(condition.right).to_pylist()
    if value is None:
        return "false"
    text = literal(value) if _has_type(value, left.type) else None
    return None if text is None else f"{identifier(left.name)} {condition.op} {text}"


def _has_type(value: object, of: PropertyType) -> bool:
    """Return whether a value is of a column's own type; others compare by rules the table does not have."""
    bounds = INTEGER_BOUNDS.get(of.scalar)
    if bounds is None:
        return not isinstance(value, int | float)
    return isinstance(value, int) and bounds[0] <= value <= bounds[1]
