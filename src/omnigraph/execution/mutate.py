"""Mutations: statements carried out in order over staged rows, as one write.

A later statement sees what an earlier one did. Nothing is visible to anybody else, and nothing is left behind, until
all of them are done, every rule of the schema holds on what they leave, and the one commit is published.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, assert_never

import pyarrow as pa

from omnigraph.errors import InternalError, InvalidRequestError
from omnigraph.execution.mutate_find import matching_ids, matching_rows
from omnigraph.execution.mutate_scope import Execution
from omnigraph.execution.mutate_values import assigned_column, one_text
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
from omnigraph.transaction.constraint_rules.ends import edge_ids_at
from omnigraph.transaction.node_ids import derived_ids
from omnigraph.transaction.write import Operation
from omnigraph.transaction.write_set import WriteSet

_QUERY, _NODES, _EDGES = "query", "affected_nodes", "affected_edges"


@dataclass(frozen=True, slots=True)
class Affected:
    """How many nodes and edges a mutation inserted, updated or deleted."""

    nodes: int = 0
    edges: int = 0


@dataclass(slots=True)
class Mutation:
    """A mutation as a write that can run any number of times.

    Attributes:
        operation: the write.
        last: what it did when it last ran.
    """

    operation: Operation
    last: Affected = field(default_factory=Affected)

    def affected(self, entry: Record | None) -> Affected:
        """What it came to: as the commit says, be it that of an earlier call, or without one as it ran."""
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
    """A mutation ready to be written.

    Args:
        accepted: the schema it was compiled against.
        compiled: the mutation.
        params: a value for every parameter.
        now_ms: the instant of this execution, milliseconds since 1970.
        ids: where new ids come from.
        blobs: what becomes of addresses of blobs; none is allowed by default.

    Returns:
        Its write. Inserts alone may run again on a newer head; updates and deletes, which chose their rows on sight of
        an older one, may not.

    Raises:
        InvalidRequestError: the query only reads.
    """
    plan = compiled.plan
    if not isinstance(plan, steps.MutationPlan):
        raise InvalidRequestError(f"query '{compiled.name}' only reads; it is no mutation")
    execution = Execution(params, now_ms, blobs)

    def run(staging: WriteSet) -> None:
        refuse_other_schema(accepted, staging)
        done = _Statements(accepted, staging, execution, ids)
        for step in plan.steps:
            done.carry_out(step)
        done.flush()
        constraints.check(staging, accepted.rules, cascaded=frozenset(done.cascaded))
        made.last = Affected(done.nodes, done.edges)
        # In the record too, so that a request sent twice is answered twice with the same.
        staging.notes.update({_QUERY: compiled.name, _NODES: done.nodes, _EDGES: done.edges})

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
    """The statements of one attempt, as far as they are done."""

    accepted: Accepted
    staging: WriteSet
    execution: Execution
    ids: IdSource
    nodes: int = 0
    edges: int = 0
    cascaded: set[str] = field(default_factory=set)
    # Rows of inserts that nobody has looked at yet, by type key; put together when somebody does.
    _waiting: dict[str, list[pa.Table]] = field(default_factory=dict)

    def carry_out(self, step: steps.MutationStep) -> None:
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
        """Stage the rows that wait."""
        for key, waiting in self._waiting.items():
            rows = waiting[0] if len(waiting) == 1 else pa.concat_tables(waiting)
            entity = self.accepted.schema.entity(key)
            if entity is not None and entity.is_keyed:
                self.staging.upsert(key, rows)
            else:
                self.staging.insert(key, rows, fresh_ids=True)
        self._waiting.clear()

    def _insert_node(self, step: steps.InsertNode) -> None:
        node = self._node(step.type_name)
        columns = self._assigned(step.assignments, key=frozenset(each.name for each in node.key))
        new = derived_ids(node, columns) if node.is_keyed else one_text(self.ids.new())
        self._wait(node, {ID: new} | columns)
        self.nodes += 1

    def _insert_edge(self, step: steps.InsertEdge) -> None:
        edge = self._edge(step.type_name)
        ends = {SRC: self._end(edge, End.FROM, step.source), DST: self._end(edge, End.TO, step.target)}
        columns = ends | self._assigned(step.assignments, key=frozenset(edge.key_names) - ends.keys())
        new = derived_ids(edge, columns) if edge.is_keyed else one_text(self.ids.new())
        self._wait(edge, {ID: new} | columns)
        self.edges += 1

    def _update(self, step: steps.UpdateNodes) -> None:
        self.flush()
        node = self._node(step.type_name)
        rows = matching_rows(self.staging, node, step.condition, self.execution, whole=True)
        if not rows.num_rows:
            return
        before = self.execution.on(rows)
        for each in step.assignments:
            column = assigned_column(before.values(_given(each)), each.type, each.property, self.execution.blobs)
            place = rows.schema.get_field_index(each.property)
            rows = rows.set_column(place, rows.schema.field(place), column)
        self.staging.upsert(node.type_key, rows)
        self.nodes += rows.num_rows

    def _delete_nodes(self, step: steps.DeleteNodes) -> None:
        self.flush()
        node = self._node(step.type_name)
        gone = matching_ids(self.staging, node, step.condition, self.execution)
        self.cascaded.add(node.type_key)
        if not gone:
            return
        for end in self.accepted.rules.arrivals[node.type_key]:
            # One end after the other: an edge with both ends here is gone when the second is looked at.
            edges = edge_ids_at(self.staging, end, gone)
            self._delete_found(end.type_key, edges)
            self.edges += len(edges)
        self._delete_found(node.type_key, gone)
        self.nodes += len(gone)

    def _delete_edges(self, step: steps.DeleteEdges) -> None:
        self.flush()
        edge = self._edge(step.type_name)
        gone = matching_ids(self.staging, edge, step.condition, self.execution)
        self._delete_found(edge.type_key, gone)
        self.edges += len(gone)

    def _delete_found(self, type_key: str, ids: list[str]) -> None:
        if ids:
            self.staging.delete(type_key, ids)

    def _assigned(
        self, assignments: Iterable[steps.Assign], *, key: frozenset[str] = frozenset()
    ) -> "dict[str, pa.Array[Any]]":
        columns = {}
        for each in assignments:
            given = _given(each)
            plain = self.execution.plain(given, each.type)
            if plain is not None:
                columns[each.property] = plain
                continue
            value = self.execution.value(given)
            if each.property in key and value.null_count:
                raise InvalidRequestError(f"insert @key property '{each.property}' cannot contain null")
            columns[each.property] = assigned_column(value, each.type, each.property, self.execution.blobs)
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
        return assigned_column(found, STRING, end)

    def _wait(self, entity: EntityType, columns: "dict[str, pa.Array[Any]]") -> None:
        for each in entity.properties:
            if each.name not in columns:
                if not each.type.nullable:
                    raise InvalidRequestError(f"missing required property '{each.name}'")
                columns[each.name] = nulls(1, each.type)
        schema = self.accepted.columns[entity.type_key]
        row = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
        self._waiting.setdefault(entity.type_key, []).append(row)

    def _node(self, name: str) -> NodeType:
        node = self.accepted.schema.node(name)
        if node is None:
            raise InternalError(f"a mutation was bound to the node type {name}, which there is not")
        return node

    def _edge(self, name: str) -> EdgeType:
        edge = self.accepted.schema.edge(name)
        if edge is None:
            raise InternalError(f"a mutation was bound to the edge type {name}, which there is not")
        return edge


def _given(assignment: steps.Assign) -> Expression:
    """The value of an assignment; a blob's is the text that says where its bytes are."""
    value = assignment.value
    if isinstance(value, Parameter) and value.type.is_blob:
        return Parameter(value.name, STRING)
    return value
