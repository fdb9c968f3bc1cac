"""The rules that the result of a merge breaks, as conflicts: judged on what is staged, whatever led to it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.branch.merge.changed import Changed
from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.combine import shown
from omnigraph.branch.merge.sides import Lineage, Sides
from omnigraph.branch.row_changes import ids_of
from omnigraph.model.conflict import MergeConflict, MergeConflictKind
from omnigraph.model.schema import ID, SRC
from omnigraph.transaction import constraints
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.constraint_rules.rules import Degree
from omnigraph.transaction.constraints import Breach, RuleKind
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.lookup import rows_with
from omnigraph.transaction.write_set import WriteSet

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_BROKEN = {
    RuleKind.VALUE: MergeConflictKind.VALUE_CONSTRAINT_VIOLATION,
    RuleKind.UNIQUE: MergeConflictKind.UNIQUE_VIOLATION,
    RuleKind.END: MergeConflictKind.ORPHAN_EDGE,
    RuleKind.DEGREE: MergeConflictKind.CARDINALITY_VIOLATION,
}

_Images = tuple[dict[tuple[str, str | None], dict[str, object]], ...]


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """What checking a staged merge needs.

    Attributes:
        staging: what the result differs in from the ground, pending.
        sides: how the sides go together.
        changed: what both sides did since the base.
        accepted: the schema of the result.
    """

    parts: GraphContext
    staging: WriteSet
    sides: Sides
    changed: Changed
    accepted: Accepted

    def broken_rules(self, found: Sequence[MergeConflict], *, is_decided: bool) -> list[MergeConflict]:
        """List every rule that the result breaks, beside the conflicts found before.

        Args:
            found: conflicts that are known; an entity is not listed twice for one kind.
            is_decided: whether the caller decided anything.
        """
        known = {(each.kind, each.type_key, each.entity_id) for each in found}
        sources = self._nodes_to_count() if is_decided else {}
        broken: dict[tuple[MergeConflictKind, str, str | None, str], None] = {}
        for breach in self._owing(list(constraints.breaches(self.staging, self.accepted.rules, sources=sources))):
            kind = _BROKEN[breach.kind]
            entity = _entity(breach.kind, breach.error.details)
            if entity is not None and (kind, breach.type_key, entity) in known:
                continue  # an edge that lost both its nodes is one orphan
            known.add((kind, breach.type_key, entity))
            broken[kind, breach.type_key, entity, breach.error.message] = None
        at_base, source, target = self._images({(key, entity) for _, key, entity, _ in broken if entity is not None})
        return [
            MergeConflict(
                kind,
                key,
                entity,
                message,
                at_base.get((key, entity)),
                source.get((key, entity)),
                target.get((key, entity)),
            )
            for kind, key, entity, message in broken
        ]

    # -- how many edges leave a node ----------------------------------------------------------------------------------

    def _nodes_to_count(self) -> dict[str, list[str]]:
        """By edge type, the nodes that either side gave or took an edge, where they must have some.

        A node that one side deleted with its edges may have been kept without them: then none of them is pending.
        """
        found = {}
        for lineage, _ in self._counted():
            sides = [self.changed.rows(lineage, side) for side in Side if self.changed.differs(lineage, side)]
            changed = [rows for side in sides for rows in (side.inserted, side.before, side.after, side.deleted)]
            chunks = [chunk for rows in changed for chunk in rows.column(SRC).chunks]
            nodes = pc.unique(pa.chunked_array(chunks, pa.string()))
            found[lineage.key] = sorted(str(node) for node in nodes.to_pylist())
        return found

    def _counted(self) -> Iterator[tuple[Lineage, Degree]]:
        """The edge types of which a node must have some, if any."""
        for lineage in self.sides.types:
            degree = self.accepted.rules.types[lineage.key].degree
            if degree is not None and degree.least:
                yield lineage, degree

    def _owing(self, found: list[Breach]) -> Iterator[Breach]:
        """Pass over nodes without an edge that have none on a side that has them: they never owed any."""
        bare = {
            (breach.type_key, str(breach.error.details["id"]))
            for breach in found
            if breach.kind is RuleKind.DEGREE and breach.error.details["count"] == 0
        }
        if bare:
            for lineage, degree in self._counted():
                nodes = sorted(node for type_key, node in bare if type_key == lineage.key)
                kept = {node for side in Side for node in self._without_edges(lineage, degree, side, nodes)}
                bare -= {(lineage.key, node) for node in nodes if node not in kept}
        for breach in found:
            if breach.kind is not RuleKind.DEGREE or (breach.type_key, breach.error.details["id"]) not in bare:
                yield breach

    def _without_edges(self, lineage: Lineage, degree: Degree, side: Side, nodes: list[str]) -> set[str]:
        """Which of these nodes a side has, without an edge of the type that leaves them."""
        places = {each.key: self.changed.pin(each, side) for each in self.sides.types}
        pin, edges = places.get(degree.node_key), places.get(lineage.key)
        if pin is None or not nodes:
            return set()
        there = set(ids_of(self.parts.tables.open(pin).rows_with_ids(nodes, columns=[ID])))
        if edges is None:
            return there
        leaving = rows_with(self.parts.tables.open(edges), SRC, pa.array(nodes, pa.string()), columns=[SRC])
        return there.difference(str(node) for node in leaving.column(SRC).to_pylist())

    # -- what conflicts show ------------------------------------------------------------------------------------------

    def _images(self, wanted: set[tuple[str, str]]) -> _Images:
        """Entities at the base, on the source and on the target."""
        found: _Images = ({}, {}, {})
        for lineage in self.sides.types:
            ids = sorted(entity for type_key, entity in wanted if type_key == lineage.key)
            if not ids:
                continue
            for image, state in zip(found, (None, *Side), strict=True):
                if state in lineage.pins:
                    rows = shown(self.changed.rows_of(lineage, state, ids))
                    image.update({(lineage.key, str(row[ID])): row for row in rows})
        return found


def _entity(kind: RuleKind, details: Mapping[str, object]) -> str | None:
    """The one entity a breach is about; None where it is about a value or a number of edges."""
    match kind:
        case RuleKind.UNIQUE:
            ids = details.get("ids")
            return str(ids[1]) if isinstance(ids, tuple) else None
        case RuleKind.END:
            return str(details["entity"])
        case RuleKind.VALUE | RuleKind.DEGREE:
            return None
