"""Whether what a write leaves is allowed: every rule of the schema, on the final staged state, in one order.

1. values of single rows: enums, ranges, patterns
2. tuples that occur once
3. ends of edges
4. how many edges leave a node

Within each, nodes by name, then edges by name; the first breach is told. Types and required values are checked where
rows are made, keys where ids are. Only rows the write touches are looked at, and whatever the verdict rests on enters
the footprint: two writers that are each allowed alone, and not together, cannot both publish.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.model.schema import ID
from omnigraph.transaction.constraint_rules.degrees import check_degrees
from omnigraph.transaction.constraint_rules.ends import check_ends, check_retained, note_ends
from omnigraph.transaction.constraint_rules.rules import Rules, TypeRules
from omnigraph.transaction.constraint_rules.uniqueness import check_unique
from omnigraph.transaction.constraint_rules.values import check_values
from omnigraph.transaction.staging import Staging

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


def check(staging: Staging, rules: Rules, *, cascaded: frozenset[str] = frozenset()) -> None:
    """Refuse a write that breaks a rule.

    Args:
        staging: the write, all its statements done.
        rules: those of the schema it was made under.
        cascaded: node types whose deleted nodes' edges the write has looked for and deleted itself.

    Raises:
        ConstraintError: the first rule it breaks.
        InvalidRequestError: a rule cannot be applied.
    """
    touched = [each for key, each in rules.types.items() if key in staging.pending]
    for each in touched:
        rows = staging.pending[each.type_key].rows
        if rows.num_rows:
            for rule in each.values:
                check_values(rule, rows)
    replaced = {each.type_key: _replaced(staging, each) for each in touched}
    for each in touched:
        for distinct in each.distinct:
            check_unique(staging, each.type_key, distinct, replaced[each.type_key])
    for each in touched:
        # Whoever replaces everything is noted as that.
        if not staging.pending[each.type_key].replaces:
            for end in each.ends:
                note_ends(staging, end, staging.pending[each.type_key].rows, replaced[each.type_key])
    check_ends(staging, (end for each in touched for end in each.ends))
    removed = dict(_removed(staging, touched, rules, cascaded))
    check_retained(staging, removed, (end for key in removed for end in rules.arrivals[key]))
    for each in touched:
        if each.degree is not None:
            check_degrees(staging, each.degree, replaced[each.type_key])


def _replaced(staging: Staging, rules: TypeRules) -> pa.Table:
    columns = rules.needs_replaced
    return staging.replaced(rules.type_key, columns=columns) if columns else pa.table({})


def _removed(
    staging: Staging, touched: list[TypeRules], rules: Rules, cascaded: frozenset[str]
) -> Iterator[tuple[str, "pa.Array[Any]"]]:
    """The nodes that go, of types that edges can end at, unless their edges go with them by the writer's own doing."""
    for each in touched:
        pending = staging.pending[each.type_key]
        if not rules.arrivals.get(each.type_key):
            continue
        if pending.replaces:
            before = staging.replaced(each.type_key, columns=[ID]).column(ID)
            gone = before.filter(pc.invert(pc.is_in(before, value_set=pending.rows.column(ID).combine_chunks())))
            yield each.type_key, gone.combine_chunks()
        elif pending.deleted and each.type_key not in cascaded:
            yield each.type_key, pa.array(sorted(pending.deleted), pa.string())
