"""Whether what a write leaves is allowed: every rule of the schema, on the final staged state, in one order.

1. values of single rows: enums, ranges, patterns
2. tuples that occur once
3. ends of edges
4. how many edges leave a node

Within each, nodes by name, then edges by name; the first breach is told. Types and required values are checked where
rows are made, keys where ids are. Only rows the write touches are looked at, and whatever the verdict rests on enters
the footprint: two writers that are each allowed alone, and not together, cannot both publish.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import ConstraintError
from omnigraph.model.schema import ID
from omnigraph.transaction.constraint_rules.checks import (
    degree_breaches,
    end_breaches,
    note_ends,
    note_ends_of,
    retained_breaches,
    unique_breaches,
    value_breaches,
)
from omnigraph.transaction.constraint_rules.rules import Rules, TypeRules
from omnigraph.transaction.write_set import WriteSet
from omnigraph.transaction.write_set.committed import FoundEdge

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute
_NOTHING = pa.table({})


class RuleKind(StrEnum):
    """Which sort of rule is broken."""

    VALUE = "value"
    UNIQUE = "unique"
    END = "end"
    DEGREE = "degree"


@dataclass(frozen=True, slots=True)
class Breach:
    """One broken rule."""

    kind: RuleKind
    type_key: str
    error: ConstraintError  # what to say, with the entities in its details


def check(write_set: WriteSet, rules: Rules, *, cascaded: frozenset[str] = frozenset()) -> None:
    """Refuse a write that breaks a rule."""
    for breach in breaches(write_set, rules, cascaded=cascaded):
        raise breach.error


def breaches(
    write_set: WriteSet,
    rules: Rules,
    *,
    cascaded: frozenset[str] = frozenset(),
    sources: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Iterator[Breach]:
    """Yield every rule that a write breaks, in order; once exhausted, the footprint holds what the verdict rests on.

    `cascaded` are node types whose deleted nodes' edges the write has deleted itself; `sources`, by edge type, nodes
    whose edges are counted though the write has none of them pending.
    """
    touched = [type_rules for key, type_rules in rules.types.items() if key in write_set.pending]
    for type_rules in touched:
        pending = write_set.pending[type_rules.type_key]
        if pending.has_rows:
            for rule in type_rules.values:
                yield from _as_breaches(RuleKind.VALUE, type_rules.type_key, value_breaches(rule, pending.rows))
    known = {type_rules.type_key: _known_edges(write_set, type_rules) for type_rules in touched}
    replaced = {
        type_rules.type_key: _replaced(write_set, type_rules)
        for type_rules in touched
        if known[type_rules.type_key] is None
    }
    for type_rules in touched:
        for distinct in type_rules.distinct:
            shared = unique_breaches(write_set, type_rules.type_key, distinct, replaced[type_rules.type_key])
            yield from _as_breaches(RuleKind.UNIQUE, type_rules.type_key, shared)
    for type_rules in touched:
        pending, edges = write_set.pending[type_rules.type_key], known[type_rules.type_key]
        # Whoever replaces everything is noted as that.
        for end in type_rules.ends if not pending.replaces else ():
            if pending.has_rows:
                note_ends(write_set, end, pending.rows)
            if edges is None:
                note_ends(write_set, end, replaced[type_rules.type_key])
            else:
                note_ends_of(write_set, end, edges)
    for error in end_breaches(write_set, (end for type_rules in touched for end in type_rules.ends)):
        yield Breach(RuleKind.END, error.details["type_key"], error)
    removed = dict(_removed(write_set, touched, rules, cascaded))
    for error in retained_breaches(write_set, removed, (end for key in removed for end in rules.arrivals[key])):
        yield Breach(RuleKind.END, error.details["type_key"], error)
    for key, type_rules in rules.types.items():
        if type_rules.degree is not None and (key in write_set.pending or sources.get(key)):
            wrong = degree_breaches(write_set, type_rules.degree, replaced.get(key), sources.get(key, ()))
            yield from _as_breaches(RuleKind.DEGREE, key, wrong)


def _as_breaches(kind: RuleKind, type_key: str, errors: Iterator[ConstraintError]) -> Iterator[Breach]:
    return (Breach(kind, type_key, error) for error in errors)


def _known_edges(write_set: WriteSet, rules: TypeRules) -> Sequence[FoundEdge] | None:
    """Return the replaced edges of a type that needs only their ends, if all are cached."""
    return write_set.replaced_edges(rules.type_key) if rules.ends and rules.needs_only_ends else None


def _replaced(write_set: WriteSet, rules: TypeRules) -> pa.Table:
    columns = rules.needs_replaced
    return write_set.replaced(rules.type_key, columns=columns) if columns else _NOTHING


def _removed(
    write_set: WriteSet, touched: list[TypeRules], rules: Rules, cascaded: frozenset[str]
) -> Iterator[tuple[str, "pa.Array[Any]"]]:
    """The nodes that go, of types that edges can end at, unless their edges go with them by the writer's own doing."""
    for type_rules in touched:
        pending = write_set.pending[type_rules.type_key]
        if not rules.arrivals.get(type_rules.type_key):
            continue
        if pending.replaces:
            before = write_set.replaced(type_rules.type_key, columns=[ID]).column(ID)
            gone = before.filter(pc.invert(pc.is_in(before, value_set=pending.rows.column(ID).combine_chunks())))
            yield type_rules.type_key, gone.combine_chunks()
        elif pending.deleted and type_rules.type_key not in cascaded:
            yield type_rules.type_key, pa.array(sorted(pending.deleted), pa.string())
