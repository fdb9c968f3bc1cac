"""Records to rows of a table. Where some do not fit, they are halved until those are alone; the others go on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import ConstraintError, GraphError, InvalidRequestError
from omnigraph.ids import IdSource
from omnigraph.model.schema import ID, EntityType, NodeType
from omnigraph.pipeline.load.batches import Batch, Positions
from omnigraph.pipeline.load.problems import Phase, Problem
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.constraint_rules.checks import value_breaches
from omnigraph.transaction.constraint_rules.rules import TypeRules
from omnigraph.transaction.incoming import Frame, incoming_edges, incoming_nodes

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Rows of one table, each with its place in the file.

    Attributes:
        rows: in the table's own columns.
        positions: where each record is, in the order of the file.
        ids_are_fresh: whether every id was made here.
    """

    entity: EntityType
    rows: pa.Table
    positions: Positions
    ids_are_fresh: bool


class Typing:
    """Brings records into their tables' types, under one schema and its rules about single rows."""

    def __init__(self, accepted: Accepted, ids: IdSource, source: int, blobs: BlobIngress) -> None:
        self._rules = {key: replace(item, key=None) for key, item in accepted.rules.types.items()}
        self._ranks = {key: number for number, key in enumerate(accepted.rules.types)}
        self._ids = ids
        self._source = source
        self._blobs = blobs

    def typed(self, found: Sequence[Batch]) -> Iterator[TypedRows | Problem]:
        """Rows of a block's records, those of one type together.

        Args:
            found: records, of any types.

        Yields:
            TypedRows | Problem: rows, or why a record is none.
        """
        by_type: dict[str, list[TypedRows]] = {}
        for batch in found:
            for item in self._sifted(batch):
                if isinstance(item, Problem):
                    yield item
                else:
                    by_type.setdefault(item.entity.type_key, []).append(item)
        for parts in by_type.values():
            together = in_order(parts)
            good, problems = self._within_their_rules(together)
            yield from problems
            if len(good.positions):
                yield good

    def _sifted(self, batch: Batch) -> Iterator[TypedRows | Problem]:
        try:
            made = self._made(batch)
        except GraphError as error:
            if len(batch) == 1:
                yield Problem(Phase.READING, self._source, int(batch.positions[0]), error)
                return
        else:
            yield made
            return
        half = len(batch) // 2
        yield from self._sifted(batch.part(0, half))
        yield from self._sifted(batch.part(half, len(batch)))

    def _made(self, batch: Batch) -> TypedRows:
        entity = batch.entity
        # Bounds on blobs from elsewhere are for what is in memory at once, so each batch has its own.
        frame = Frame(batch.rows, entity.type_key, self._blobs.another())
        if isinstance(entity, NodeType):
            _check_key(entity, frame)
            made = incoming_nodes(entity, self._rules[entity.type_key], frame, self._ids)
        else:
            made = incoming_edges(entity, frame, self._ids)
        return TypedRows(entity, made.rows, batch.positions, made.ids_are_fresh)

    def _within_their_rules(self, given: TypedRows) -> tuple[TypedRows, list[Problem]]:
        """The rows that break no rule about single rows, and what to say of the others."""
        rules: TypeRules = self._rules[given.entity.type_key]
        # Ids may repeat here: rows are told apart by their number, in the place of the id.
        numbered = given.rows.set_column(0, ID, pa.array(np.arange(given.rows.num_rows)))
        broken: dict[int, ConstraintError] = {}
        for rule in rules.values:
            for breach in value_breaches(rule, numbered):
                broken.setdefault(int(breach.details.pop("entity")), breach)
        if not broken:
            return given, []
        rank = self._ranks[given.entity.type_key]
        problems = [
            Problem(Phase.VALUE, self._source, int(given.positions[row]), error, rank) for row, error in broken.items()
        ]
        kept = np.ones(len(given.positions), bool)
        kept[list(broken)] = False
        return replace(given, rows=given.rows.filter(pa.array(kept)), positions=given.positions[kept]), problems


def in_order(parts: Sequence[TypedRows]) -> TypedRows:
    """Rows of one type, in the order of their records."""
    if len(parts) == 1:
        return parts[0]
    positions = np.concatenate([item.positions for item in parts])
    rows = pa.concat_tables([item.rows for item in parts])
    if (np.diff(positions) < 0).any():
        order = np.argsort(positions, kind="stable")
        positions, rows = positions[order], rows.take(order)
    return TypedRows(parts[0].entity, rows, positions, all(item.ids_are_fresh for item in parts))


def _check_key(node: NodeType, frame: Frame) -> None:
    for item in node.key:
        if frame.has_nulls(item.name):
            raise InvalidRequestError(f"node {node.name} is missing a non-null @key value")
