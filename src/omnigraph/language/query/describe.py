"""Describe the result columns and the types that a query reads and writes, for tools."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from omnigraph.language.plan import pattern, steps
from omnigraph.language.plan.expressions import Column, ValueType
from omnigraph.language.plan.steps import MutationStep
from omnigraph.language.query import statements, syntax
from omnigraph.language.query.bind import BoundQuery
from omnigraph.language.query.bind_return import derive_column_name
from omnigraph.model.schema import Schema, TypeKind
from omnigraph.model.types import PropertyType, Scalar

_KINDS = {
    Scalar.STRING: "string",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
    Scalar.BLOB: "blob",
    Scalar.VECTOR: "vector",
}


@dataclass(frozen=True, slots=True)
class ResultField:
    """Result column, by its name in tools."""

    name: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    vector_dim: int | None = None

    def to_json(self) -> dict[str, object]:
        """Return the wire format."""
        document: dict[str, object] = {"name": self.name, "kind": self.kind}
        if self.item_kind is not None:
            document["item_kind"] = self.item_kind
        if self.vector_dim is not None:
            document["vector_dim"] = self.vector_dim
        document["nullable"] = self.nullable
        return document


@dataclass(frozen=True, slots=True, order=True)
class TypeUse:
    """A type that an operation reads or writes."""

    kind: TypeKind
    type_name: str

    def to_json(self) -> dict[str, str]:
        """Return the wire format."""
        return {"kind": self.kind.value, "type_name": self.type_name}


@dataclass(frozen=True, slots=True)
class Operation:
    """Result columns, read types and written types of a query.

    Attributes:
        result: result columns; empty for a mutation.
        reads: every type it may read, sorted.
        writes: every type it may change, sorted; empty for reads.
    """

    result: tuple[ResultField, ...]
    reads: tuple[TypeUse, ...]
    writes: tuple[TypeUse, ...]

    def to_json(self) -> dict[str, object]:
        """Return the wire format."""
        return {
            "result": [field.to_json() for field in self.result],
            "reads": [use.to_json() for use in self.reads],
            "writes": [use.to_json() for use in self.writes],
        }


def describe(query: BoundQuery, schema: Schema) -> Operation:
    """Describe a bound query."""
    if isinstance(query.body, pattern.Read):
        assert isinstance(query.syntax.body, statements.Read)
        fields = zip(query.syntax.body.projections, query.body.columns, strict=True)
        result = tuple(_describe_field(projection, column) for projection, column in fields)
        return Operation(result, _sorted(_find_read_types(query.body.block)), ())
    uses = [use for step in query.body for use in _find_used_types(step, schema)]
    reads = _sorted(use for use, _ in uses)
    return Operation((), reads, _sorted(use for use, written in uses if written))


def _describe_field(projection: statements.Projection, column: Column) -> ResultField:
    name = projection.alias or _field_name(projection.value)
    return _describe_type(name, column.type)


def _field_name(written: syntax.Expression) -> str:
    match written:
        case syntax.Property():
            return written.name
        case syntax.Aggregate() | syntax.Call():
            return written.function.value
        case _:
            return derive_column_name(written)


def _describe_type(name: str, type_: ValueType) -> ResultField:
    if not isinstance(type_, PropertyType):
        return ResultField(name, "object", type_.nullable)
    kind = _KINDS[type_.scalar]
    if type_.list:
        return ResultField(name, "list", type_.nullable, item_kind=kind)
    return ResultField(name, kind, type_.nullable, vector_dim=type_.vector_dim)


def _sorted(uses: Iterable[TypeUse]) -> tuple[TypeUse, ...]:
    return tuple(sorted(set(uses)))


def _find_read_types(block: pattern.Block) -> Iterator[TypeUse]:
    for clause in block.clauses:
        match clause:
            case pattern.Binding():
                yield _node(clause.type_name)
            case pattern.Traversal():
                yield _node(clause.source_type)
                yield _node(clause.target_type)
                yield _edge(clause.edge)
            case pattern.Negation() | pattern.Existence() | pattern.Mark() | pattern.Optional():
                yield from _find_read_types(clause.block)
            case pattern.Alternatives():
                for inner in clause.blocks:
                    yield from _find_read_types(inner)
            case pattern.Condition():
                pass
            case _:
                assert_never(clause)


def _find_used_types(step: MutationStep, schema: Schema) -> Iterator[tuple[TypeUse, bool]]:
    """Yield every type a step reads, and whether it writes it too."""
    match step:
        case steps.InsertNode() | steps.UpdateNodes():
            yield _node(step.type_name), True
        case steps.InsertEdge():
            yield _edge(step.type_name), True
            yield _node(step.from_type), False
            yield _node(step.to_type), False
        case steps.DeleteNodes():
            yield _node(step.type_name), True
            for edge in schema.edges_of(step.type_name):
                yield _edge(edge.name), True
        case steps.DeleteEdges():
            yield _edge(step.type_name), True
        case _:
            assert_never(step)


def _node(name: str) -> TypeUse:
    return TypeUse(TypeKind.NODE, name)


def _edge(name: str) -> TypeUse:
    return TypeUse(TypeKind.EDGE, name)
