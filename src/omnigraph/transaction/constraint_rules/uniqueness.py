"""Tuples that occur once over a type: among the rows of a write, and between them and the committed ones."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import ConstraintError
from omnigraph.model.footprint import TokenKind
from omnigraph.model.schema import ID
from omnigraph.storage.json_values import to_json
from omnigraph.transaction.constraint_rules.rules import Distinct
from omnigraph.transaction.write_set import WriteSet

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


def unique_breaches(
    write_set: WriteSet, type_key: str, rule: Distinct, replaced: pa.Table
) -> Iterator[ConstraintError]:
    """Two entities with one tuple, judged on what the write leaves; the values it takes and frees are noted.

    `replaced`: the committed rows that the write replaces or deletes.

    Yields:
        What to say of two entities that would share it.
    """
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
    """Refuse two of these rows with one tuple.

    Args:
        rule: the tuple.
        rows: with their ids.

    Returns:
        By the name of each tuple, the id of the row that has it.

    Raises:
        ConstraintError: two rows have the same.
    """
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
    """One text for each row's tuple; equal tuples have equal texts, and no others have.

    Args:
        rule: the tuple.
        rows: with every component of it.

    Returns:
        As many texts.
    """
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
