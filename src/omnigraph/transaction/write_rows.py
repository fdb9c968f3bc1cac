"""Rows of many types written as one commit: appended, merged by id, or in the place of what was there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.compute

from omnigraph.errors import ConflictError, InvalidRequestError
from omnigraph.ids import IdSource
from omnigraph.model.commit import CommitKind
from omnigraph.model.conflict import KeyConflict
from omnigraph.model.schema import ID, EdgeType, NodeType, Schema
from omnigraph.transaction import constraints
from omnigraph.transaction.accepted import Accepted, refuse_other_schema
from omnigraph.transaction.incoming import Frame, Incoming, incoming_edges, incoming_nodes, patched
from omnigraph.transaction.mode import Mode, mode_named
from omnigraph.transaction.write import Operation
from omnigraph.transaction.write_set import WriteSet

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class RowsToWrite:
    """Rows converted and ready: the write can run any number of times."""

    operation: Operation  # the write; it makes a commit even where nothing changes
    nodes: Mapping[str, int]  # how many nodes of each type, by name
    edges: Mapping[str, int]  # how many edges of each type, by name


def rows_to_write(
    accepted: Accepted, nodes: Mapping[str, Frame], edges: Mapping[str, Frame], *, mode: Mode | str, ids: IdSource
) -> RowsToWrite:
    """Convert rows of node and edge types for their tables; edges may name nodes of the same write."""
    mode = mode_named(mode, can_patch=True)
    patches = mode is Mode.PATCH
    found = [
        incoming_nodes(node, accepted.rules.types[node.type_key], rows, ids, patches=patches)
        for node, rows in _nodes(accepted.schema, nodes)
    ]
    found += [incoming_edges(edge, rows, ids, patches=patches) for edge, rows in _edges(accepted.schema, edges)]
    if mode is not Mode.MERGE:
        for incoming in found:
            _refuse_repeated_ids(incoming)

    def run(write_set: WriteSet) -> None:
        refuse_other_schema(accepted, write_set)
        for incoming in found:
            _stage(write_set, incoming, mode)
        constraints.check(write_set, accepted.rules)

    operation = Operation(
        kind=CommitKind.LOAD,
        type_keys=frozenset(incoming.entity.type_key for incoming in found),
        run=run,
        # Content that was replaced whole was replaced on sight of what was there: the caller decides again.
        redoable=mode is not Mode.OVERWRITE,
        always_commits=True,
    )
    return RowsToWrite(
        operation,
        {incoming.entity.name: incoming.rows.num_rows for incoming in found if isinstance(incoming.entity, NodeType)},
        {incoming.entity.name: incoming.rows.num_rows for incoming in found if isinstance(incoming.entity, EdgeType)},
    )


def _nodes(schema: Schema, given: Mapping[str, Frame]) -> list[tuple[NodeType, Frame]]:
    found = []
    for name, rows in given.items():
        node = schema.node(name)
        if node is None:
            raise InvalidRequestError(f"unknown node type '{name}'")
        found.append((node, rows))
    return found


def _edges(schema: Schema, given: Mapping[str, Frame]) -> list[tuple[EdgeType, Frame]]:
    found: dict[str, tuple[EdgeType, Frame]] = {}
    for name, rows in given.items():
        edge = schema.edge(name)
        if edge is None:
            raise InvalidRequestError(f"unknown edge type '{name}'")
        if edge.name in found:
            raise InvalidRequestError(f"edge type '{edge.name}' is given twice, once as '{name}'")
        found[edge.name] = (edge, rows)
    return list(found.values())


def _refuse_repeated_ids(given: Incoming) -> None:
    ids = given.rows.column(ID)
    if given.ids_are_fresh or pc.count_distinct(ids).as_py() == len(ids):
        return
    counted = pc.value_counts(ids)
    repeated = sorted(counted.field(0).filter(pc.greater(counted.field(1), 1)).to_pylist())
    key = given.entity.type_key
    raise ConflictError(
        f"{key} '{repeated[0]}' occurs twice in one write",
        conflicts=tuple(KeyConflict(key, str(row_id)) for row_id in repeated),
        code="key_conflict",
    )


def _stage(write_set: WriteSet, given: Incoming, mode: Mode) -> None:
    key = given.entity.type_key
    match mode:
        case Mode.OVERWRITE:
            write_set.overwrite(key, given.rows)
        case _ if given.ids_are_fresh and mode is not Mode.PATCH:
            write_set.insert(key, given.rows, fresh_ids=True)
        case Mode.APPEND:
            write_set.insert(key, given.rows)
        case Mode.MERGE:
            write_set.upsert(key, given.rows)
        case Mode.PATCH:
            stored = write_set.rows(key, [str(row_id) for row_id in given.rows.column(ID).to_pylist()])
            write_set.upsert(key, patched(given, stored))
