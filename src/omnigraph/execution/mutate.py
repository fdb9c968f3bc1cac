"""Mutations: statements executed in order over staged rows, as one write.

A later statement sees what an earlier one did. Nothing is visible to other readers, and nothing is left behind, until
all statements are done, every rule of the schema holds, and the one commit is published.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, assert_never

import pyarrow as pa

from omnigraph.errors import InternalError, InvalidRequestError
from omnigraph.execution.mutate_select import find_ids, find_rows
from omnigraph.execution.mutate_values import Execution, text_column, to_assigned_column
from omnigraph.ids import IdSource
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import STRING, End, Expression, Parameter
from omnigraph.language.query import CompiledQuery, Params
from omnigraph.model.commit import CommitKind, Record
from omnigraph.model.schema import DST, ID, SRC, EdgeType, EntityType, NodeType
from omnigraph.storage.conform import nulls
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.transaction import constraints
from omnigraph.transaction.accepted import Accepted, refuse_other_schema
from omnigraph.transaction.constraint_rules.checks import edge_ids_at
from omnigraph.transaction.incoming import derived_ids
from omnigraph.transaction.write import Operation
from omnigraph.transaction.write_set import WriteSet

_QUERY, _NODES, _EDGES = "query", "affected_nodes", "affected_edges"


@dataclass(frozen=True, slots=True)
class Affected:
    """Number of nodes and edges a mutation inserted, updated or deleted."""

    nodes: int = 0
    edges: int = 0


@dataclass(slots=True)
class Mutation:
    """A mutation as a write that can run any number of times.

    Attributes:
        operation: the write.
        last: result of its last run.
    """

    operation: Operation
    last: Affected = field(default_factory=Affected)

    def affected(self, entry: Record | None) -> Affected:
        """Return the counts: from the commit, which may be that of an earlier call, else from the last run."""
        if entry is None:
            return self.last
        nodes, edges = entry.notes.get(_NODES), entry.notes.get(_EDGES)
        return Affected(nodes if isinstance(nodes, int) else 0, edges if isinstance(edges, int) else 0)


def mutation(
    accepted: Accepted,
    compiled: CompiledQuery,
    params: Params,
    *,
    now_ms: int,
    ids: IdSource,
    blobs: BlobIngress | None = None,
) -> Mutation:
    """Prepare a mutation as a write.

    Args:
        accepted: the schema it was compiled against.
        compiled: the mutation.
        params: a value for every parameter.
        now_ms: the instant of this execution, milliseconds since 1970.
        ids: where new ids come from.
        blobs: resolves blob addresses; by default none is allowed.

    Returns:
        Its write. Inserts alone may be retried on a newer head; updates and deletes, which chose their rows on an older
        one, may not.

    Raises:
        InvalidRequestError: the query only reads.
    """
    plan = compiled.plan
    if not isinstance(plan, steps.MutationPlan):
        raise InvalidRequestError(f"query '{compiled.name}' only reads; run it as a query")
    execution = Execution(params, now_ms, blobs)

    def run(staging: WriteSet) -> None:
        refuse_other_schema(accepted, staging)
        statements = _Statements(accepted, staging, execution, ids)
        for step in plan.steps:
            statements.execute(step)
        statements.flush()
        constraints.check(staging, accepted.rules, cascaded=frozenset(statements.cascaded))
        made.last = Affected(statements.nodes, statements.edges)
        # In the commit record too, so that a repeated request gets the same answer.
        staging.notes.update({_QUERY: compiled.name, _NODES: statements.nodes, _EDGES: statements.edges})

    made = Mutation(
        Operation(
            kind=CommitKind.MUTATION,
            type_keys=frozenset(f"{use.kind}:{use.type_name}" for use in compiled.operation.writes),
            run=run,
            redoable=all(isinstance(step, steps.InsertNode | steps.InsertEdge) for step in plan.steps),
        )
    )
    return made


@dataclass(slots=True)
class _Statements:
    """Progress of the statements of one attempt."""

    accepted: Accepted
    staging: WriteSet
    execution: Execution
    ids: IdSource
    nodes: int = 0
    edges: int = 0
    cascaded: set[str] = field(default_factory=set)
    # Inserted rows by type key, staged when a later statement reads or the mutation ends.
    _buffered: dict[str, list[pa.Table]] = field(default_factory=dict)

    def execute(self, step: steps.MutationStep) -> None:
        match step:
            case steps.InsertNode():
                self._insert_node(step)
            case steps.InsertEdge():
                self._insert_edge(step)
            case steps.UpdateNodes():
                self._update(step)
            case steps.DeleteNodes():
                self._delete_nodes(step)
            case steps.DeleteEdges():
                self._delete_edges(step)
            case _:
                assert_never(step)

    def flush(self) -> None:
        """Stage the buffered inserts."""
        for key, buffered in self._buffered.items():
            rows = buffered[0] if len(buffered) == 1 else pa.concat_tables(buffered)
            entity = self.accepted.schema.entity(key)
            if entity is not None and entity.is_keyed:
                self.staging.upsert(key, rows)
            else:
                self.staging.insert(key, rows, fresh_ids=True)
        self._buffered.clear()

    def _insert_node(self, step: steps.InsertNode) -> None:
        node = self._node(step.type_name)
        columns = self._assigned_columns(step.assignments, key=frozenset(prop.name for prop in node.key))
        new = derived_ids(node, columns) if node.is_keyed else text_column(self.ids.new())
        self._buffer(node, self._kept_columns(node, new, keeps=step.keeps) | {ID: new} | columns)
        self.nodes += 1

    def _insert_edge(self, step: steps.InsertEdge) -> None:
        edge = self._edge(step.type_name)
        ends = {SRC: self._end(edge, End.FROM, step.source), DST: self._end(edge, End.TO, step.target)}
        columns = ends | self._assigned_columns(step.assignments, key=frozenset(edge.key_names) - ends.keys())
        new = derived_ids(edge, columns) if edge.is_keyed else text_column(self.ids.new())
        self._buffer(edge, self._kept_columns(edge, new, keeps=step.keeps) | {ID: new} | columns)
        self.edges += 1

    def _kept_columns(self, entity: EntityType, ids: "pa.Array[Any]", *, keeps: bool) -> "dict[str, pa.Array[Any]]":
        """Return what an upsert keeps of the row it changes; nothing if there is none, or the row is replaced."""
        if not keeps:
            return {}
        self.flush()
        found = self.staging.rows(entity.type_key, [str(ids[0].as_py())])
        columns: Any = found.combine_chunks()
        return {name: columns.column(name).chunk(0) for name in found.column_names} if found.num_rows else {}

    def _update(self, step: steps.UpdateNodes) -> None:
        self.flush()
        node = self._node(step.type_name)
        rows = find_rows(self.staging, node, step.condition, self.execution, whole=True)
        if not rows.num_rows:
            return
        before = self.execution.on(rows)
        for assignment in step.assignments:
            column = to_assigned_column(
                before.values(_assigned_value(assignment)), assignment.type, assignment.property, self.execution.blobs
            )
            place = rows.schema.get_field_index(assignment.property)
            rows = rows.set_column(place, rows.schema.field(place), column)
        self.staging.upsert(node.type_key, rows)
        self.nodes += rows.num_rows

    def _delete_nodes(self, step: steps.DeleteNodes) -> None:
        self.flush()
        node = self._node(step.type_name)
        gone = find_ids(self.staging, node, step.condition, self.execution)
        self.cascaded.add(node.type_key)
        if not gone:
            return
        for end in self.accepted.rules.arrivals[node.type_key]:
            # One end after the other: an edge with both ends here is already deleted at the second.
            edges = edge_ids_at(self.staging, end, gone)
            self._delete_found(end.type_key, edges)
            self.edges += len(edges)
        self._delete_found(node.type_key, gone)
        self.nodes += len(gone)

    def _delete_edges(self, step: steps.DeleteEdges) -> None:
        self.flush()
        edge = self._edge(step.type_name)
        gone = find_ids(self.staging, edge, step.condition, self.execution)
        self._delete_found(edge.type_key, gone)
        self.edges += len(gone)

    def _delete_found(self, type_key: str, ids: list[str]) -> None:
        if ids:
            self.staging.delete(type_key, ids)

    def _assigned_columns(
        self, assignments: Iterable[steps.Assign], *, key: frozenset[str] = frozenset()
    ) -> "dict[str, pa.Array[Any]]":
        columns = {}
        for assignment in assignments:
            given = _assigned_value(assignment)
            plain = self.execution.plain(given, assignment.type)
            if plain is not None:
                columns[assignment.property] = plain
                continue
            value = self.execution.value(given)
            if assignment.property in key and value.null_count:
                raise InvalidRequestError(f"insert @key property '{assignment.property}' cannot contain null")
            columns[assignment.property] = to_assigned_column(
                value, assignment.type, assignment.property, self.execution.blobs
            )
        missing = sorted(key.difference(columns))
        if missing:
            raise InvalidRequestError(f"insert missing @key property '{missing[0]}'")
        return columns

    def _end(self, edge: EdgeType, end: End, value: Expression) -> "pa.Array[Any]":
        plain = self.execution.plain(value, STRING)
        if plain is not None:
            return plain
        found = self.execution.value(value)
        if found.null_count:
            raise InvalidRequestError(f"insert for {edge.name} must provide required endpoint '{end}'; it is null")
        return to_assigned_column(found, STRING, end)

    def _buffer(self, entity: EntityType, columns: "dict[str, pa.Array[Any]]") -> None:
        for prop in entity.properties:
            if prop.name not in columns:
                if not prop.type.nullable:
                    raise InvalidRequestError(f"missing required property '{prop.name}'")
                columns[prop.name] = nulls(1, prop.type)
        schema = self.accepted.columns[entity.type_key]
        row = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
        self._buffered.setdefault(entity.type_key, []).append(row)

    def _node(self, name: str) -> NodeType:
        node = self.accepted.schema.node(name)
        if node is None:
            raise InternalError(f"the mutation uses the unknown node type {name}")
        return node

    def _edge(self, name: str) -> EdgeType:
        edge = self.accepted.schema.edge(name)
        if edge is None:
            raise InternalError(f"the mutation uses the unknown edge type {name}")
        return edge


def _assigned_value(assignment: steps.Assign) -> Expression:
    """Return the value of an assignment; for a blob, its address as text."""
    value = assignment.value
    if isinstance(value, Parameter) and value.type.is_blob:
        return Parameter(value.name, STRING)
    return value
