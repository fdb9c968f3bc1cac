"""Find the rows that break a rule: values, uniqueness, ends of edges, and how many edges leave a node."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import ConstraintError, InvalidRequestError
from omnigraph.model.footprint import TokenKind
from omnigraph.model.schema import ID, SRC
from omnigraph.storage.json_values import to_json
from omnigraph.transaction.constraint_rules.rules import Degree, Distinct, EndsAt, Matches, OneOf, ValueRule, Within
from omnigraph.transaction.write_set import WriteSet
from omnigraph.transaction.write_set.committed import FoundEdge

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute
_LEAVING = {SRC: TokenKind.FROM}


def value_breaches(rule: ValueRule, rows: pa.Table) -> Iterator[ConstraintError]:
    """The rows that break a rule, in their order."""
    broken = broken_rows(rule, rows)
    if pc.any(broken).as_py():
        wrong_rows = rows.filter(broken)
        for entity, value in zip(wrong_rows.column(ID), wrong_rows.column(rule.column), strict=True):
            shown = value.as_py()
            yield ConstraintError(
                rule.breach(shown), type=rule.type_name, property=rule.column, value=shown, entity=entity.as_py()
            )


def broken_rows(rule: ValueRule, rows: pa.Table) -> Any:  # noqa: ANN401  (whatever kernels take)
    """Which rows break a rule."""
    column: Any = rows.column(rule.column)
    match rule:
        case OneOf(values=values):
            wrong = pc.invert(pc.is_in(column, value_set=pa.array(values, pa.string())))
        case Within(least=least, most=most):
            wrong = _outside(column, least, most)
        case Matches():
            wrong = pc.invert(_found(rule, column))
    return pc.and_kleene(wrong, pc.is_valid(column))


def _outside(column: Any, least: float | None, most: float | None) -> Any:  # noqa: ANN401  (whatever kernels take)
    numbers = column.cast(pa.float64(), safe=False)
    outside = pc.is_nan(numbers)
    if least is not None:
        outside = pc.or_(outside, pc.less(numbers, float(least)))
    if most is not None:
        outside = pc.or_(outside, pc.greater(numbers, float(most)))
    return outside


def _found(rule: Matches, column: Any) -> Any:  # noqa: ANN401  (whatever kernels take)
    if rule.fault is not None:
        raise InvalidRequestError(rule.unusable)
    try:
        return pc.match_substring_regex(column, rule.pattern)
    except pa.ArrowInvalid as fault:
        raise InvalidRequestError(f"{rule.unusable}: {fault}") from fault


def unique_breaches(
    write_set: WriteSet, type_key: str, rule: Distinct, replaced: pa.Table
) -> Iterator[ConstraintError]:
    """Two entities with one tuple, judged on what the write leaves; the values it takes and frees are noted."""
    pending = write_set.pending[type_key].rows
    if write_set.pending[type_key].replaces:
        yield from _shared_within(rule, pending)
        return  # there is nothing else, and the footprint says that everything was written
    # What an entity had and keeps, nobody else could take meanwhile without breaking the rule themselves.
    pending, replaced = _changed(rule, pending, replaced)
    yield from _shared_within(rule, pending)
    taken = _by_name(rule, whole(rule, pending))
    write_set.claim_tokens(type_key, TokenKind.UNIQUE, taken)
    write_set.write_tokens(type_key, TokenKind.UNIQUE, _names(rule, whole(rule, replaced)))
    if not taken:
        return
    first = rule.columns[0]
    # Rows with the same first component are few enough to compare here; those of this very write are among them.
    found = whole(rule, write_set.rows_where(type_key, first, _flat(whole(rule, pending), first), columns=rule.columns))
    for name, holder in zip(_names(rule, found), found.column(ID).to_pylist(), strict=True):
        other = taken.get(name)
        if other is not None and other != holder:
            yield _breach(rule, pending, str(holder), other)


def check_unique_within(rule: Distinct, rows: pa.Table) -> dict[str, str]:
    """Refuse two of these rows with one tuple."""
    for breach in _shared_within(rule, rows):
        raise breach
    return _by_name(rule, whole(rule, rows))


def _shared_within(rule: Distinct, rows: pa.Table) -> Iterator[ConstraintError]:
    there = whole(rule, rows)
    names = _names(rule, there)
    if len(set(names)) == len(names):
        return
    seen: dict[str, str] = {}
    for name, row_id in zip(names, there.column(ID).to_pylist(), strict=True):
        if name in seen:
            yield _breach(rule, there, seen[name], str(row_id))
        seen.setdefault(name, str(row_id))


def whole(rule: Distinct, rows: pa.Table) -> pa.Table:
    """The rows that have every component of the tuple."""
    for column in rule.columns:
        if rows.column(column).null_count:
            rows = rows.filter(pc.is_valid(rows.column(column)))
    return rows


def _by_name(rule: Distinct, rows: pa.Table) -> dict[str, str]:
    """By the name of each tuple, the id of the first row that has it."""
    pairs = list(zip(_names(rule, rows), map(str, rows.column(ID).to_pylist()), strict=True))
    return dict(reversed(pairs))


def _names(rule: Distinct, rows: pa.Table) -> list[str]:
    """One text for each row's tuple, in which the rule is named too."""
    prefix = f"{','.join(rule.columns)}="
    return [f"{prefix}{text}" for text in tuple_texts(rule, rows).to_pylist()]


