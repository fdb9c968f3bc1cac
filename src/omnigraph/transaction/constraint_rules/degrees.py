"""How many edges leave a node: checked for the nodes whose edges a write touches."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import ConstraintError
from omnigraph.model.footprint import TokenKind
from omnigraph.model.schema import SRC
from omnigraph.transaction.constraint_rules.rules import Degree
from omnigraph.transaction.write_set import WriteSet

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


def degree_breaches(
    write_set: WriteSet, rule: Degree, replaced: pa.Table | None, more: Iterable[str] = ()
) -> Iterator[ConstraintError]:
    """Nodes with too many or too few edges, judged on what the write leaves.

    A node that is gone owes nothing, and one that the write gives and takes no edge is not looked at.

    `rule`: the bounds.
    `replaced`: the committed edges that the write replaces or deletes; None if it has no edge of the type.
    `more`: other nodes whose edges are to be counted.

    Yields:
        What to say of each.
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