def tuple_texts(rule: Distinct, rows: pa.Table) -> "pa.Array[Any]":
    """One text for each row's tuple; equal tuples have equal texts, and no others have."""
    texts = [_texts(rows.column(column)) for column in rule.columns]
    if len(texts) == 1:
        return texts[0]
    # Each component's length before it keeps ("a", "bc") and ("ab", "c") apart.
    parts = [part for text in texts for part in (pc.utf8_length(text).cast(pa.string()), ":", text)]
    joined: pa.Array[Any] = pc.binary_join_element_wise(*parts, "")
    return joined


def _texts(column: "pa.ChunkedArray[Any]") -> "pa.Array[Any]":
    kind = column.type
    values: Any = column.combine_chunks()
    if pa.types.is_floating(kind):
        values = pc.add(values, 0.0)  # both zeros are one value
    elif pa.types.is_timestamp(kind):
        values = values.cast(pa.int64())
    elif pa.types.is_nested(kind):
        values = pa.array([json.dumps(value) for value in to_json(values)], pa.string())
    texts: pa.Array[Any] = values.cast(pa.string())
    return texts


def _changed(rule: Distinct, pending: pa.Table, replaced: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Of what is written, and of what it replaces, the rows where an entity's tuple is not the one it had."""
    if not replaced.num_rows or any(pa.types.is_nested(pending.schema.field(name).type) for name in rule.columns):
        return pending, replaced
    before = replaced.take(pc.index_in(pending.column(ID), value_set=_flat(replaced, ID)))
    same = pc.is_valid(before.column(ID))
    for name in rule.columns:
        same = pc.and_(same, pc.coalesce(pc.equal(pending.column(name), before.column(name)), pa.scalar(value=False)))
    kept = pending.column(ID).filter(same).combine_chunks()
    return pending.filter(pc.invert(same)), replaced.filter(pc.invert(pc.is_in(replaced.column(ID), value_set=kept)))


def _flat(rows: pa.Table, column: str) -> "pa.Array[Any]":
    found: pa.Array[Any] = rows.column(column).combine_chunks()
    return found


def _breach(rule: Distinct, rows: pa.Table, holder: str, other: str) -> ConstraintError:
    # Of the two, the later is always among the rows of the write.
    row = rows.filter(pc.equal(rows.column(ID), other)).slice(0, 1)
    value = tuple(to_json(row.column(column))[0] for column in rule.columns)
    return ConstraintError(
        rule.breach(value, holder, other), type=rule.type_name, columns=rule.columns, ids=(holder, other)
    )


def end_breaches(write_set: WriteSet, ends: Iterable[EndsAt]) -> Iterator[ConstraintError]:
    """Touched edges with an end that is no node, judged on what the write leaves."""
    ends = list(ends)
    named: dict[str, list[str]] = {}
    for end in ends:
        if not write_set.pending[end.type_key].has_rows:
            continue
        named.setdefault(end.node_key, []).extend(_ids(write_set.pending[end.type_key].rows, end.column))
    # One look per node type, whatever the number of edge types.
    missing = {key: set(write_set.missing(key, ids)) for key, ids in named.items() if ids}
    for end in ends:
        gone = missing.get(end.node_key)
        if gone:
            edges = write_set.pending[end.type_key].rows
            yield from _breaches(end, edges.filter(pc.is_in(edges.column(end.column), value_set=_set(gone))))


def retained_breaches(
    write_set: WriteSet, removed: Mapping[str, "pa.Array[Any]"], arrivals: Iterable[EndsAt]
) -> Iterator[ConstraintError]:
    """Edges that are left behind while their node goes."""
    for end in arrivals:
        ids = removed.get(end.node_key)
        if ids is None or not len(ids):
            continue
        yield from _breaches(end, edges_at(write_set, end, ids, columns=()))


def edges_at(write_set: WriteSet, end: EndsAt, node_ids: "pa.Array[Any]", *, columns: Iterable[str]) -> pa.Table:
    """The edges with one end at these nodes; that there are no others enters the footprint."""
    kind = _LEAVING.get(end.column, TokenKind.TO)
    write_set.read_tokens(end.type_key, kind, (str(node_id) for node_id in node_ids.to_pylist()))
    return write_set.rows_where(end.type_key, end.column, node_ids, columns=[ID, end.column, *columns])


def edge_ids_at(write_set: WriteSet, end: EndsAt, node_ids: Sequence[str]) -> list[str]:
    """The ids of the edges with one end at these nodes; that there are no others enters the footprint."""
    write_set.read_tokens(end.type_key, _LEAVING.get(end.column, TokenKind.TO), node_ids)
    return write_set.edges_at(end.type_key, end.column, node_ids)


def note_ends(write_set: WriteSet, end: EndsAt, rows: pa.Table) -> None:
    """Note that the edges of the nodes at one end of these rows change."""
    if rows.num_rows:
        write_set.write_tokens(end.type_key, _LEAVING.get(end.column, TokenKind.TO), _ids(rows, end.column))


def note_ends_of(write_set: WriteSet, end: EndsAt, edges: Sequence[FoundEdge]) -> None:
    """The same of edges that were found and not read."""
    nodes = {edge.src if end.column == SRC else edge.dst for edge in edges}
    if nodes:
        write_set.write_tokens(end.type_key, _LEAVING.get(end.column, TokenKind.TO), nodes)


def _ids(rows: pa.Table, column: str) -> list[str]:
    return [str(node_id) for node_id in pc.unique(rows.column(column)).to_pylist()]


def _set(ids: set[str]) -> "pa.Array[Any]":
    return pa.array(sorted(ids), pa.string())


def _breaches(end: EndsAt, edges: pa.Table) -> Iterator[ConstraintError]:
    for entity, node in zip(edges.column(ID).to_pylist(), edges.column(end.column).to_pylist(), strict=True):
        message = end.breach(str(node))
        yield ConstraintError(message, type_key=end.type_key, end=end.column, id=str(node), entity=str(entity))


def degree_breaches(
    write_set: WriteSet, rule: Degree, replaced: pa.Table | None, more: Iterable[str] = ()
) -> Iterator[ConstraintError]:
    """Nodes with too many or too few edges, judged on what the write leaves.

    A node that is gone owes nothing, and one that the write gives and takes no edge is not looked at.
    """
    chunks: list[pa.Array[Any]] = [pa.array(more, pa.string())]
    if replaced is not None:
        chunks += [*write_set.pending[rule.type_key].rows.column(SRC).chunks, *replaced.column(SRC).chunks]
    touched = pc.unique(pa.chunked_array(chunks, pa.string()))
    write_set.read_tokens(rule.type_key, TokenKind.FROM, (str(node_id) for node_id in touched.to_pylist()))
    edges = write_set.rows_where(rule.type_key, SRC, touched, columns=[SRC])
    counted = pc.value_counts(edges.column(SRC))
    counts = dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True))
    wrong = {
        node: count
        for node in map(str, touched.to_pylist())
        if (count := counts.get(node, 0)) < rule.least or (rule.most is not None and count > rule.most)
    }
    if not wrong:
        return
    gone = set(write_set.missing(rule.node_key, list(wrong)))
    for node, count in wrong.items():
        if node not in gone:
            yield ConstraintError(rule.breach(node, count), type_key=rule.type_key, id=node, count=count)
